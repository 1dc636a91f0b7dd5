"""Samples of torch.gradient, which is numpy.gradient with its spacings by keyword."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from .table import FLOATS, LOOSE, Make, samples


def slopes(x: Any, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> Any:
    dims = list(range(x.ndim)) if dim is None else list(np.atleast_1d(dim))
    each = (
        [1] * len(dims) if spacing is None else spacing if isinstance(spacing, (list, tuple)) else [spacing] * len(dims)
    )
    return tuple(np.gradient(x, s, axis=int(d), edge_order=edge_order) for s, d in zip(each, dims, strict=True))


KNOWN: dict[str, Any] = {"dtypes": FLOATS[2:], "reference": slopes, "tolerances": LOOSE}


@samples("gradient.scalarint", **KNOWN)
def with_a_number(make: Make) -> Iterator[Any]:
    for order, options in itertools.product((1, 2), ({}, {"spacing": 0.5}, {"dim": 1}, {"spacing": 2.0, "dim": -1})):
        yield make(3, 4), {**options, "edge_order": order}
    yield (make(2),)


@samples("gradient.scalararray", **KNOWN)
def with_a_number_along(make: Make) -> Iterator[Any]:
    for dims in ([0], [1, 0]):
        yield make(3, 4), {"spacing": 0.5, "dim": dims}


@samples("gradient.array", **KNOWN)
def along(make: Make) -> Iterator[Any]:
    for dims, order in itertools.product(([0], [1, 0], [-1]), (1, 2)):
        yield make(3, 4), {"dim": dims, "edge_order": order}


@samples("gradient.scalarrayint", **KNOWN)
def with_numbers(make: Make) -> Iterator[Any]:
    yield make(3, 4), {"spacing": [0.5, 2.0]}
    yield make(3, 4), {"spacing": [0.5], "dim": 1}


@samples("gradient.scalarrayarray", **KNOWN)
def with_numbers_along(make: Make) -> Iterator[Any]:
    yield make(3, 4), {"spacing": [0.5, 2.0], "dim": [1, 0]}


def _places(make: Make, n: int) -> Any:
    return make.own(np.cumsum(make.rng.uniform(0.5, 1.5, n)))


@samples("gradient.tensorarrayint", **KNOWN)
def at_places(make: Make) -> Iterator[Any]:
    for order in (1, 2):
        yield make(3, 4), {"spacing": [_places(make, 3), _places(make, 4)], "edge_order": order}
        yield make(3, 5), {"spacing": [_places(make, 5)], "dim": 1, "edge_order": order}


@samples("gradient.tensorarray", **KNOWN)
def at_places_along(make: Make) -> Iterator[Any]:
    for order in (1, 2):
        yield make(3, 4), {"spacing": [_places(make, 4), _places(make, 3)], "dim": [1, 0], "edge_order": order}
    yield make(2, 4), {"spacing": [_places(make, 2)], "dim": [0]}
