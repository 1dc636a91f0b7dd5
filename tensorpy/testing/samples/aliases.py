"""Samples of operators that are others under a second name, or with a number for a tensor."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from .references import each, rounded
from .references_special import gamma_p
from .table import ARITHMETIC, COMPLEX, FLOATING, FLOATS, REAL, REFERENCES, WIDE_UNSIGNED, Make, samples

REAL_NUMBERS = tuple(d for d in ARITHMETIC if d not in COMPLEX)
SHAPES = ((3, 4), (), (0, 3), (2, 1, 3))


def within(low: float, high: float) -> Any:
    def one(make: Make) -> Iterator[Any]:
        for shape in SHAPES:
            yield (make(*shape, low=low, high=high),)

    return one


for _name, _domain in {
    "arccos": (-0.9, 0.9), "arctanh": (-0.9, 0.9), "arccosh": (1.1, 4.0), "special_log1p": (-0.5, 4.0),
}.items():  # fmt: skip
    samples(_name, dtypes=FLOATING, reference={"special_log1p": np.log1p}.get(_name, getattr(np, _name, None)))(
        within(*_domain)
    )


def erfinv(y: Any) -> Any:
    """By Newton's steps on erf."""
    erf, x = REFERENCES["erf"], np.zeros_like(np.asarray(y, np.float64))
    for _ in range(60):
        x = x - (erf(x) - y) * np.sqrt(np.pi) / 2 * np.exp(x * x)
    return x


REFERENCES["erfinv"] = erfinv
for _name, (_old, _domain) in {
    "special_psi": ("digamma", (0.3, 4.0)), "special_digamma": ("digamma", (0.3, 4.0)),
    "special_gammaln": ("lgamma", (0.3, 4.0)), "special_erfinv": ("erfinv", (-0.9, 0.9)),
}.items():  # fmt: skip
    samples(_name, dtypes=FLOATS[2:], reference=REFERENCES[_old],
            tolerances={"float32": (1e-5, 1e-5), "float64": (1e-10, 1e-10)})(within(*_domain))  # fmt: skip


@samples("special_gammainc", dtypes=FLOATS[2:], reference=gamma_p, gradgradcheck=False,
         tolerances={"float32": (1e-5, 1e-5), "float64": (1e-10, 1e-11)})  # fmt: skip
@samples("special_gammaincc", dtypes=FLOATS[2:], reference=lambda a, x: 1 - gamma_p(a, x), gradgradcheck=False,
         tolerances={"float32": (1e-5, 1e-5), "float64": (1e-10, 1e-11)})  # fmt: skip
def incomplete_gamma(make: Make) -> Iterator[Any]:
    for shape in SHAPES:
        yield make(*shape, low=0.3, high=4), make(*shape, low=0.3, high=4)


@samples("special_logit", dtypes=FLOATS, reference=REFERENCES["logit"], tolerances={"float16": (4e-3, 2e-3)})
def logit(make: Make) -> Iterator[Any]:
    for shape, eps in itertools.product(SHAPES, (None, 0.2)):
        yield make(*shape, low=0.1, high=0.9), eps


@samples("special_round", dtypes=FLOATS, reference=REFERENCES["round"], gradcheck=False)
def special_round(make: Make) -> Iterator[Any]:
    for shape, decimals in itertools.product(SHAPES, (0, 1, -1)):
        yield make(*shape), {"decimals": decimals}


def polygamma(n: int, x: Any) -> Any:
    """By recurrence to large arguments and the asymptotic series."""
    if n == 0:
        return REFERENCES["digamma"](x)
    even = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)

    def one(v: float) -> float:
        total, sign = 0.0, -1.0 if n % 2 == 0 else 1.0
        while v < 25:
            total += math.factorial(n) / v ** (n + 1)
            v += 1
        total += math.factorial(n - 1) / v**n + math.factorial(n) / (2 * v ** (n + 1))
        for k, b in enumerate(even, 1):
            total += b * math.factorial(2 * k + n - 1) / math.factorial(2 * k) / v ** (2 * k + n)
        return sign * total

    return each(one)(x)


@samples("polygamma", "special_polygamma", dtypes=FLOATS[2:], reference=polygamma,
         tolerances={"float32": (1e-4, 1e-5), "float64": (1e-9, 1e-9)})  # fmt: skip
def polygammas(make: Make) -> Iterator[Any]:
    for n, shape in itertools.product((0, 1, 2, 3, 4), ((3, 4), (), (0, 3))):
        yield n, make(*shape, low=0.4, high=4)


def multigammaln(x: Any, p: int) -> Any:
    """A sum of logarithms of gamma."""
    lgamma, x = REFERENCES["lgamma"], np.asarray(x, np.float64)
    return p * (p - 1) / 4 * np.log(np.pi) + sum(lgamma(x - i / 2) for i in range(p))


@samples("mvlgamma", "special_multigammaln", dtypes=FLOATS[2:], reference=multigammaln,
         tolerances={"float32": (1e-5, 1e-5), "float64": (1e-11, 1e-11)})  # fmt: skip
def mvlgamma(make: Make) -> Iterator[Any]:
    for p, shape in itertools.product((1, 2, 4), ((3, 4), (), (0, 3))):
        yield make(*shape, low=2, high=6), p


# ---- a number for a tensor ----


def _x_times_log(x: Any, y: Any) -> Any:
    return np.where(np.asarray(x) == 0, 0, x * np.log(y))


@samples("special_logsumexp", dtypes=FLOATS, tolerances={"float16": (4e-3, 2e-3), "bfloat16": (4e-2, 2e-2)},
         reference=lambda x, dim, keepdim=False: np.log(np.exp(x).sum(dim, keepdims=keepdim)))  # fmt: skip
def special_logsumexp(make: Make) -> Iterator[Any]:
    yield make(3, 4), 1
    yield make(3, 4), (0, 1), True
    yield make(2, 0, 3), -1
    yield make(3), {"dim": 0, "keepdim": True}


@samples("special_xlogy", dtypes=FLOATS, reference=_x_times_log)
def xlogy(make: Make) -> Iterator[Any]:
    for left, right in (((3, 4), (3, 4)), ((2, 1), (4,)), ((), (3,)), ((0, 3), (1, 3))):
        yield make(*left, low=0.1), make(*right, low=0.1)
    yield make.own([0, 0, 1]), make.own([1, 2, 3])


@samples("special_xlogy.self_scalar", dtypes=FLOATS, reference=_x_times_log)
def xlogy_of_number(make: Make) -> Iterator[Any]:
    for shape, x in itertools.product(SHAPES, (0, 2.5)):
        yield x, make(*shape, low=0.1)


@samples("special_xlogy.other_scalar", dtypes=FLOATS, reference=_x_times_log)
def xlogy_with_number(make: Make) -> Iterator[Any]:
    for shape, y in itertools.product(SHAPES, (1, 2.5)):
        yield make(*shape), y


@samples("float_power.Tensor_Scalar", dtypes=FLOATS, reference=np.power)
def float_power(make: Make) -> Iterator[Any]:
    for shape, exponent in itertools.product(SHAPES, (2, 0.5, -1)):
        yield make(*shape, low=0.5), exponent


@samples("float_power.Scalar", dtypes=FLOATS, reference=np.power)
def float_power_of_number(make: Make) -> Iterator[Any]:
    for shape, x in itertools.product(SHAPES, (2, 0.5)):
        yield x, make(*shape)


@samples("divide.Scalar", "true_divide.Scalar", dtypes=FLOATING, reference=np.divide)
@samples("multiply.Scalar", dtypes=FLOATING, reference=np.multiply)
def by_number(make: Make) -> Iterator[Any]:
    for shape, number in itertools.product(SHAPES, (2, 0.5, -3)):
        yield make(*shape), number


@samples("subtract.Scalar", dtypes=FLOATING, reference=lambda x, y, alpha=1: x - alpha * y)
def subtract(make: Make) -> Iterator[Any]:
    for shape, number in itertools.product(SHAPES, (2, 0.5)):
        yield make(*shape), number
        yield make(*shape), number, 2


MODES = ("floor", "trunc", None)


@samples("divide.Tensor_mode", dtypes=FLOATS, reference=rounded, gradcheck=False)
def divide_mode(make: Make) -> Iterator[Any]:
    for mode in MODES:
        yield make(3, 4, low=0.5), make(4, low=0.5), {"rounding_mode": mode}
        yield make(()), make(3, low=0.5), {"rounding_mode": mode}


@samples("divide.Scalar_mode", dtypes=FLOATS, reference=rounded, gradcheck=False)
def divide_by_number(make: Make) -> Iterator[Any]:
    for mode, shape in itertools.product(MODES, SHAPES):
        yield make(*shape), 2, {"rounding_mode": mode}


for _name, _function in {
    "not_equal": np.not_equal, "greater": np.greater, "greater_equal": np.greater_equal, "less": np.less,
    "less_equal": np.less_equal,
}.items():  # fmt: skip

    @samples(f"{_name}.Scalar", dtypes=tuple(d for d in REAL if d not in WIDE_UNSIGNED), reference=_function,
             gradcheck=False)  # fmt: skip
    def compared(make: Make) -> Iterator[Any]:
        for shape, number in itertools.product(SHAPES, (1, 2)):
            yield make(*shape), number

    @samples(
        f"{_name}.Tensor",
        dtypes=tuple(d for d in REAL if d not in WIDE_UNSIGNED),
        reference=_function,
        gradcheck=False,
    )
    def compared_with_tensor(make: Make) -> Iterator[Any]:
        for left, right in (((3, 4), (4,)), ((), (3,)), ((0, 3), (3,)), ((2, 1), (1, 5)), ((3,), ())):
            yield make(*left), make(*right)
            yield make.ties(*left), make.ties(*right)


def _clip(x: Any, min: Any = None, max: Any = None) -> Any:
    x = x if min is None else np.maximum(x, min)
    return x if max is None else np.minimum(x, max)


@samples("clip", dtypes=REAL_NUMBERS, reference=_clip)
def clip(make: Make) -> Iterator[Any]:
    for shape in SHAPES:
        yield make(*shape), 1, 3
        yield make(*shape), {"min": 2}
        yield make(*shape), {"max": 2}
    yield make(4), 3, 1


@samples("clip.Tensor", dtypes=REAL_NUMBERS, reference=_clip)
def clip_tensor(make: Make) -> Iterator[Any]:
    yield make(3, 4), make(3, 4), make(4)
    yield make(3, 4), {"min": make(3, 1)}
    yield make(3), {"max": make(2, 3)}


@samples(
    "allclose",
    dtypes=tuple(d for d in ARITHMETIC if d not in WIDE_UNSIGNED),
    gradcheck=False,
    reference=lambda x, y, rtol=1e-5, atol=1e-8, equal_nan=False: np.allclose(x, y, rtol, atol, equal_nan),
)
def allclose(make: Make) -> Iterator[Any]:
    for shape, rtol, atol in itertools.product(SHAPES, (0.0, 1e-5, 0.9), (0.0, 8.0)):
        x = make(*shape)
        yield x, x, rtol, atol
        yield make(*shape), make(*shape), rtol, atol
    odd = make.with_nan(6)
    yield odd, odd
    yield odd, odd, {"equal_nan": True}


# ---- complex numbers from their parts ----


@samples("complex", dtypes=("float32", "float64"), reference=lambda re, im: re + 1j * im)
@samples("polar", dtypes=("float32", "float64"), reference=lambda r, a: r * np.exp(1j * a))
def from_parts(make: Make) -> Iterator[Any]:
    for left, right in (
        ((3, 4), (3, 4)), ((2, 1), (4,)), ((), (3,)), ((3,), ()), ((0, 3), (1, 3)), ((), ()), ((2, 1, 3), (5, 1)),
        ((1,), (1,)), ((4, 1), (1, 4)),
    ):  # fmt: skip
        yield make(*left), make(*right)
