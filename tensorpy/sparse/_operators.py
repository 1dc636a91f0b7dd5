"""Operators of sparse tensors, over indices and values: ABOVE autograd by the names of functions, BELOW it by those of
operators. All of them are differentiable with respect to the values; a name in BELOW runs without recording.

Here are those between layouts and element by element; _dimensions.py and _products.py have the others."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.functional import broadcast_shapes
from tensorpy.sparse._patterns import Coo, Csr
from tensorpy.sparse._tensors import ABOVE, BELOW, at, coalesce, coo, is_sparse, plain, sparse_of, values_of


def operator(*names: str, above: bool = True) -> Callable[[Any], Any]:
    """Registers a kernel under names; its own name comes first."""

    def register(function: Any) -> Any:
        for name in (function.__name__, *names):
            BELOW[name] = function
            if above:
                ABOVE[name] = function
        return function

    return register


def size_of(value: Any) -> tuple[int, ...]:
    return value._pattern.size if is_sparse(value) else tuple(value.shape)


def dim_of(dim: int, ndim: int, what: str = "Dimension") -> int:
    if not -ndim <= dim < builtins.max(ndim, 1):
        raise IndexError(f"{what} out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})")
    return dim % ndim


# ---- between layouts ----


def merge(sparse: Any) -> Any:
    """One value for each place: of rows one after another as they are."""
    return coalesce(sparse) if isinstance(sparse._pattern, Coo) else sparse


def to_dense(sparse: Any, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """Zeros, and the values in their places."""
    pattern, values = coo(sparse)
    values = values if dtype is None else values.to(dtype)
    work = values.to(_C.uint8) if values.dtype == _C.bool else values
    flat = work.new_zeros((math.prod(pattern.sparse_size), *pattern.dense_size)).index_add(0, pattern.keys(), work)
    return flat.reshape(pattern.size).to(values.dtype)


def to_coo(sparse: Any) -> Any:
    """Coordinates; a tensor that has them as it is."""
    if isinstance(sparse._pattern, Coo):
        return sparse
    pattern, values = coo(sparse)
    keys = pattern.keys()
    in_order = keys.numel() < 2 or bool((keys[1:] > keys[:-1]).all())
    return sparse_of(Coo(pattern.indices, pattern.size, in_order), values)


def to_csr(sparse: Any) -> Any:
    """Rows one after another."""
    if isinstance(sparse._pattern, Csr):
        return sparse
    pattern, values = coo(coalesce(sparse))
    if pattern.sparse_dim != 2 or pattern.dense_size:
        raise RuntimeError(
            f"to_sparse_csr: the layout {_C.sparse_csr} is for matrices, not for {pattern.sparse_dim} sparse and "
            f"{len(pattern.dense_size)} dense dimensions"
        )
    rows, columns = pattern.indices
    counts = _C.bincount(rows, minlength=pattern.size[0])
    crow = _C.cat([counts.new_zeros(1), counts.cumsum(0)])
    return sparse_of(Csr(crow, columns.contiguous(), pattern.size), values)


def like(sparse: Any, made: Any) -> Any:
    """A result in the layout of an argument; of batches of matrices by coordinates."""
    if len(size_of(made)) != 2:
        return made
    return to_csr(made) if isinstance(sparse._pattern, Csr) else made


# ---- of the values alone ----


@operator("alias", above=False)
def detach(self: Any) -> Any:
    return plain(self._pattern, self._kept.detach())


@operator()
def clone(self: Any, *, memory_format: Any = None) -> Any:
    return sparse_of(self._pattern, values_of(self).clone())


@operator("_to_copy")
def to(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Another dtype or device."""
    layout = kwargs.pop("layout", None)
    kwargs.pop("memory_format", None)
    if layout is not None and layout is not self._pattern.layout:
        return {_C.strided: to_dense, _C.sparse_coo: to_coo, _C.sparse_csr: to_csr}[layout](to(self, *args, **kwargs))
    args = tuple(values_of(a) if is_sparse(a) else a for a in args)
    values = values_of(self).to(*args, **kwargs)
    if values is self._kept:
        return self
    pattern = self._pattern if values.device == self._kept.device else self._pattern.to(values.device)
    return sparse_of(pattern, values)


def _converting(name: str) -> None:
    def convert(self: Any, *args: Any, **kwargs: Any) -> Any:
        return to(self, getattr(values_of(self).new_empty(0), name)().dtype)

    ABOVE[name] = convert


for _name in (
    "float",
    "double",
    "half",
    "bfloat16",
    "int",
    "long",
    "short",
    "char",
    "byte",
    "bool",
    "chalf",
    "cfloat",
    "cdouble",
):
    _converting(_name)


def _type(self: Any, dtype: Any = None, non_blocking: bool = False) -> Any:
    return values_of(self).type() if dtype is None else to(self, values_of(self).new_empty(0).type(dtype).dtype)


ABOVE |= {"cpu": lambda self: to(self, "cpu"), "type": _type}


def _of_values(name: str) -> None:
    """A function that gives 0 of 0, element by element."""

    def function(self: Any, *args: Any, **kwargs: Any) -> Any:
        merged = self if name in _ADDITIVE else merge(self)
        return sparse_of(merged._pattern, getattr(values_of(merged), name)(*args, **kwargs))

    def in_place(self: Any, *args: Any, **kwargs: Any) -> Any:
        return replace(self, function(self, *args, **kwargs))

    ABOVE[name] = BELOW[name] = function
    if name not in ("isnan", "isinf", "isposinf", "isneginf"):
        ABOVE[f"{name}_"] = BELOW[f"{name}_"] = in_place


_ADDITIVE = ("neg", "negative", "positive", "conj", "real", "imag")  # the same before and after coalescing
for _name in (
    "neg negative positive abs absolute sqrt square relu sin sinh asin asinh tan tanh atan atanh expm1 log1p erf "
    "erfinv ceil floor trunc round frac sign sgn deg2rad rad2deg isnan isinf isposinf isneginf nan_to_num conj"
).split():  # fmt: skip
    _of_values(_name)


def replace(self: Any, made: Any) -> Any:
    """What an operator in place does: the tensor becomes another one of its size and dtype."""
    if _C.is_grad_enabled() and self.requires_grad:
        raise RuntimeError("a sparse tensor that requires grad is not changed in place; under no_grad it is")
    self._pattern, self._kept = made._pattern, made._kept.detach().to(self._kept.dtype)
    return self


# ---- arithmetic ----


def _is_number(value: Any) -> bool:
    return isinstance(value, (builtins.int, builtins.float, complex, builtins.bool)) or (
        isinstance(value, Tensor) and not is_sparse(value) and value.dim() == 0
    )


def _scaled(values: Tensor, alpha: Any) -> Tensor:
    return values * alpha if alpha != 1 else values


def _add_to_dense(dense: Any, sparse: Any, alpha: Any) -> Tensor:
    pattern, values = coo(sparse)
    if tuple(dense.shape) != pattern.size:
        raise RuntimeError(
            f"add: expected sizes to be the same, but a dense tensor is of {tuple(dense.shape)} and a sparse one of "
            f"{pattern.size}"
        )
    dtype = _C.result_type(dense, values)
    flat = dense.to(dtype).reshape(-1, *pattern.dense_size) if pattern.size else dense.to(dtype).reshape(1)
    return flat.index_add(0, pattern.keys(), values.to(dtype), alpha=alpha).reshape(pattern.size)


@operator("__add__", "__radd__")
def add(self: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> Any:
    if not is_sparse(self):
        if _is_number(self):
            raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
        return _add_to_dense(self, other, alpha)
    if not is_sparse(other):
        raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
    if size_of(self) != size_of(other):
        raise RuntimeError(f"add: expected sizes to be the same, but they are {size_of(self)} and {size_of(other)}")
    if self._pattern.is_same(other._pattern):
        return sparse_of(self._pattern, values_of(self) + _scaled(values_of(other), alpha))
    (mine, a), (theirs, b) = coo(self), coo(other)
    dtype = _C.result_type(a, b)
    joined = Coo(_C.cat([mine.indices, theirs.indices], 1), mine.size, False)
    made = sparse_of(joined, _C.cat([a.to(dtype), _scaled(b, alpha).to(dtype)]))
    both = mine.is_coalesced and theirs.is_coalesced
    return like(self, coalesce(made) if both or isinstance(self._pattern, Csr) else made)


@operator("subtract")
def sub(self: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> Any:
    return add(self, other, alpha=-alpha)


@operator("__rsub__")
def rsub(self: Any, other: Any, *, alpha: Any = 1) -> Any:
    return add(other, self, alpha=-alpha)


def _mul_sparse(self: Any, other: Any) -> Any:
    """Where both have something."""
    a, b = coalesce(self), coalesce(other)
    if a._pattern.is_same(b._pattern):
        return sparse_of(a._pattern, values_of(a) * values_of(b))
    (mine, left), (theirs, _) = coo(a), coo(b)
    there = _C.isin(mine.keys(), theirs.keys()).nonzero().squeeze(1)
    pattern = Coo(mine.indices.index_select(1, there), mine.size, True)
    return sparse_of(pattern, left.index_select(0, there) * at(b, pattern))


@operator("multiply", "__mul__", "__rmul__")
def mul(self: Any, other: Any, *, out: Any = None) -> Any:
    if not is_sparse(self):
        self, other = other, self
    if _is_number(other):
        return sparse_of(self._pattern, values_of(self) * other)
    if is_sparse(other):
        if size_of(self) != size_of(other):
            raise RuntimeError(
                f"mul: sparse tensors of the sizes {size_of(self)} and {size_of(other)} are not multiplied"
            )
        return like(self, _mul_sparse(self, other))
    size = broadcast_shapes(size_of(self), tuple(other.shape))
    if tuple(size) != size_of(self):
        raise RuntimeError(f"mul: a sparse tensor of the size {size_of(self)} is not expanded to {tuple(size)}")
    return sparse_of(self._pattern, values_of(self) * at(other, self._pattern))


@operator("divide", "true_divide", "__truediv__")
def div(self: Any, other: Any, *, rounding_mode: Any = None, out: Any = None) -> Any:
    if not is_sparse(self) or not _is_number(other):
        raise RuntimeError(
            f"Sparse division requires a scalar or zero-dim dense tensor divisor (got shape {list(size_of(other))} for "
            "divisor)"
        )
    merged = merge(self) if rounding_mode else self
    return sparse_of(merged._pattern, values_of(merged).div(other, rounding_mode=rounding_mode))


@operator("__pow__")
def pow(self: Any, exponent: Any, *, out: Any = None) -> Any:
    if not is_sparse(self) or not isinstance(exponent, (builtins.int, builtins.float)) or exponent <= 0:
        raise RuntimeError("pow: the exponent of a sparse tensor is a number greater than 0")
    merged = merge(self)
    return sparse_of(merged._pattern, values_of(merged) ** exponent)


def _in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    """`a.f_(b)` of `f`; a dense tensor is written as dense ones are."""

    def write(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = function(self, *args, **kwargs)
        return replace(self, made) if is_sparse(self) else self.copy_(made)

    return write


for _function in (add, sub, mul, div):
    for _name in (f"{_function.__name__}_", f"__i{_function.__name__}__"):
        ABOVE[_name] = BELOW[_name] = _in_place(_function)
ABOVE["__itruediv__"] = ABOVE["div_"]


@operator()
def zero_(self: Any) -> Any:
    pattern = self._pattern
    none = Coo(pattern.as_coo().indices[:, :0], pattern.size, True) if isinstance(pattern, Coo) else pattern
    kept = self._kept[:0] if isinstance(pattern, Coo) else self._kept * 0
    return replace(self, plain(none, kept))


@operator()
def copy_(self: Any, src: Any, non_blocking: bool = False) -> Any:
    if not is_sparse(self) or not is_sparse(src):
        raise RuntimeError(
            "copy_() between dense and sparse tensors is not implemented: to_dense() and to_sparse() are"
        )
    return replace(self, clone(to_coo(src) if isinstance(self._pattern, Coo) else to_csr(src)))


def _empty(self: Any, size: Any, dtype: Any = None, device: Any = None) -> Any:
    kept = self._kept.new_zeros((0,), dtype=dtype or self._kept.dtype, device=device or self._kept.device)
    indices = _C.zeros((len(size), 0), dtype=_C.int64, device=kept.device)
    return plain(Coo(indices, tuple(size), True), kept)


@operator("empty_like")
def zeros_like(
    self: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False, **unused: Any
) -> Any:
    if layout is _C.strided:
        return _C.zeros(size_of(self), dtype=dtype or self._kept.dtype, device=device or self._kept.device)
    pattern = self._pattern.as_coo()
    none = Coo(pattern.indices[:, :0], pattern.size, True)
    kept = self._kept.new_zeros(
        (0, *pattern.dense_size), dtype=dtype or self._kept.dtype, device=device or self._kept.device
    )
    return like(self, plain(none, kept)).requires_grad_(requires_grad)


@operator()
def new_zeros(self: Any, *size: Any, dtype: Any = None, device: Any = None, **unused: Any) -> Any:
    return _empty(self, size[0] if len(size) == 1 and not isinstance(size[0], builtins.int) else size, dtype, device)


for _name in ("to_dense", "coalesce"):
    ABOVE[_name] = globals()[_name]
BELOW["to_dense"] = BELOW["_to_dense"] = to_dense
BELOW["coalesce"] = BELOW["_coalesce"] = coalesce
