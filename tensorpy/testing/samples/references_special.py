"""Special functions that neither NumPy nor Python has, and second names of those that they have."""

from __future__ import annotations

import math
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
