"""How many floating-point operations a call takes, from its arguments: products, convolutions of images, sums."""

from __future__ import annotations

from math import prod
from typing import Any


def _product(a: list[int], b: list[int]) -> int:
    """Each number of the result is a sum of a.size(-1) products."""
    return 2 * prod(a) * b[-1]


def _conv2d(arguments: list[Any]) -> int:
    """The whole kernel at each place of the result; 0 where the padding is a word."""
    x, weight, _, stride, padding, dilation, groups = arguments
    if len(x) != 4 or not padding:
        return 0
    # An int stands for both sides.
    steps, pads, gaps = (values * 2 if len(values) == 1 else values for values in (stride, padding, dilation))
    out = [(x[i + 2] + 2 * pads[i] - gaps[i] * (weight[i + 2] - 1) - 1) // steps[i] + 1 for i in range(2)]
    return 2 * x[0] * prod(out) * prod(weight[2:]) * x[1] * weight[0] // groups[0]


_FORMULAS = {
    "aten::add": lambda a: prod(a[0]),
    "aten::mul": lambda a: prod(a[0]),
    "aten::mm": lambda a: _product(a[0], a[1]),
    "aten::bmm": lambda a: _product(a[0], a[1]),
    "aten::addmm": lambda a: _product(a[1], a[2]),
    "aten::baddbmm": lambda a: _product(a[1], a[2]),
    "aten::conv2d": _conv2d,
}


def flops(name: str, arguments: Any) -> int:
    """The operations of a call; 0 of an operator that has no formula. Its arguments are (dtype, numbers) or None."""
    formula = _FORMULAS.get(name)
    if formula is None or not arguments:
        return 0
    return formula([list(a[1]) if isinstance(a, tuple) else [] for a in arguments])
