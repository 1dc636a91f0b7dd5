"""Samples of areas under samples, covariances and histograms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .table import Make, samples

FLOATS = ("float32", "float64")
ANY = (*FLOATS, "int64", "complex64", "complex128")
CLOSE = {"float32": (2e-5, 1e-5), "float64": (1e-11, 1e-11), "complex64": (2e-5, 1e-5), "complex128": (1e-11, 1e-11)}


# ---- areas ----


def _pieces(y: Any, x: Any, dx: float, dim: int) -> Any:
    y = np.moveaxis(np.asarray(y), dim, -1)
    steps = dx if x is None else np.diff(x if x.ndim == 1 else np.moveaxis(x, dim if dim < 0 else dim - y.ndim, -1))
    return (y[..., 1:] + y[..., :-1]) * steps / 2


def _area(y: Any, x: Any = None, *, dx: float = 1, dim: int = -1) -> Any:
    return _pieces(y, x, dx, dim).sum(-1)


def _areas(y: Any, x: Any = None, *, dx: float = 1, dim: int = -1) -> Any:
    return np.moveaxis(np.cumsum(_pieces(y, x, dx, dim), -1), -1, dim)


for _name, _reference in {"trapezoid": _area, "trapz": _area, "cumulative_trapezoid": _areas}.items():

    @samples(f"{_name}.x", reference=_reference, dtypes=ANY, tolerances=CLOSE)
    def by_places(make: Make) -> Iterator[Any]:
        yield make(5), make(5)
        yield make(2, 5), make(5)
        yield make(4, 3), make(4), {"dim": 0}
        yield make(2, 4, 3), make(4, 3), {"dim": 1}
        yield make(2, 4), make(2, 4), {"dim": 0}
        yield make(3, 0), make(0)

    @samples(f"{_name}.dx", reference=_reference, dtypes=ANY, tolerances=CLOSE)
    def by_step(make: Make) -> Iterator[Any]:
        yield make(5)
        yield make(2, 5), {"dx": 0.5}
        yield make(4, 3), {"dx": 2.0, "dim": 0}
        yield make(3, 0)
        yield make(0, 3)


# ---- covariances ----


def _cov(x: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    return np.cov(x, ddof=correction, fweights=fweights, aweights=aweights)


@samples("cov", reference=_cov, dtypes=ANY, tolerances=CLOSE, constant=("fweights",))
def cov(make: Make) -> Iterator[Any]:
    counts = make.array([1, 2, 0, 3, 1], "int64")
    weights = make.array(
        [0.5, 1.0, 2.0, 0.25, 0.75], "float64" if make.dtype in ("float64", "complex128") else "float32"
    )
    yield make(5)
    yield make(3, 5)
    yield make(3, 5), {"correction": 0}
    yield make(3, 5), {"fweights": counts}
    yield make(3, 5), {"aweights": weights}
    yield make(3, 5), {"fweights": counts, "aweights": weights, "correction": 2}
    yield make(1, 5), {"fweights": counts, "correction": 0}
    yield make(5), {"aweights": weights}


@samples("corrcoef", reference=np.corrcoef, dtypes=ANY, tolerances=CLOSE)
def corrcoef(make: Make) -> Iterator[Any]:
    yield make(3, 5)
    yield make(2, 9)
    yield make(6)
    yield make(4, 4)


# ---- histograms ----


def _histc(x: Any, bins: int = 100, low: float = 0, high: float = 0) -> Any:
    if x.size == 0:
        return np.zeros(bins)
    return np.histogram(x, bins, None if low == high else (low, high))[0].astype(x.dtype)


@samples("histc", reference=_histc, dtypes=FLOATS, gradcheck=False)
def histc(make: Make) -> Iterator[Any]:
    yield make(50), 7
    yield make(4, 9), 5, -1, 2
    yield make.own(np.ones(3)), 4
    yield make(0), 3
    yield make(3, 4)
    yield make(4, 9), 1, -1, 2
    yield make(20), 100, 0, 1
    yield make(20), 6, 5, 9


def _histogram(x: Any, bins: Any = 100, *, range: Any = None, weight: Any = None, density: bool = False) -> Any:
    weights = None if weight is None else weight.reshape(-1)
    hist, edges = np.histogram(x.reshape(-1), bins, None if range is None else tuple(range), density, weights)
    return hist.astype(x.dtype), edges.astype(x.dtype)


@samples("histogram.bins_tensor", reference=_histogram, dtypes=FLOATS, gradcheck=False, tolerances=CLOSE)
def histogram_by_edges(make: Make) -> Iterator[Any]:
    edges = make.own(np.array([-2.0, -0.5, 0.25, 1.0, 3.0]))
    yield make(30), edges
    yield make(5, 6), edges, {"weight": make(5, 6), "density": False}
    yield make(30), edges, {"density": True}


@samples("histogram.bin_ct", reference=_histogram, dtypes=FLOATS, gradcheck=False, tolerances=CLOSE)
def histogram_by_count(make: Make) -> Iterator[Any]:
    yield make(30), 4
    yield make(5, 6), 7, {"range": [-1.0, 2.0]}
    yield make(30), 3, {"weight": make(30)}
    yield make(30), 5, {"range": [-2.0, 2.0], "density": True}
    yield make(0), 3
