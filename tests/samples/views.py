"""Samples of views, copies and joins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .table import Make, samples


def identity(x: Any, *args: Any, **kwargs: Any) -> Any:
    return x


@samples("alias", "detach", "clone", "contiguous", reference=identity)
def whole(make: Make) -> Iterator[Any]:
    yield make(2, 3)
    yield make(())
    yield make(0, 3)


@samples("view", "reshape", reference=lambda x, shape: np.reshape(x, shape), dense=True)
def view(make: Make) -> Iterator[Any]:
    yield make(2, 6), (3, 4)
    yield make(2, 6), (-1,)
    yield make(()), (1, 1)
    yield make(0, 3), (3, 0)


@samples("permute", reference=np.transpose)
def permute(make: Make) -> Iterator[Any]:
    yield make(2, 3, 4), (2, 0, 1)
    yield make(2, 3), (-1, 0)
    yield make(()), ()


@samples("transpose.int", reference=np.swapaxes)
def transpose(make: Make) -> Iterator[Any]:
    yield make(2, 3, 4), 0, 2
    yield make(2, 3), -1, -1


@samples("t", "numpy_T", reference=np.transpose)
def reverse(make: Make) -> Iterator[Any]:
    yield make(2, 3)
    yield make(3)
    yield make(())


@samples("mT", reference=lambda x: np.swapaxes(x, -1, -2))
def mt(make: Make) -> Iterator[Any]:
    yield make(2, 3)
    yield make(2, 3, 4)


@samples("matrix_H", "mH", "adjoint", reference=lambda x: np.conj(np.swapaxes(x, -1, -2)))
def mh(make: Make) -> Iterator[Any]:
    yield make(2, 3)


@samples("conj", reference=np.conj)
@samples("real", reference=np.real)
def parts(make: Make) -> Iterator[Any]:
    yield make(2, 3)
    yield make(())


@samples("imag", reference=np.imag, dtypes=("complex64", "complex128"))
def imag(make: Make) -> Iterator[Any]:
    yield make(2, 3)


@samples("view_as_real", reference=lambda x: np.stack([x.real, x.imag], -1), dtypes=("complex64", "complex128"))
def view_as_real(make: Make) -> Iterator[Any]:
    yield make(2, 3)
    yield make(())


@samples("view_as_complex", reference=lambda x: x[..., 0] + 1j * x[..., 1], dtypes=("float32", "float64"), dense=True)
def view_as_complex(make: Make) -> Iterator[Any]:
    yield make(3, 2)
    yield make(2)


@samples(
    "expand",
    reference=lambda x, size: np.broadcast_to(
        x, [x.shape[i - len(size)] if s == -1 else s for i, s in enumerate(size)]
    ),
)
def expand(make: Make) -> Iterator[Any]:
    yield make(3, 1), (3, 4)
    yield make(3, 1), (2, -1, 4)
    yield make(()), (2,)


@samples("select.int", reference=lambda x, dim, i: np.take(x, i, dim))
def select(make: Make) -> Iterator[Any]:
    yield make(3, 4), 0, 1
    yield make(3, 4), -1, -2


@samples("slice.Tensor", reference=lambda x, dim=0, a=None, b=None, s=1: x[(slice(None),) * dim + (slice(a, b, s),)])
def slice_(make: Make) -> Iterator[Any]:
    yield make(5, 4), 0, 1, 4, 2
    yield make(5, 4), 1, -3, 100
    yield make(5, 4), 0, 4, 2


@samples("squeeze", reference=np.squeeze)
def squeeze(make: Make) -> Iterator[Any]:
    yield make(1, 3, 1)
    yield make(2, 3)


@samples("squeeze.dim", reference=lambda x, dim: np.squeeze(x, dim) if x.ndim and x.shape[dim] == 1 else x)
def squeeze_dim(make: Make) -> Iterator[Any]:
    yield make(1, 3, 1), 0
    yield make(1, 3, 1), 1
    yield make(()), 0


@samples("unsqueeze", reference=np.expand_dims)
def unsqueeze(make: Make) -> Iterator[Any]:
    yield make(2, 3), 0
    yield make(2, 3), -1
    yield make(()), 0


@samples("split_with_sizes", reference=lambda x, sizes, dim=0: np.split(x, np.cumsum(sizes)[:-1], dim))
def split_with_sizes(make: Make) -> Iterator[Any]:
    yield make(5, 2), [2, 3]
    yield make(2, 5), [1, 0, 4], 1


@samples("unbind.int", reference=lambda x, dim=0: [np.take(x, i, dim) for i in range(x.shape[dim])])
def unbind(make: Make) -> Iterator[Any]:
    yield make(3, 2)
    yield make(3, 2), -1


@samples("cat", reference=lambda xs, dim=0: np.concatenate(xs, dim))
def cat(make: Make) -> Iterator[Any]:
    yield [make(2, 3), make(1, 3)]
    yield [make(2, 3), make(2, 1), make(2, 0)], 1
    yield ([make(3)],)


@samples("stack", reference=lambda xs, dim=0: np.stack(xs, dim))
def stack(make: Make) -> Iterator[Any]:
    yield [make(2, 3), make(2, 3)]
    yield [make(2), make(2), make(2)], -1
    yield [make(()), make(())]


@samples("mm", "matmul", reference=np.matmul)
def product(make: Make) -> Iterator[Any]:
    yield make(2, 3), make(3, 4)
    yield make(1, 3), make(3, 1)
    yield make(2, 0), make(0, 4)
