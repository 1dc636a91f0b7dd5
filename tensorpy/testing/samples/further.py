"""Samples of what stands between families: parts shortened, exponents, ranges with both ends, copies of parts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from .table import ALL_DTYPES, ARITHMETIC, FLOATING, FLOATS, LOOSE, Make, samples


def renorm(x: Any, p: float, dim: int, longest: float) -> Any:
    rows = np.moveaxis(x, dim, 0).reshape(x.shape[dim], -1)
    norms = np.abs(rows).max(1) if p == np.inf else (np.abs(rows) ** p).sum(1) ** (1 / p)
    shape = [-1 if d == dim % x.ndim else 1 for d in range(x.ndim)]
    return x * np.where(norms > longest, longest / (norms + 1e-7), 1).reshape(shape)


@samples("renorm", dtypes=FLOATS[2:], reference=renorm, tolerances=LOOSE)
def renorms(make: Make) -> Iterator[Any]:
    for shape, p in itertools.product(((3, 4), (2, 3, 2)), (1, 2, 3.0)):
        for dim in (0, -1):
            yield make(*shape), p, dim, 2.5


def index_reduce(x: Any, dim: int, index: Any, source: Any, reduce: str, include_self: bool = True) -> Any:
    x, parts = np.moveaxis(np.array(x), dim, 0), np.moveaxis(source, dim, 0)
    how = {"prod": np.prod, "mean": np.mean, "amax": np.max, "amin": np.min}[reduce]
    for i in set(index.tolist()):
        chosen = parts[index == i]
        x[i] = how(np.concatenate([x[i][None], chosen]) if include_self else chosen, axis=0)
    return np.moveaxis(x, 0, dim)


@samples("index_reduce", dtypes=FLOATS[2:], reference=index_reduce, tolerances=LOOSE)
def index_reduces(make: Make) -> Iterator[Any]:
    for reduce, include in itertools.product(("prod", "mean", "amax", "amin"), (True, False)):
        options = {"include_self": include}
        both = make.distinct(9, 3).values + 0.5
        yield make.own(both[:4]), 0, make.array([0, 2, 2, 3, 0]), make.own(both[4:]), reduce, options
        yield (
            make.own(both[:4].T.copy()),
            1,
            make.array([1, 2, 1], "int32"),
            make.own(both[4:7].T.copy()),
            reduce,
            options,
        )


@samples("frexp.Tensor", dtypes=FLOATS[2:], reference=np.frexp, gradcheck=False)
def frexps(make: Make) -> Iterator[Any]:
    yield (make(3, 4),)
    yield (make.own([0.0, -0.0, 1.0, -2.0, 0.5, 3.3, 1e-30, 1e30, 8.0, 0.49999997]),)
    yield (make(()),)


@samples("ldexp.Tensor", dtypes=FLOATS, reference=lambda x, n: np.asarray(x) * 2.0 ** np.asarray(n), tolerances=LOOSE)
def ldexps(make: Make) -> Iterator[Any]:
    for a, shape in (((3, 4), (3, 4)), ((), ()), ((0, 3), (0, 3)), ((3, 4), (4,)), ((4,), (3, 1)), ((2, 1), (1, 3)),
                     ((1,), ()), ((5,), (5,))):  # fmt: skip
        yield make(a), make(shape, dtype="float32" if make.dtype in ("float16", "bfloat16") else make.dtype)


@samples("isreal", dtypes=ALL_DTYPES, reference=np.isreal, gradcheck=False)
def isreals(make: Make) -> Iterator[Any]:
    yield (make(3, 4),)
    yield (make.own([1, 0, 1]),)
    yield (make(0, 3),)


@samples("diagflat", dtypes=ALL_DTYPES, reference=lambda x, offset=0: np.diagflat(x, offset))
def diagflats(make: Make) -> Iterator[Any]:
    for shape, offset in itertools.product(((3,), (2, 2), ()), (0, 1, -2)):
        yield make(shape), offset


def _filled(x: Any, size: int, fill_value: int = -1) -> Any:
    found = np.argwhere(x)[:size]
    return np.pad(found, ((0, size - len(found)), (0, 0)), constant_values=fill_value)


@samples("nonzero_static", dtypes=ALL_DTYPES, reference=_filled, gradcheck=False)
def nonzeros(make: Make) -> Iterator[Any]:
    for shape, size, fill in itertools.product(((3, 4), (5,)), (0, 2, 20), (-1, 7)):
        yield make.own(make.rng.randint(0, 2, shape)), {"size": size, "fill_value": fill}


def _sum_to(x: Any, size: Any) -> Any:
    front = x.ndim - len(size)
    dims = tuple(d for d in range(x.ndim) if d < front or (size[d - front] == 1 and x.shape[d] != 1))
    return x.sum(dims, keepdims=True).reshape(size)


@samples("sum_to_size", dtypes=ARITHMETIC, reference=_sum_to, tolerances=LOOSE)
def sums_to_size(make: Make) -> Iterator[Any]:
    for size in ([2, 3, 4], [1, 4], [3, 1], [2, 1, 4], [], [1], [1, 1, 1], [4]):
        yield make(2, 3, 4), size


def _pieces(x: Any, size: Any, dim: int = 0) -> Any:
    if isinstance(size, int):
        size = [size] * (x.shape[dim] // size) + [x.shape[dim] % size] * (x.shape[dim] % size > 0)
    return tuple(np.split(x, np.cumsum(size)[:-1], dim))


@samples("unsafe_split.Tensor", dtypes=FLOATING, reference=_pieces)
def unsafe_splits(make: Make) -> Iterator[Any]:
    for size, dim in itertools.product((1, 2, 5), (0, -1)):
        yield make(3, 4), size, dim


@samples("unsafe_split_with_sizes", dtypes=FLOATING, reference=_pieces)
def unsafe_splits_with_sizes(make: Make) -> Iterator[Any]:
    yield make(3, 4), [1, 2]
    yield make(3, 4), [3, 0, 1], 1


@samples("unsafe_chunk", dtypes=FLOATING, reference=lambda x, n, dim=0: _pieces(x, -(-x.shape[dim] // n), dim))
def unsafe_chunks(make: Make) -> Iterator[Any]:
    for n, dim in itertools.product((1, 2, 3), (0, 1)):
        yield make(3, 4), n, dim


def _with_both_ends(first: float, last: float, step: float = 1, dtype: str = "float64") -> Any:
    return first + step * np.arange(int(np.floor((last - first) / step)) + 1)


@samples("range", dtypes=FLOATS[2:], reference=_with_both_ends, gradcheck=False)
def ranges(make: Make) -> Iterator[Any]:
    for first, last in ((1, 4), (0.5, 3.2), (2, 2)):
        yield first, last, {"dtype": make.given}


@samples("range.step", dtypes=FLOATS[2:], reference=_with_both_ends, gradcheck=False)
def ranges_with_steps(make: Make) -> Iterator[Any]:
    for first, last, step in ((1, 4, 1), (0, 1, 0.25), (4, -1, -2)):
        yield first, last, step, {"dtype": make.given}


def _hash(x: Any, dim: Any = (), keepdim: bool = False) -> Any:
    words = x.astype(np.float64).view(np.int64) if x.dtype.kind == "f" else x.astype(np.int64)
    return np.bitwise_xor.reduce(words, axis=tuple(dim) or None, keepdims=keepdim).astype(np.uint64)


@samples("hash_tensor", dtypes=("bool", *FLOATS, "uint8", "int8", "int32", "int64"), reference=_hash, gradcheck=False)
def hash_tensors(make: Make) -> Iterator[Any]:
    yield (make(3, 4),)
    yield make(2, 3, 4), [0, 2]
    yield make(3, 4), [1], {"keepdim": True}
    yield (make(()),)
    for shape in ((5,), (1, 3), (2, 3, 4)):
        yield (make(*shape),)
        yield make(*shape), [-1]
        yield make(*shape), [0], {"keepdim": True}
    for dims in ([0, 1], [1, 2], [-1, 0], [0, 1, 2]):
        yield make(2, 3, 4), dims
        yield make(2, 3, 4), dims, {"keepdim": True}


def segment_reduce(
    x: Any, reduce: str, *, lengths: Any = None, offsets: Any = None, axis: int = 0, initial: Any = None
) -> Any:
    lengths = np.diff(offsets) if lengths is None else lengths
    start = {"max": -np.inf, "min": np.inf, "prod": 1.0}.get(reduce, 0.0) if initial is None else float(initial)
    how = {"max": np.maximum, "min": np.minimum, "prod": np.multiply}.get(reduce, np.add)
    out = np.full((*lengths.shape, *x.shape[axis + 1 :]), start)
    for place in np.ndindex(*lengths.shape[:-1]):
        ends = np.cumsum(lengths[place])
        for i, end in enumerate(ends):
            part = x[place][end - lengths[place][i] : end]
            out[(*place, i)] = how.reduce(np.concatenate([out[(*place, i)][None], part]), axis=0)
            if reduce == "mean":
                n = len(part)
                out[(*place, i)] = out[(*place, i)] / n if n else out[(*place, i)] if initial is not None else np.nan
    return out


@samples("segment_reduce", dtypes=FLOATS, reference=segment_reduce, tolerances=LOOSE)
def segment_reduces(make: Make) -> Iterator[Any]:
    for reduce in ("sum", "mean", "max", "min", "prod"):
        whole = make.distinct(5, 2)
        yield whole, reduce, {"lengths": make.array([1, 3, 1])}
        yield make.distinct(4), reduce, {"offsets": make.array([0, 2, 4])}
        yield make.distinct(2, 3), reduce, {"lengths": make.array([[1, 2], [3, 0]]), "axis": 1, "initial": 0.5}
