"""Samples of views, copies and joins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .table import Array, Device, Dtype, Make, samples


def identity(x: Any, *args: Any, **kwargs: Any) -> Any:
    return x


@samples("alias", "detach", "clone", "contiguous", reference=identity)
def whole(make: Make) -> Iterator[Any]:
    yield make(2, 3)
    yield make(())
    yield make(0, 3)


@samples("view", reference=lambda x, shape: np.reshape(x, shape), dense=True)
@samples("reshape", reference=lambda x, shape: np.reshape(x, shape), copies=True)
def view(make: Make) -> Iterator[Any]:
    yield make(2, 6), (2, -1, 3)
    yield make(12), (2, 3, 2)
    yield make(1), ()
    yield make(2, 3), (2, 3)
    yield make(2, 6), (3, 4)
    yield make(2, 6), (-1,)
    yield make(()), (1, 1)
    yield make(0, 3), (3, 0)


@samples("permute", reference=np.transpose)
def permute(make: Make) -> Iterator[Any]:
    yield make(2, 3, 4), (2, 0, 1)
    yield make(2, 3), (-1, 0)
    yield make(()), ()
    yield make(2, 3, 4, 5), (0, 2, 3, 1)
    yield make(2, 0, 3), (1, 2, 0)


@samples("transpose.int", reference=lambda x, a, b: np.swapaxes(x, a, b) if x.ndim else x)
def transpose(make: Make) -> Iterator[Any]:
    yield make(2, 3, 4), 0, 2
    yield make(2, 3), -1, -1
    yield make(2, 3), 0, 1
    yield make(2, 3, 4), -3, 1
    yield make(0, 3), 0, 1
    yield make(4), 0, 0
    yield make(()), 0, -1
    yield make(2, 3, 4, 2), 1, 2


@samples("t", "numpy_T", reference=np.transpose)
def reverse(make: Make) -> Iterator[Any]:
    yield make(2, 3)
    yield make(3)
    yield make(())


@samples("mT", reference=lambda x: np.swapaxes(x, -1, -2))
def mt(make: Make) -> Iterator[Any]:
    yield make(0, 3)
    yield make(2, 0, 3)
    yield make(1, 2, 3, 4)
    yield make(2, 3)
    yield make(2, 3, 4)


@samples("matrix_H", reference=lambda x: np.conj(np.swapaxes(x, -1, -2)), copies=True)
def mh(make: Make) -> Iterator[Any]:
    yield make(2, 3)
    yield make(3, 1)
    yield make(0, 2)


@samples("mH", "adjoint", reference=lambda x: np.conj(np.swapaxes(x, -1, -2)), copies=True)
def mh_of_many(make: Make) -> Iterator[Any]:
    for shape in ((2, 3), (2, 3, 4), (0, 3), (1, 2, 3, 4), (2, 0, 1)):
        yield (make(shape),)


@samples("conj", reference=np.conj, copies=True)  # of complex numbers
@samples("real", reference=np.real)
def parts(make: Make) -> Iterator[Any]:
    yield make(2, 3)
    yield make(0, 3)
    yield make(())


@samples("imag", reference=np.imag, dtypes=("complex64", "complex128"))
def imag(make: Make) -> Iterator[Any]:
    yield make(2, 3)
    yield make(0, 3)
    yield make(())


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
    yield make(1, 3), (4, 3)
    yield make(2, 3), (-1, -1)
    yield make(1, 1), (2, 3)
    yield make(()), ()
    yield make(1, 3), (0, 3)
    yield make(3, 1), (5, 3, 2)


@samples("select.int", reference=lambda x, dim, i: np.take(x, i, dim))
def select(make: Make) -> Iterator[Any]:
    yield make(3, 4), 0, 1
    yield make(3, 4), -1, -2
    yield make(3, 4), 1, 0
    yield make(5), 0, -1
    yield make(2, 3, 4), 1, 2
    yield make(2, 0, 3), 0, 1


@samples("slice.Tensor", reference=lambda x, dim=0, a=None, b=None, s=1: x[(slice(None),) * dim + (slice(a, b, s),)])
def slice_(make: Make) -> Iterator[Any]:
    yield make(5, 4), 0, 1, 4, 2
    yield make(5, 4), 1, -3, 100
    yield make(5, 4), 0, 4, 2
    yield (make(5, 4),)
    yield make(5, 4), 1, None, 3
    yield make(9), 0, 1, None, 3
    yield make(0, 3), 1, 1, 2


@samples("squeeze", reference=np.squeeze)
def squeeze(make: Make) -> Iterator[Any]:
    yield make(())
    yield make(1, 1)
    yield make(1, 3, 1)
    yield make(2, 3)


@samples("squeeze.dim", reference=lambda x, dim: np.squeeze(x, dim) if x.ndim and x.shape[dim] == 1 else x)
def squeeze_dim(make: Make) -> Iterator[Any]:
    yield make(1, 3, 1), 0
    yield make(1, 3, 1), 1
    yield make(1, 3, 1), -1
    yield make(0, 1), 1
    yield make(()), 0


@samples("unsqueeze", reference=np.expand_dims)
def unsqueeze(make: Make) -> Iterator[Any]:
    yield make(2, 3), 0
    yield make(2, 3), -1
    yield make(2, 3), 1
    yield make(2, 3), 2
    yield make(2, 3), -3
    yield make(0, 3), 1
    yield make(4), -1
    yield make(()), -1
    yield make(()), 0


# ---- by another's shape, by one dimension's parts ----


@samples("view_as", reference=lambda x, y: np.reshape(x, y.shape), dense=True)
@samples("reshape_as", reference=lambda x, y: np.reshape(x, y.shape), copies=True)
def as_another(make: Make) -> Iterator[Any]:
    for shape, other in (((2, 6), (3, 4)), ((4,), (2, 2)), ((0, 3), (3, 0)), ((), (1, 1)), ((2, 3, 2), (12,))):
        yield make(shape), make(other)


@samples("expand_as", reference=lambda x, y: np.broadcast_to(x, y.shape))
def expand_as(make: Make) -> Iterator[Any]:
    for shape, other in (((3, 1), (3, 4)), ((1,), (2, 3)), ((), (2,)), ((2, 3), (2, 3))):
        yield make(shape), make(other)


@samples("broadcast_to", reference=np.broadcast_to)
def broadcast_to(make: Make) -> Iterator[Any]:
    for shape, size in (
        ((3, 1), (3, 4)), ((1,), (2, 3)), ((), (2,)), ((2, 3), (2, 3)), ((1, 3), (0, 3)), ((), ()), ((2, 1), (5, 2, 3)),
    ):  # fmt: skip
        yield make(shape), size


def _flatten(x: Any, start: int = 0, end: int = -1) -> Any:
    if not x.ndim:
        return x.reshape(1)
    start, end = start % x.ndim, end % x.ndim
    return x.reshape((*x.shape[:start], -1 if x.size else int(np.prod(x.shape[start : end + 1])), *x.shape[end + 1 :]))


@samples("flatten.using_ints", reference=_flatten, copies=True)
def flatten(make: Make) -> Iterator[Any]:
    yield (make(2, 3, 4),)
    yield (make(()),)
    yield make(2, 3, 4), 1
    yield make(2, 3, 4), 0, 1
    yield make(2, 3, 4), -2, -1
    yield make(2, 0, 4), 1
    yield make(5), 0, 0


@samples("unflatten.int", reference=lambda x, dim, sizes: x.reshape(
    (*x.shape[: dim % x.ndim], *sizes, *x.shape[dim % x.ndim + 1 :])), copies=True)  # fmt: skip
def unflatten(make: Make) -> Iterator[Any]:
    for shape, dim, sizes in (
        ((2, 6), 1, (2, 3)), ((2, 6), -1, (-1, 3)), ((6, 2), 0, (3, 2)), ((6,), 0, (6,)),
        ((0, 4), 1, (2, 2)), ((2, 4, 3), 1, (2, -1)), ((8, 2), -2, (2, 2, 2)), ((4, 1), 0, (-1, 4)),
        ((6,), 0, (1, 6, 1)), ((1, 4), 0, (1, 1)),
    ):  # fmt: skip
        yield make(shape), dim, sizes


@samples("ravel", reference=np.ravel, copies=True)
def ravel(make: Make) -> Iterator[Any]:
    for shape in ((2, 3), (), (0, 3), (4,)):
        yield (make(shape),)


@samples("movedim.int", "moveaxis.int", reference=np.moveaxis)
def movedim(make: Make) -> Iterator[Any]:
    for source, destination in ((0, 2), (2, 0), (-1, 1), (1, 1)):
        yield make(2, 3, 4), source, destination


@samples("movedim.intlist", "moveaxis.intlist", reference=np.moveaxis)
def movedims(make: Make) -> Iterator[Any]:
    for source, destination in (((0, 1), (2, 0)), ((0, -1), (-1, 0)), ((), ()), ((2,), (0,))):
        yield make(2, 3, 4), source, destination


@samples("swapaxes", "swapdims", reference=np.swapaxes)
def swapaxes(make: Make) -> Iterator[Any]:
    yield make(2, 3, 4), 0, 2
    yield make(2, 3), -1, -2
    yield make(2, 3), 0, 0


@samples(
    "narrow", reference=lambda x, dim, start, length: np.take(x, start % (x.shape[dim] + 1) + np.arange(length), dim)
)
def narrow(make: Make) -> Iterator[Any]:
    for shape, dim, start, length in (
        ((5, 4), 0, 1, 3), ((5, 4), 1, 0, 4), ((5, 4), -1, 2, 1), ((5, 4), 0, 2, 0), ((5, 4), -2, 0, 5),
        ((2, 3, 4), 2, 3, 1), ((6,), 0, 5, 1), ((2, 3, 4), 1, 1, 2), ((0, 3), 1, 1, 1), ((0, 3), 0, 0, 0),
    ):  # fmt: skip
        yield make(shape), dim, start, length


@samples("narrow.Tensor", reference=lambda x, dim, start, length: np.take(x, int(start) + np.arange(length), dim),
         needs_values=True)  # fmt: skip
def narrow_at(make: Make) -> Iterator[Any]:
    yield make(5, 4), 0, make.array(1), 3
    yield make(5, 4), -1, make.array(0), 2


def _strided(x: Any, size: Any, stride: Any, offset: int | None = None) -> Any:
    flat, at = x.ravel(), np.full((), offset or 0)
    for n, step in zip(size, stride, strict=True):
        at = at[..., None] + np.arange(n) * step
    return flat[at]


@samples("as_strided", reference=_strided, dense=True)
def as_strided(make: Make) -> Iterator[Any]:
    yield make(3, 4), (2, 2), (1, 2)
    yield make(3, 4), (2, 3), (4, 1), 1
    yield make(12), (3, 4), (1, 3)
    yield make(12), (3,), (4,), 2
    yield make(4), (), (), 3
    yield make(5), (3, 3), (1, 1)
    yield make(4), (2, 4), (0, 1)


@samples("unfold", reference=lambda x, dim, size, step: np.moveaxis(
    np.lib.stride_tricks.sliding_window_view(x, size, dim), dim, dim)[
    (slice(None),) * (dim % x.ndim) + (slice(None, None, step),)] if x.ndim else x.reshape(1)[:size])  # fmt: skip
def unfold(make: Make) -> Iterator[Any]:
    for shape, dim in (((6,), 0), ((5, 4), 0), ((5, 4), 1), ((5, 4), -1), ((2, 3, 5), 2), ((2, 3, 5), -2)):
        for size, step in ((1, 1), (2, 1), (3, 2), (2, 4)):
            yield make(shape), dim, size, step
    yield make(()), 0, 1, 1
    yield make(5), 0, 0, 1


@samples("squeeze.dims", reference=lambda x, dims: np.squeeze(
    x, tuple(d for d in dims if x.ndim and x.shape[d] == 1)) if dims and x.ndim else x)  # fmt: skip
def squeeze_dims(make: Make) -> Iterator[Any]:
    for shape, dims in (((1, 3, 1), (0, 2)), ((1, 3, 1), (0, 1)), ((1, 3, 1), (-1,)), ((1, 3, 1), ()), ((), (0,)),
                        ((1, 1), (0, 1)), ((2, 0, 1), (0, 2))):  # fmt: skip
        yield make(shape), dims


@samples("view.dtype", reference=lambda x, dtype: x.astype(np.complex128).view(np.float64),
         dtypes=("complex64", "complex128"), dense=True, gradcheck=False)  # fmt: skip
def view_dtype(make: Make) -> Iterator[Any]:
    part = Dtype("float32" if make.dtype == "complex64" else "float64")
    yield make(2, 3), part
    yield make(4), part
    yield make(0, 3), part


@samples("resolve_conj", "resolve_neg", reference=identity, copies=True)
def resolve(make: Make) -> Iterator[Any]:
    yield make(2, 3)
    yield make(())


# ---- conversions ----


def converted(x: Any, *_: Any, **__: Any) -> Any:
    return x


@samples("to.dtype", reference=lambda x, dtype, *a, **k: np.real(x) if dtype.startswith("float") else x, copies=True)
def to_dtype(make: Make) -> Iterator[Any]:
    # A gradient is checked in the dtypes that hold its small steps.
    for dtype in ("float64", "complex128") if make.dtype in ("float64", "complex128") else ("float32", "float16"):
        yield make(2, 3), Dtype(dtype)
        yield make(()), Dtype(dtype), False, True
        yield make(0, 3), Dtype(dtype)
        yield make(2, 3, 2), Dtype(dtype), True
    for shape in ((2, 3), (0, 3), (), (4,), (1, 1), (3, 0), (2, 1, 3)):
        yield make(shape), make.given


@samples("to.device", reference=identity, copies=True)
def to_device(make: Make) -> Iterator[Any]:
    yield make(2, 3), Device(), make.given
    yield make(2, 3), Device(), make.given, False, True
    yield make(2, 3), Device(), Dtype("complex128")


@samples("to.dtype_layout", reference=identity, copies=True)
def to_options(make: Make) -> Iterator[Any]:
    yield make(2, 3), {"dtype": make.given, "device": Device()}
    yield make(2, 3), {"dtype": make.given, "copy": True}
    yield make(2, 3), {"dtype": Dtype("complex128")}


@samples("to.other", reference=identity, copies=True)
def to_other(make: Make) -> Iterator[Any]:
    yield make(2, 3), make(2)
    yield make(2, 3), make(2, dtype="complex128")
    yield make(2, 3), make(0), False, True


# ---- what is written to ----


@samples("copy_", "copy", reference=lambda x, src, *_: np.broadcast_to(src, x.shape))
def copy_(make: Make) -> Iterator[Any]:
    for shape, source in (((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 3), ()), ((), ()), ((0, 3), (1, 3)), ((4, 5), (4, 1))):
        yield make(shape), make(source)
    yield make(2, 3), make(2, 3), True


@samples("fill_.Scalar", "fill.Scalar", reference=lambda x, value: np.full_like(x, value))
def fill_(make: Make) -> Iterator[Any]:
    for shape in ((2, 3), (), (0, 3)):
        yield make(shape), 1
    yield make(4), True


@samples("fill_.Tensor", "fill.Tensor", reference=lambda x, value: np.full_like(x, value))
def fill_by_tensor(make: Make) -> Iterator[Any]:
    for shape in ((2, 3), (), (0, 3)):
        yield make(shape), make(())


@samples("zero_", "zero", reference=np.zeros_like)
def zero_(make: Make) -> Iterator[Any]:
    for shape in ((2, 3), (), (0, 3)):
        yield (make(shape),)


@samples("resize_", unset=True, dense=True, gradcheck=False)
def resize_(make: Make) -> Iterator[Any]:
    for shape, size in (((2, 3), (3, 2)), ((2, 3), (4, 4)), ((), (2,)), ((6,), (0,)), ((0,), (2, 2))):
        yield make(shape), size


@samples("set_", reference=lambda x: np.empty(0), dense=True, gradcheck=False)
def set_(make: Make) -> Iterator[Any]:
    yield (make(2, 3),)


@samples("set_.source_Tensor", reference=lambda x, source: source, dense=True, gradcheck=False)
def set_to(make: Make) -> Iterator[Any]:
    yield make(2, 3), make(4)
    yield make(0), make(2, 3)


@samples("set_.source_Tensor_storage_offset", reference=lambda x, source, offset, size, stride: _strided(
    source, size, stride, offset), dense=True, gradcheck=False)  # fmt: skip
def set_to_part(make: Make) -> Iterator[Any]:
    yield make(2), make(12), 1, (2, 3), (4, 1)
    yield make(2), make(12), 0, (3,), (2,)


@samples("equal", reference=np.array_equal, gradcheck=False)
@samples("is_same_size", reference=lambda x, y: x.shape == y.shape, gradcheck=False)
def compared(make: Make) -> Iterator[Any]:
    x = make(2, 3)
    yield x, x
    yield make(2, 3), make(2, 3)
    yield x, make(3, 2)
    yield make(0, 3), make(0, 3)
    yield make(()), make(())
    yield make(2), make(1)
    yield x, Array(x.values.copy(), x.dtype)
    yield make.with_nan(5), make.with_nan(5)


@samples("item", reference=lambda x: x.ravel()[0], gradcheck=False, needs_values=True)
def item(make: Make) -> Iterator[Any]:
    for shape in ((), (1,), (1, 1), (1, 1, 1)):
        yield (make(shape),)


@samples("is_nonzero", reference=lambda x: bool(x.ravel()[0]), gradcheck=False, needs_values=True)
def is_nonzero(make: Make) -> Iterator[Any]:
    yield (make(1),)
    yield (make.own(0),)
    yield (make.own([1]),)


def _asked(answer: Any) -> Any:
    return {"reference": answer, "gradcheck": False}


@samples("is_complex", **_asked(np.iscomplexobj))
@samples("is_floating_point", **_asked(lambda x: x.dtype.kind == "f"))
@samples("is_signed", **_asked(lambda x: x.dtype.kind not in "ub"))
@samples("is_conj", "is_neg", "is_inference", "is_pinned", **_asked(lambda x: False))
def asked(make: Make) -> Iterator[Any]:
    yield (make(2, 3),)
    yield (make(()),)


@samples("is_set_to", **_asked(lambda x, y: False))
def is_set_to(make: Make) -> Iterator[Any]:
    yield make(2, 3), make(2, 3)
    yield make(2), make(3)
