"""_C.help: the docstrings of the extension module's functions, in a file of their own beside it.

They are more than a megabyte, which nothing but help() reads: csrc/python/help.c maps the file and has the rows of the
method tables point into it. The file begins with a line that holds a digest of the names, by which the module knows
that it is its own, and how many docstrings there are; then the offset of each as eight hexadecimal digits; then the
docstrings, each with a NUL. First come the generated functions, in the order of their tables (emit_python.py), then
those of yaml/by_hand.yaml, by name.
"""

from __future__ import annotations

from .catalog import Catalog
from .emit_python import documented, help_digest
from .help_text import docstring

NAME = "_C.help"
DIGITS = 8


def emit_help(catalog: Catalog) -> str:
    texts = [*map(docstring, documented(catalog)), *(entry.docstring for entry in catalog.by_hand)]
    head = f"tensorpy help {help_digest(catalog)} {len(texts):{DIGITS}}\n"
    at = len(head) + DIGITS * len(texts) + 1
    offsets = []
    for text in texts:
        offsets.append(f"{at:0{DIGITS}x}")
        at += len(text.encode()) + 1
    return head + "".join(offsets) + "\n" + "".join(f"{text}\0" for text in texts)
