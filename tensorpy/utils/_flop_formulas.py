"""How many floating-point operations products and convolutions take, by the shapes of what they are of.

A multiplication with its addition counts as two.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any


def mm_flop(a: Sequence[int], b: Sequence[int], *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """The operations of a matrix product."""
    return 2 * a[0] * a[1] * b[1]


def addmm_flop(self: Sequence[int], a: Sequence[int], b: Sequence[int], out_shape: Any = None, **kwargs: Any) -> int:
    """The operations of a matrix product that is added: the product's."""
    return mm_flop(a, b)


def bmm_flop(a: Sequence[int], b: Sequence[int], out_shape: Any = None, **kwargs: Any) -> int:
    """The operations of the products of a batch."""
    return a[0] * mm_flop(a[1:], b[1:])


def baddbmm_flop(self: Sequence[int], a: Sequence[int], b: Sequence[int], out_shape: Any = None, **kwargs: Any) -> int:
    """The operations of the products of a batch, added."""
    return bmm_flop(a, b)


def conv_flop_count(x: Sequence[int], w: Sequence[int], out: Sequence[int], transposed: bool = False) -> int:
    """The operations of a convolution: each place of the result (transposed: of the input) sees the whole kernel."""
    return 2 * w[0] * w[1] * math.prod(w[2:]) * x[0] * math.prod((x if transposed else out)[2:])
