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

from collections.abc import Callable
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._tensor.torch_function import DisableTorchFunctionSubclass
from tensorpy.autograd.function import Function
from tensorpy.autograd.grad_mode import no_grad
from tensorpy.sparse._patterns import Coo, Csr, Pattern, columns_of, keys_of
from tensorpy.sparse._printing import text

# The kernels by name, which the modules of operators fill: ABOVE autograd those of functions, BELOW it of operators.
ABOVE: dict[str, Callable[..., Any]] = {}
BELOW: dict[str, Callable[..., Any]] = {}


def plain(pattern: Pattern, values: Tensor) -> SparseTensor:
    """A sparse tensor of a pattern and values, without autograd."""
    made: SparseTensor = Tensor._make_wrapper_subclass(
        SparseTensor, pattern.size, (0,) * len(pattern.size), dtype=values.dtype, device=values.device
    )
    made._pattern, made._kept = pattern, values
    return made


class _Make(Function):
    _takes_transforms = True

    @staticmethod
    def forward(ctx: Any, values: Tensor, pattern: Pattern) -> Any:
        ctx.pattern = pattern
        return plain(pattern, values.detach())

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        (grad,) = grad_outputs
        return at(grad, ctx.pattern), None


class _Values(Function):
    _takes_transforms = True

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
    there = coalesce(tensor)
    wanted, keys = places.keys(), there._pattern.as_coo().keys()
    if not keys.numel():
        return values_of(there).new_zeros((places.nnz, *places.dense_size))
    found = _C.searchsorted(keys, wanted).clamp(max=keys.numel() - 1)
    hit = (keys[found] == wanted).reshape(-1, *(1,) * len(places.dense_size))
    made = values_of(there).index_select(0, found) * hit
    return made.reshape(pattern.col_indices.shape) if isinstance(pattern, Csr) else made


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


class SparseTensor(Tensor):
    """A tensor of a sparse layout."""

    _pattern: Any
    _kept: Tensor

    @property
    def layout(self) -> Any:
        return self._pattern.layout

    @property
    def is_sparse(self) -> bool:
        return isinstance(self._pattern, Coo)

    @property
    def is_sparse_csr(self) -> bool:
        return isinstance(self._pattern, Csr)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        name = func.__self__.__name__ if name == "__get__" else name
        if name in ABOVE:
            return ABOVE[name](*args, **(kwargs or {}))
        with DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func._opname not in BELOW:
            raise NotImplementedError(
                f"{func}: there is no kernel for tensors of the layout {layout_of(args)}; to_dense() gives a dense one"
            )
        with no_grad():
            return BELOW[func._opname](*args, **(kwargs or {}))

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return text(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        kept = self._kept.detach()
        if isinstance(self._pattern, Coo):
            parts: Any = (self._pattern.indices, kept, _C.Size(self._pattern.size), self._pattern.is_coalesced)
        else:
            parts = (self._pattern.crow_indices, self._pattern.col_indices, kept, _C.Size(self._pattern.size))
        return rebuild, (self._pattern.layout, parts, self.requires_grad)

    def __deepcopy__(self, memo: Any) -> Any:
        if not self.is_leaf:
            raise RuntimeError("only leaves of the autograd graph can be copied deeply; detach() gives one")
        made = ABOVE["clone"](self.detach())
        made.requires_grad_(self.requires_grad)
        memo[id(self)] = made
        return made

    def numpy(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"can't convert a tensor of the layout {self.layout} to numpy. Use Tensor.to_dense() first.")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return self.numpy()


# ---- making ----


def _values(values: Any, dtype: Any, device: Any) -> Tensor:
    if isinstance(values, Tensor):
        return values.to(dtype=dtype, device=device) if dtype is not None or device is not None else values
    return _C.tensor(values, dtype=dtype, device=device)


def _index(indices: Any, device: Any) -> Tensor:
    made = indices if isinstance(indices, Tensor) else _C.tensor(indices, dtype=_C.int64)
    return made.detach().to(device=device, dtype=_C.int64)


def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Any = None,
    *more_sizes: int,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Any:
    """A tensor with `values` at the places that the columns of `indices` say, and zeros elsewhere. Without a size it is
    as large as the indices need; with a size only, it is empty.

    Arguments:
        indices: the indices
        values: the values
        size: the sizes
        dtype: the dtype; None takes the usual one
        device: where the elements are: a device or its name; None takes the default
        pin_memory: whether the CPU's memory is pinned for copies to a device
        requires_grad: whether autograd records what is done with the tensor
        check_invariants: whether the indices are checked; None takes the setting
        is_coalesced: whether the indices are known to be in order and each once

    Example:
        >>> tp.sparse_coo_tensor([[0, 1], [1, 0]], [5.0, 6.0], (2, 2)).to_dense()
        tensor([[0., 5.],
                [6., 0.]])
    """
    if values is None:
        return _empty_coo(size if indices is None else indices, dtype, device).requires_grad_(requires_grad)
    kept = _values(values, dtype, device)
    places = _index(indices, kept.device)
    if places.dim() == 1 and not places.numel():
        places = places.reshape(len(size) if size is not None else 1, 0)
    if places.dim() != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(places.shape)}")
    kept = kept.expand(places.shape[1]) if kept.dim() == 0 else kept
    if places.shape[1] != kept.shape[0]:
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {places.shape[1]}, nnz from values: "
            f"{kept.shape[0]}"
        )
    n = places.shape[0]
    least = [int(m) + 1 for m in places.amax(1).tolist()] if places.shape[1] else [0] * n
    if places.numel() and int(places.min()) < 0:
        raise RuntimeError(f"found negative index {int(places.min())} among the indices")
    whole = (*least, *kept.shape[1:]) if size is None else tuple(int(s) for s in size)
    if len(whole) != n + kept.dim() - 1:
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(whole)}, sparse_dim = {n}, "
            f"dense_dim = {kept.dim() - 1}"
        )
    for d, (needed, given) in enumerate(zip(least, whole, strict=False)):
        if needed > given:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {d}, size is {given} but found index {needed - 1}"
            )
    if tuple(kept.shape[1:]) != whole[n:]:
        raise RuntimeError(
            f"values has incorrect size, expected [{kept.shape[0]}, {list(whole[n:])}], got {list(kept.shape)}"
        )
    pattern = Coo(places, whole, _is_in_order(places, whole[:n]) if is_coalesced else False)
    if requires_grad:
        return sparse_of(pattern, kept.detach()).requires_grad_()
    return sparse_of(pattern, kept)


def _is_in_order(places: Tensor, size: tuple[int, ...]) -> bool:
    """What a caller says of the indices is looked at: operators rely on it."""
    keys = keys_of(places, size)
    if not bool((keys[1:] > keys[:-1]).all()):
        raise RuntimeError("is_coalesced: the indices are not in order, or not each once")
    return True


def _empty_coo(size: Any, dtype: Any, device: Any) -> Any:
    size = tuple(int(s) for s in size)
    kept = _C.zeros(0, dtype=dtype, device=device)
    return sparse_of(Coo(_C.zeros((len(size), 0), dtype=_C.int64, device=kept.device), size, True), kept)


_sparse_coo_tensor_unsafe = sparse_coo_tensor


def sparse_csr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Any:
    """A tensor of the layout sparse_csr: where each row begins, the column of each value, and the values.

    Arguments:
        crow_indices: where each row begins, and the number of values
        col_indices: the column of each value
        values: the values
        size: the sizes
        dtype: the dtype; None takes the usual one
        device: where the elements are: a device or its name; None takes the default
        pin_memory: whether the CPU's memory is pinned for copies to a device
        requires_grad: whether autograd records what is done with the tensor
        check_invariants: whether the indices are checked; None takes the setting

    Example:
        >>> tp.sparse_csr_tensor([0, 1, 2], [1, 0], [5.0, 6.0], (2, 2)).to_dense()
        tensor([[0., 5.],
                [6., 0.]])
    """
    kept = _values(values, dtype, device)
    crow, columns = (
        (i if isinstance(i, Tensor) else _C.tensor(i, dtype=_C.int64)).detach().to(kept.device)
        for i in (crow_indices, col_indices)
    )
    if not crow.dim() == columns.dim() >= 1 or kept.dim() > columns.dim():
        raise NotImplementedError("sparse_csr_tensor: values are numbers, in rows as columns are")
    if crow.shape[-1] < 1 or columns.shape != kept.shape or crow.shape[:-1] != kept.shape[:-1]:
        raise RuntimeError(
            f"sparse_csr_tensor: row borders of the size {tuple(crow.shape)}, columns of {tuple(columns.shape)}, "
            f"values of {tuple(kept.shape)}"
        )
    widest = int(columns.max()) + 1 if columns.numel() else 0
    rows, batch = crow.shape[-1] - 1, tuple(kept.shape[:-1])
    whole = (*batch, rows, widest) if size is None else tuple(int(s) for s in size)
    if whole[:-1] != (*batch, rows):
        raise RuntimeError(
            f"sparse_csr_tensor: row borders of the size {tuple(crow.shape)} are not those of matrices of {whole}"
        )
    if bool((crow[..., 0] != 0).any() | (crow[..., -1] != kept.shape[-1]).any() | (crow.diff() < 0).any()):
        raise RuntimeError("sparse_csr_tensor: crow_indices go from 0 to the number of values, and do not fall")
    if columns.numel() and (int(columns.min()) < 0 or widest > whole[-1]):
        raise RuntimeError(f"sparse_csr_tensor: a column is not among {whole[-1]}")
    made = sparse_of(Csr(crow, columns, whole), kept.detach() if requires_grad else kept)
    return made.requires_grad_() if requires_grad else made


def sparse_compressed_tensor(
    compressed_indices: Any, plain_indices: Any, values: Any, size: Any = None, *, layout: Any = None, **options: Any
) -> Any:
    """A sparse matrix of a compressed layout: there is `sparse_csr`.

    Arguments:
        compressed_indices: where each row or column begins, and the number of values
        plain_indices: the column or row of each value
        values: the values
        size: the sizes
        layout: the layout

    Example:
        >>> tp.sparse_compressed_tensor([0, 1, 2], [1, 0], [5.0, 6.0], (2, 2), layout=tp.sparse_csr).to_dense()
        tensor([[0., 5.],
                [6., 0.]])
    """
    if layout is not _C.sparse_csr:
        raise NotImplementedError(f"sparse_compressed_tensor: there are no tensors of the layout {layout}")
    return sparse_csr_tensor(compressed_indices, plain_indices, values, size, **options)


def rebuild(layout: Any, parts: Any, requires_grad: bool = False) -> Any:
    """From a file: checked as what a program gives."""
    if layout is _C.sparse_coo:
        indices, values, size, *rest = parts
        made = sparse_coo_tensor(indices, values, size, is_coalesced=bool(rest and rest[0]))
    elif layout is _C.sparse_csr:
        made = sparse_csr_tensor(*parts)
    else:
        raise NotImplementedError(f"a file has a tensor of the layout {layout}")
    return made.requires_grad_(bool(requires_grad))
