"""The public names of PyTorch 2.13, from names.txt: `module: name ...`; of private modules, the module alone.

Read when a name is asked for that tensorpy does not have, and for the table in docs/torch.md.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

VERSION = "2.13.0"


@cache
def modules() -> dict[str, frozenset[str]]:
    """The public names of each module; "torch.Tensor" stands for the methods and attributes of tensors."""
    found = {}
    for line in Path(__file__).with_name("names.txt").read_text().splitlines():
        module, _, names = line.partition(":")
        found[module] = frozenset(names.split())
    return found


def is_module(name: str) -> bool:
    """Whether PyTorch has a module of that name, "torch.nn"; "torch.Tensor" is none."""
    return name in modules() and name != "torch.Tensor"


def has(module: str, name: str) -> bool:
    """Whether PyTorch has a public name in a module; a private module's names are not known, and taken to be there."""
    names = modules().get(module)
    return names is not None and (name in names or (not names and not name.startswith("__")))
