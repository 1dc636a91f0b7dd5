"""How many floating-point operations a call takes, from its arguments: products, convolutions of images, sums."""

from __future__ import annotations

from math import prod
from typing import Any

from tensorpy.utils._flop_formulas import addmm_flop, baddbmm_flop, bmm_flop, conv_flop_count, mm_flop


def _conv2d(arguments: list[Any]) -> int:
    """0 where the padding is a word."""
    x, weight, _, stride, padding, dilation, _ = arguments
    if len(x) != 4 or not padding:
        return 0
    # An int stands for both sides.
    steps, pads, gaps = (values * 2 if len(values) == 1 else values for values in (stride, padding, dilation))
    out = [(x[i + 2] + 2 * pads[i] - gaps[i] * (weight[i + 2] - 1) - 1) // steps[i] + 1 for i in range(2)]
    return conv_flop_count(x, weight, [x[0], weight[0], *out])


_FORMULAS = {
    "aten::add": lambda a: prod(a[0]),
    "aten::mul": lambda a: prod(a[0]),
    "aten::mm": lambda a: mm_flop(*a),
    "aten::bmm": lambda a: bmm_flop(*a),
    "aten::addmm": lambda a: addmm_flop(*a[:3]),
    "aten::baddbmm": lambda a: baddbmm_flop(*a[:3]),
    "aten::conv2d": _conv2d,
}


def flops(name: str, arguments: Any) -> int:
    """The operations of a call; 0 of an operator that has no formula. Its arguments are (dtype, numbers) or None."""
    formula = _FORMULAS.get(name)
    if formula is None or not arguments:
        return 0
    return formula([list(a[1]) if isinstance(a, tuple) else [] for a in arguments])
