"""The public names of PyTorch 2.13, from names.txt: `module: name ...`.

Read when a name is asked for that tensorpy does not have, and for the table in docs/torch.md.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

VERSION = "2.13.0"


def _text() -> str:
    """The file in the tree, or what setup.py makes of it for a wheel."""
    path = Path(__file__).with_name("names.txt")
    if path.exists():
        return path.read_text()
    import gzip

    return gzip.decompress(path.with_suffix(".txt.gz").read_bytes()).decode()


@cache
def modules() -> dict[str, frozenset[str]]:
    """The public names of each module; "torch.Tensor" stands for the methods and attributes of tensors."""
    found = {}
    for line in _text().splitlines():
        module, _, names = line.partition(":")
        found[module] = frozenset(names.split())
    return found


def _is_private(module: str) -> bool:
    return any(part.startswith("_") for part in module.split("."))


def is_module(name: str) -> bool:
    """Whether PyTorch has a module of that name; a private one, which nobody lists, is taken to be there."""
    return _is_private(name) or (name in modules() and name != "torch.Tensor")


def has(module: str, name: str) -> bool:
    """Whether PyTorch has a public name in a module; the names of a private module, and of one whose names are not
    listed, are taken to be there."""
    if name.startswith("__"):
        return False
    listed = modules().get(module)
    unlisted = _is_private(module) or listed == frozenset()
    return unlisted or name in (listed or ()) or f"{module}.{name}" in modules()
