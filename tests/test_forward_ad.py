"""Forward mode: every operator of the table, and what dual tensors do."""

from __future__ import annotations

from forward import DTYPES, cases, check, check_gradient

from tensorpy.testing.harness import over
from tensorpy.testing.samples import OpInfo


def _smooth(info: OpInfo) -> bool:
    return info.differentiable and bool(set(DTYPES) & set(info.dtypes))


@over(_smooth)
def test_operator(info: OpInfo, device: str) -> None:
    """The tangent by each input alone, and by all."""
    for case in cases(info, device, 6):
        for places in case.choices():
            check(case, places)


@over(lambda info: _smooth(info) and info.variant("inplace"))
def test_inplace(info: OpInfo, device: str) -> None:
    for case in cases(info, device, 3, inplace=True):
        for places in case.choices():
            check(case, places)


@over(lambda info: _smooth(info) and info.gradgradcheck)
def test_forward_over_reverse(info: OpInfo, device: str) -> None:
    """The tangents of gradients: a backward pass meets those of what was saved."""
    for case in cases(info, device, 3):
        check_gradient(case, tuple(range(len(case.inputs))))
