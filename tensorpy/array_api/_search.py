"""Functions that look for elements, order them, or find the different ones."""

from __future__ import annotations

from typing import NamedTuple

import tensorpy as tp
from tensorpy import Tensor

from ._promotion import as_indices, promoted


def _extreme(operator: str, x: Tensor, axis: int | None, keepdims: bool) -> Tensor:
    place = getattr(tp, operator)(x, axis, keepdims and axis is not None)
    return place.reshape((1,) * x.ndim) if keepdims and axis is None else place


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the largest element stands, of equal ones the first.

    Arguments:
        x: an array of real numbers
        axis: along which; None: in the flattened array
        keepdims: whether the axis stays, with size 1

    Returns: an array of int64.

    Example:
        >>> xp.argmax(tp.tensor([1, 3, 2]))
        tensor(1)
    """
    return _extreme("argmax", x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the smallest element stands, of equal ones the first.

    Arguments:
        x: an array of real numbers
        axis: along which; None: in the flattened array
        keepdims: whether the axis stays, with size 1

    Returns: an array of int64.

    Example:
        >>> xp.argmin(tp.tensor([3, 1, 2]))
        tensor(1)
    """
    return _extreme("argmin", x, axis, keepdims)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """Where elements are not 0, an array of places for each axis.

    Arguments:
        x: an array of at least one dimension

    Returns: a tuple of arrays of int64.

    Raises: ValueError for an array without dimensions.

    Example:
        >>> xp.nonzero(tp.tensor([0, 5, 6]))
        (tensor([1, 2]),)
    """
    if x.ndim == 0:
        raise ValueError("nonzero(): the array has no dimensions")
    return tuple(x.nonzero().unbind(1))


def searchsorted(x1: Tensor, x2: Tensor | float, /, *, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    """Where numbers would stand among sorted ones.

    Arguments:
        x1: the sorted numbers, an array of one dimension
        x2: the numbers to be found
        side: "left": before equal ones; "right": after them
        sorter: the order of x1, if it is not sorted

    Returns: an array of int64, of x2's shape.

    Raises: ValueError for another side.

    Example:
        >>> xp.searchsorted(tp.tensor([1, 3, 5]), tp.tensor([3, 4]))
        tensor([1, 2])
    """
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted(): side is 'left' or 'right', not {side!r}")
    among, sought = promoted(x1, x2)
    return tp.searchsorted(among, sought, side=side, sorter=None if sorter is None else as_indices(sorter))


def where(condition: Tensor, x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """Elements of one array or of another.

    Arguments:
        condition: booleans; where they are true the element is x1's
        x1: an array, or a number
        x2: an array, or a number; one of both is an array

    Returns: an array of the shape to which all three broadcast.

    Example:
        >>> xp.where(tp.tensor([True, False]), tp.tensor([1, 2]), 0)
        tensor([1, 0])
    """
    first, second = promoted(x1, x2)
    return tp.where(condition, first, second)


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements in order.

    Arguments:
        x: an array of real numbers
        axis: along which
        descending: whether the largest come first
        stable: whether equal elements keep their order

    Returns: an array of x's shape.

    Example:
        >>> xp.sort(tp.tensor([2, 3, 1]), descending=True)
        tensor([3, 2, 1])
    """
    return tp.sort(x, dim=axis, descending=descending, stable=stable).values


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The places of the elements in order.

    Arguments:
        x: an array of real numbers
        axis: along which
        descending: whether the largest come first
        stable: whether equal elements keep their order

    Returns: an array of int64, of x's shape.

    Example:
        >>> xp.argsort(tp.tensor([2, 3, 1]))
        tensor([2, 0, 1])
    """
    return tp.argsort(x, dim=axis, descending=descending, stable=stable)


class UniqueAllResult(NamedTuple):
    """What unique_all() finds.

    Arguments:
        values: the different elements
        indices: where each stands first in the flattened array
        inverse_indices: which of them each element is
        counts: how often each is there

    Example:
        >>> xp.unique_all(tp.tensor([3, 3])).counts
        tensor([2])
    """

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCountsResult(NamedTuple):
    """What unique_counts() finds.

    Arguments:
        values: the different elements
        counts: how often each is there

    Example:
        >>> xp.unique_counts(tp.tensor([3, 3])).values
        tensor([3])
    """

    values: Tensor
    counts: Tensor


class UniqueInverseResult(NamedTuple):
    """What unique_inverse() finds.

    Arguments:
        values: the different elements
        inverse_indices: which of them each element is

    Example:
        >>> xp.unique_inverse(tp.tensor([3, 3])).inverse_indices
        tensor([0, 0])
    """

    values: Tensor
    inverse_indices: Tensor


def _unique_complex(x: Tensor) -> UniqueAllResult:
    """By the order of real parts, then of imaginary ones, in which equal elements are neighbours."""
    flat = x.flatten()
    by_imaginary = tp.argsort(flat.imag, stable=True)
    order = by_imaginary[tp.argsort(flat.real[by_imaginary], stable=True)]
    ordered = flat[order]
    starts = tp.ones(flat.shape, dtype=tp.bool, device=x.device)
    starts[1:] = ordered[1:] != ordered[:-1]
    inverse = tp.empty_like(order)
    inverse[order] = tp.cumsum(starts, 0) - 1
    first = starts.nonzero().flatten()
    counts = tp.diff(first, append=tp.tensor([flat.numel()], device=x.device))
    return UniqueAllResult(ordered[first], order[first], inverse.reshape(x.shape), counts)


def unique_all(x: Tensor, /) -> UniqueAllResult:
    """The different elements, where each stands first, which of them each element is, and how often each is there.

    Each NaN is an element of its own.

    Arguments:
        x: an array

    Returns: a named tuple (values, indices, inverse_indices, counts).

    Example:
        >>> xp.unique_all(tp.tensor([5, 2, 5])).indices
        tensor([1, 0])
    """
    if x.is_complex():
        return _unique_complex(x)
    values, inverse, counts = tp.unique(x, return_inverse=True, return_counts=True)
    order = tp.argsort(inverse.flatten(), stable=True)
    return UniqueAllResult(values, order[tp.cumsum(counts, 0) - counts], inverse, counts)


def unique_counts(x: Tensor, /) -> UniqueCountsResult:
    """The different elements, and how often each is there.

    Arguments:
        x: an array

    Returns: a named tuple (values, counts).

    Example:
        >>> xp.unique_counts(tp.tensor([5, 2, 5])).counts
        tensor([1, 2])
    """
    if x.is_complex():
        found = _unique_complex(x)
        return UniqueCountsResult(found.values, found.counts)
    return UniqueCountsResult(*tp.unique(x, return_counts=True))


def unique_inverse(x: Tensor, /) -> UniqueInverseResult:
    """The different elements, and which of them each element is.

    Arguments:
        x: an array

    Returns: a named tuple (values, inverse_indices).

    Example:
        >>> xp.unique_inverse(tp.tensor([5, 2, 5])).inverse_indices
        tensor([1, 0, 1])
    """
    if x.is_complex():
        found = _unique_complex(x)
        return UniqueInverseResult(found.values, found.inverse_indices)
    return UniqueInverseResult(*tp.unique(x, return_inverse=True))


def unique_values(x: Tensor, /) -> Tensor:
    """The different elements.

    Arguments:
        x: an array

    Returns: an array of one dimension.

    Example:
        >>> xp.unique_values(tp.tensor([5, 2, 5]))
        tensor([2, 5])
    """
    return unique_counts(x).values


def isin(x1: Tensor | complex, x2: Tensor | complex, /, *, invert: bool = False) -> Tensor:
    """Whether each element is one of some others. NaN is none of them.

    Arguments:
        x1: an array, or a number
        x2: an array of the others, or a number; one of both is an array
        invert: whether is asked for the elements that are not

    Returns: an array of bool, of x1's shape.

    Example:
        >>> xp.isin(tp.tensor([1, 2, 3]), tp.tensor([3, 1]))
        tensor([ True, False,  True])
    """
    elements, others = promoted(x1, x2)
    if elements.is_complex():  # by the numbers of equal ones
        places = _unique_complex(tp.cat([elements.flatten(), others.flatten()])).inverse_indices
        elements, others = places[: elements.numel()].view(elements.shape), places[elements.numel() :]
    elif elements.dtype == tp.bool:
        elements, others = elements.to(tp.uint8), others.to(tp.uint8)
    return tp.isin(elements, others, invert=invert)
