"""Samples of what joins tensors and what takes them apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .table import Make, samples

# ---- joins ----


@samples("cat", "concat", "concatenate", reference=lambda xs, dim=0: np.concatenate(xs, dim))
def cat(make: Make) -> Iterator[Any]:
    yield [make(2, 3), make(1, 3)]
    yield [make(2, 3), make(2, 1), make(2, 0)], 1
    yield ([make(3)],)
    yield [make(2, 3), make(2, 3), make(2, 3)], -1
    yield [make(2, 1, 3), make(2, 4, 3)], 1
    yield [make(2, 1, 3), make(2, 4, 3)], -2
    yield [make(0, 3), make(2, 3), make(0, 3)]
    yield [make(0), make(0)]
    yield tuple(make(1, 2) for _ in range(7)), 0
    yield [make(40, 3), make(2, 3)], 0


@samples("stack", reference=lambda xs, dim=0: np.stack(xs, dim))
def stack(make: Make) -> Iterator[Any]:
    for shape in ((), (3,), (2, 3), (0, 3), (2, 1, 3)):
        for dim in range(-len(shape) - 1, len(shape) + 1):
            yield [make(shape), make(shape)], dim
    yield [make(2), make(2), make(2)]
    yield ([make(2)],)


JOINED: dict[str, Callable[..., Any]] = {
    "hstack": np.hstack, "vstack": np.vstack, "row_stack": np.vstack, "dstack": np.dstack,
    "column_stack": np.column_stack,
}  # fmt: skip


def joined(make: Make) -> Iterator[Any]:
    for shape in ((), (3,), (2, 3), (2, 3, 2), (1, 1)):
        yield ([make(shape), make(shape)],)
        yield (tuple(make(shape) for _ in range(3)),)


for _name, _function in JOINED.items():
    samples(_name, reference=_function)(joined)


@samples("meshgrid", reference=lambda xs: np.meshgrid(*xs, indexing="ij"))
def meshgrid(make: Make) -> Iterator[Any]:
    yield ([make(3), make(4)],)
    yield ([make(3)],)
    yield ([make(2), make(3), make(4)],)
    yield ([make(2), make(()), make(3)],)
    yield ([make(0), make(3)],)


@samples("meshgrid.indexing", reference=lambda xs, indexing: np.meshgrid(*xs, indexing=indexing))
def meshgrid_by(make: Make) -> Iterator[Any]:
    for indexing in ("ij", "xy"):
        yield [make(3), make(4)], {"indexing": indexing}
        yield [make(2), make(3), make(4)], {"indexing": indexing}
        yield [make(3)], {"indexing": indexing}
        yield [make(1), make(2)], {"indexing": indexing}


@samples("broadcast_tensors", reference=lambda xs: np.broadcast_arrays(*xs))
def broadcast_tensors(make: Make) -> Iterator[Any]:
    yield ([make(3, 1), make(4)],)
    yield ([make(()), make(2, 3)],)
    yield ([make(3, 1), make(1, 4), make(2, 1, 1)],)
    yield ([make(0, 1), make(3)],)


# ---- parts ----


def _sections(x: Any, size: int, dim: int = 0) -> Any:
    n = x.shape[dim]
    return np.split(x, range(size, n, size), dim) if size else [x]


@samples("split.Tensor", reference=_sections)
def split(make: Make) -> Iterator[Any]:
    yield make(5, 2), 2
    yield make(5, 2), 5
    yield make(5, 2), 9
    yield make(2, 6), 3, 1
    yield make(2, 3, 4), 1, -2
    yield make(0, 3), 0


@samples("split.sizes", "split_with_sizes", reference=lambda x, sizes, dim=0: np.split(x, np.cumsum(sizes)[:-1], dim))
def split_with_sizes(make: Make) -> Iterator[Any]:
    yield make(5, 2), [2, 3]
    yield make(2, 5), [1, 0, 4], 1
    yield make(2, 5), [5], -1
    yield make(6), [1, 2, 3]
    yield make(2, 3, 4), [2, 2], 2


def _chunks(x: Any, chunks: int, dim: int = 0) -> Any:
    n = x.shape[dim]
    return _sections(x, -(-n // chunks) or 1, dim) if n else [x] * chunks


@samples("chunk", reference=_chunks)
def chunk(make: Make) -> Iterator[Any]:
    yield make(5, 2), 2
    yield make(5, 2), 5
    yield make(5, 2), 7
    yield make(2, 6), 4, 1
    yield make(2, 3, 4), 3, -2
    yield make(6), 4


@samples("tensor_split.sections", reference=np.array_split)
def tensor_split(make: Make) -> Iterator[Any]:
    for parts in (1, 2, 3, 7):
        yield make(5, 2), parts
        yield make(2, 5), parts, 1
    yield make(2, 3, 4), 3, -1


@samples("tensor_split.indices", reference=np.split)
def tensor_split_at(make: Make) -> Iterator[Any]:
    for places in ([1], [2, 4], [0, 3], [3, 1], [1, 9], []):
        yield make(5, 2), places
        yield make(2, 5), places, -1


@samples("tensor_split.tensor_indices_or_sections", needs_values=True, on_host=("tensor_indices_or_sections",),
         reference=lambda x, at, dim=0: np.array_split(x, at if at.ndim else int(at), dim))  # fmt: skip
def tensor_split_by_tensor(make: Make) -> Iterator[Any]:
    yield make(5, 2), make.array(3)
    yield make(5, 2), make.array([1, 4])
    yield make(2, 5), make.array([2]), 1


def _parts(axis: int, dims: int) -> Callable[[Make], Iterator[Any]]:
    def by_number(make: Make) -> Iterator[Any]:
        for shape in ((4, 6, 2), (2, 2, 4, 3), (6, 4), (4,)):
            if len(shape) >= dims:
                at = min(axis, len(shape) - 1)
                yield make(*shape), shape[at]
                yield make(*shape), 1
                yield make(*shape), 2 if shape[at] % 2 == 0 else shape[at]

    return by_number


def _parts_at(dims: int) -> Callable[[Make], Iterator[Any]]:
    def by_places(make: Make) -> Iterator[Any]:
        for shape in ((4, 6, 2), (2, 2, 4, 3), (6, 4), (4,)):
            if len(shape) >= dims:
                for places in ([1], [1, 3], [0, 2]):
                    yield make(*shape), places

    return by_places


for _name, _axis, _dims in (("hsplit", 1, 1), ("vsplit", 0, 2), ("dsplit", 2, 3)):
    samples(f"{_name}.int", reference=getattr(np, _name))(_parts(_axis, _dims))
    samples(f"{_name}.array", reference=getattr(np, _name))(_parts_at(_dims))


@samples("unbind.int", reference=lambda x, dim=0: [np.take(x, i, dim) for i in range(x.shape[dim])])
def unbind(make: Make) -> Iterator[Any]:
    yield make(3, 2)
    yield make(3, 2), -1
    yield (make(1),)
    yield make(2, 3, 4), 1
    yield make(2, 3, 4), -3
    yield make(2, 0), 0
    yield make(4), 0


def _each(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda xs: [function(x) for x in xs]


def at_least(make: Make) -> Iterator[Any]:
    for shape in ((), (3,), (2, 3), (2, 3, 2), (0,), (2, 1, 3, 2)):
        yield (make(shape),)


def at_least_several(make: Make) -> Iterator[Any]:
    yield ([make(()), make(3), make(2, 3)],)
    yield ([make(())],)


for _function in (np.atleast_1d, np.atleast_2d, np.atleast_3d):
    samples(_function.__name__, reference=_function)(at_least)
    samples(f"{_function.__name__}.Sequence", reference=_each(_function))(at_least_several)
