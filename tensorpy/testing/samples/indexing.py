"""Samples of operators that read and write at places given by index tensors: index, gather, scatter and their kin."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .table import ARITHMETIC, LOOSE, Array, Make, samples

ADDED: dict[str, Any] = {"dtypes": ARITHMETIC, "tolerances": LOOSE}


# ---- x[...] ----


def _key(indices: Any) -> tuple[Any, ...]:
    return tuple(slice(None) if i is None else i for i in indices)


@samples("index.Tensor", reference=lambda x, indices: x[_key(indices)])
def index(make: Make) -> Iterator[Any]:
    yield make(5, 4), [make.index(5, 3)]
    yield make(5, 4), [None, make.index(4, 6)]
    yield make(5, 4), [make.index(5, 3), make.index(4, 3)]
    yield make(5, 4), [make.index(5, 3, 1), make.index(4, 2)]
    yield make(5, 4), [make.index(5, 2, 3, negative=True)]
    yield make(2, 3, 4), [make.index(2, 3), None, make.index(4, 3)]
    yield make(2, 3, 4), [None, make.index(3, 2)]
    yield make(5, 4), [make.index(5)]
    yield make(5, 4), [make.index(5, 0)]


def _index_put(x: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    out = x.copy()
    if accumulate:
        np.add.at(out, _key(indices), values)
    else:
        out[_key(indices)] = values
    return out


@samples("index_put", reference=_index_put, **ADDED)
def index_put(make: Make) -> Iterator[Any]:
    yield make(5, 4), [make.permutation(5)], make(5, 4)
    yield make(5, 4), [None, make.array([3, 0])], make(5, 2)
    yield make(5, 4), [make.array([0, 2]), make.array([1, 3])], make(2)
    yield make(5, 4), [make.array([0, 2])], make(())
    yield make(5, 4), [make.index(5, 7)], make(7, 4), True
    yield make(5, 4), [make.index(5, 3, 2), make.index(4, 2)], make(2), True
    yield make(5, 4), [make.index(5, 0)], make(0, 4), True
    yield make(5, 4), [make.array([-1, -5])], make(4)


@samples("index_select", reference=lambda x, dim, index: np.take(x, index, dim) if x.ndim else x)
def index_select(make: Make) -> Iterator[Any]:
    for shape, dim, n in (((5, 4), 0, 3), ((5, 4), -1, 6), ((2, 3, 4), 1, 2), ((5,), 0, 0), ((5,), 0, 1)):
        yield make(shape), dim, make.index(shape[dim], n)
    yield make(()), 0, make.array([0])
    yield make(3, 2), 0, make.array([2, 0], "int32")
    yield make(0, 3), 1, make.array([1, 1])


@samples("take", reference=lambda x, index: x.ravel()[index])
def take(make: Make) -> Iterator[Any]:
    for shape, places in (((5, 4), (3,)), ((5, 4), (2, 2)), ((5, 4), ()), ((7,), (0,)), ((2, 3, 4), (5,))):
        size = int(np.prod(shape))
        yield make(shape), make.index(size, *places)
        yield make(shape), make.index(size, *places, negative=True)
    yield make(()), make.array([0, 0])
    yield make(()), make.array(0)


@samples("take_along_dim", reference=lambda x, index, dim=None: np.take_along_axis(x, index, dim))
def take_along_dim(make: Make) -> Iterator[Any]:
    yield make(5, 4), make.index(5, 3, 4), 0
    yield make(5, 4), make.index(4, 5, 2), -1
    yield make(5, 4), make.index(20, 6)
    yield make(5, 4), make.index(5, 3, 1), 0
    yield make(2, 3, 4), make.index(3, 2, 5, 4), 1
    yield make(5), make.index(5, 0), 0


# ---- gather and scatter ----

# The sizes of self, the dimension, and the sizes of index, which may be smaller in the others.
PLACED = (
    ((5, 4), 0, (3, 4)), ((5, 4), 0, (2, 3)), ((5, 4), 1, (5, 6)), ((5, 4), -1, (2, 2)), ((2, 3, 4), 1, (2, 2, 4)),
    ((2, 3, 4), 2, (1, 3, 3)), ((5,), 0, (7,)), ((5,), 0, (0,)), ((), 0, ()), ((5, 4), 0, (0, 4)),
)  # fmt: skip


def _positions(index: Any, dim: int) -> tuple[Any, ...]:
    grid = list(np.indices(index.shape))
    grid[dim] = index
    return tuple(grid)


def _gather(x: Any, dim: int, index: Any) -> Any:
    return x[_positions(index, dim)] if x.ndim else x.copy()


@samples("gather", reference=_gather)
def gather(make: Make) -> Iterator[Any]:
    for shape, dim, places in PLACED:
        yield make(shape), dim, make.index(shape[dim] if shape else 1, *places)


def distinct_places(make: Make, shape: tuple[int, ...], dim: int, places: tuple[int, ...]) -> Array:
    """No place twice along the dimension, so that what is written there is determined."""
    if not shape:
        return make.array(0)
    size, count = shape[dim], min(places[dim], shape[dim])
    wanted = [count if d == dim % len(shape) else n for d, n in enumerate(places)]
    order = np.argsort(make.rng.uniform(size=[size if d == dim % len(shape) else n for d, n in enumerate(places)]), dim)
    return make.array(np.take(order, range(wanted[dim]), dim))


def _written(ufunc: Any = None) -> Callable[..., Any]:
    def reference(x: Any, dim: int, index: Any, src: Any, reduce: str | None = None) -> Any:
        out = np.atleast_1d(x.copy())
        index = np.atleast_1d(index)
        at = _positions(index, dim)
        src = np.asarray(src)
        values = np.broadcast_to(src, index.shape) if not src.ndim else src[tuple(slice(n) for n in index.shape)]
        combine = {"add": np.add, "multiply": np.multiply}.get(reduce or "", ufunc)
        if combine is None:
            out[at] = values
        else:
            combine.at(out, at, values.astype(out.dtype))
        return out.reshape(x.shape)

    return reference


@samples("scatter.src", reference=_written())
def scatter(make: Make) -> Iterator[Any]:
    for shape, dim, places in PLACED:
        index = distinct_places(make, shape, dim, places)
        yield make(shape), dim, index, make(index.values.shape)
        if shape and make.dtype not in ("float64", "complex128"):  # a source larger than the index has no gradient
            yield make(shape), dim, index, make(tuple(n + 1 for n in index.values.shape))


@samples("scatter.value", reference=_written())
def scatter_value(make: Make) -> Iterator[Any]:
    for shape, dim, places in PLACED:
        yield make(shape), dim, make.index(shape[dim] if shape else 1, *places), 1


@samples("scatter_add", reference=_written(np.add), **ADDED)
def scatter_add(make: Make) -> Iterator[Any]:
    for shape, dim, places in PLACED:
        index = make.index(shape[dim] if shape else 1, *places)
        yield make(shape), dim, index, make(places)
        if shape and make.dtype not in ("float64", "complex128"):  # a source larger than the index has no gradient
            yield make(shape), dim, index, make(tuple(n + 1 for n in places))


@samples("scatter.reduce", reference=_written(), gradcheck=False, **ADDED)
def scatter_by(make: Make) -> Iterator[Any]:
    for (shape, dim, places), reduce in itertools.product(PLACED, ("add", "multiply")):
        index = make.index(shape[dim] if shape else 1, *places)
        yield make(shape, low=0, high=3), dim, index, make(places, low=0, high=3), {"reduce": reduce}


@samples("scatter.value_reduce", reference=_written(), gradcheck=False, **ADDED)
def scatter_value_by(make: Make) -> Iterator[Any]:
    for (shape, dim, places), reduce in itertools.product(PLACED, ("add", "multiply")):
        yield make(shape, low=0, high=3), dim, make.index(shape[dim] if shape else 1, *places), 2, {"reduce": reduce}


# ---- along one dimension ----

LINES = (((5, 4), 0, 3), ((5, 4), -1, 2), ((2, 3, 4), 1, 3), ((5,), 0, 0), ((5,), 0, 5))


def _along(write: Callable[[Any, Any, Any], None]) -> Callable[..., Any]:
    def reference(x: Any, dim: int, index: Any, source: Any, **options: Any) -> Any:
        out = np.atleast_1d(x.copy())
        turned = np.moveaxis(out, dim, 0)
        source = np.asarray(source) * np.asarray(options.get("alpha", 1)).astype(out.dtype)
        source = np.moveaxis(source, dim, 0) if source.ndim else source
        write(turned, np.atleast_1d(index), source)
        return out.reshape(x.shape)

    return reference


def _set(out: Any, index: Any, source: Any) -> None:
    out[index] = source


@samples("index_copy", reference=_along(_set))
def index_copy(make: Make) -> Iterator[Any]:
    for shape, dim, n in LINES:
        sizes = [n if d == dim % len(shape) else s for d, s in enumerate(shape)]
        yield make(shape), dim, make.array(make.rng.permutation(shape[dim])[:n]), make(sizes)
    yield make(()), 0, make.array([0]), make(())


@samples("index_add", reference=_along(np.add.at), **ADDED)
def index_add(make: Make) -> Iterator[Any]:
    for (shape, dim, n), options in itertools.product(LINES, ({}, {"alpha": 2})):
        sizes = [n if d == dim % len(shape) else s for d, s in enumerate(shape)]
        yield make(shape), dim, make.index(shape[dim], n), make(sizes), options
    yield make(()), 0, make.array([0]), make(())


@samples("index_fill.int_Scalar", reference=_along(_set))
def index_fill(make: Make) -> Iterator[Any]:
    for shape, dim, n in LINES:
        yield make(shape), dim, make.index(shape[dim], n), 1
    yield make(()), 0, make.array([0]), 1


@samples("index_fill.int_Tensor", reference=_along(_set), needs_values=True)
def index_fill_tensor(make: Make) -> Iterator[Any]:
    for shape, dim, n in LINES:
        yield make(shape), dim, make.index(shape[dim], n), make(())


# ---- scatter_reduce ----


def _reduced(x: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True) -> Any:
    ufunc = {"sum": np.add, "mean": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}[reduce]
    out, index, src = np.atleast_1d(x.copy()), np.atleast_1d(index), np.atleast_1d(src)
    at = _positions(index, dim)
    src = src[tuple(slice(n) for n in index.shape)]
    count = np.zeros(out.shape, np.int64)
    np.add.at(count, at, 1)
    if not include_self:
        if reduce in ("sum", "mean", "prod"):
            out[count > 0] = reduce == "prod"
        else:  # any of the values that come here is as good a start as none
            out[at] = src
    ufunc.at(out, at, src)
    if reduce == "mean":
        n = np.maximum(count + include_self, 1)
        out = np.where(count > 0, out / n if out.dtype.kind in "fc" else out // n, out)
    return out.reshape(x.shape)


@samples("scatter_reduce.two", reference=_reduced, dtypes=tuple(d for d in ARITHMETIC if not d.startswith("complex")),
         tolerances=LOOSE, gradcheck=False)  # fmt: skip
def scatter_reduce(make: Make) -> Iterator[Any]:
    ways = itertools.product(("sum", "prod", "mean", "amax", "amin"), (True, False))
    for reduce, include in ways:
        for shape, dim, places in PLACED:
            index = make.index(shape[dim] if shape else 1, *places)
            yield make(shape, low=0, high=3), dim, index, make(places, low=0, high=3), reduce, {"include_self": include}


# ---- where, and how many ----


@samples("argwhere", reference=lambda x: np.argwhere(x), gradcheck=False, needs_values=True)
@samples("nonzero", reference=lambda x: np.argwhere(x), gradcheck=False)
def nonzero(make: Make) -> Iterator[Any]:
    for shape in ((4,), (3, 4), (2, 3, 2), (0,), (3, 0), (), (1,), (50,)):
        yield (make.ties(*shape),)
        yield (make.own(np.zeros(shape)),)
        yield (make(*shape),)


@samples(
    "nonzero_numpy", "where", reference=lambda x: list(np.nonzero(np.atleast_1d(x))), gradcheck=False, needs_values=True
)
def nonzero_numpy(make: Make) -> Iterator[Any]:
    for shape in ((4,), (3, 4), (2, 3, 2), (0,)):
        yield (make.ties(*shape),)


WHOLE = ("uint8", "int8", "int16", "int32", "int64")


@samples("bincount", reference=lambda x, weights=None, minlength=0: np.bincount(x, weights, minlength),
         dtypes=WHOLE, gradcheck=False)  # fmt: skip
def bincount(make: Make) -> Iterator[Any]:
    for n, least, weights in itertools.product((0, 1, 5, 40), (0, 3, 12), (None, "float64", "int64")):
        given = () if weights is None else (make(n, dtype=weights),)
        yield make(n, low=0, high=9), *given, {"minlength": least}


@samples("one_hot", reference=lambda x, n=-1: np.eye(int(x.max()) + 1 if n < 0 else n, dtype=np.int64)[x],
         dtypes=("int64",))  # fmt: skip
def one_hot(make: Make) -> Iterator[Any]:
    for shape in ((), (4,), (2, 3), (2, 1, 3)):
        yield make(shape, low=0, high=5), 5
        yield (make(shape, low=0, high=5),)
    yield make(0), 3
