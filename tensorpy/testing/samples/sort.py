"""Samples of what orders elements: sort, argsort, topk, kthvalue, searchsorted, bucketize.

Where elements are equal, which of their places comes first is determined for stable sorts only: others get elements
that differ.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from .table import FLOATS, INTEGERS, LEAVES, REAL, WIDE_UNSIGNED, Array, Make, samples

SORTED = tuple(d for d in REAL if d not in WIDE_UNSIGNED)
COMPARED = tuple(d for d in (*LEAVES["sint"], "uint8", *FLOATS))
SHAPES = ((), (5,), (3, 4), (2, 3, 2), (0,), (3, 0), (1, 20))


def order(x: Any, dim: int = -1, descending: bool = False, stable: Any = None) -> Any:
    """Places in order: of equal elements the first comes first; NaN is the largest."""
    if np.ndim(x) == 0:
        return np.zeros((), np.int64)
    if not descending:
        return np.argsort(x, dim, kind="stable")
    turned = np.flip(x, dim)
    return np.flip(x.shape[dim] - 1 - np.argsort(turned, dim, kind="stable"), dim)


def taken(x: Any, places: Any, dim: int = -1) -> Any:
    return np.take_along_axis(x, places, dim) if np.ndim(x) else x


def _sort(x: Any, dim: int = -1, descending: bool = False, stable: Any = None) -> Any:
    places = order(x, dim, descending)
    return taken(x, places, dim), places


def _dims(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (0, -1) if shape else (0,)


@samples("sort.stable", reference=lambda x, stable=None, dim=-1, descending=False: _sort(x, dim, descending),
         dtypes=SORTED)  # fmt: skip
def sort_stable(make: Make) -> Iterator[Any]:
    for shape in SHAPES:
        for dim, descending in itertools.product(_dims(shape), (False, True)):
            yield make.distinct(*shape), {"stable": True, "dim": dim, "descending": descending}
            if make.dtype != "float64":  # where values are equal there is no gradient
                yield make.ties(*shape), {"stable": True, "dim": dim, "descending": descending}
    if make.dtype != "float64":
        yield make.with_nan(12), {"stable": True}
        yield make.with_nan(12), {"stable": True, "descending": True}


@samples("argsort.stable", reference=lambda x, stable=None, dim=-1, descending=False: order(x, dim, descending),
         dtypes=SORTED, gradcheck=False)  # fmt: skip
def argsort_stable(make: Make) -> Iterator[Any]:
    yield from sort_stable(make)


@samples("sort", reference=_sort, dtypes=COMPARED)
@samples("argsort", reference=order, dtypes=COMPARED, gradcheck=False)
def sort(make: Make) -> Iterator[Any]:
    for shape in SHAPES:
        yield (make.distinct(*shape),)
        for dim, descending in itertools.product(_dims(shape), (False, True)):
            yield make.distinct(*shape), dim, descending


@samples("msort", reference=lambda x: np.sort(x, 0) if np.ndim(x) else x, dtypes=SORTED)
def msort(make: Make) -> Iterator[Any]:
    for shape in SHAPES[1:]:
        yield (make.distinct(*shape),)
    if make.dtype != "float64":  # where values are equal there is no gradient
        yield (make.ties(5, 3),)
        yield (make.with_nan(6, 2),)


def _topk(x: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    if np.ndim(x) == 0:
        return x, np.int64(0)
    places = np.take(order(x, dim, largest), np.arange(k), dim)
    return taken(x, places, dim), places


@samples("topk", reference=_topk, dtypes=COMPARED)
def topk(make: Make) -> Iterator[Any]:
    for shape, dim, k in (((5,), 0, 3), ((3, 4), -1, 2), ((3, 4), 0, 3), ((2, 3, 4), 1, 1), ((), 0, 1), ((3, 4), 1, 0)):
        for largest in (True, False):
            yield make.distinct(*shape), k, dim, largest
    yield make.distinct(50), 20
    yield make.distinct(3, 0), 0


def _kth(x: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    if np.ndim(x) == 0:
        return x, np.int64(0)
    places = np.take(order(x, dim), [k - 1], dim)
    values = taken(x, places, dim)
    return (values, places) if keepdim else (np.squeeze(values, dim), np.squeeze(places, dim))


@samples("kthvalue", reference=_kth, dtypes=COMPARED)
def kthvalue(make: Make) -> Iterator[Any]:
    for shape, dim, k in (((5,), 0, 3), ((3, 4), -1, 4), ((3, 4), 0, 1), ((2, 3, 4), 1, 2), ((), 0, 1), ((5, 5), 1, 3)):
        for keepdim in (False, True):
            yield make.distinct(*shape), k, dim, keepdim
    yield make.distinct(50), 20


# ---- searching ----


def searched(sequence: Any, x: Any, *, right: bool = False, side: Any = None, sorter: Any = None, **_: Any) -> Any:
    side = side or ("right" if right else "left")
    x = np.asarray(x)
    if sequence.ndim == 1:
        return np.searchsorted(sequence if sorter is None else sequence[sorter], x, side)
    out = np.zeros(x.shape, np.int64)
    for i in np.ndindex(sequence.shape[:-1]):
        row = sequence[i] if sorter is None else sequence[i][sorter[i]]
        out[i] = np.searchsorted(row, x[i], side)
    return out


def ascending(make: Make, *shape: int) -> Array:
    values = make(*shape)
    return Array(np.sort(values.values, -1), values.dtype)


SEARCH = {"gradcheck": False, "dtypes": COMPARED}


@samples("searchsorted.Tensor", reference=searched, **SEARCH)
def searchsorted(make: Make) -> Iterator[Any]:
    shapes = (
        ((6,), (3,)), ((6,), ()), ((6,), (2, 3)), ((2, 6), (2, 3)), ((2, 3, 5), (2, 3, 4)), ((1,), (4,)), ((0,), (3,)),
        ((6,), (0,)), ((2, 6), (2, 0)),
    )  # fmt: skip
    choices = itertools.product(
        (False, True), ({}, {"right": True}, {"side": "left"}, {"side": "right"}), (False, True)
    )
    for (sequence, sought), (narrow, where, mixed) in itertools.product(shapes, list(choices)):
        if mixed:  # an order of its own
            made = make(*sequence)
            given = {"sorter": make.array(np.argsort(made.values, -1, kind="stable"))}
        else:
            made, given = ascending(make, *sequence), {}
        yield made, make(*sought), {"out_int32": narrow, **where, **given}
        yield made, make.ties(*sought), {"out_int32": narrow, **where, **given}


@samples("searchsorted.Scalar", reference=searched, **SEARCH)
def searchsorted_scalar(make: Make) -> Iterator[Any]:
    for options in ({}, {"right": True}, {"side": "left"}, {"side": "right"}, {"out_int32": True}):
        yield ascending(make, 6), 2, options
        yield ascending(make, 0), 2, options


@samples("bucketize.Tensor", reference=lambda x, edges, **o: searched(edges, x, **o), **SEARCH)
def bucketize(make: Make) -> Iterator[Any]:
    for shape, right, narrow in itertools.product(((), (0,), (5,), (2, 3), (2, 1, 3)), (False, True), (False, True)):
        yield make(*shape), ascending(make, 5), {"right": right, "out_int32": narrow}
    yield make(3), ascending(make, 0)
    yield make.ties(9), make.own([0, 1, 1, 2]), {"right": True}


@samples("bucketize.Scalar", reference=lambda x, edges, **o: searched(edges, x, **o), **SEARCH)
def bucketize_scalar(make: Make) -> Iterator[Any]:
    for options in ({}, {"right": True}, {"out_int32": True}):
        yield 2, ascending(make, 5), options


# ---- running along a dimension ----


def _running(extreme: Any) -> Any:
    def reference(x: Any, dim: int) -> Any:
        if np.ndim(x) == 0:
            return x, np.int64(0)
        values = extreme.accumulate(x, dim) if x.size else x
        n = np.arange(x.shape[dim]).reshape([-1 if d == dim % x.ndim else 1 for d in range(x.ndim)])
        places = np.where(x == values, n, 0)
        return values, np.maximum.accumulate(places, dim) if x.size else places

    return reference


@samples("cummax", reference=_running(np.maximum), dtypes=(*FLOATS, *INTEGERS[:1], *LEAVES["sint"], "bool"))
@samples("cummin", reference=_running(np.minimum), dtypes=(*FLOATS, *INTEGERS[:1], *LEAVES["sint"], "bool"))
def running_extreme(make: Make) -> Iterator[Any]:
    for shape in SHAPES:
        for dim in _dims(shape):
            yield make.distinct(*shape), dim
    yield make.ties(3, 5), 1
