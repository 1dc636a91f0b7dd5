"""`make docs`: the pages of docs/ and a reference made from the YAML, the docstrings and the headers, as one site.

`python -m docs.site FOLDER` writes the sources that Sphinx reads (docs/conf.py) into an empty folder. Nothing of it is
committed: what stands in the reference has its home in the entry, the docstring or the header that it is read from.
"""
