"""What the functions of networks share: the C functions, the older ways to name a reduction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorpy import _C
from tensorpy._tensor.dtypes import is_whole
from tensorpy.nn._reduction import legacy_get_enum

nn: Any = _C._nn
ops: Any = _C

Size = int | Sequence[int]

REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def reduction_of(word: str, fault: str = "is not a valid value for reduction, which") -> int:
    if word not in REDUCTIONS:
        raise ValueError(f"{word} {fault} is one of {', '.join(REDUCTIONS)}")
    return REDUCTIONS[word]


def legacy(size_average: bool | None, reduce: bool | None, reduction: str) -> int:
    """`size_average` and `reduce` are PyTorch's older way to name a reduction."""
    if size_average is None and reduce is None:
        return reduction_of(reduction)
    return legacy_get_enum(size_average, reduce)


def reduce_by(loss: Any, how: int) -> Any:
    """Losses of elements, reduced."""
    return loss if how == 0 else loss.mean() if how == 1 else loss.sum()


def listed(value: Size, n: int) -> list[int]:
    return [value] * n if is_whole(value) else list(value)
