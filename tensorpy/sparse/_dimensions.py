"""Sparse tensors of other sizes: dimensions exchanged, added, taken from, joined and summed over."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.sparse._operators import dim_of, like, operator, replace, size_of
from tensorpy.sparse._patterns import Coo, Csr
from tensorpy.sparse._tensors import ABOVE, BELOW, coalesce, coo, is_sparse, sparse_of, values_of


def _with_dims(self: Any, order: Sequence[int]) -> Any:
    pattern, values = coo(self)
    n, ndim = pattern.sparse_dim, len(pattern.size)
    order = [dim_of(d, ndim) for d in order]
    if sorted(order) != list(range(ndim)):
        raise RuntimeError("permute(dims): each dimension once")
    if sorted(order[:n]) != list(range(n)):
        raise RuntimeError("transpose: sparse and dense dimensions do not change places")
    made = Coo(
        pattern.indices[list(order[:n])],
        tuple(pattern.size[d] for d in order),
        order == list(range(ndim)) and pattern.is_coalesced,
    )
    return like(self, sparse_of(made, values.permute(0, *(d - n + 1 for d in order[n:])) if order[n:] else values))


@operator()
def permute(self: Any, *dims: Any) -> Any:
    return _with_dims(self, dims[0] if len(dims) == 1 and not isinstance(dims[0], builtins.int) else dims)


@operator("swapaxes", "swapdims")
def transpose(self: Any, dim0: int, dim1: int) -> Any:
    order = list(range(len(size_of(self))))
    a, b = dim_of(dim0, len(order)), dim_of(dim1, len(order))
    order[a], order[b] = b, a
    return _with_dims(self, order)


@operator()
def t(self: Any) -> Any:
    if len(size_of(self)) > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {len(size_of(self))}D")
    return transpose(self, 0, 1) if len(size_of(self)) == 2 else self


ABOVE["T"] = lambda self: _with_dims(self, range(len(size_of(self)))[::-1])
ABOVE["mT"] = ABOVE["mH"] = lambda self: transpose(self, -2, -1)
ABOVE["transpose_"] = lambda self, a, b: _resized(self, transpose(self, a, b))
ABOVE["t_"] = lambda self: _resized(self, t(self))


def _resized(self: Any, made: Any) -> Any:
    if made._pattern.size != self._pattern.size:
        raise NotImplementedError("transposing a sparse tensor in place is possible where its size stays")
    return replace(self, made)


@operator()
def unsqueeze(self: Any, dim: int) -> Any:
    pattern, values = coo(self)
    n, at_dim = pattern.sparse_dim, dim_of(dim, len(pattern.size) + 1)
    size = (*pattern.size[:at_dim], 1, *pattern.size[at_dim:])
    if at_dim > n:
        return sparse_of(Coo(pattern.indices, size, pattern.is_coalesced), values.unsqueeze(at_dim - n + 1))
    rows = [*pattern.indices[:at_dim], pattern.indices.new_zeros(pattern.nnz), *pattern.indices[at_dim:]]
    return sparse_of(Coo(_C.stack(rows), size, pattern.is_coalesced), values)


@operator()
def squeeze(self: Any, dim: Any = None) -> Any:
    ndim = len(size_of(self))
    dims = range(ndim) if dim is None else [dim_of(d, ndim) for d in ([dim] if isinstance(dim, builtins.int) else dim)]
    for d in sorted(dims, reverse=True):
        if size_of(self)[d] == 1:
            self = select(self, d, 0)
    return self


@operator()
def index_select(self: Any, dim: int, index: Any, *, out: Any = None) -> Any:
    pattern, values = coo(self)
    n, d = pattern.sparse_dim, dim_of(dim, len(pattern.size))
    size = (*pattern.size[:d], index.numel(), *pattern.size[d + 1 :])
    if d >= n:
        return like(
            self, sparse_of(Coo(pattern.indices, size, pattern.is_coalesced), values.index_select(d - n + 1, index))
        )
    if index.numel() and not 0 <= builtins.int(index.min()) <= builtins.int(index.max()) < pattern.size[d]:
        raise IndexError(f"index_select(): an index is out of range for dimension {d} of the size {pattern.size[d]}")
    # each value goes wherever its place is asked for: pairs of (asked, value) that agree
    order = pattern.indices[d].argsort(stable=True)
    ordered = pattern.indices[d][order]
    first, end = _C.searchsorted(ordered, index), _C.searchsorted(ordered, index, right=True)
    which, source = ranges(first, end - first)
    source = order[source]
    indices = pattern.indices.index_select(1, source)
    rows = [*indices[:d], which, *indices[d + 1 :]]
    made = sparse_of(Coo(_C.stack(rows), size, False), values.index_select(0, source))
    return like(self, coalesce(made) if pattern.is_coalesced or isinstance(self._pattern, Csr) else made)


def ranges(first: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """For each range of `counts[i]` numbers from `first[i]` on: i, and the number."""
    which = _C.arange(counts.shape[0], device=counts.device).repeat_interleave(counts)
    start = (counts.cumsum(0) - counts).index_select(0, which)
    within = _C.arange(which.shape[0], device=counts.device) - start
    return which, first.index_select(0, which) + within


@operator()
def select(self: Any, dim: int, index: int) -> Any:
    pattern, values = coo(self)
    n, d = pattern.sparse_dim, dim_of(dim, len(pattern.size))
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
    n, d = pattern.sparse_dim, dim_of(dim, len(pattern.size))
    if not 0 <= start <= start + length <= pattern.size[d]:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({pattern.size[d]}).")
    size = (*pattern.size[:d], length, *pattern.size[d + 1 :])
    if d >= n:
        return sparse_of(Coo(pattern.indices, size, pattern.is_coalesced), values.narrow(d - n + 1, start, length))
    row = pattern.indices[d]
    there = ((row >= start) & (row < start + length)).nonzero().squeeze(1)
    indices = pattern.indices.index_select(1, there)
    rows = _C.cat([indices[:d], indices[d : d + 1] - start, indices[d + 1 :]])
    return like(self, sparse_of(Coo(rows, size, pattern.is_coalesced), values.index_select(0, there)))


def _getitem(self: Any, key: Any) -> Any:
    """Whole numbers, slices without a step, one tensor of indices, None and an ellipsis."""
    keys = list(key) if isinstance(key, tuple) else [key]
    taken = builtins.sum(k is not None and k is not ... for k in keys)
    place = next((i for i, k in enumerate(keys) if k is ...), len(keys))
    keys[place : place + 1] = [slice(None)] * (len(size_of(self)) - taken)
    d, made = 0, self
    for k in keys:
        if k is None:
            made = unsqueeze(made, d) if is_sparse(made) else made.unsqueeze(d)
        elif isinstance(k, builtins.int) and not isinstance(k, builtins.bool):
            made = select(made, d, k) if is_sparse(made) else made.select(d, k)
            continue
        elif isinstance(k, slice) and k.step in (None, 1):
            start, stop, _ = k.indices(size_of(made)[d])
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
        raise RuntimeError("cat: sparse tensors are put after sparse tensors only")
    parts = [coo(s) for s in tensors]
    n, d = parts[0][0].sparse_dim, dim_of(dim, len(parts[0][0].size))
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
    return like(tensors[0], made)


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
    dims = None if dim is None else sorted({dim_of(d, ndim) for d in ([dim] if isinstance(dim, builtins.int) else dim)})
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
        raise NotImplementedError("norm: a sparse tensor has it over all of its dimensions only")
    return values_of(coalesce(self)).norm(2 if p in (None, "fro") else p)


def _any(self: Any, *args: Any, **kwargs: Any) -> Any:
    if args or kwargs:
        raise NotImplementedError("any: a sparse tensor has it over all of its dimensions only")
    return values_of(coalesce(self)).any()


ABOVE["any"] = BELOW["any"] = _any
