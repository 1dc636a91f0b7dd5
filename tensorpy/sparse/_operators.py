"""Operators of sparse tensors, over indices and values: ABOVE autograd by the names of functions, BELOW it by those of
operators. All of them are differentiable with respect to the values; a name in BELOW runs without recording."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.functional import broadcast_shapes
from tensorpy.sparse._tensors import Coo, Csr, SparseTensor, at, columns_of, keys_of, plain, sparse_of, values_of

ABOVE: dict[str, Callable[..., Any]] = {}
BELOW: dict[str, Callable[..., Any]] = {}


def operator(*names: str, above: bool = True) -> Callable[[Any], Any]:
    """Registers a kernel under names; its own name comes first."""

    def register(function: Any) -> Any:
        for name in (function.__name__, *names):
            BELOW[name] = function
            if above:
                ABOVE[name] = function
        return function

    return register


def is_sparse(value: Any) -> bool:
    return isinstance(value, SparseTensor)


def layout_of(args: Any) -> Any:
    """The layout of the first sparse tensor among arguments."""
    for value in args:
        if is_sparse(value):
            return value._pattern.layout
        if isinstance(value, (list, tuple)) and any(map(is_sparse, value)):
            return layout_of(value)
    return _C.sparse_coo


def coo(sparse: Any) -> tuple[Coo, Tensor]:
    """The pattern as coordinates, and the values."""
    values = values_of(sparse)
    return sparse._pattern.as_coo(), values if isinstance(sparse._pattern, Coo) else values.reshape(-1)


def _size(value: Any) -> tuple[int, ...]:
    return value._pattern.size if is_sparse(value) else tuple(value.shape)


def _dim(dim: int, ndim: int, what: str = "Dimension") -> int:
    if not -ndim <= dim < builtins.max(ndim, 1):
        raise IndexError(f"{what} out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})")
    return dim % ndim


# ---- between layouts ----


def coalesce(sparse: Any) -> Any:
    """Indices in order, each once; values of one place are added."""
    pattern, values = coo(sparse)
    if isinstance(sparse._pattern, Coo) and pattern.is_coalesced:
        return sparse
    keys, places = pattern.keys().unique(return_inverse=True)
    made = Coo(columns_of(keys, pattern.sparse_size), pattern.size, True)
    zeros = values.new_zeros((keys.shape[0], *pattern.dense_size))
    if values.dtype == _C.bool:
        return sparse_of(made, zeros.to(_C.uint8).index_add(0, places, values.to(_C.uint8)).to(_C.bool))
    return sparse_of(made, zeros.index_add(0, places, values))


def to_dense(sparse: Any, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """Zeros, and the values in their places."""
    pattern, values = coo(sparse)
    values = values if dtype is None else values.to(dtype)
    count = 1
    for size in pattern.sparse_size:
        count *= size
    work = values.to(_C.uint8) if values.dtype == _C.bool else values
    flat = work.new_zeros((count, *pattern.dense_size)).index_add(0, pattern.keys(), work)
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
    """Rows behind each other."""
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


def _like(sparse: Any, made: Any) -> Any:
    """A result in the layout of an argument; of batches of matrices by coordinates."""
    if len(_size(made)) != 2:
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
        merged = coalesce(self) if isinstance(self._pattern, Coo) and name not in _ADDITIVE else self
        return sparse_of(merged._pattern, getattr(values_of(merged), name)(*args, **kwargs))

    def in_place(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _replace(self, function(self, *args, **kwargs))

    ABOVE[name] = BELOW[name] = function
    if name not in ("isnan", "isinf", "isposinf", "isneginf"):
        ABOVE[f"{name}_"] = BELOW[f"{name}_"] = in_place


_ADDITIVE = ("neg", "negative", "positive", "conj", "real", "imag")  # the same before and after coalescing
for _name in (
    "neg negative positive abs absolute sqrt square relu sin sinh asin asinh tan tanh atan atanh expm1 log1p erf "
    "erfinv ceil floor trunc round frac sign sgn deg2rad rad2deg isnan isinf isposinf isneginf nan_to_num conj"
).split():  # fmt: skip
    _of_values(_name)


def _replace(self: Any, made: Any) -> Any:
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
    if _size(self) != _size(other):
        raise RuntimeError(f"add: expected sizes to be the same, but they are {_size(self)} and {_size(other)}")
    if self._pattern.is_same(other._pattern):
        return sparse_of(
            self._pattern,
            values_of(self) + values_of(other) * alpha if alpha != 1 else values_of(self) + values_of(other),
        )
    (mine, a), (theirs, b) = coo(self), coo(other)
    dtype = _C.result_type(a, b)
    joined = Coo(_C.cat([mine.indices, theirs.indices], 1), mine.size, False)
    made = sparse_of(joined, _C.cat([a.to(dtype), (b * alpha if alpha != 1 else b).to(dtype)]))
    both = mine.is_coalesced and theirs.is_coalesced
    return _like(self, coalesce(made) if both or isinstance(self._pattern, Csr) else made)


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
        if _size(self) != _size(other):
            raise RuntimeError(f"mul: sparse tensors of the sizes {_size(self)} and {_size(other)} are not multiplied")
        return _like(self, _mul_sparse(self, other))
    size = broadcast_shapes(_size(self), tuple(other.shape))
    if tuple(size) != _size(self):
        raise RuntimeError(f"mul: a sparse tensor of the size {_size(self)} is not expanded to {tuple(size)}")
    return sparse_of(self._pattern, values_of(self) * at(other, self._pattern))


@operator("divide", "true_divide", "__truediv__")
def div(self: Any, other: Any, *, rounding_mode: Any = None, out: Any = None) -> Any:
    if not is_sparse(self) or not _is_number(other):
        raise RuntimeError(
            f"Sparse division requires a scalar or zero-dim dense tensor divisor (got shape {list(_size(other))} for "
            "divisor)"
        )
    merged = coalesce(self) if rounding_mode and isinstance(self._pattern, Coo) else self
    return sparse_of(merged._pattern, values_of(merged).div(other, rounding_mode=rounding_mode))


@operator("__pow__")
def pow(self: Any, exponent: Any, *, out: Any = None) -> Any:
    if not is_sparse(self) or not isinstance(exponent, (builtins.int, builtins.float)) or exponent <= 0:
        raise RuntimeError("pow: of a sparse tensor only with a number greater than 0 as the exponent")
    merged = coalesce(self) if isinstance(self._pattern, Coo) else self
    return sparse_of(merged._pattern, values_of(merged) ** exponent)


def _in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    """`a.f_(b)` of `f`; a dense tensor is written as dense ones are."""

    def write(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = function(self, *args, **kwargs)
        return _replace(self, made) if is_sparse(self) else self.copy_(made)

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
    return _replace(self, plain(none, kept))


@operator()
def copy_(self: Any, src: Any, non_blocking: bool = False) -> Any:
    if not is_sparse(self) or not is_sparse(src):
        raise RuntimeError(
            "copy_() between dense and sparse tensors is not implemented: to_dense() and to_sparse() are"
        )
    return _replace(self, clone(to_coo(src) if isinstance(self._pattern, Coo) else to_csr(src)))


def _empty(self: Any, size: Any, dtype: Any = None, device: Any = None) -> Any:
    kept = self._kept.new_zeros((0,), dtype=dtype or self._kept.dtype, device=device or self._kept.device)
    indices = _C.zeros((len(size), 0), dtype=_C.int64, device=kept.device)
    return plain(Coo(indices, tuple(size), True), kept)


@operator("empty_like")
def zeros_like(
    self: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False, **unused: Any
) -> Any:
    if layout is _C.strided:
        return _C.zeros(_size(self), dtype=dtype or self._kept.dtype, device=device or self._kept.device)
    pattern = self._pattern.as_coo()
    none = Coo(pattern.indices[:, :0], pattern.size, True)
    kept = self._kept.new_zeros(
        (0, *pattern.dense_size), dtype=dtype or self._kept.dtype, device=device or self._kept.device
    )
    return _like(self, plain(none, kept)).requires_grad_(requires_grad)


@operator()
def new_zeros(self: Any, *size: Any, dtype: Any = None, device: Any = None, **unused: Any) -> Any:
    return _empty(self, size[0] if len(size) == 1 and not isinstance(size[0], builtins.int) else size, dtype, device)


# ---- other dimensions ----


def _with_dims(self: Any, order: Sequence[int]) -> Any:
    pattern, values = coo(self)
    n, ndim = pattern.sparse_dim, len(pattern.size)
    order = [_dim(d, ndim) for d in order]
    if sorted(order) != list(range(ndim)):
        raise RuntimeError("permute(dims): each dimension once")
    if sorted(order[:n]) != list(range(n)):
        raise RuntimeError("transpose: sparse and dense dimensions do not change places")
    made = Coo(
        pattern.indices[list(order[:n])],
        tuple(pattern.size[d] for d in order),
        order == list(range(ndim)) and pattern.is_coalesced,
    )
    return _like(self, sparse_of(made, values.permute(0, *(d - n + 1 for d in order[n:])) if order[n:] else values))


@operator()
def permute(self: Any, *dims: Any) -> Any:
    return _with_dims(self, dims[0] if len(dims) == 1 and not isinstance(dims[0], builtins.int) else dims)


@operator("swapaxes", "swapdims")
def transpose(self: Any, dim0: int, dim1: int) -> Any:
    order = list(range(len(_size(self))))
    a, b = _dim(dim0, len(order)), _dim(dim1, len(order))
    order[a], order[b] = b, a
    return _with_dims(self, order)


@operator()
def t(self: Any) -> Any:
    if len(_size(self)) > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {len(_size(self))}D")
    return transpose(self, 0, 1) if len(_size(self)) == 2 else self


ABOVE["T"] = lambda self: _with_dims(self, range(len(_size(self)))[::-1])
ABOVE["mT"] = ABOVE["mH"] = lambda self: transpose(self, -2, -1)
ABOVE["transpose_"] = lambda self, a, b: _resized(self, transpose(self, a, b))
ABOVE["t_"] = lambda self: _resized(self, t(self))


def _resized(self: Any, made: Any) -> Any:
    if made._pattern.size != self._pattern.size:
        raise NotImplementedError("transposing a sparse tensor in place is possible where its size stays")
    return _replace(self, made)


@operator()
def unsqueeze(self: Any, dim: int) -> Any:
    pattern, values = coo(self)
    n, at_dim = pattern.sparse_dim, _dim(dim, len(pattern.size) + 1)
    size = (*pattern.size[:at_dim], 1, *pattern.size[at_dim:])
    if at_dim > n:
        return sparse_of(Coo(pattern.indices, size, pattern.is_coalesced), values.unsqueeze(at_dim - n + 1))
    rows = [*pattern.indices[:at_dim], pattern.indices.new_zeros(pattern.nnz), *pattern.indices[at_dim:]]
    return sparse_of(Coo(_C.stack(rows), size, pattern.is_coalesced), values)


@operator()
def squeeze(self: Any, dim: Any = None) -> Any:
    ndim = len(_size(self))
    dims = range(ndim) if dim is None else [_dim(d, ndim) for d in ([dim] if isinstance(dim, builtins.int) else dim)]
    for d in sorted(dims, reverse=True):
        if _size(self)[d] == 1:
            self = select(self, d, 0)
    return self


@operator()
def index_select(self: Any, dim: int, index: Any, *, out: Any = None) -> Any:
    pattern, values = coo(self)
    n, d = pattern.sparse_dim, _dim(dim, len(pattern.size))
    size = (*pattern.size[:d], index.numel(), *pattern.size[d + 1 :])
    if d >= n:
        return _like(
            self, sparse_of(Coo(pattern.indices, size, pattern.is_coalesced), values.index_select(d - n + 1, index))
        )
    if index.numel() and not 0 <= builtins.int(index.min()) <= builtins.int(index.max()) < pattern.size[d]:
        raise IndexError(f"index_select(): an index is out of range for dimension {d} of the size {pattern.size[d]}")
    # each value goes wherever its place is asked for: pairs of (asked, value) that agree
    order = pattern.indices[d].argsort(stable=True)
    ordered = pattern.indices[d][order]
    first, end = _C.searchsorted(ordered, index), _C.searchsorted(ordered, index, right=True)
    which, source = _ranges(first, end - first)
    source = order[source]
    indices = pattern.indices.index_select(1, source)
    rows = [*indices[:d], which, *indices[d + 1 :]]
    made = sparse_of(Coo(_C.stack(rows), size, False), values.index_select(0, source))
    return _like(self, coalesce(made) if pattern.is_coalesced or isinstance(self._pattern, Csr) else made)


def _ranges(first: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """For each range of `counts[i]` numbers from `first[i]` on: i, and the number."""
    which = _C.arange(counts.shape[0], device=counts.device).repeat_interleave(counts)
    start = (counts.cumsum(0) - counts).index_select(0, which)
    within = _C.arange(which.shape[0], device=counts.device) - start
    return which, first.index_select(0, which) + within


@operator()
def select(self: Any, dim: int, index: int) -> Any:
    pattern, values = coo(self)
    n, d = pattern.sparse_dim, _dim(dim, len(pattern.size))
    if not -pattern.size[d] <= index < pattern.size[d]:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(pattern.size)} at dimension {d}"
        )
    index %= pattern.size[d]
    size = (*pattern.size[:d], *pattern.size[d + 1 :])
    if d >= n:
        return sparse_of(Coo(pattern.indices, size, pattern.is_coalesced), values.select(d - n + 1, index))
    there = (pattern.indices[d] == index).nonzero().squeeze(1)
    found = values.index_select(0, there)
    if n == 1:
        return found.sum(0)
    rows = _C.cat([pattern.indices[:d], pattern.indices[d + 1 :]]).index_select(1, there)
    return sparse_of(Coo(rows, size, pattern.is_coalesced), found)


@operator("narrow_copy")
def narrow(self: Any, dim: int, start: int, length: int) -> Any:
    pattern, values = coo(self)
    n, d = pattern.sparse_dim, _dim(dim, len(pattern.size))
    if not 0 <= start <= start + length <= pattern.size[d]:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({pattern.size[d]}).")
    size = (*pattern.size[:d], length, *pattern.size[d + 1 :])
    if d >= n:
        return sparse_of(Coo(pattern.indices, size, pattern.is_coalesced), values.narrow(d - n + 1, start, length))
    row = pattern.indices[d]
    there = ((row >= start) & (row < start + length)).nonzero().squeeze(1)
    indices = pattern.indices.index_select(1, there)
    rows = _C.cat([indices[:d], indices[d : d + 1] - start, indices[d + 1 :]])
    return _like(self, sparse_of(Coo(rows, size, pattern.is_coalesced), values.index_select(0, there)))


def _getitem(self: Any, key: Any) -> Any:
    """Whole numbers, slices without a step, one tensor of indices, None and an ellipsis."""
    keys = list(key) if isinstance(key, tuple) else [key]
    taken = builtins.sum(k is not None and k is not ... for k in keys)
    place = next((i for i, k in enumerate(keys) if k is ...), len(keys))
    keys[place : place + 1] = [slice(None)] * (len(_size(self)) - taken)
    d, made = 0, self
    for k in keys:
        if k is None:
            made = unsqueeze(made, d) if is_sparse(made) else made.unsqueeze(d)
        elif isinstance(k, builtins.int) and not isinstance(k, builtins.bool):
            made = select(made, d, k) if is_sparse(made) else made.select(d, k)
            continue
        elif isinstance(k, slice) and k.step in (None, 1):
            start, stop, _ = k.indices(_size(made)[d])
            made = made if k == slice(None) else narrow(made, d, start, builtins.max(stop - start, 0))
        elif isinstance(k, Tensor) and k.dtype in (_C.int64, _C.int32) and k.dim() == 1:
            made = index_select(made, d, k)
        else:
            raise NotImplementedError(f"a sparse tensor is not indexed by {k!r}; to_dense() gives one that is")
        d += 1
    return made


ABOVE["__getitem__"] = _getitem


@operator("concat", "concatenate")
def cat(tensors: Any, dim: int = 0, *, out: Any = None) -> Any:
    if not all(map(is_sparse, tensors)):
        raise RuntimeError("cat: sparse tensors are put behind sparse tensors only")
    parts = [coo(s) for s in tensors]
    n, d = parts[0][0].sparse_dim, _dim(dim, len(parts[0][0].size))
    sizes = [p.size for p, _ in parts]
    if any((*s[:d], *s[d + 1 :]) != (*sizes[0][:d], *sizes[0][d + 1 :]) for s in sizes):
        raise RuntimeError(f"cat: the sizes {sizes} differ in other dimensions than {d}")
    size = (*sizes[0][:d], builtins.sum(s[d] for s in sizes), *sizes[0][d + 1 :])
    dtype = parts[0][1].dtype
    for _, values in parts[1:]:
        dtype = _C.promote_types(dtype, values.dtype)
    if d >= n:
        return _cat_dense(parts, size, d - n + 1, dtype)
    moved, offset = [], 0
    for pattern, _ in parts:
        shift = pattern.indices.new_zeros((n, 1))
        shift[d] = offset
        moved.append(pattern.indices + shift)
        offset += pattern.size[d]
    ordered = d == 0 and all(p.is_coalesced for p, _ in parts)
    made = sparse_of(Coo(_C.cat(moved, 1), size, ordered), _C.cat([v.to(dtype) for _, v in parts]))
    return _like(tensors[0], made)


def _cat_dense(parts: Any, size: Any, dim: int, dtype: Any) -> Any:
    """Along a dense dimension: where one has nothing there are zeros."""
    padded = []
    for i, (_, values) in enumerate(parts):
        before = builtins.sum(v.shape[dim] for _, v in parts[:i])
        shape = list(values.shape)
        shape[dim] = before
        front = values.new_zeros(shape)
        shape[dim] = size[parts[0][0].sparse_dim + dim - 1] - before - values.shape[dim]
        padded.append(_C.cat([front, values, values.new_zeros(shape)], dim).to(dtype))
    return sparse_of(Coo(_C.cat([p.indices for p, _ in parts], 1), size, False), _C.cat(padded))


@operator()
def stack(tensors: Any, dim: int = 0, *, out: Any = None) -> Any:
    return cat([unsqueeze(s, dim) for s in tensors], dim)


# ---- reductions ----


@operator()
def sum(self: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None) -> Any:
    pattern, values = coo(self)
    values = values if dtype is None else values.to(dtype)
    ndim = len(pattern.size)
    dims = None if dim is None else sorted({_dim(d, ndim) for d in ([dim] if isinstance(dim, builtins.int) else dim)})
    if not dims or len(dims) == ndim:
        return values.sum() if not keepdim or dims is None else values.sum().reshape((1,) * ndim)
    n = pattern.sparse_dim
    dense = [d - n + 1 for d in dims if d >= n]
    values = values.sum(dense) if dense else values
    kept = [d for d in range(n) if d not in dims]
    size = tuple(s for d, s in enumerate(pattern.size) if d not in dims)
    if not kept:
        made: Any = values.sum(0)
        return made.reshape([1 if d in dims else s for d, s in enumerate(pattern.size)]) if keepdim else made
    if len(kept) == n and not keepdim:
        return sparse_of(Coo(pattern.indices, size, pattern.is_coalesced), values)
    made = coalesce(sparse_of(Coo(pattern.indices[kept], size, False), values))
    for d in dims if keepdim else ():
        made = unsqueeze(made, d)
    return made


@operator("linalg_vector_norm", "frobenius_norm")
def norm(self: Any, p: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None, **unused: Any) -> Any:
    if dim is not None and dim != []:
        raise NotImplementedError("norm: of a sparse tensor over all of its dimensions only")
    return values_of(coalesce(self)).norm(2 if p in (None, "fro") else p)


def _any(self: Any, *args: Any, **kwargs: Any) -> Any:
    if args or kwargs:
        raise NotImplementedError("any: of a sparse tensor over all of its dimensions only")
    return values_of(coalesce(self)).any()


ABOVE["any"] = BELOW["any"] = _any


# ---- products ----


def _product(indices: Tensor, values: Tensor, rows: int, dense: Any) -> Tensor:
    """A sparse matrix, whose coordinates these are, by a dense one."""
    dtype = _C.result_type(values, dense)
    parts = dense.to(dtype).index_select(0, indices[1]) * values.to(dtype).unsqueeze(1)
    return parts.new_zeros((rows, dense.shape[1])).index_add(0, indices[0], parts)


def _sparse_product(a: Any, b: Any) -> Any:
    """Both sparse: each value of a row of `a` meets all of a row of `b`."""
    (mine, left), (theirs, right) = coo(coalesce(a)), coo(coalesce(b))
    inner = mine.indices[1].contiguous()
    rows = theirs.indices[0].contiguous()
    first = _C.searchsorted(rows, inner)
    which, source = _ranges(first, _C.searchsorted(rows, inner, right=True) - first)
    indices = _C.stack([mine.indices[0][which], theirs.indices[1][source]])
    pattern = Coo(indices, (mine.size[0], theirs.size[1]), False)
    return coalesce(sparse_of(pattern, left.index_select(0, which) * right.index_select(0, source)))


@operator("spmm", "dsmm")
def mm(self: Any, mat2: Any, *, out: Any = None) -> Any:
    a, b = _size(self), _size(mat2)
    if len(a) != 2 or len(b) != 2:
        raise RuntimeError(f"mm: Expected two matrices, but the tensors are of {len(a)} and {len(b)} dimensions")
    if a[1] != b[0]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({a[0]}x{a[1]} and {b[0]}x{b[1]})")
    if is_sparse(self) and is_sparse(mat2):
        return _like(self, _sparse_product(self, mat2))
    if is_sparse(self):
        pattern, values = coo(self)
        return _product(pattern.indices, values, a[0], mat2)
    pattern, values = coo(mat2)
    return _product(pattern.indices.flip(0), values, b[1], self.t()).t()


@operator()
def mv(self: Any, vec: Any, *, out: Any = None) -> Any:
    return mm(self, vec.unsqueeze(1)).squeeze(1)


@operator()
def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1, out: Any = None) -> Any:
    product = mm(mat1, mat2)
    product = mul(product, alpha) if is_sparse(product) else product * alpha
    return (
        add(mul(input, beta) if is_sparse(input) else input * beta, product)
        if is_sparse(product)
        else input * beta + product
    )


@operator()
def bmm(self: Any, mat2: Any, *, out: Any = None) -> Any:
    """Each matrix of a batch, of any number of dimensions: rows of all of them are numbered through."""
    if not is_sparse(self):
        return bmm(transpose(mat2, -2, -1), self.transpose(-2, -1)).transpose(-2, -1)
    pattern, values = coo(self)
    *batch, rows, inner = pattern.size
    number, count = keys_of(pattern.indices[:-2], tuple(batch)), math.prod(batch)
    flat = _C.stack([number * rows + pattern.indices[-2], number * inner + pattern.indices[-1]])
    made = _product(flat, values, count * rows, mat2.expand(*batch, inner, -1).reshape(count * inner, -1))
    return made.reshape(*batch, rows, -1)


def _matmul(self: Any, other: Any, *, out: Any = None) -> Any:
    a, b = len(_size(self)), len(_size(other))
    if b == 1:
        return mv(self, other)
    if a == 1:
        return mm(self.unsqueeze(0), other).squeeze(0)
    if (a, b) == (2, 2):
        return mm(self, other)
    if a == b and not (is_sparse(self) and is_sparse(other)):
        return bmm(self, other)
    if a == 2 and not is_sparse(other):  # one matrix by many: they stand beside each other
        size = _size(other)
        wide = other.movedim(-2, 0).reshape(size[-2], -1)
        return mm(self, wide).reshape(_size(self)[0], *size[:-2], size[-1]).movedim(0, -2)
    if b == 2 and not is_sparse(self):
        return mm(self.reshape(-1, _size(self)[-1]), other).reshape(*_size(self)[:-1], _size(other)[1])
    raise NotImplementedError(f"matmul: a sparse tensor with the sizes {_size(self)} and {_size(other)}")


ABOVE |= {"matmul": _matmul, "__matmul__": _matmul, "__rmatmul__": lambda self, other: _matmul(other, self)}


# ---- what asks without computing ----


ABOVE["is_contiguous"] = lambda self, *args, **kwargs: False
ABOVE["is_same_size"] = lambda self, other: _size(self) == _size(other)
ABOVE["new"] = lambda self, *args: _from_parts(self, args)
ABOVE["linear"] = lambda input, weight, bias=None: (
    _matmul(input, t(weight) if is_sparse(weight) else weight.t()) + (0 if bias is None else bias)
)


def _from_parts(self: Any, args: Any) -> Any:
    """`s.new(indices, values, size)`."""
    from tensorpy.sparse import sparse_coo_tensor

    return sparse_coo_tensor(*args, dtype=self._kept.dtype)


for _name in ("to_dense", "coalesce"):
    ABOVE[_name] = globals()[_name]
BELOW["to_dense"] = BELOW["_to_dense"] = to_dense
BELOW["coalesce"] = BELOW["_coalesce"] = coalesce
