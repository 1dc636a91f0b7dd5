"""Orthogonal polynomials p_n(x) by their recurrences, for n and x of one shape after broadcasting.

n is a whole number, or is cut to one; below 0 the polynomial is 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorpy as tp
from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.functional import broadcast_tensors

First = Callable[[Any], Any]
Step = Callable[[int, Any, Any, Any], Any]


def _operands(x: Any, n: Any) -> tuple[Any, Any]:
    """x in a floating dtype and n in int64; numbers have the other's device."""
    if not isinstance(x, Tensor) and not isinstance(n, Tensor):
        raise TypeError(
            f"a polynomial takes a Tensor and a number, or two tensors, got ({type(x).__name__}, {type(n).__name__})"
        )
    device = next((t.device for t in (x, n) if isinstance(t, Tensor)), None)
    x, n = _C.as_tensor(x, device=device), _C.as_tensor(n, device=device)
    dtype = _C.result_type(x, n)
    dtype = dtype if dtype.is_floating_point else _C.get_default_dtype()
    x, n = broadcast_tensors(x.to(dtype), n.to(tp.int64))
    return x, n


def _polynomial(name: str, doc: str, first: First, step: Step) -> Callable[..., Tensor]:
    """p_0 = 1, p_1 = first(x), p_(k+1) = step(k, x, p_k, p_(k-1))."""

    def function(x: Any, n: Any, *, out: Tensor | None = None) -> Tensor:
        x, n = _operands(x, n)
        before, now = tp.ones_like(x), first(x)
        result = tp.where(n == 0, before, tp.where(n == 1, now, 0.0))
        for k in range(1, int(n.max()) if n.numel() else 0):
            before, now = now, step(k, x, now, before)
            result = tp.where(n == k + 1, now, result)
        return result if out is None else out.copy_(result)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _chebyshev(k: int, x: Any, now: Any, before: Any) -> Any:
    return 2 * x * now - before


# name, doc, p_1, step
_CHEBYSHEV: list[tuple[str, str, First, Step]] = [
    ("chebyshev_polynomial_t", "The Chebyshev polynomial of the first kind.", lambda x: x, _chebyshev),
    ("chebyshev_polynomial_u", "The Chebyshev polynomial of the second kind.", lambda x: 2 * x, _chebyshev),
    ("chebyshev_polynomial_v", "The Chebyshev polynomial of the third kind.", lambda x: 2 * x - 1, _chebyshev),
    ("chebyshev_polynomial_w", "The Chebyshev polynomial of the fourth kind.", lambda x: 2 * x + 1, _chebyshev),
]


def _shifted(first: First, step: Step) -> tuple[First, Step]:
    """The polynomial of 2 x - 1."""
    return lambda x: first(2 * x - 1), lambda k, x, p, q: step(k, 2 * x - 1, p, q)


_KINDS: list[tuple[str, str, First, Step]] = [
    *_CHEBYSHEV,
    *(("shifted_" + n, d[:-1] + ", of 2 x - 1.", *_shifted(first, step)) for n, d, first, step in _CHEBYSHEV),
    (
        "hermite_polynomial_h",
        "The Hermite polynomial of the physicists.",
        lambda x: 2 * x,
        lambda k, x, p, q: 2 * (x * p - k * q),
    ),
    (
        "hermite_polynomial_he",
        "The Hermite polynomial of probability.",
        lambda x: x,
        lambda k, x, p, q: x * p - k * q,
    ),
    (
        "laguerre_polynomial_l",
        "The Laguerre polynomial.",
        lambda x: 1 - x,
        lambda k, x, p, q: ((2 * k + 1 - x) * p - k * q) / (k + 1),
    ),
    (
        "legendre_polynomial_p",
        "The Legendre polynomial.",
        lambda x: x,
        lambda k, x, p, q: ((2 * k + 1) * x * p - k * q) / (k + 1),
    ),
]

FUNCTIONS = {name: _polynomial(name, doc, first, step) for name, doc, first, step in _KINDS}
