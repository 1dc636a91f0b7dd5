"""Samples of what picks elements by order, by a mask or by a view: medians, quantiles, distinct elements, *_scatter."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from .reduce import LOOSE, NUMBERS, REAL
from .table import ALL_DTYPES, LEAF_OF, Make, samples

QUANTILE = ("float32", "float64")
COMPARED = tuple(d for d in NUMBERS if d != "bfloat16")


def _at(x: Any, dim: int, keepdim: bool, place: Any) -> Any:
    """Values and places at one place of the order along dim."""
    if np.ndim(x) == 0:
        return x, np.int64(0)
    order = np.argsort(x, axis=dim, kind="stable")
    at = np.take(order, [place(x.shape[dim])], dim)
    values = np.take_along_axis(x, at, dim)
    return (values, at) if keepdim else (values.squeeze(dim), at.squeeze(dim))


@samples("median", "nanmedian", dtypes=NUMBERS, reference=lambda x: np.sort(np.ravel(x))[(np.size(x) - 1) // 2])
def median(make: Make) -> Iterator[Any]:
    yield make.distinct(3, 4)
    yield make.distinct(5)
    yield make(())
    for shape in ((1,), (2, 3, 4), (7,), (4, 1), (33,)):
        yield make.distinct(*shape)


@samples(
    "median.dim",
    "nanmedian.dim",
    dtypes=NUMBERS,
    reference=lambda x, dim, keepdim=False: _at(x, dim, keepdim, lambda n: (n - 1) // 2),
)
def median_dim(make: Make) -> Iterator[Any]:
    yield make.distinct(3, 4), 1
    yield make.distinct(3, 4), 0, True
    yield make.distinct(2, 3, 5), -2
    yield make(()), 0
    for shape, dim, keepdim in itertools.product(((4, 3), (2, 3, 4)), (0, 1, -1), (False, True)):
        yield make.distinct(*shape), dim, keepdim


@samples("mode", dtypes=REAL, gradcheck=False, reference=lambda x, dim=-1, keepdim=False: _mode(x, dim, keepdim))
def mode(make: Make) -> Iterator[Any]:
    yield make.array([[1, 0, 1], [0, 0, 1], [1, 1, 1]], make.dtype)
    yield make.array([[1, 0, 1], [0, 0, 1]], make.dtype), 1, True
    yield make.array([1, 0, 0, 1, 1], make.dtype), 0
    for shape, keepdim in itertools.product(((4, 3), (2, 3, 4), (6,)), (False, True)):
        yield make.ties(*shape), -1, keepdim
        yield make.ties(*shape), 0, keepdim


def _mode(x: Any, dim: int, keepdim: bool) -> Any:
    def value(line: Any) -> Any:
        found, counts = np.unique(line, return_counts=True)
        return found[np.argmax(counts)]

    values = np.expand_dims(np.apply_along_axis(value, dim, x), dim)
    n = x.shape[dim]
    places = n - 1 - np.argmax(np.flip(x == values, dim), axis=dim, keepdims=True)
    return (values, places) if keepdim else (values.squeeze(dim), places.squeeze(dim))


def _quantile(x: Any, q: Any, dim: Any = None, keepdim: bool = False, *, interpolation: str = "linear") -> Any:
    return np.quantile(x, q, axis=dim if np.ndim(x) else None, keepdims=keepdim, method=interpolation)


@samples("quantile.scalar", "nanquantile.scalar", dtypes=QUANTILE, reference=_quantile)
def quantile_scalar(make: Make) -> Iterator[Any]:
    yield make.distinct(3, 4), 0.3
    yield make.distinct(3, 4), 0.5, 1
    yield make.distinct(3, 4), 0.9, 0, True
    yield make.distinct(5), 1.0, None, True
    for interpolation in ("linear", "lower", "higher", "midpoint"):
        yield make.distinct(2, 5), 0.4, -1, False, {"interpolation": interpolation}
    for shape, q, dim, keepdim in itertools.product(
        ((3, 4), (2, 3, 5)), (0.0, 0.37, 1.0), (None, 0, -1), (False, True)
    ):
        yield make.distinct(*shape), q, dim, keepdim
    for word, q in itertools.product(("linear", "lower", "higher", "midpoint", "nearest"), (0.2, 0.55)):
        yield make.distinct(4, 5), q, 1, False, {"interpolation": word}


@samples("quantile", "nanquantile", dtypes=QUANTILE, reference=_quantile, gradcheck=False)
def quantile(make: Make) -> Iterator[Any]:
    yield make.distinct(3, 4), make.array([0.1, 0.6], make.dtype)
    yield make.distinct(3, 4), make.array([0.1, 0.6, 1.0], make.dtype), 1, True
    yield make.distinct(3, 4), make.array(0.25, make.dtype), 0
    for shape, dim, keepdim in itertools.product(((3, 4), (2, 3, 5)), (None, 0, -1), (False, True)):
        yield make.distinct(*shape), make.own([0.0, 0.5, 0.7]), dim, keepdim


@samples("isin.Tensor_Tensor", dtypes=COMPARED, reference=lambda x, t, invert=False: np.isin(x, t, invert=invert))
def isin(make: Make) -> Iterator[Any]:
    yield make.array([[1, 2, 3], [3, 4, 0]], make.dtype), make.array([3, 1, 7], make.dtype)
    yield make.array([1, 2], make.dtype), make.array([[2]], make.dtype), {"invert": True}
    yield make.array([1, 2], make.dtype), make.array([], make.dtype)


@samples("isin.Tensor_Scalar", dtypes=COMPARED, reference=lambda x, t: np.isin(x, t))
def isin_number(make: Make) -> Iterator[Any]:
    yield make.array([[1, 2, 3], [3, 4, 0]], make.dtype), 3


@samples("isin.Scalar_Tensor", dtypes=COMPARED, reference=lambda x, t: np.isin(x, t))
def number_isin(make: Make) -> Iterator[Any]:
    yield 3, make.array([[1, 2, 3], [3, 4, 0]], make.dtype)


def _unique(x: Any, dim: int, *flags: bool) -> Any:
    found, inverse, counts = np.unique(x, axis=dim, return_inverse=True, return_counts=True)
    return found, inverse.reshape(-1), counts


@samples("unique_dim", dtypes=REAL, reference=_unique)
def unique_dim(make: Make) -> Iterator[Any]:
    rows = make.array([[1, 0, 1], [0, 0, 1], [1, 0, 1]], make.dtype)
    yield rows, 0, True, True, True
    yield rows, 1, True, True, True


@samples(
    "unique_dim_consecutive",
    dtypes=REAL,
    reference=lambda x, dim, *flags: (x[[0, 2]], np.array([0, 0, 1, 1]), np.array([2, 2])),
)
def unique_dim_consecutive(make: Make) -> Iterator[Any]:
    yield make.array([[1, 0], [1, 0], [0, 1], [0, 1]], make.dtype), 0, True, True


@samples("masked_select", reference=lambda x, m: (lambda a, b: a[b.astype(bool)])(*np.broadcast_arrays(x, m)))
def masked_select(make: Make) -> Iterator[Any]:
    yield make(3, 4), make(3, 4, dtype="bool")
    yield make(20), make(20, dtype="bool")
    yield make(0), make(0, dtype="bool")
    for left, right in (((3, 4), (4,)), ((3, 1), (1, 4)), ((), ()), ((), (3,)), ((3,), ()), ((2, 3, 2), (3, 1))):
        yield make(left), make(right, dtype="bool")


def _masked_scatter(x: Any, mask: Any, source: Any) -> Any:
    out, mask = np.array(x), np.broadcast_to(mask, np.shape(x))
    out[mask] = np.ravel(source)[: np.count_nonzero(mask)]
    return out


@samples("masked_scatter", reference=_masked_scatter)
def masked_scatter(make: Make) -> Iterator[Any]:
    yield make(3, 4), make(3, 4, dtype="bool"), make(3, 4)
    yield make(3, 4), make(4, dtype="bool"), make(15)
    yield make(2), make.array([False, False], "bool"), make(0)
    yield make(2, 3, 2), make(3, 1, dtype="bool"), make(12)
    yield make(0, 3), make(3, dtype="bool"), make(1)


def _put(x: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    out = np.array(x)
    flat = out.reshape(-1)
    if accumulate:
        np.add.at(flat, index.reshape(-1), source.reshape(-1))
    else:
        flat[index.reshape(-1)] = source.reshape(-1)
    return out


@samples("put", reference=_put)
def put(make: Make) -> Iterator[Any]:
    yield make(3, 4), make.array([0, -1, 5]), make(3)
    yield make(3, 4), make.array([[0, 7]]), make(2), True
    if LEAF_OF[make.dtype] not in ("bool", "uint"):
        yield make(4), make.array([1, 1, 1]), make(3), True
    for shape, n, accumulate in itertools.product(((3, 4), (7,), (2, 3, 2), (1, 9)), (0, 1, 4, 6), (False, True)):
        size = int(np.prod(shape))
        yield make(shape), make.array(make.rng.permutation(size)[:n]), make(n), accumulate
    yield make(()), make.array([0]), make(1)


def _written(place: Any) -> Any:
    """A copy with other elements where a view would be."""

    def reference(x: Any, src: Any, *args: Any) -> Any:
        out = x.copy()
        out[place(x, *args)] = src
        return out

    return reference


@samples("select_scatter", reference=_written(lambda x, dim, i: (slice(None),) * (dim % x.ndim) + (i,)))
def select_scatter(make: Make) -> Iterator[Any]:
    yield make(3, 4), make(4), 0, 1
    yield make(3, 4), make(3), -1, -2
    yield make(2, 3, 4), make(2, 4), 1, 2
    yield make(2, 3, 4), make(2, 3), -1, 0
    yield make(5), make(()), 0, -1


@samples(
    "slice_scatter",
    reference=_written(lambda x, dim=0, a=None, b=None, s=1: (slice(None),) * (dim % x.ndim) + (slice(a, b, s),)),
)
def slice_scatter(make: Make) -> Iterator[Any]:
    yield make(5, 4), make(2, 4), 0, 1, 3
    yield make(4, 4), make(2, 4), 0, 0, 4, 2
    yield make(3, 4), make(3, 4)
    yield make(5, 4), make(5, 2), 1, 1, 3
    yield make(5, 4), make(5, 2), 1, 0, 4, 2
    yield make(5, 4), make(0, 4), 0, 2, 2
    yield make(6), make(2), 0, -3, 6, 2
    yield make(2, 3, 4), make(2, 1, 4), 1, 2, 3
    yield make(2, 3, 4), make(2, 3, 2), 2, 1, 100, 2


def _diagonal_scatter(x: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    out = x.copy()
    planes = np.moveaxis(out, (dim1, dim2), (-2, -1))
    n = np.arange(src.shape[-1])
    planes[..., n + max(-offset, 0), n + max(offset, 0)] = src
    return out


@samples("diagonal_scatter", reference=_diagonal_scatter)
def diagonal_scatter(make: Make) -> Iterator[Any]:
    yield make(3, 3), make(3)
    yield make(3, 4), make(3), 1
    yield make(3, 4), make(2), -1
    for shape, offset in itertools.product(((4, 4), (3, 5), (5, 3)), (0, 1, -1, 2)):
        x = make(*shape)
        yield x, make(np.diagonal(x.values, offset).shape), offset
    yield make(2, 3, 3), make(2, 3), 0, 1, 2


@samples("type_as", reference=lambda x, other: x)
def type_as(make: Make) -> Iterator[Any]:
    yield make(2, 3), make(1)


CROSS = tuple(d for d in ALL_DTYPES if LEAF_OF[d] not in ("bool", "uint"))


@samples("linalg_cross", dtypes=CROSS, tolerances=LOOSE, reference=lambda a, b, dim=-1: np.cross(a, b, axis=dim))
def linalg_cross(make: Make) -> Iterator[Any]:
    yield make(3), make(3)
    yield make(4, 3), make(1, 3)
    yield make(3, 2), make(3, 2), {"dim": 0}


@samples("cross", dtypes=CROSS, tolerances=LOOSE, reference=lambda a, b, dim=0: np.cross(a, b, axis=dim))
def cross(make: Make) -> Iterator[Any]:
    yield make(3, 4), make(3, 4)
    yield make(2, 3), make(2, 3), 1
    yield make(4, 3), make(4, 3), -1
    yield make(2, 3, 4), make(2, 3, 4), 1


@samples("kron", dtypes=tuple(d for d in ALL_DTYPES if d != "bool"), reference=np.kron)
def kron(make: Make) -> Iterator[Any]:
    yield make(2, 3), make(3, 2)
    yield make(2), make(2, 2)
    yield make(()), make(3)


@samples(
    "addr", dtypes=CROSS, tolerances=LOOSE, reference=lambda x, a, b, beta=1, alpha=1: beta * x + alpha * np.outer(a, b)
)
def addr(make: Make) -> Iterator[Any]:
    yield make(2, 3), make(2), make(3)
    yield make(3), make(2), make(3), {"beta": 2, "alpha": 3}
    for shape, options in itertools.product(((2, 3), (3,), (2, 1)), ({}, {"beta": 0}, {"alpha": 2}, {"beta": 3})):
        yield make(shape), make(2), make(3), options


def _block_diag(tensors: Any) -> Any:
    blocks = [np.atleast_2d(t) for t in tensors]
    out = np.zeros([sum(b.shape[i] for b in blocks) for i in (0, 1)], blocks[0].dtype)
    row = column = 0
    for block in blocks:
        out[row : row + block.shape[0], column : column + block.shape[1]] = block
        row, column = row + block.shape[0], column + block.shape[1]
    return out


@samples("block_diag", reference=_block_diag)
def block_diag(make: Make) -> Iterator[Any]:
    yield ([make(2, 3), make(2), make(())],)
    yield ([make(2, 2)],)
    yield ([make(()), make(())],)
    yield ([make(1, 3), make(2, 1), make(3)],)


@samples("cartesian_prod", reference=lambda ts: np.array(list(itertools.product(*ts))) if len(ts) > 1 else ts[0])
def cartesian_prod(make: Make) -> Iterator[Any]:
    yield ([make(2), make(3)],)
    yield ([make(2)],)
    yield ([make(2), make(1), make(3)],)
    yield ([make(1), make(4)],)


def _combinations(x: Any, r: int = 2, with_replacement: bool = False) -> Any:
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    return np.array(list(choose(x, r)), dtype=x.dtype).reshape(-1, r)


@samples("combinations", reference=_combinations)
def combinations(make: Make) -> Iterator[Any]:
    yield make(4)
    yield make(3), 2, True
    yield make(4), 3
    for n, r, again in itertools.product((1, 3, 5), (1, 2, 3), (False, True)):
        yield make(n), r, again
