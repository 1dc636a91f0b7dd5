"""_C.help: the docstrings of the extension module's functions, in a file of their own beside it.

They are more than a megabyte, which nothing but help() reads: csrc/python/help.c maps the file and has the rows of the
method tables point into it, so that a page of it is read when one of its docstrings is.

The file begins with a line that holds a digest of the names, by which the module knows that it is its own, how many
docstrings there are, and the size of the text. Where each docstring begins in the text follows, in DIGITS hexadecimal
digits each, then the text, in which a NUL ends each docstring. First come the docstrings of the generated functions, in
the order of their tables (emit_python.py), then those of yaml/by_hand.yaml, by name.
"""

from __future__ import annotations

from itertools import accumulate

from .catalog import Catalog
from .emit_python import documented, help_digest
from .help_text import docstring

NAME = "_C.help"
DIGITS = 8


def emit_help(catalog: Catalog) -> str:
    texts = [*map(docstring, documented(catalog)), *(entry.docstring for entry in catalog.by_hand)]
    text = "".join(f"{text}\0" for text in texts)
    begins = accumulate((len(text) + 1 for text in texts[:-1]), initial=0)
    table = "".join(f"{begin:0{DIGITS}x}" for begin in begins)
    return f"tensorpy help {help_digest(catalog)} {len(texts):{DIGITS}} {len(text):{DIGITS}}\n{table}{text}"
