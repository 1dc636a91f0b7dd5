"""Sparse tensors: a pattern, which says where elements are, and a dense tensor of the values there.

A sparse tensor is a wrapper (docs/modes_and_subclasses.md): autograd sees its geometry only. Two functions join it to
its values for autograd: `sparse_of` makes one of a pattern and values, `values_of` gives these back, both with
gradients; all operators (_operators.py) are made of the two and of dense operators on indices and values. So a gradient
with respect to a sparse tensor is sparse and has the same pattern, and each of its values is that of one value.

A function of tensorpy that is given a sparse tensor is looked up by its name twice: above autograd
(`__torch_function__`), and below it (`__torch_dispatch__`), for what autograd itself calls. What has no kernel is a
NotImplementedError.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._tensor.torch_function import DisableTorchFunctionSubclass
from tensorpy.autograd.function import Function

Size = tuple[int, ...]


def keys_of(indices: Tensor, sizes: Size) -> Tensor:
    """One number per column of indices: its place in a dense tensor of these sizes."""
    keys = _C.zeros(indices.shape[1], dtype=_C.int64, device=indices.device)
    for row, size in zip(indices, sizes, strict=True):
        keys = keys * size + row
    return keys


def columns_of(keys: Tensor, sizes: Size) -> Tensor:
    """The indices of such numbers."""
    rows = []
    for size in reversed(sizes):
        rows.append(keys % size)
        keys = keys.div(size, rounding_mode="floor")
    return _C.stack(rows[::-1]) if rows else keys.new_zeros((0, keys.shape[0]))


@dataclass(frozen=True, eq=False)
class Coo:
    """Coordinates: a column of `indices` per value. Coalesced: in order, and each once."""

    indices: Tensor
    size: Size
    is_coalesced: bool

    layout = _C.sparse_coo

    @property
    def sparse_dim(self) -> int:
        return int(self.indices.shape[0])

    @property
    def nnz(self) -> int:
        return int(self.indices.shape[1])

    @property
    def sparse_size(self) -> Size:
        return self.size[: self.sparse_dim]

    @property
    def dense_size(self) -> Size:
        return self.size[self.sparse_dim :]

    def keys(self) -> Tensor:
        return keys_of(self.indices, self.sparse_size)

    def is_same(self, other: Any) -> bool:
        """Whether values of the one are values of the other."""
        if not isinstance(other, Coo) or self.size != other.size:
            return False
        return self.indices is other.indices or bool(_C.equal(self.indices, other.indices))

    def to(self, device: Any) -> Coo:
        return Coo(self.indices.to(device), self.size, self.is_coalesced)

    def as_coo(self) -> Coo:
        return self


@dataclass(frozen=True, eq=False)
class Csr:
    """Rows one after another: row r has the values from crow_indices[r] to crow_indices[r + 1]. Dimensions in front of
    the last of both indices and of the values are those of a batch of matrices."""

    crow_indices: Tensor
    col_indices: Tensor
    size: Size

    layout = _C.sparse_csr

    @property
    def nnz(self) -> int:
        return int(self.col_indices.shape[-1])

    def is_same(self, other: Any) -> bool:
        if not isinstance(other, Csr) or self.size != other.size or self.nnz != other.nnz:
            return False
        same = self.col_indices is other.col_indices and self.crow_indices is other.crow_indices
        return same or bool(
            _C.equal(self.col_indices, other.col_indices) and _C.equal(self.crow_indices, other.crow_indices)
        )

    def to(self, device: Any) -> Csr:
        return Csr(self.crow_indices.to(device), self.col_indices.to(device), self.size)

    def as_coo(self) -> Coo:
        """Rows are in order; columns in a row need not be, nor be different."""
        counts = self.crow_indices.diff().to(_C.int64).reshape(-1)
        rows = _C.arange(counts.shape[0], device=counts.device).repeat_interleave(counts)
        columns = self.col_indices.to(_C.int64).reshape(1, -1)
        return Coo(_C.cat([columns_of(rows, self.size[:-1]), columns]), self.size, False)


Pattern = Coo | Csr


def plain(pattern: Pattern, values: Tensor) -> SparseTensor:
    """A sparse tensor of a pattern and values, without autograd."""
    made: SparseTensor = Tensor._make_wrapper_subclass(
        SparseTensor, pattern.size, (0,) * len(pattern.size), dtype=values.dtype, device=values.device
    )
    made._pattern, made._kept = pattern, values
    return made


class _Make(Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, pattern: Pattern) -> Any:
        ctx.pattern = pattern
        return plain(pattern, values.detach())

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        (grad,) = grad_outputs
        return at(grad, ctx.pattern), None


class _Values(Function):
    @staticmethod
    def forward(ctx: Any, sparse: Any) -> Any:
        ctx.pattern = sparse._pattern
        return sparse._kept.detach()

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        (grad,) = grad_outputs
        return sparse_of(ctx.pattern, grad)


def sparse_of(pattern: Pattern, values: Tensor) -> SparseTensor:
    """A sparse tensor of a pattern and values; gradients go to the values."""
    if _C.is_grad_enabled() and values.requires_grad:
        made: SparseTensor = _Make.apply(values, pattern)
        return made
    return plain(pattern, values)


def values_of(sparse: SparseTensor) -> Tensor:
    """The values of a sparse tensor, differentiable."""
    with DisableTorchFunctionSubclass():
        records = _C.is_grad_enabled() and sparse.requires_grad
    return _Values.apply(sparse) if records else sparse._kept


def at(tensor: Any, pattern: Pattern) -> Tensor:
    """The values of a tensor, sparse or dense, at the places of a pattern."""
    if isinstance(tensor, SparseTensor) and tensor._pattern.is_same(pattern):
        return values_of(tensor)
    places = pattern.as_coo()
    if not isinstance(tensor, SparseTensor):
        flat = tensor.expand(places.size).reshape(-1, *places.dense_size)
        found = flat.index_select(0, places.keys())
        return found.reshape(pattern.col_indices.shape) if isinstance(pattern, Csr) else found
    from tensorpy.sparse._operators import coalesce

    there = coalesce(tensor)
    wanted, keys = places.keys(), there._pattern.as_coo().keys()
    if not keys.numel():
        return values_of(there).new_zeros((places.nnz, *places.dense_size))
    found = _C.searchsorted(keys, wanted).clamp(max=keys.numel() - 1)
    hit = (keys[found] == wanted).reshape(-1, *(1,) * len(places.dense_size))
    made = values_of(there).index_select(0, found) * hit
    return made.reshape(pattern.col_indices.shape) if isinstance(pattern, Csr) else made


class SparseTensor(Tensor):
    """A tensor of a sparse layout."""

    _pattern: Any
    _kept: Tensor

    @property
    def layout(self) -> Any:  # type: ignore[override]  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._pattern.layout

    @property
    def is_sparse(self) -> bool:
        return isinstance(self._pattern, Coo)

    @property
    def is_sparse_csr(self) -> bool:
        return isinstance(self._pattern, Csr)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from tensorpy.sparse._operators import ABOVE

        name = getattr(func, "__name__", "")
        name = func.__self__.__name__ if name == "__get__" else name
        if name in ABOVE:
            return ABOVE[name](*args, **(kwargs or {}))
        with DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from tensorpy import no_grad
        from tensorpy.sparse._operators import BELOW, layout_of

        if func._opname not in BELOW:
            raise NotImplementedError(
                f"{func}: there is no kernel for tensors of the layout {layout_of(args)}; to_dense() gives a dense one"
            )
        with no_grad():
            return BELOW[func._opname](*args, **(kwargs or {}))

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        from tensorpy.sparse._printing import text

        return text(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        kept = self._kept.detach()
        if isinstance(self._pattern, Coo):
            parts: Any = (self._pattern.indices, kept, _C.Size(self._pattern.size), self._pattern.is_coalesced)
        else:
            parts = (self._pattern.crow_indices, self._pattern.col_indices, kept, _C.Size(self._pattern.size))
        return rebuild, (self._pattern.layout, parts, self.requires_grad)

    def __deepcopy__(self, memo: Any) -> Any:
        from tensorpy.sparse._operators import clone

        if not self.is_leaf:
            raise RuntimeError("only leaves of the autograd graph can be copied deeply; detach() gives one")
        made = clone(self.detach())
        made.requires_grad_(self.requires_grad)
        memo[id(self)] = made
        return made

    def numpy(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"can't convert a tensor of the layout {self.layout} to numpy. Use Tensor.to_dense() first.")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return self.numpy()


def rebuild(layout: Any, parts: Any, requires_grad: bool = False) -> Any:
    """From a file: checked as what a program gives."""
    from tensorpy.sparse import sparse_coo_tensor, sparse_csr_tensor

    if layout is _C.sparse_coo:
        indices, values, size, *rest = parts
        made = sparse_coo_tensor(indices, values, size, is_coalesced=bool(rest and rest[0]))
    elif layout is _C.sparse_csr:
        made = sparse_csr_tensor(*parts)
    else:
        raise NotImplementedError(f"a file has a tensor of the layout {layout}")
    return made.requires_grad_(bool(requires_grad))
