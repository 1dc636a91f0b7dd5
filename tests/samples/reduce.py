"""What reductions take, where it is less than every dtype, and what they are compared with."""

from __future__ import annotations

from typing import Any

import numpy as np

from .table import FLOATING, LEAF_OF, LOOSE, OPTIONS, REAL

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


OPTIONS.update(
    mean={"dtypes": FLOATING},
    nanmean={"dtypes": tuple(d for d in FLOATING if LEAF_OF[d] == "float"), "reference": None},
    nansum={"dtypes": REAL, "reference": None},
    sum={"tolerances": LOOSE},
    prod={"tolerances": {**LOOSE, "complex64": (1e-4, 1e-4)}},
    amax={"dtypes": REAL},
    amin={"dtypes": REAL},
    max={"dtypes": REAL, "reference": _extreme(np.max, np.argmax)},
    min={"dtypes": REAL, "reference": _extreme(np.min, np.argmin)},
    aminmax={"dtypes": REAL, "reference": _aminmax},
    **{name: {"dtypes": FLOATING, "reference": None} for name in ("var", "std", "var_mean", "std_mean", "norm")},
    linalg_vector_norm={"dtypes": FLOATING, "reference": None},
    logsumexp={"reference": None},
    argmax={"dtypes": NUMBERS, "reference": _place(np.argmax)},
    argmin={"dtypes": NUMBERS, "reference": _place(np.argmin)},
    **{"max.other": {"dtypes": REAL, "reference": np.maximum}, "min.other": {"dtypes": REAL, "reference": np.minimum}},
)
