"""Functions of an array's shape: what lies where, and nothing of the numbers."""

from __future__ import annotations

import tensorpy as tp
from tensorpy import Tensor

from ._promotion import as_indices, promoted


def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """The arrays as views of their common shape.

    Arguments:
        arrays: the arrays

    Returns: a tuple of arrays.

    Example:
        >>> [a.shape for a in xp.broadcast_arrays(tp.ones(2, 1), tp.ones(3))]
        [tensorpy.Size([2, 3]), tensorpy.Size([2, 3])]
    """
    return tuple(tp.broadcast_tensors(*arrays))


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape to which arrays of some shapes broadcast.

    Arguments:
        shapes: the shapes

    Returns: a tuple.

    Raises: ValueError for shapes that do not broadcast.

    Example:
        >>> xp.broadcast_shapes((2, 1), (3,))
        (2, 3)
    """
    try:
        return tuple(tp.broadcast_shapes(*shapes))
    except RuntimeError as error:
        raise ValueError(str(error)) from None


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """A view of an array in a larger shape.

    Arguments:
        x: an array
        shape: the sizes

    Returns: an array.

    Example:
        >>> xp.broadcast_to(tp.ones(2), (3, 2)).shape
        tensorpy.Size([3, 2])
    """
    return tp.broadcast_to(x, shape)


def concat(arrays: tuple[Tensor, ...] | list[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Arrays one after the other.

    Arguments:
        arrays: the arrays
        axis: along which; None: the flattened arrays

    Returns: an array.

    Example:
        >>> xp.concat([tp.ones(1, 2), tp.zeros(1, 2)], axis=None)
        tensor([1., 1., 0., 0.])
    """
    same = promoted(*arrays)
    return tp.cat([each.flatten() for each in same]) if axis is None else tp.cat(same, axis)


def stack(arrays: tuple[Tensor, ...] | list[Tensor], /, *, axis: int = 0) -> Tensor:
    """Arrays of one shape along a new axis.

    Arguments:
        arrays: the arrays
        axis: the new axis

    Returns: an array.

    Example:
        >>> xp.stack([tp.ones(2), tp.zeros(2)]).shape
        tensorpy.Size([2, 2])
    """
    return tp.stack(promoted(*arrays), axis)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis, views without it.

    Arguments:
        x: an array of at least one dimension
        axis: the axis

    Returns: a tuple of arrays.

    Example:
        >>> xp.unstack(tp.tensor([1, 2]))
        (tensor(1), tensor(2))
    """
    return tuple(tp.unbind(x, axis))


def expand_dims(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """A view with an axis of size 1 more.

    Arguments:
        x: an array
        axis: where the new axis stands in the result, or where several do

    Returns: an array.

    Raises: IndexError for an axis that the result does not have, ValueError for one that is named twice.

    Example:
        >>> xp.expand_dims(tp.ones(3), 0).shape
        tensorpy.Size([1, 3])
    """
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    ndim = x.ndim + len(axes)
    for each in axes:
        if not -ndim <= each < ndim:
            raise IndexError(f"expand_dims(): axis {each} of {ndim} dimensions")
    places = sorted(each % ndim for each in axes)
    if len(set(places)) < len(places):
        raise ValueError(f"expand_dims(): an axis is named twice in {axes}")
    for each in places:
        x = x.unsqueeze(each)
    return x


def squeeze(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """A view without axes of size 1.

    Arguments:
        x: an array
        axis: the axis, or several

    Returns: an array.

    Raises: ValueError for an axis of another size.

    Example:
        >>> xp.squeeze(tp.ones(1, 2, 1), 0).shape
        tensorpy.Size([2, 1])
    """
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    for each in axes:
        if x.shape[each] != 1:
            raise ValueError(f"squeeze(): axis {each} has size {x.shape[each]}")
    return tp.squeeze(x, axes)


def flip(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """The elements in reverse order.

    Arguments:
        x: an array
        axis: along which axis, or axes; None: all

    Returns: an array.

    Example:
        >>> xp.flip(tp.tensor([1, 2, 3]))
        tensor([3, 2, 1])
    """
    return tp.flip(x, tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else axis)


def moveaxis(x: Tensor, source: int | tuple[int, ...], destination: int | tuple[int, ...], /) -> Tensor:
    """A view with axes at other places.

    Arguments:
        x: an array
        source: which axis, or axes
        destination: where they stand in the result

    Returns: an array.

    Example:
        >>> xp.moveaxis(tp.ones(2, 3, 4), 0, -1).shape
        tensorpy.Size([3, 4, 2])
    """
    sources = (source,) if isinstance(source, int) else source
    return tp.moveaxis(x, sources, (destination,) if isinstance(destination, int) else destination)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """A view with the axes in another order.

    Arguments:
        x: an array
        axes: the axis of x that stands at each place

    Returns: an array.

    Example:
        >>> xp.permute_dims(tp.ones(2, 3), (1, 0)).shape
        tensorpy.Size([3, 2])
    """
    return tp.permute(x, axes)


def matrix_transpose(x: Tensor, /) -> Tensor:
    """A view with the last two axes exchanged.

    Arguments:
        x: an array of at least two dimensions

    Returns: an array.

    Raises: ValueError for fewer dimensions.

    Example:
        >>> xp.matrix_transpose(tp.ones(4, 2, 3)).shape
        tensorpy.Size([4, 3, 2])
    """
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose(): an array of {x.ndim} dimensions")
    return x.mT


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """The elements in another shape.

    Arguments:
        x: an array
        shape: the sizes; one may be -1 and follows from the others
        copy: True: a copy; False: a view; None: a view where that is possible

    Returns: an array.

    Raises: ValueError where copy=False cannot be done.

    Example:
        >>> xp.reshape(tp.arange(4), (2, -1))
        tensor([[0, 1],
                [2, 3]])
    """
    if copy is not False:
        return tp.reshape(x.clone() if copy else x, shape)
    try:
        return x.view(shape)
    except RuntimeError as error:
        raise ValueError(f"reshape(copy=False): {error}") from None


def roll(x: Tensor, /, shift: int | tuple[int, ...], *, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """The elements moved along, those that leave at one end come in at the other.

    Arguments:
        x: an array
        shift: how far, one number or one for each axis
        axis: along which axis, or axes; None: the flattened array

    Returns: an array of x's shape.

    Example:
        >>> xp.roll(tp.tensor([1, 2, 3]), 1)
        tensor([3, 1, 2])
    """
    if axis is None:
        return tp.roll(x, shift)
    axes = (axis,) if isinstance(axis, int) else axis
    return tp.roll(x, (shift,) * len(axes) if isinstance(shift, int) else shift, axes)


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Each element so many times.

    Arguments:
        x: an array
        repeats: how many times, one number or one for each element along the axis
        axis: along which; None: the flattened array

    Returns: an array.

    Example:
        >>> xp.repeat(tp.tensor([1, 2]), 2)
        tensor([1, 1, 2, 2])
    """
    if isinstance(repeats, Tensor):
        repeats = as_indices(repeats)
    return tp.repeat_interleave(x.flatten() if axis is None else x, repeats, 0 if axis is None else axis)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """The array beside itself so many times along each axis.

    Arguments:
        x: an array
        repetitions: how many times, for each axis, the last ones for fewer

    Returns: an array.

    Example:
        >>> xp.tile(tp.tensor([1, 2]), (2,))
        tensor([1, 2, 1, 2])
    """
    return tp.tile(x, repetitions)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The slices at some places.

    Arguments:
        x: an array
        indices: an array of integers of one dimension
        axis: along which; None for an array of one dimension

    Returns: an array.

    Raises: ValueError without an axis for an array of more than one dimension.

    Example:
        >>> xp.take(tp.tensor([5, 6, 7]), tp.tensor([2, 0]))
        tensor([7, 5])
    """
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take(): an array of {x.ndim} dimensions needs an axis")
        axis = 0
    return x[(slice(None),) * (axis % x.ndim) + (as_indices(indices),)]


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """The elements at some places of each line.

    Arguments:
        x: an array
        indices: an array of integers that broadcasts with x beside the axis
        axis: along which lines lie

    Returns: an array of the indices' shape.

    Example:
        >>> xp.take_along_axis(tp.tensor([[5, 6]]), tp.tensor([[1, 0]]))
        tensor([[6, 5]])
    """
    places = as_indices(indices)
    return tp.take_along_dim(x, tp.where(places < 0, places + x.shape[axis], places), axis)


def diff(
    x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """The differences of neighbours.

    Arguments:
        x: an array
        axis: along which
        n: how many times differences are taken
        prepend: what stands before x; None: nothing
        append: what stands after x; None: nothing

    Returns: an array.

    Example:
        >>> xp.diff(tp.tensor([1, 4, 9]))
        tensor([3, 5])
    """
    return tp.diff(x, n, axis, prepend, append)
