"""NumPy's word for an operator: by the same name without an entry, else one line here.

Arguments are the sample's, arrays in double precision. `out of the standard library` means mathematics that NumPy
lacks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .table import ALL_DTYPES, CATALOG, DOMAINS, LEAF_OF, NO_GRADCHECK, OPTIONS, REFERENCES


def each(function: Callable[..., Any]) -> Callable[..., Any]:
    """A scalar function over arrays; where it raises, NaN."""

    def safe(*values: Any) -> float:
        try:
            return function(*values)
        except (ValueError, OverflowError, ZeroDivisionError):
            return math.nan

    return lambda *args: np.asarray(np.frompyfunc(safe, len(args), 1)(*args)).astype(np.float64)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-np.asarray(x)))


def softplus(x: Any, beta: float = 1, threshold: float = 20) -> Any:
    x = np.asarray(x)
    return np.where(x * beta > threshold, x, np.log1p(np.exp(np.minimum(x * beta, threshold))) / beta)


def elu(x: Any, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Any:
    return np.where(x > 0, scale * x, scale * alpha * np.expm1(np.minimum(x, 0) * input_scale))


def gelu(x: Any, approximate: str = "none") -> Any:
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + each(math.erf)(x / math.sqrt(2)))


def rounded(x: Any, y: Any, rounding_mode: str | None = None) -> Any:
    with np.errstate(all="ignore"):
        if rounding_mode is None:
            return np.true_divide(x, y)
        if rounding_mode == "floor":
            return np.floor_divide(x, y)
        return np.trunc(np.true_divide(x, y))


def clamp(x: Any, min: Any = None, max: Any = None) -> Any:
    x = x if min is None else np.maximum(x, min)
    return x if max is None else np.minimum(x, max)


def sgn(x: Any) -> Any:
    if not np.iscomplexobj(x):
        return x if np.asarray(x).dtype == bool else np.sign(x)
    size = np.abs(x)
    return np.where(size == 0, 0, x / np.where(size == 0, 1, size))


def logaddexp2(x: Any, y: Any) -> Any:
    return np.logaddexp2(x, y)


def digamma(x: Any) -> Any:
    """By recurrence to large arguments and the asymptotic series; by reflection on the left."""

    def one(v: float) -> float:
        if v == 0:
            return -math.copysign(math.inf, v)
        if v < 0 and v == math.floor(v):
            return math.nan
        if v < 0.5:
            return one(1 - v) - math.pi / math.tan(math.pi * v)
        total = 0.0
        while v < 12:
            total -= 1 / v
            v += 1
        s = 1 / (v * v)
        return total + math.log(v) - 0.5 / v - s * (1 / 12 - s * (1 / 120 - s * (1 / 252 - s * (1 / 240 - s / 132))))

    return each(one)(x)


def _reduction(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, dim=None, keepdim=False: function(
        x, axis=_axis(dim) if np.ndim(x) else None, keepdims=keepdim and np.ndim(x) > 0
    )


def _numpy(name: str) -> Callable[..., Any] | None:
    found = getattr(np, name, None)
    return found if callable(found) and not isinstance(found, type) else None


REFERENCES.update(
    acos=np.arccos, acosh=np.arccosh, asin=np.arcsin, asinh=np.arcsinh,
    atan=np.arctan, atanh=np.arctanh, atan2=np.arctan2,
    add=lambda a, b, alpha=1: a + alpha * b,
    addcdiv=lambda a, b, c, value=1: a + value * b / c,
    addcmul=lambda a, b, c, value=1: a + value * b * c,
    bitwise_left_shift=np.left_shift, bitwise_right_shift=np.right_shift,
    celu=lambda x, alpha=1.0: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) / alpha)),
    clamp=clamp, clamp_min=lambda x, m: np.maximum(x, m), clamp_max=lambda x, m: np.minimum(x, m),
    conj_physical=np.conj,
    digamma=digamma,
    div=rounded, true_divide=np.true_divide,
    elu=elu,
    eq=np.equal, ne=np.not_equal, lt=np.less, le=np.less_equal, gt=np.greater, ge=np.greater_equal,
    erf=each(math.erf), erfc=each(math.erfc),
    frac=lambda x: x - np.trunc(x),
    gelu=gelu,
    hardshrink=lambda x, lambd=0.5: np.where(np.abs(x) > lambd, x, 0),
    hardsigmoid=lambda x: np.clip(x + 3, 0, 6) / 6,
    hardswish=lambda x: x * np.clip(x + 3, 0, 6) / 6,
    hardtanh=lambda x, low=-1, high=1: np.clip(x, low, high),
    i0=np.i0,
    leaky_relu=lambda x, negative_slope=0.01: np.where(x > 0, x, x * negative_slope),
    lerp=lambda a, b, w: a + w * (b - a),
    lgamma=each(math.lgamma),
    log_sigmoid=lambda x: -softplus(-np.asarray(x)),
    logit=lambda x, eps=None: np.log((x := x if eps is None else np.clip(x, eps, 1 - eps)) / (1 - x)),
    masked_fill=lambda x, mask, value: np.where(mask, value, x),
    mish=lambda x: x * np.tanh(softplus(x)),
    logaddexp=lambda a, b: np.log(np.exp(a) + np.exp(b)),
    mul=np.multiply, neg=np.negative, pow=np.power,
    nan_to_num=None,  # in the limits of its dtype, which a reference in double precision does not know
    polygamma=None,
    relu=lambda x: np.maximum(x, 0), relu6=lambda x: np.clip(x, 0, 6),
    reciprocal=lambda x: 1 / np.asarray(x),
    round=lambda x, decimals=0: np.round(x, decimals),
    rsqrt=lambda x: 1 / np.sqrt(x),
    rsub=lambda a, b, alpha=1: b - alpha * a,
    selu=lambda x: elu(x, 1.6732632423543772, 1.0507009873554805),
    sgn=sgn, sign=sgn, sigmoid=sigmoid,
    silu=lambda x: x * sigmoid(x),
    softplus=softplus,
    softshrink=lambda x, lambd=0.5: np.where(x > lambd, x - lambd, np.where(x < -lambd, x + lambd, 0)),
    sub=lambda a, b, alpha=1: a - alpha * b,
    threshold=lambda x, threshold, value: np.where(x > threshold, x, value),
    where=np.where,
    xlogy=lambda x, y: np.where(np.asarray(x) == 0, 0, x * np.log(y)),
    special_xlog1py=lambda x, y: np.where(np.asarray(x) == 0, 0, x * np.log1p(y)),
    sum=_reduction(np.sum),
    mean=_reduction(np.mean),
    prod=_reduction(np.prod),
    amax=_reduction(np.max),
    amin=_reduction(np.min),
    any=_reduction(np.any),
    all=_reduction(np.all),
)  # fmt: skip


def _axis(dim: Any) -> Any:
    """A dimension of a zero-dimensional tensor is all of it, which NumPy does not have."""
    return None if dim is None or dim == [] else tuple(dim) if isinstance(dim, (list, tuple)) else dim


for _op in CATALOG:
    _name = _op.schema.name.base
    if _name not in REFERENCES and _op.pointwise is not None and (_found := _numpy(_name)):
        REFERENCES[_name] = _found

# Where the gradient is to be checked: inside the domain and away from poles.
DOMAINS.update(
    acos=(-0.9, 0.9), asin=(-0.9, 0.9), atanh=(-0.9, 0.9), acosh=(1.1, 4.0), erfinv=(-0.9, 0.9), logit=(0.1, 0.9),
    log=(0.1, 5.0), log2=(0.1, 5.0), log10=(0.1, 5.0), log1p=(-0.5, 4.0), sqrt=(0.1, 5.0), rsqrt=(0.1, 5.0),
    lgamma=(0.3, 4.0), digamma=(0.3, 4.0), polygamma=(0.3, 4.0), special_zeta=(1.5, 4.0), special_ndtri=(0.1, 0.9),
    xlogy=(0.1, 4.0), special_xlog1py=(0.1, 4.0), pow=(0.2, 3.0), float_power=(0.2, 3.0),
    div=(0.5, 4.0), true_divide=(0.5, 4.0), reciprocal=(0.5, 4.0), floor_divide=(1.0, 9.0), fmod=(1.0, 9.0),
    remainder=(1.0, 9.0), addcdiv=(0.5, 4.0), bitwise_left_shift=(0, 5), bitwise_right_shift=(0, 5), tan=(-1.0, 1.0),
    exp2=(-3.0, 3.0),
)  # fmt: skip

# Gradients that finite differences cannot check.
NO_GRADCHECK.update(
    nextafter="a step in the last place", heaviside="a jump", special_zeta="by the second argument only",
)  # fmt: skip

# What differs from the defaults: tolerances (a series, a chain of roundings).
_QUOTIENTS = tuple(d for d in ALL_DTYPES if LEAF_OF[d] not in ("bool", "complex"))
OPTIONS.update(
    hardtanh={"dtypes": tuple(d for d in ALL_DTYPES if LEAF_OF[d] in ("sint", "float"))},
    relu6={"dtypes": tuple(d for d in ALL_DTYPES if LEAF_OF[d] in ("uint", "sint", "float"))},
    **{name: {"dtypes": tuple(d for d in ALL_DTYPES if LEAF_OF[d] == "float")} for name in ("elu", "selu", "celu")},
    positive={"dtypes": tuple(d for d in ALL_DTYPES if d != "bool")},
    logaddexp={"dtypes": tuple(d for d in ALL_DTYPES if LEAF_OF[d] == "float")},  # a complex logarithm has many values
    **{name: {"dtypes": _QUOTIENTS} for name in ("div.Tensor_mode", "div.Scalar_mode")},
    digamma={"tolerances": {"float32": (1e-5, 1e-5), "float64": (1e-10, 1e-10)}},
    lgamma={"tolerances": {"float32": (1e-5, 1e-5)}},
    i0={"tolerances": {"float64": (1e-10, 1e-10), "float32": (1e-5, 1e-5)}},
    erfc={"tolerances": {"float32": (1e-5, 2e-6)}},
)  # fmt: skip
