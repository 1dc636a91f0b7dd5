"""The names of one graph's nodes and of what its code finds in globals: identifiers that mean nothing else there."""

from __future__ import annotations

import builtins
import keyword
import re
from collections import defaultdict
from typing import Any

from tensorpy import _C

# What the code of every graph finds beside the builtins (code.py), and the parameter of its forward.
ALWAYS = frozenset("tensorpy torch device inf nan NoneType self fx_pytree pytree".split())
_ILLEGAL = re.compile(r"[^0-9a-zA-Z_]+")
_NUMBERED = re.compile(r"(.*)_(\d+)")
_CAPITAL = re.compile(r"(?<=[a-z])([A-Z])")


def name_of_target(target: Any) -> str:
    """What a node that calls this is named after: "layers.0.ReLU" for layers_0_re_lu, "__getitem__" for getitem."""
    name = target if isinstance(target, str) else getattr(target, "__name__", type(target).__name__)
    if not isinstance(target, str) and isinstance(target, _C.OpOverload):
        name = f"{target._opname}.{target._overloadname or 'default'}"
    if len(name) > 4 and name.startswith("__") and name.endswith("__"):
        name = name[2:-2]
    return _CAPITAL.sub(r"_\1", name).lower()


class Namespace:
    """Gives each name once."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}  # the globals that were named
        self._used: set[str] = set()
        self._counts: dict[str, int] = defaultdict(int)

    def _is_free(self, name: str, obj: Any) -> bool:
        if name in self._used or keyword.iskeyword(name) or name in ALWAYS:
            return False
        return not hasattr(builtins, name) or (obj is not None and getattr(builtins, name) is obj)

    def create_name(self, candidate: str, obj: Any = None) -> str:
        """The candidate as an identifier, with a number after it where it is taken. An object keeps its name."""
        candidate = _ILLEGAL.sub("_", candidate) or "_unnamed"
        candidate = f"_{candidate}" if candidate[0].isdigit() else candidate
        if obj is not None and self.objects.get(candidate) is obj:
            return candidate
        match = _NUMBERED.fullmatch(candidate)
        base, number = (match[1], int(match[2])) if match else (candidate, self._counts[candidate])
        name = candidate
        while not self._is_free(name, obj):
            number += 1
            name = f"{base}_{number}"
        self._counts[base] = number
        self._used.add(name)
        if obj is not None:
            self.objects[name] = obj
        return name
