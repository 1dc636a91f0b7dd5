"""Forward mode: every operator of the table, and what dual tensors do."""

from __future__ import annotations

import pytest
from forward import cases, check

from tensorpy.testing.harness import over
from tensorpy.testing.samples import OpInfo


@over(lambda info: info.differentiable and {"float64", "complex128"} & set(info.dtypes))
def test_operator(info: OpInfo, device: str) -> None:
    """The tangent by each input alone, and by all."""
    for case in cases(info, device, 6):
        for places in case.choices():
            check(case, places)


@over(lambda info: info.differentiable and info.variant("inplace") and {"float64", "complex128"} & set(info.dtypes))
def test_inplace(info: OpInfo, device: str) -> None:
    for case in cases(info, device, 3, inplace=True):
        for places in case.choices():
            check(case, places)
