"""How Sphinx builds the site from what `python -m docs.site` writes: `make docs`."""

from typing import Any

from docutils import nodes
from sphinx.addnodes import desc_signature, pending_xref
from sphinx.application import Sphinx

project = "tensorpy"
html_title = "tensorpy"
html_show_copyright = False
html_show_sourcelink = False
html_copy_source = False

extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure"]  # listings leave out what they say is left out: ...

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
pygments_style = "friendly"
pygments_dark_style = "native"
highlight_language = "text"
toc_object_entries = False
add_module_names = True
python_maximum_signature_line_length = 110
html_domain_indices = True


def plain_signatures(app: Sphinx, doctree: nodes.document) -> None:
    """A type in a signature is text: `Node` may be one of several, and looking each word up takes half of the time."""
    for signature in doctree.findall(desc_signature):
        for link in list(signature.findall(pending_xref)):
            link.replace_self(link.children)


trees: dict[str, str] = {}  # by folder: the tree at the left as no page in particular sees it


def marked(tree: str, name: str) -> str:
    """The tree with the page and what it stands below as what is open."""
    at = tree.find(f'href="{name}.html"')
    item = tree.rfind('<li class="toctree-l', 0, at)
    if at < 0 or item < 0:
        return tree
    above = tree.rfind('<li class="toctree-l1', 0, at)
    for start in sorted({item, above}, reverse=True):
        end = tree.index('"', start + len('<li class="'))
        tree = f"{tree[:end]} current{tree[end:]}"
    return tree


def one_navigation(app: Sphinx, name: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """The tree of all titles is made once for each folder: made for each page it takes more than all else together."""
    if "toctree" not in context:
        return
    folder, _, page = name.rpartition("/")

    def toctree(**asked: Any) -> str:
        if folder not in trees:
            nobody = f"{folder}/-".lstrip("/")
            trees[folder] = app.builder._get_local_toctree(nobody, **{**asked, "maxdepth": 2})  # type: ignore[attr-defined]
        return marked(trees[folder], page)

    context["toctree"] = toctree


def setup(app: Sphinx) -> None:
    """Names of the C interface are targets of their own."""
    app.add_object_type("capi", "capi", objname="C interface")
    app.connect("doctree-read", plain_signatures)
    app.connect("html-page-context", one_navigation, priority=100)
