"""Which operators take a MaskedTensor: read from the operators' table, as MaskedTensor itself reads it."""

from __future__ import annotations

from typing import Any

import tensorpy as tp


def _tensors(overload: Any) -> int:
    """How many tensors a call needs that gives nothing else and gets tensors; 0 where it needs more, or has out=."""
    if any(str(r.type) != "Tensor" for r in overload._schema.returns):
        return 0
    needed = [a for a in overload._schema.arguments if not a.has_default_value()]
    given = [a for a in needed if str(a.type) == "Tensor" and not a.kwarg_only]
    return len(given) if len(given) == len(needed) else 0


def by_element(count: int, writes: bool) -> list[Any]:
    """Operators that compute element by element of `count` tensors; those that write into the first, or the others."""
    aten = tp.ops.aten
    taken = []
    for name in dir(aten):
        if name.startswith("_") or name.endswith("_") != writes:
            continue
        overloads = [getattr(getattr(aten, name), o) for o in getattr(aten, name).overloads()]
        if any(tp.Tag.pointwise in o.tags and _tensors(o) == count for o in overloads):
            taken.append(getattr(aten, name))
    return taken


def names(operators: list[Any]) -> list[str]:
    """Their names."""
    return [o.__name__ for o in operators]
