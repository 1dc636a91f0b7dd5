"""What reductions take, where it is less than every dtype, and what they are compared with."""

from __future__ import annotations

from typing import Any

import numpy as np

from .table import FLOATING, FLOATS, LOOSE, OPTIONS, REAL

NUMBERS = tuple(d for d in REAL if d != "bool")


def _extreme(function: Any, place: Any) -> Any:
    """max(x, dim): values and places."""

    def reference(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if dim is None:
            return function(x)
        if np.ndim(x) == 0:
            return x, np.int64(0)
        return function(x, axis=dim, keepdims=keepdim), place(x, axis=dim, keepdims=keepdim)

    return reference


def _place(function: Any) -> Any:
    def reference(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if np.ndim(x) == 0:
            return np.int64(0)
        return function(x, axis=dim, keepdims=keepdim)

    return reference


def _aminmax(x: Any, *, dim: Any = None, keepdim: bool = False) -> Any:
    axis = dim if np.ndim(x) else None
    keep = keepdim and np.ndim(x) > 0
    return np.min(x, axis=axis, keepdims=keep), np.max(x, axis=axis, keepdims=keep)


def _kept(x: Any, dim: Any, keepdim: bool) -> dict[str, Any]:
    axis = None if dim is None or dim == [] or not np.ndim(x) else tuple(dim) if isinstance(dim, (list, tuple)) else dim
    return {"axis": axis, "keepdims": keepdim and np.ndim(x) > 0}


def _ignoring(function: Any) -> Any:
    return lambda x, dim=None, keepdim=False, dtype=None: function(x, **_kept(x, dim, keepdim))


def _spread(root: bool, with_mean: bool) -> Any:
    """Over one more number than are counted, unless told otherwise; `unbiased` may stand where dim does."""

    def reference(
        x: Any, dim: Any = None, unbiased: bool = True, keepdim: bool = False, correction: float | None = None
    ) -> Any:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        given = _kept(x, dim, keepdim)
        var = np.var(x, ddof=int(unbiased) if correction is None else correction, **given)
        var = np.sqrt(var) if root else var
        return (var, np.mean(x, **given)) if with_mean else var

    return reference


def _norm(x: Any, p: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    x, given, p = np.abs(x), _kept(x, dim, keepdim), 2 if p is None else p
    if np.isinf(p):
        return (np.max if p > 0 else np.min)(x, **given)
    if p == 0:
        return np.sum(x != 0, **given).astype(np.float64)
    return np.sum(x**p, **given) ** (1 / p)


def _logsumexp(x: Any, dim: Any, keepdim: bool = False) -> Any:
    return np.log(np.sum(np.exp(x if np.iscomplexobj(x) else np.asarray(x, np.float64)), **_kept(x, dim, keepdim)))


def _count(x: Any, dim: Any = None) -> Any:
    return np.sum(x != 0, axis=_kept(x, dim, False)["axis"])


OPTIONS.update(
    mean={"dtypes": FLOATING, "tolerances": LOOSE},
    nanmean={
        "dtypes": FLOATS,
        "reference": _ignoring(np.nanmean),
        "tolerances": LOOSE,
    },
    nansum={"dtypes": REAL, "reference": _ignoring(np.nansum), "tolerances": LOOSE},
    sum={"tolerances": LOOSE},
    prod={"tolerances": {**LOOSE, "complex64": (1e-4, 1e-4)}},
    amax={"dtypes": REAL},
    amin={"dtypes": REAL},
    max={"dtypes": REAL, "reference": _extreme(np.max, np.argmax)},
    min={"dtypes": REAL, "reference": _extreme(np.min, np.argmin)},
    aminmax={"dtypes": REAL, "reference": _aminmax},
    var={"dtypes": FLOATING, "reference": _spread(False, False), "tolerances": LOOSE},
    std={"dtypes": FLOATING, "reference": _spread(True, False), "tolerances": LOOSE},
    var_mean={"dtypes": FLOATING, "reference": _spread(False, True), "tolerances": LOOSE},
    std_mean={"dtypes": FLOATING, "reference": _spread(True, True), "tolerances": LOOSE},
    norm={"dtypes": FLOATING, "reference": _norm, "tolerances": LOOSE},
    linalg_vector_norm={
        "dtypes": FLOATING,
        "reference": lambda x, ord=2, dim=None, keepdim=False, dtype=None: _norm(x, ord, dim, keepdim),
        "tolerances": LOOSE,
    },
    logsumexp={"reference": _logsumexp, "dtypes": NUMBERS, "tolerances": LOOSE},
    count_nonzero={"reference": _count},
    argmax={"dtypes": NUMBERS, "reference": _place(np.argmax)},
    argmin={"dtypes": NUMBERS, "reference": _place(np.argmin)},
    **{"max.other": {"dtypes": REAL, "reference": np.maximum}, "min.other": {"dtypes": REAL, "reference": np.minimum}},
)
