"""Pointwise operators whose samples do not follow from the schema alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .table import Make, samples


@samples("clamp")
def clamp(make: Make) -> Iterator[Any]:
    yield make(3, 4), 1, 3
    yield make(3, 4), {"min": 2}
    yield make(3, 4), {"max": 2}
    yield make(()), 3, 1
    yield make(0, 3), 1, 3


@samples("clamp.Tensor")
def clamp_tensor(make: Make) -> Iterator[Any]:
    yield make(3, 4), make(3, 4), make(4)
    yield make(3, 4), {"min": make(3, 1)}
    yield make(3), {"max": make(2, 3)}
    yield make(0, 3), make(()), make(1, 3)


@samples("nan_to_num")
def nan_to_num(make: Make) -> Iterator[Any]:
    yield make(3, 4)
    if make.dtype.startswith("float"):
        yield make.array([float("nan"), 1.5], make.dtype), 2.5
