"""Bessel functions of orders 0 and 1, and Airy's, made of elementary operators.

Integrals of smooth periodic functions, and of ones that fall like exp(-u^2), are sums at equal distances, to the last
bits: J_n(x) is the mean of cos(n t - x sin t) over a circle, exp(x) K_n(x) the integral over u of
exp(-u^2) cosh(n t) / sqrt(2 x + u^2) with sinh(t / 2) = u / sqrt(2 x). Where x is large Hankel's expansion is used.
Everything is computed in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import tensorpy as tp
from tensorpy import _C
from tensorpy._C import Tensor

EULER = 0.5772156649015329
_FAR = 25.0  # from here on, Hankel's expansion
_POINTS = 128  # on the circle: the first order that a mean takes for another is 128 - n, whose J is 0 up to x = _FAR
_ORDERS = 32  # of Neumann's series: J_64 is 0 up to x = _FAR


def _circle(x: Any, odd: bool, weight: Callable[[float], float]) -> Any:
    """The mean over the circle of weight(t) cos(x sin t), or sin(x sin t), by the quarter that gives the others."""
    total, wave = tp.zeros_like(x), tp.sin if odd else tp.cos
    for i in range(_POINTS // 4 + 1):
        t = 2 * math.pi * i / _POINTS
        share = (2 if i in (0, _POINTS // 4) else 4) / _POINTS
        total = total + share * weight(t) * wave(x * math.sin(t))
    return total


def _hankel(x: Any, order: int) -> tuple[Any, Any, Any]:
    """sqrt(2 / (pi x)), and P and Q with J = factor (P cos c - Q sin c), Y = factor (P sin c + Q cos c)."""
    mu, term = 4.0 * order * order, tp.ones_like(x)
    p, q = term, tp.zeros_like(x)
    for k in range(1, 17):
        term = term * ((mu - (2 * k - 1) ** 2) / (8 * k)) / x
        sign = -1 if k % 4 in (2, 3) else 1
        p, q = (p, q + sign * term) if k % 2 else (p + sign * term, q)
    return (2 / (math.pi * x)).sqrt(), p, q


def _phase(x: Any, order: int) -> tuple[Any, Any]:
    """cos and sin of x - order pi / 2 - pi / 4, of x's own cosine and sine: no digits of x are lost."""
    c, s, half = x.cos(), x.sin(), math.sqrt(0.5)
    return ((c + s) * half, (s - c) * half) if order == 0 else ((s - c) * half, -(c + s) * half)


def _j(x: Any, order: int) -> Any:
    size = x.abs()
    near, far = size.clamp(max=_FAR), size.clamp(min=_FAR)
    value = _circle(near, bool(order), (lambda t: math.sin(t)) if order else (lambda t: 1.0))
    factor, p, q = _hankel(far, order)
    c, s = _phase(far, order)
    value = tp.where(size < _FAR, value, factor * (p * c - q * s))
    return value * x.sign() if order else value


def _even(t: float) -> float:
    return sum((-1) ** k * math.cos(2 * k * t) / k for k in range(1, _ORDERS))


def _odd(t: float) -> float:
    return sum((-1) ** k * (2 * k + 1) / (k * (k + 1)) * math.sin((2 * k + 1) * t) for k in range(1, _ORDERS))


def _y(x: Any, order: int) -> Any:
    near, far = x.clamp(min=5e-324, max=_FAR), x.clamp(min=_FAR)
    log = (near / 2).log() + EULER
    if order == 0:
        value = 2 / math.pi * log * _j(near, 0) - 4 / math.pi * _circle(near, False, _even)
    else:
        value = 2 / math.pi * ((log - 1) * _j(near, 1) - _j(near, 0) / near - _circle(near, True, _odd))
    factor, p, q = _hankel(far, order)
    c, s = _phase(far, order)
    value = tp.where(x < _FAR, value, factor * (p * s + q * c))
    return tp.where(x > 0, value, tp.where(x == 0, -math.inf, math.nan))


def _falling(x: Any, shape: Callable[[Any], Any]) -> Any:
    """exp(x) times the integral of exp(-x cosh t) shape(t) from 0 to infinity, for x of at least 2."""
    step, total = 0.25, tp.zeros_like(x)
    for i in range(26):
        u = i * step
        t = 2 * tp.asinh(u / (2 * x).sqrt())
        total = total + (0.5 if i == 0 else 1.0) * math.exp(-u * u) * shape(t) / (2 * x + u * u).sqrt()
    return 2 * step * total


def _k(x: Any, order: int, scaled: bool) -> Any:
    near, far = x.clamp(min=5e-324, max=2.0), x.clamp(min=2.0)
    square, log = near * near / 4, (near / 2).log() + EULER
    term, harmonic, value = tp.ones_like(x), 0.0, tp.zeros_like(x)
    for k in range(18):  # the terms of I, with what the logarithm leaves
        weight = harmonic + (1 / (2 * (k + 1)) if order else 0.0)
        value = value + term * (weight - log)
        harmonic += 1 / (k + 1)
        term = term * square / ((k + 1) * (k + 1 + order))
    if order:
        value = 1 / near - near / 2 * value
    value = value * near.exp() if scaled else value
    beyond = _falling(far, (lambda t: t.cosh()) if order else tp.ones_like)
    value = tp.where(x < 2, value, beyond if scaled else beyond * (-far).exp())
    return tp.where(x > 0, value, tp.where(x == 0, math.inf, math.nan))


def _airy(x: Any) -> Any:
    """The Maclaurin series in the middle; K of order 1/3 above, the expansion in 1 / zeta below."""
    near, above, below = x.clamp(-8.0, 2.1), x.clamp(min=2.1), (-x).clamp(min=8.0)
    cube = near**3
    f, g = tp.ones_like(x), near
    total_f, total_g = f, g
    for k in range(1, 60):
        f, g = f * cube / ((3 * k - 1) * (3 * k)), g * cube / ((3 * k) * (3 * k + 1))
        total_f, total_g = total_f + f, total_g + g
    start, slope = 3 ** (-2 / 3) / math.gamma(2 / 3), 3 ** (-1 / 3) / math.gamma(1 / 3)
    middle = start * total_f - slope * total_g
    zeta = 2 / 3 * above * above.sqrt()
    high = (above / 3).sqrt() / math.pi * (-zeta).exp() * _falling(zeta, lambda t: (t / 3).cosh())
    zeta = 2 / 3 * below * below.sqrt()
    term, even, odd = tp.ones_like(x), tp.ones_like(x), tp.zeros_like(x)
    for k in range(1, 16):
        term = term * ((6 * k - 5) * (6 * k - 3) * (6 * k - 1) / (216 * k * (2 * k - 1))) / zeta
        sign = -1 if k % 4 in (2, 3) else 1
        even, odd = (even, odd + sign * term) if k % 2 else (even + sign * term, odd)
    c, s = _phase(zeta, 0)
    low = (c * even + s * odd) / (math.sqrt(math.pi) * below.sqrt().sqrt())
    return tp.where(x < -8, low, tp.where(x > 2.1, high, middle))


def _spherical(x: Any) -> Any:
    small = x.abs() < 1e-4
    value = tp.where(small, 1 - x * x / 6, x.sin() / tp.where(small, 1.0, x))
    return tp.where(x.isinf(), 0.0, value)


def _function(name: str, doc: str, compute: Callable[[Any], Any]) -> Callable[..., Tensor]:
    def function(input: Tensor, *, out: Tensor | None = None) -> Tensor:
        dtype = input.dtype if input.is_floating_point() else _C.get_default_dtype()
        result = compute(input.to(tp.float64)).to(dtype)
        return result if out is None else out.copy_(result)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


FUNCTIONS = {
    name: _function(name, doc, compute)
    for name, doc, compute in (
        ("airy_ai", "Airy's function Ai.", _airy),
        ("bessel_j0", "The Bessel function of the first kind, order 0.", lambda x: _j(x, 0)),
        ("bessel_j1", "The Bessel function of the first kind, order 1.", lambda x: _j(x, 1)),
        ("bessel_y0", "The Bessel function of the second kind, order 0.", lambda x: _y(x, 0)),
        ("bessel_y1", "The Bessel function of the second kind, order 1.", lambda x: _y(x, 1)),
        ("modified_bessel_k0", "The modified Bessel function K, order 0.", lambda x: _k(x, 0, False)),
        ("modified_bessel_k1", "The modified Bessel function K, order 1.", lambda x: _k(x, 1, False)),
        ("scaled_modified_bessel_k0", "exp(x) K of order 0.", lambda x: _k(x, 0, True)),
        ("scaled_modified_bessel_k1", "exp(x) K of order 1.", lambda x: _k(x, 1, True)),
        ("spherical_bessel_j0", "The spherical Bessel function, sin(x) / x.", _spherical),
    )
}
