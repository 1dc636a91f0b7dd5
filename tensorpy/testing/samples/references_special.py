"""Special functions that neither NumPy nor Python has, and second names of those that they have."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .references import each, rounded, sigmoid
from .table import DOMAINS, OPTIONS, REFERENCES

ANGLES = (np.arange(200) + 0.5) * np.pi / 200


def bessel_i(order: int, x: Any) -> Any:
    """The mean of exp(x cos t) cos(order t) over half a turn."""
    x = np.asarray(x, np.float64)[..., None]
    return np.mean(np.exp(x * np.cos(ANGLES)) * np.cos(order * ANGLES), -1)


def ndtr(x: Any) -> Any:
    return 0.5 * each(math.erfc)(-np.asarray(x, np.float64) / math.sqrt(2))


def ndtri(p: Any) -> Any:
    """By halving."""
    low, high = np.full(np.shape(p), -40.0), np.full(np.shape(p), 40.0)
    for _ in range(120):
        middle = (low + high) / 2
        below = ndtr(middle) < p
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return (low + high) / 2


def zeta(x: Any, q: Any) -> Any:
    """Hurwitz's: the first terms, and Euler and Maclaurin's formula for the rest."""

    def one(s: float, a: float) -> float:
        total = sum((a + k) ** -s for k in range(20))
        a += 20
        total += a ** (1 - s) / (s - 1) + a**-s / 2
        factor = s
        for k, b in enumerate((1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66), 1):
            total += b / math.factorial(2 * k) * factor * a ** (-s - 2 * k + 1)
            factor *= (s + 2 * k - 1) * (s + 2 * k)
        return total

    return each(one)(x, q)


def gamma_p(a: Any, x: Any) -> Any:
    """The regularised incomplete gamma function, by its power series."""

    def one(a: float, x: float) -> float:
        term = total = math.exp(a * math.log(x) - x - math.lgamma(a + 1)) if x > 0 else 0.0
        for n in range(1, 400):
            term *= x / (a + n)
            total += term
        return total

    return each(one)(a, x)


REFERENCES.update(
    igamma=gamma_p, igammac=lambda a, x: 1 - gamma_p(a, x),
    absolute=np.abs, negative=np.negative, fix=np.trunc, arcsin=np.arcsin, arctan=np.arctan, arcsinh=np.arcsinh,
    arctan2=np.arctan2, rad2deg=np.rad2deg, deg2rad=np.deg2rad, positive=np.positive,
    angle=lambda x: np.angle(x if np.iscomplexobj(x) else np.asarray(x, np.float64)),
    divide=rounded, multiply=np.multiply, subtract=np.subtract, float_power=np.power,
    isclose=lambda x, y, rtol=1e-5, atol=1e-8, equal_nan=False: np.isclose(x, y, rtol, atol, equal_nan),
    nan_to_num=lambda x, nan=None, posinf=None, neginf=None: np.where(np.isnan(x), nan or 0, x),
    special_expit=sigmoid, special_exp2=np.exp2, special_expm1=np.expm1, special_erf=each(math.erf),
    special_erfc=each(math.erfc), special_sinc=np.sinc, special_ndtr=ndtr, special_ndtri=ndtri,
    special_erfcx=each(lambda x: math.exp(x * x) * math.erfc(x)),
    special_log_ndtr=lambda x: np.log(ndtr(x)),
    special_i0=lambda x: bessel_i(0, x), special_i1=lambda x: bessel_i(1, x),
    special_i0e=lambda x: bessel_i(0, x) * np.exp(-np.abs(x)),
    special_i1e=lambda x: bessel_i(1, x) * np.exp(-np.abs(x)),
    special_zeta=zeta,
)  # fmt: skip

# The gradient by the first argument has none, as in PyTorch.
for _name in ("igamma", "igammac"):
    DOMAINS[_name] = (0.3, 4.0)
    OPTIONS[_name] = {"gradgradcheck": False, "tolerances": {"float32": (1e-5, 1e-5), "float64": (1e-10, 1e-11)}}

# ---- Bessel functions and orthogonal polynomials ----

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(400)
_FALLING = np.arange(0, 8, 0.01)  # of integrals over a half-line whose integrand has fallen away by then


def _half_turn(function: Callable[[Any], Any]) -> Any:
    """The mean over half a turn, for integrands that are not periodic."""
    return function((_NODES + 1) * np.pi / 2) @ _WEIGHTS / 2


def _half_line(values: Any) -> Any:
    return (np.sum(values, -1) - values[..., 0] / 2) * 0.01


def bessel_j(order: int, x: Any) -> Any:
    x = np.asarray(x, np.float64)[..., None]
    return np.mean(np.cos(order * ANGLES - x * np.sin(ANGLES)), -1)


def bessel_y(order: int, x: Any) -> Any:
    """DLMF 10.9.7, for x that are not small."""
    x, s = np.asarray(x, np.float64)[..., None], (_NODES + 1) * 4
    tail = (np.exp(order * s) + (-1) ** order * np.exp(-order * s)) * np.exp(-x * np.sinh(s)) @ _WEIGHTS * 4
    return _half_turn(lambda t: np.sin(x * np.sin(t) - order * t)) - tail / np.pi


def bessel_k(order: int, x: Any) -> Any:
    x = np.asarray(x, np.float64)[..., None]
    return _half_line(np.exp(-x * np.cosh(_FALLING)) * np.cosh(order * _FALLING))


def airy_ai(x: Any) -> Any:
    """The two power series."""

    def one(x: float) -> float:
        f, g, sums = 1.0, x, [1.0, x]
        for k in range(1, 60):
            f, g = f * x**3 / ((3 * k - 1) * (3 * k)), g * x**3 / ((3 * k) * (3 * k + 1))
            sums = [sums[0] + f, sums[1] + g]
        return 3 ** (-2 / 3) / math.gamma(2 / 3) * sums[0] - 3 ** (-1 / 3) / math.gamma(1 / 3) * sums[1]

    return each(one)(x)


def _polynomial(
    first: Callable[[float], float], step: Callable[[int, float, float, float], float]
) -> Callable[..., Any]:
    """p(0) = 1, p(1) = first(x), p(k + 1) = step(k, x, p(k), p(k - 1))."""

    def one(x: float, n: float) -> float:
        before, now = 1.0, first(x)
        if n < 1:
            return before if n > -1 else 0.0
        for k in range(1, int(n)):
            before, now = now, step(k, x, now, before)
        return now

    return each(one)


def _chebyshev(k: int, x: float, p: float, q: float) -> float:
    return 2 * x * p - q


_CHEBYSHEV = {
    "chebyshev_polynomial_t": _polynomial(lambda x: x, _chebyshev),
    "chebyshev_polynomial_u": _polynomial(lambda x: 2 * x, _chebyshev),
    "chebyshev_polynomial_v": _polynomial(lambda x: 2 * x - 1, _chebyshev),
    "chebyshev_polynomial_w": _polynomial(lambda x: 2 * x + 1, _chebyshev),
}


def _shifted(reference: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, n: reference(2 * np.asarray(x, np.float64) - 1, n)


POLYNOMIALS = {
    **_CHEBYSHEV,
    **{f"shifted_{name}": _shifted(reference) for name, reference in _CHEBYSHEV.items()},
    "hermite_polynomial_h": _polynomial(lambda x: 2 * x, lambda k, x, p, q: 2 * (x * p - k * q)),
    "hermite_polynomial_he": _polynomial(lambda x: x, lambda k, x, p, q: x * p - k * q),
    "laguerre_polynomial_l": _polynomial(lambda x: 1 - x, lambda k, x, p, q: ((2 * k + 1 - x) * p - k * q) / (k + 1)),
    "legendre_polynomial_p": _polynomial(lambda x: x, lambda k, x, p, q: ((2 * k + 1) * x * p - k * q) / (k + 1)),
}
REFERENCES.update({f"special_{name}": reference for name, reference in POLYNOMIALS.items()})
DOMAINS.update({f"special_{name}": (0.2, 9.0) for name in POLYNOMIALS})

REFERENCES.update(
    special_entr=each(lambda x: -x * math.log(x) if x > 0 else 0.0 if x == 0 else -math.inf),
    special_bessel_j0=lambda x: bessel_j(0, x), special_bessel_j1=lambda x: bessel_j(1, x),
    special_bessel_y0=lambda x: bessel_y(0, x), special_bessel_y1=lambda x: bessel_y(1, x),
    special_modified_bessel_i0=lambda x: bessel_i(0, x), special_modified_bessel_i1=lambda x: bessel_i(1, x),
    special_modified_bessel_k0=lambda x: bessel_k(0, x), special_modified_bessel_k1=lambda x: bessel_k(1, x),
    special_scaled_modified_bessel_k0=lambda x: bessel_k(0, x) * np.exp(np.asarray(x, np.float64)),
    special_scaled_modified_bessel_k1=lambda x: bessel_k(1, x) * np.exp(np.asarray(x, np.float64)),
    special_spherical_bessel_j0=lambda x: np.sinc(np.asarray(x, np.float64) / np.pi),
    special_airy_ai=airy_ai,
)  # fmt: skip
DOMAINS["special_airy_ai"] = (-3.0, 3.0)
DOMAINS["special_entr"] = (0.1, 4.0)
for _name in ("bessel_y", "modified_bessel_k", "scaled_modified_bessel_k"):
    DOMAINS.update({f"special_{_name}{order}": (1.0, 9.0) for order in (0, 1)})
_NEAR = {"tolerances": {"float32": (1e-5, 1e-6), "float64": (1e-9, 1e-10)}}
OPTIONS.update({name: _NEAR for name in REFERENCES if "bessel" in name or "airy" in name})
