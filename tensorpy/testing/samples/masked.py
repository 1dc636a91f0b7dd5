"""Samples of the operators of masked elements, against NumPy's over what the mask selects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .table import Make, samples

FLOATS = ("float32", "float64")
NUMBERS = (*FLOATS, "int64", "int8")
CLOSE = {"float32": (2e-5, 1e-5), "float64": (1e-11, 1e-11)}


def _selected(x: Any, mask: Any, instead: Any) -> Any:
    return x if mask is None else np.where(np.broadcast_to(np.asarray(mask) != 0, np.shape(x)), x, instead)


def _axis(x: Any, dim: Any) -> Any:
    return None if dim is None or np.ndim(x) == 0 else tuple(dim) if isinstance(dim, (list, tuple)) else dim


def _over(function: Callable[..., Any], instead: Any) -> Any:
    def reference(x: Any, dim: Any = None, *, keepdim: bool = False, mask: Any = None) -> Any:
        return function(_selected(x, mask, instead), axis=_axis(x, dim), keepdims=keepdim)

    return reference


def _logsumexp(x: Any, axis: Any, keepdims: bool) -> Any:
    with np.errstate(divide="ignore"):
        return np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims))


def _argument(function: Callable[..., Any], instead: Any) -> Any:
    return lambda x, dim=None, *, mask=None: function(_selected(x, mask, instead), axis=dim)


def _mean(x: Any, dim: Any = None, *, keepdim: bool = False, mask: Any = None) -> Any:
    kept = {"axis": _axis(x, dim), "keepdims": keepdim}
    with np.errstate(invalid="ignore"):
        return np.sum(_selected(x, mask, 0), **kept) / np.sum(_selected(np.ones(np.shape(x)), mask, 0), **kept)


def _var(x: Any, dim: Any = None, unbiased: Any = None, *, correction: Any = None, mask: Any = None) -> Any:
    less = 1.0 if unbiased is None else float(unbiased)
    less = less if correction is None else correction
    count = np.sum(_selected(np.ones(np.shape(x)), mask, 0), axis=_axis(x, dim), keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        middle = np.sum(_selected(x, mask, 0), axis=_axis(x, dim), keepdims=True) / count
        total = np.sum(_selected((x - middle) ** 2, mask, 0), axis=_axis(x, dim), keepdims=True)
        found = total / np.maximum(count - less, 0)
    return found.reshape(np.sum(x, axis=_axis(x, dim)).shape)


def _norm(x: Any, ord: Any = 2.0, dim: Any = None, *, keepdim: bool = False, mask: Any = None) -> Any:
    kept = {"axis": _axis(x, dim), "keepdims": keepdim}
    if np.isinf(ord):
        function = np.max if ord > 0 else np.min
        return function(np.abs(_selected(x, mask, 0 if ord > 0 else np.inf)), **kept)
    return np.sum(np.abs(_selected(x, mask, 0)) ** ord, **kept) ** (1 / ord)


def _softmax(sign: float, log: bool) -> Any:
    def reference(x: Any, dim: int, *, mask: Any = None) -> Any:
        powers = np.exp(_selected(sign * x, mask, -np.inf))
        with np.errstate(invalid="ignore", divide="ignore"):
            part = powers / powers.sum(dim, keepdims=True)
            return np.log(part) if log else part

    return reference


def _normalize(x: Any, ord: float, dim: int, *, eps: float = 1e-12, mask: Any = None) -> Any:
    return _selected(x, mask, 0) / np.maximum(_norm(x, ord, dim, keepdim=True, mask=mask), eps)


REDUCTIONS = {
    "sum": (_over(np.sum, 0), NUMBERS),
    "prod": (_over(np.prod, 1), FLOATS),
    "amax": (_over(np.max, -np.inf), FLOATS),
    "amin": (_over(np.min, np.inf), FLOATS),
    "logsumexp": (_over(_logsumexp, -np.inf), FLOATS),
    "mean": (_mean, FLOATS),
}
for _name, (_reference, _dtypes) in REDUCTIONS.items():

    @samples(f"masked_{_name}", reference=_reference, dtypes=_dtypes, tolerances=CLOSE)
    def reduced(make: Make) -> Iterator[Any]:
        mask = make.mask(2, 3)
        mask.values[:, 0] = mask.values[0] = True  # something of each line
        yield make(2, 3), {"mask": mask}
        yield make(2, 3), [0], {"mask": mask}
        yield make(2, 3), 1, {"mask": make.array([True, False, True], "bool"), "keepdim": True}
        yield make(2, 3), [0, 1]
        yield make(4)
        for dim in (0, 1, 2, -1, [0, 2]):
            yield make(2, 3, 2), dim, {"keepdim": dim == 2}
        yield make(3, 3), -1, {"mask": make.array([True, True, False], "bool")}


for _name, _reference in {
    "argmax": _argument(np.argmax, -np.inf),
    "argmin": _argument(np.argmin, np.inf),
}.items():

    @samples(f"masked_{_name}", reference=_reference, dtypes=FLOATS, gradcheck=False, gradgradcheck=False)
    def placed(make: Make) -> Iterator[Any]:
        mask = make.mask(3, 4)
        mask.values[:, 1] = True
        yield make.distinct(3, 4), 1, {"mask": mask}
        yield make.distinct(3, 4)
        for dim in (0, 1, 2, -1, -2, -3):
            yield make.distinct(2, 3, 4), dim
        yield make.distinct(5), 0, {"mask": make.array([True, False, True, True, False], "bool")}
        yield make.distinct(4)


for _name, _reference in {"var": _var, "std": lambda *args, **kwargs: np.sqrt(_var(*args, **kwargs))}.items():

    @samples(f"masked_{_name}", reference=_reference, dtypes=FLOATS, tolerances=CLOSE)
    def spread(make: Make) -> Iterator[Any]:
        mask = make.mask(3, 4)
        mask.values[:, :3] = True
        mask.values[:3] = True
        yield make(3, 4), {"mask": mask}
        yield make(3, 4), 1, {"mask": mask, "correction": 0.5}
        yield make(3, 4), [0], False
        for dim in (0, 1, 2, -1, [0, 2], [1, 2]):
            yield make(3, 4, 3), dim, True
        yield make(3, 4), [0, 1], {"mask": mask}


@samples("masked_median", reference=lambda x, dim=-1, *, mask=None: np.nanquantile(
    _selected(x, mask, np.nan), 0.5, axis=dim, method="inverted_cdf"), dtypes=FLOATS)  # fmt: skip
def median(make: Make) -> Iterator[Any]:
    yield make.distinct(3, 5), 1, {"mask": make.array([True, False, True, True, False], "bool")}
    yield make.distinct(5, 3), 0
    for dim in (0, 1, 2, -1, -2, -3):
        yield make.distinct(3, 5, 3), dim
    yield make.distinct(5)
    yield make.distinct(7), 0, {"mask": make.array([True, True, False, True, False, False, True], "bool")}


@samples("masked_norm", reference=_norm, dtypes=FLOATS, tolerances=CLOSE)
def norm(make: Make) -> Iterator[Any]:
    mask = make.array([True, False, True], "bool")
    yield make(2, 3), 2.0, 1, {"mask": mask}
    yield make(2, 3), 3.0, [0], {"mask": mask, "keepdim": True}
    yield make(2, 3), {"mask": mask}
    for ord in (1.0, 2.0, 3.0, np.inf):
        yield make(2, 3), ord, [1]
        yield make(2, 3, 2), ord, [0, 2]


@samples("masked_logaddexp", reference=lambda x, y, *, input_mask=None, other_mask=None: np.logaddexp(
    _selected(x, input_mask, -np.inf), _selected(y, other_mask, -np.inf)), dtypes=FLOATS, tolerances=CLOSE)  # fmt: skip
def logaddexp(make: Make) -> Iterator[Any]:
    yield make(2, 3), make(2, 3)
    yield make(4), make(4), {"input_mask": make.array([True, True, False, True], "bool")}
    yield make(4), make(4), {"other_mask": make.array([True, True, False, True], "bool")}
    for size in range(1, 8):
        yield make(size, 2), make(size, 2)


for _name, _reference in {
    "cumsum": lambda x, dim, *, mask=None: np.cumsum(_selected(x, mask, 0), axis=dim),
    "cumprod": lambda x, dim, *, mask=None: np.cumprod(_selected(x, mask, 1), axis=dim),
    "softmax": _softmax(1, False),
    "softmin": _softmax(-1, False),
}.items():

    @samples(f"masked_{_name}", reference=_reference, dtypes=FLOATS, tolerances=CLOSE)
    def along(make: Make) -> Iterator[Any]:
        yield make(2, 3), 0
        yield make(2, 3), 1, {"mask": make.array([True, False, True], "bool")}
        for dim in (0, 1, 2, -1, -2, -3):
            yield make(2, 3, 2), dim
        yield make(4), 0
        yield make(3, 3), -1, {"mask": make.array([True, True, False], "bool")}


# What is left out is minus infinity there, which no difference is taken of.
@samples("masked_log_softmax", reference=_softmax(1, True), dtypes=FLOATS, tolerances=CLOSE)
def log_softmax(make: Make) -> Iterator[Any]:
    yield make(2, 3), 1
    yield make(2, 3), 0
    for dim in (0, 1, 2, -1, -2, -3):
        yield make(2, 3, 2), dim
    yield make(4), 0
    yield make(5), -1


@samples("masked_normalize", reference=_normalize, dtypes=FLOATS, tolerances=CLOSE)
def normalize(make: Make) -> Iterator[Any]:
    yield make(2, 3), 2.0, 1, {"mask": make.array([True, True, False], "bool")}
    yield make(2, 3), 1.0, 0
    for ord in (1.0, 2.0, 3.0, np.inf):
        yield make(2, 3, 2), ord, 1
        yield make(3, 2), ord, -1
