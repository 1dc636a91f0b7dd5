"""Samples of running sums and differences."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from .table import ALL_DTYPES, ARITHMETIC, FLOATING, LOOSE, WIDE_UNSIGNED, Dtype, Make, samples

SHAPES = ((), (5,), (3, 4), (2, 3, 2), (0,), (3, 0))
SCANNED = tuple(d for d in ALL_DTYPES if d not in WIDE_UNSIGNED)


def _scan(function: Any) -> Any:
    def reference(x: Any, dim: int, dtype: str | None = None) -> Any:
        x = np.asarray(x if dtype is None else x.astype(dtype))
        x = x.astype(np.int64) if x.dtype.kind in "biu" else x
        return function(x, dim) if x.ndim else x

    return reference


@samples("cumsum", reference=_scan(np.cumsum), dtypes=SCANNED, tolerances=LOOSE)
@samples(
    "cumprod",
    reference=_scan(np.cumprod),
    dtypes=SCANNED,
    tolerances={**LOOSE, "float32": (1e-4, 1e-4)},
)
def running(make: Make) -> Iterator[Any]:
    for shape in SHAPES:
        for dim in (0, -1) if shape else (0,):
            yield make(*shape, low=-2, high=3), dim
    yield make(2, 3), 1, {"dtype": Dtype("float64")}
    yield make(2, 3, dtype="int32"), 0, {"dtype": Dtype("int64")}
    # Zeros are what a product's gradient must mind: none, one, several.
    for zeros in ([1, 2, 0, 4], [0, 2, 0, 3], [0, 0, 0, 0]):
        yield make.own(zeros), 0


@samples("logcumsumexp", reference=lambda x, dim: np.log(np.cumsum(np.exp(x), dim)) if np.ndim(x) else x,
         dtypes=FLOATING[:4], tolerances=LOOSE)  # fmt: skip
def logcumsumexp(make: Make) -> Iterator[Any]:
    for shape in SHAPES:
        for dim in (0, -1) if shape else (0,):
            yield make(*shape), dim


def _diff(x: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:
    if n == 0:
        return x  # without what would be put before and after
    parts = [p for p in (prepend, x, append) if p is not None]
    x = np.concatenate(parts, dim) if len(parts) > 1 else x
    return np.diff(x, min(n, x.shape[dim]), dim)


@samples("diff", reference=_diff, dtypes=(*ARITHMETIC, "bool"), tolerances=LOOSE)
def diff(make: Make) -> Iterator[Any]:
    for shape, n in itertools.product(((5,), (3, 4), (2, 3, 4)), (0, 1, 2, 3, 7)):
        yield make(*shape), n
        yield make(*shape), n, 0
    for n, before, after in itertools.product((0, 1, 2, 4), (True, False), (True, False)):
        for shape, dim in (((5,), 0), ((3, 4), 1), ((3, 4), 0)):
            edge = [2 if d == dim else s for d, s in enumerate(shape)]
            yield make(*shape), n, dim, make(*edge) if before else None, make(*edge) if after else None
    yield make(0), 1
    yield make(3, 0), 1, 0
    yield make(0, 3), 2, 1
