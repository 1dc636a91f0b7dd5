"""What makes sparse tensors: of indices and values that are checked, of files, and as copies."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._tensor import torch_function as _asking
from tensorpy._tensor.coordinates import checked_size
from tensorpy._tensor_str import parts_of

Size = tuple[int, ...]
_BY_ROWS = (_C.sparse_csr, _C.sparse_bsr)
_IN_BLOCKS = (_C.sparse_bsr, _C.sparse_bsc)
COMPRESSED = (_C.sparse_csr, _C.sparse_csc, _C.sparse_bsr, _C.sparse_bsc)


def _values(values: Any, dtype: Any, device: Any) -> Tensor:
    if isinstance(values, Tensor):
        return values.to(dtype=dtype, device=device) if dtype is not None or device is not None else values
    return _C.tensor(values, dtype=dtype, device=device)


def _index(indices: Any, device: Any) -> Tensor:
    made = indices if isinstance(indices, Tensor) else _C.tensor(indices, dtype=_C.int64)
    return made.detach().to(device=device, dtype=_C.int64)


_F = TypeVar("_F", bound=Callable[..., Any])


def _factory(function: _F) -> _F:
    """Asks modes, and no classes of arguments, as `tensor` and its kin do."""

    @functools.wraps(function)
    def asked(*args: Any, **kwargs: Any) -> Any:
        if _asking.has_torch_function(()):
            return _asking.handle_torch_function(asked, (), *args, **kwargs)
        with _asking.DisableTorchFunctionSubclass():
            return function(*args, **kwargs)

    return cast(_F, asked)


@_factory
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
        check_invariants: whether places of a line are sorted and distinct; that indices fit is checked in any case
        is_coalesced: whether the indices are known to be in order and each once

    Returns: a sparse tensor.

    Raises: RuntimeError for indices that are no matrix, or do not fit the size.

    Example:
        >>> tp.sparse_coo_tensor([[0, 1], [1, 0]], [5.0, 6.0], (2, 2)).to_dense()
        tensor([[0., 5.],
                [6., 0.]])
    """
    if values is None:
        return empty_coo(size if indices is None else indices, dtype, device).requires_grad_(requires_grad)
    kept = _values(values, dtype, device)
    places = _index(indices, kept.device)
    if places.dim() == 1 and not places.numel():
        places = places.reshape(len(size) if size is not None else 1, 0)
    kept = kept.expand(places.shape[1]) if kept.dim() == 0 and places.dim() == 2 else kept
    whole = checked_size(places, kept, size)
    ordered = places.shape[1] < 2 or (_in_order(places, whole) if is_coalesced else False)
    made = _C._coo(places, kept.detach() if requires_grad else kept, whole, ordered)
    return made.requires_grad_() if requires_grad else made


def _in_order(places: Tensor, size: Size) -> bool:
    """What a caller says of the indices is looked at: operators rely on it."""
    keys = _C._coo_keys(places, size[: places.shape[0]])
    if not bool((keys[1:] > keys[:-1]).all()):
        raise RuntimeError("is_coalesced: the indices are not in order, or not each once")
    return True


def empty_coo(size: Any, dtype: Any, device: Any) -> Any:
    """A tensor of coordinates without values."""
    size = tuple(int(s) for s in size)
    kept = _C.zeros(0, dtype=dtype, device=device)
    return _C._coo(_C.zeros((len(size), 0), dtype=_C.int64, device=kept.device), kept, size, True)


_sparse_coo_tensor_unsafe = sparse_coo_tensor


@_factory
def sparse_compressed_tensor(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Any:
    """A sparse matrix, or a batch of them, of a compressed layout: sparse_csr, sparse_csc, sparse_bsr or sparse_bsc.

    Arguments:
        compressed_indices: where each row or column begins, and the number of values
        plain_indices: the column or row of each value
        values: the values: numbers, or blocks
        size: the sizes
        dtype: the dtype; None takes the usual one
        layout: the layout
        device: where the elements are: a device or its name; None takes the default
        pin_memory: whether the CPU's memory is pinned for copies to a device
        requires_grad: whether autograd records what is done with the tensor
        check_invariants: whether places of a line are sorted and distinct; that indices fit is checked in any case

    Returns: a sparse tensor.

    Raises: RuntimeError for another layout, and for indices that do not fit the size.

    Example:
        >>> tp.sparse_compressed_tensor([0, 1, 2], [1, 0], [5.0, 6.0], (2, 2), layout=tp.sparse_csr).to_dense()
        tensor([[0., 5.],
                [6., 0.]])
    """
    if layout not in COMPRESSED:
        raise RuntimeError(f"sparse_compressed_tensor: expected a compressed layout, got {layout}")
    parts = compressed_indices, plain_indices, values
    return _of_lines(layout, parts, size, dtype, device, requires_grad, check_invariants)


def _of_lines(
    layout: Any, parts: tuple[Any, Any, Any], size: Any, dtype: Any, device: Any, requires_grad: bool,
    check_invariants: bool | None,
) -> Any:  # fmt: skip
    """What the constructors of compressed layouts make: of where lines begin, places and values."""
    compressed_indices, plain_indices, values = parts
    kept = _values(values, dtype, device)
    compressed, plain = (
        (i if isinstance(i, Tensor) else _C.tensor(i, dtype=_C.int64)).detach().to(kept.device)
        for i in (compressed_indices, plain_indices)
    )
    whole = _checked_matrix(compressed, plain, kept, size, layout)
    if check_invariants or (check_invariants is None and ORDERED[0]):
        _check_order(compressed, plain, layout)
    made = _C._compressed(compressed, plain, kept.detach() if requires_grad else kept, whole, layout)
    return made.requires_grad_() if requires_grad else made


# Whether places of a line are asked to rise, where a call does not say: check_sparse_tensor_invariants.
ORDERED = [False]


def _check_order(compressed: Tensor, plain: Tensor, layout: Any) -> None:
    """Places rise within each line, so none is there twice. Products and sums do without."""
    n = plain.shape[-1]
    if n < 2 or not plain.numel():
        return
    begins = _C.zeros((*plain.shape[:-1], n + 1), dtype=_C.bool, device=plain.device)
    begins = begins.scatter(-1, compressed.to(_C.int64), True)[..., 1:n]
    if not bool(((plain.diff() > 0) | begins).all()):
        places = "col_indices" if layout in _BY_ROWS else "row_indices"
        raise RuntimeError(
            f"sparse_compressed_tensor: {layout}: `{places}` of a line are sorted and distinct, which these are not"
        )


def _checked_matrix(compressed: Tensor, plain: Tensor, kept: Tensor, size: Any, layout: Any) -> Size:
    """The size, given or the least one, that the parts fit."""
    name = f"sparse_compressed_tensor: {layout}"
    inner, block_dims = plain.dim(), 2 if layout in _IN_BLOCKS else 0
    blocks = tuple(kept.shape[inner : inner + 2]) if layout in _IN_BLOCKS else (1, 1)
    dense = tuple(kept.shape[inner + block_dims :])
    if {compressed.dtype, plain.dtype} not in ({_C.int64}, {_C.int32}):
        raise RuntimeError(f"{name}: indices are both of int32 or of int64, not {compressed.dtype} and {plain.dtype}")
    if not compressed.dim() == inner >= 1 or kept.dim() < inner + block_dims:
        raise RuntimeError(
            f"{name}: dimensions of the parts do not agree: {compressed.dim()}, {plain.dim()} and {kept.dim()}"
        )
    batch = tuple(plain.shape[:-1])
    fits = tuple(compressed.shape[:-1]) == batch and tuple(kept.shape[:inner]) == tuple(plain.shape)
    if compressed.shape[-1] < 1 or not fits or 0 in blocks:
        raise RuntimeError(
            f"{name}: borders of the size {tuple(compressed.shape)}, places of {tuple(plain.shape)}, values of "
            f"{tuple(kept.shape)}"
        )
    lines, widest = compressed.shape[-1] - 1, int(plain.max()) + 1 if plain.numel() and not plain.is_meta else 0
    by_rows = layout in _BY_ROWS
    least = (lines * blocks[0], widest * blocks[1]) if by_rows else (widest * blocks[0], lines * blocks[1])
    whole = (*batch, *least, *dense) if size is None else tuple(int(s) for s in size)
    matrix, tail = whole[len(batch) : len(batch) + 2], whole[len(batch) + 2 :]
    line, place = (0, 1) if by_rows else (1, 0)
    if len(matrix) != 2 or whole[: len(batch)] != batch or matrix[line] != least[line] or tail != dense:
        raise RuntimeError(
            f"{name}: borders of the size {tuple(compressed.shape)} and values of {tuple(kept.shape)} are not those of "
            f"matrices of {whole}"
        )
    if matrix[place] % blocks[place] or any(s < 0 for s in whole):
        raise RuntimeError(f"{name}: a size of {whole} is not made of blocks of {blocks}")
    if kept.is_meta:  # which has no values to look at
        return whole
    border = "crow_indices" if by_rows else "ccol_indices"
    for end, n in (("0", 0), ("-1", plain.shape[-1])):
        if bool((compressed[..., int(end)] != n).any()):
            counted = "0" if end == "0" else "nnz"
            raise RuntimeError(
                f"`{border}[..., {end}] == {counted}` is not satisfied. {name}: borders go from 0 to {n}"
            )
    if bool((compressed.diff() < 0).any()):
        raise RuntimeError(f"{name}: borders go from 0 to the number of values, and do not fall")
    if plain.numel() and (int(plain.min()) < 0 or least[place] > matrix[place]):
        raise RuntimeError(f"{name}: a place is not among {matrix[place] // blocks[place]}")
    return whole


@_factory
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
        check_invariants: whether places of a line are sorted and distinct; that indices fit is checked in any case

    Returns: a sparse tensor.

    Raises: RuntimeError for indices that do not fit the size.

    Example:
        >>> tp.sparse_csr_tensor([0, 1, 2], [1, 0], [5.0, 6.0], (2, 2)).to_dense()
        tensor([[0., 5.],
                [6., 0.]])
    """
    parts = crow_indices, col_indices, values
    return _of_lines(_C.sparse_csr, parts, size, dtype, device, requires_grad, check_invariants)


@_factory
def sparse_csc_tensor(
    ccol_indices: Any,
    row_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Any:
    """A tensor of the layout sparse_csc: where each column begins, the row of each value, and the values.

    Arguments:
        ccol_indices: where each column begins, and the number of values
        row_indices: the row of each value
        values: the values
        size: the sizes
        dtype: the dtype; None takes the usual one
        device: where the elements are: a device or its name; None takes the default
        pin_memory: whether the CPU's memory is pinned for copies to a device
        requires_grad: whether autograd records what is done with the tensor
        check_invariants: whether places of a line are sorted and distinct; that indices fit is checked in any case

    Returns: a sparse tensor.

    Raises: RuntimeError for indices that do not fit the size.

    Example:
        >>> tp.sparse_csc_tensor([0, 1, 2], [1, 0], [6.0, 5.0], (2, 2)).to_dense()
        tensor([[0., 5.],
                [6., 0.]])
    """
    parts = ccol_indices, row_indices, values
    return _of_lines(_C.sparse_csc, parts, size, dtype, device, requires_grad, check_invariants)


@_factory
def sparse_bsr_tensor(
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
    """A tensor of the layout sparse_bsr: where each row of blocks begins, the column of each block, and the values.

    Arguments:
        crow_indices: where each row of blocks begins, and the number of values
        col_indices: the column of each block
        values: the values: blocks of them
        size: the sizes
        dtype: the dtype; None takes the usual one
        device: where the elements are: a device or its name; None takes the default
        pin_memory: whether the CPU's memory is pinned for copies to a device
        requires_grad: whether autograd records what is done with the tensor
        check_invariants: whether places of a line are sorted and distinct; that indices fit is checked in any case

    Returns: a sparse tensor.

    Raises: RuntimeError for indices that do not fit the size.

    Example:
        >>> tp.sparse_bsr_tensor([0, 1, 2], [1, 0], [[[5.0]], [[6.0]]], (2, 2)).to_dense()
        tensor([[0., 5.],
                [6., 0.]])
    """
    parts = crow_indices, col_indices, values
    return _of_lines(_C.sparse_bsr, parts, size, dtype, device, requires_grad, check_invariants)


@_factory
def sparse_bsc_tensor(
    ccol_indices: Any,
    row_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Any:
    """A tensor of the layout sparse_bsc: where each column of blocks begins, the row of each block, and the values.

    Arguments:
        ccol_indices: where each column of blocks begins, and the number of values
        row_indices: the row of each block
        values: the values: blocks of them
        size: the sizes
        dtype: the dtype; None takes the usual one
        device: where the elements are: a device or its name; None takes the default
        pin_memory: whether the CPU's memory is pinned for copies to a device
        requires_grad: whether autograd records what is done with the tensor
        check_invariants: whether places of a line are sorted and distinct; that indices fit is checked in any case

    Returns: a sparse tensor.

    Raises: RuntimeError for indices that do not fit the size.

    Example:
        >>> tp.sparse_bsc_tensor([0, 1, 2], [1, 0], [[[6.0]], [[5.0]]], (2, 2)).to_dense()
        tensor([[0., 5.],
                [6., 0.]])
    """
    parts = ccol_indices, row_indices, values
    return _of_lines(_C.sparse_bsc, parts, size, dtype, device, requires_grad, check_invariants)


# ---- files and copies ----


def reduced(sparse: Any) -> Any:
    """What pickle writes of a sparse tensor."""
    parts: Any = (*parts_of(sparse), _C.Size(sparse.shape))
    if sparse.is_sparse:
        parts = (*parts, sparse.is_coalesced())
    return rebuild, (sparse.layout, parts, sparse.requires_grad)


def copied(sparse: Any) -> Any:
    """What deepcopy makes of a leaf."""
    return sparse.detach().clone().requires_grad_(sparse.requires_grad)


def rebuild(layout: Any, parts: Any, requires_grad: bool = False) -> Any:
    """From a file: checked as what a program gives."""
    if layout is _C.sparse_coo:
        indices, values, size, *rest = parts
        made = sparse_coo_tensor(indices, values, size, is_coalesced=builtins.bool(rest and rest[0]))
    elif layout in COMPRESSED:
        made = sparse_compressed_tensor(*parts, layout=layout)
    else:
        raise NotImplementedError(f"a file has a tensor of the layout {layout}")
    return made.requires_grad_(builtins.bool(requires_grad))
