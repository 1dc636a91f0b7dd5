"""Nested tensors: tensors of several sizes as one, without padding.

    n = tensorpy.nested.nested_tensor([a, b], layout=tensorpy.jagged)
    n * 2, n.sum(1), linear(n), n.softmax(-1), n.unbind(), n.to_padded_tensor(0.0)

Operators work on all values at once, or on one piece after the other (`nested:` of their entries).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorpy as tp
from tensorpy import _C
from tensorpy._C import Tensor

__all__ = [
    "as_nested_tensor", "masked_select", "narrow", "nested_tensor", "nested_tensor_from_jagged", "to_padded_tensor",
]  # fmt: skip


def _is_jagged(layout: Any) -> bool:
    if layout is None or layout is _C.strided:
        return False
    if layout is not _C.jagged:
        raise RuntimeError(f"Specified layout is unsupported for nested tensors: {layout}")
    return True


def _of_pieces(pieces: list[Tensor], jagged: bool, dtype: Any, device: Any) -> Tensor:
    if pieces:
        return _C._nested_from_list(pieces, jagged)
    none = tp.empty(0, dtype=dtype, device=device)
    sizes = None if jagged else tp.zeros(0, 0, dtype=tp.int64)  # of pieces without dimensions
    return _C._nested_make(none, tp.zeros(1, dtype=tp.int64, device=device), None, sizes, 1, jagged)


def nested_tensor(
    tensor_list: Sequence[Any],
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A nested tensor of copies of tensors, or of what `tensor` takes; without history.

    Arguments:
        tensor_list: a list or tuple of tensors, or of nested sequences of numbers
        dtype: of the result; by default the tensors'
        device: of the result, likewise
        layout: `strided` (the default) or `jagged`
        requires_grad: whether a gradient is wanted of it
        pin_memory: whether its values lie in pinned memory

    Returns: a nested tensor.

    Raises: TypeError for what is no list or tuple.

    Example:
        >>> tp.nested.nested_tensor([tp.tensor([1, 2]), tp.tensor([3])]).to_padded_tensor(0)
        tensor([[1, 2],
                [3, 0]])
    """
    jagged = _is_jagged(layout)
    if isinstance(tensor_list, Tensor) and tensor_list.is_nested:
        tensor_list = tensor_list.unbind()
    if not isinstance(tensor_list, (list, tuple)):
        raise TypeError("nested_tensor(): Expected first argument to be of type List[Tensor] or List[List]")
    with tp.no_grad():
        pieces = [t.detach() if isinstance(t, Tensor) else tp.as_tensor(t, dtype=dtype) for t in tensor_list]
        common = dtype or (pieces[0].dtype if pieces and not jagged else None)
        pieces = [t.to(device=device or t.device, dtype=common or t.dtype) for t in pieces]
        made = _of_pieces(pieces, jagged, dtype, device)
    return (made.pin_memory() if pin_memory else made).requires_grad_(requires_grad)


def as_nested_tensor(ts: Any, dtype: Any = None, device: Any = None, layout: Any = None) -> Tensor:
    """A nested tensor of tensors, or of a dense one's rows, that is differentiated.

    Arguments:
        ts: tensors, a dense tensor, or a nested one
        dtype: of the result; by default the tensors'
        device: of the result, likewise
        layout: `strided` (the default) or `jagged`

    Returns: a nested tensor.

    Raises: TypeError for what is no tensor, list or tuple; RuntimeError for a nested tensor of another layout.

    Example:
        >>> x = tp.ones(2, requires_grad=True)
        >>> tp.nested.as_nested_tensor([x, x[:1]]).sum().backward()
        >>> x.grad
        tensor([2., 1.])
    """
    jagged = _is_jagged(layout)
    if isinstance(ts, Tensor) and ts.is_nested:
        if (ts.layout is _C.jagged) != jagged:
            raise RuntimeError("Converting between nested tensor layouts is not supported")
        return ts.to(device=device or ts.device, dtype=dtype or ts.dtype)
    if not isinstance(ts, (Tensor, list, tuple)):
        raise TypeError("as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of tensors")
    if any(not isinstance(t, Tensor) for t in ts):
        raise TypeError("as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of tensors")
    pieces = list(ts.unbind() if isinstance(ts, Tensor) else ts)
    pieces = [t.to(device=device or t.device, dtype=dtype or t.dtype) for t in pieces]
    return _of_pieces(pieces, jagged, dtype, device)


def nested_tensor_from_jagged(
    values: Tensor,
    offsets: Tensor | None = None,
    lengths: Tensor | None = None,
    jagged_dim: int | None = None,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> Tensor:
    """A view of values that lie one piece after the other: piece i begins at offsets[i], and has lengths[i] or ends
    where the next begins.

    Arguments:
        values: all pieces along one dimension
        offsets: where each begins, and where the last ends; by default the lengths added up
        lengths: how long each is
        jagged_dim: the dimension of the result whose sizes differ, 1 by default
        min_seqlen: the least length, as `_min_seqlen` answers it then; not checked
        max_seqlen: the largest, as `_max_seqlen` does; to_padded_tensor() makes its result so long

    Returns: a nested tensor over the memory of values.

    Raises: RuntimeError without offsets and lengths; for a min_seqlen or max_seqlen below 0.

    Example:
        >>> n = tp.nested.nested_tensor_from_jagged(tp.arange(5), tp.tensor([0, 2, 5]))
        >>> n.unbind()
        (tensor([0, 1]), tensor([2, 3, 4]))
    """
    if offsets is None:
        if lengths is None:
            raise RuntimeError("nested_tensor_from_jagged(): At least one of offsets or lengths is required.")
        offsets, lengths = tp.cat([lengths.new_zeros(1), lengths.cumsum(0)]), None
    ragged = 1 if jagged_dim is None else jagged_dim
    least, most = (-1 if said is None else said for said in (min_seqlen, max_seqlen))
    if (min_seqlen or 0) < 0 or (max_seqlen or 0) < 0:
        raise RuntimeError("nested_tensor_from_jagged(): min_seqlen and max_seqlen must not be negative")
    return _C._nested_make(values, offsets, lengths, None, ragged, True, least, most)


def _nested_get_lengths(self: Tensor) -> Tensor | None:
    """The lengths that a jagged tensor was made with; None where each piece ends as the next begins."""
    from tensorpy._tensor import nested

    return nested.lengths_of(self)


def _nested_get_min_seqlen(self: Tensor) -> Tensor | None:
    """A tensor without elements whose first size is the length of a jagged tensor's shortest piece; None where nobody
    said that length."""
    return _seqlen(self, _C._nested_get_min_seqlen, False)


def _nested_get_max_seqlen(self: Tensor) -> Tensor | None:
    """A tensor without elements whose first size is the length of a jagged tensor's longest piece; None where nobody
    said that length."""
    return _seqlen(self, _C._nested_get_max_seqlen, True)


def _seqlen(t: Tensor, get: Any, largest: bool) -> Tensor | None:
    jagged = t.is_nested and t.layout is _C.jagged
    return get(t) if not jagged or _C._nested_longest(t.detach(), largest, False) >= 0 else None


def narrow(tensor: Tensor, dim: int, start: Any, length: Any, layout: Any = None) -> Tensor:
    """A nested tensor of parts of a dense one's rows, along dimension 1: `start` and `length` are numbers or a tensor
    of one for each row.

    Arguments:
        tensor: a dense tensor
        dim: 1 in the layout jagged
        start: where each part begins
        length: how long each is
        layout: `strided` (the default) or `jagged`

    Returns: a nested tensor.

    Raises: RuntimeError for a dim other than 1 with the layout jagged, and for parts that lead out of a row.

    Example:
        >>> starts, lengths = tp.tensor([0, 1]), tp.tensor([1, 2])
        >>> tp.nested.narrow(tp.arange(6).view(2, 3), 1, starts, lengths, layout=tp.jagged).unbind()
        (tensor([0]), tensor([4, 5]))
    """
    count = len(tensor)
    if not _is_jagged(layout):
        if isinstance(start, Tensor) or isinstance(length, Tensor):
            raise RuntimeError("start and length must be integers for the strided layout NT impl")
        return as_nested_tensor(tensor.unbind()).narrow(dim, start, length)
    if dim != 1:
        raise RuntimeError("jagged layout only supports dim=1")
    starts, lengths = (
        tp.as_tensor(x, dtype=tp.int64, device=tensor.device).expand(count).contiguous() for x in (start, length)
    )
    begins = starts + tp.arange(count, device=tensor.device) * tensor.shape[1]
    if not ((starts >= 0) & (lengths >= 0) & (starts + lengths <= tensor.shape[1])).all():
        raise RuntimeError("narrow(): start and length lead out of a row")
    offsets = tp.cat([begins, begins[-1:] + lengths[-1:]])
    return nested_tensor_from_jagged(tensor.flatten(0, 1), offsets, lengths)


def masked_select(tensor: Tensor, mask: Tensor) -> Tensor:
    """A jagged nested tensor of what a mask selects of each row, which are those of the last dimension.

    Arguments:
        tensor: a dense tensor
        mask: of bool, which broadcasts to it

    Returns: a nested tensor of two dimensions.

    Raises: RuntimeError for a mask or tensor that is not strided.

    Example:
        >>> tp.nested.masked_select(tp.arange(4).view(2, 2), tp.tensor([[True, False], [True, True]])).unbind()
        (tensor([0]), tensor([2, 3]))
    """
    if tensor.layout is not _C.strided or mask.layout is not _C.strided:
        raise RuntimeError("nested_masked_select requires a strided tensor and a strided mask")
    wide = mask.expand(tensor.shape)
    return nested_tensor_from_jagged(tensor.masked_select(wide), lengths=wide.sum(-1).flatten())


def to_padded_tensor(input: Tensor, padding: float, output_size: Any = None, out: Any = None) -> Tensor:
    """A dense tensor of a nested one's pieces, with `padding` where a piece ends before the largest.

    Arguments:
        input: a nested tensor
        padding: the number that fills
        output_size: of the result, where the largest piece is not to say it
        out: a tensor that becomes the result

    Returns: a dense tensor, (pieces, *size of the largest).

    Example:
        >>> n = tp.nested.nested_tensor([tp.tensor([1.0, 2.0]), tp.tensor([3.0])])
        >>> tp.nested.to_padded_tensor(n, -1.0, (2, 3))
        tensor([[ 1.,  2., -1.],
                [ 3., -1., -1.]])
    """
    made = input.to_padded_tensor(padding, output_size)
    return made if out is None else out.resize_(made.shape).copy_(made)
