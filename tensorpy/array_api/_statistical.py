"""Reductions over axes: one, several, none of them (`axis=()`), or all (`axis=None`)."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import tensorpy as tp
from tensorpy import Tensor, dtype

from ._promotion import SIGNED, UNSIGNED, as_booleans

Axis = int | tuple[int, ...] | None


def _over(reduce: Callable[..., Tensor], x: Tensor, axis: Axis, keepdims: bool, **more: Any) -> Tensor:
    """Over no axes: over one of size 1 that is put there for it."""
    axes = tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    if not axes:
        return reduce(x.unsqueeze(-1), dim=(-1,), **more)
    return reduce(x, dim=axes, keepdim=keepdims, **more)


def _summed(own: dtype, asked: dtype | None) -> dtype | None:
    """Integers are added up in 64 bits."""
    return asked or (tp.uint64 if own in UNSIGNED else tp.int64 if own in SIGNED or own == tp.bool else None)


def _product(x: Tensor, dim: tuple[int, ...], keepdim: bool = False, dtype: dtype | None = None) -> Tensor:
    for each in sorted((d % x.ndim for d in dim), reverse=True):
        x = tp.prod(x, each, keepdim, dtype=dtype)
    return x


def sum(x: Tensor, /, *, axis: Axis = None, dtype: dtype | None = None, keepdims: bool = False) -> Tensor:
    """The sum; of integers in 64 bits.

    Arguments:
        x: an array
        axis: along which axis, or axes; None: all
        dtype: the dtype in which is added up; None: x's, or the 64-bit one of its kind
        keepdims: whether the axes stay, with size 1

    Returns: an array.

    Example:
        >>> xp.sum(tp.tensor([200, 100], dtype=tp.uint8))
        tensor(300, dtype=tensorpy.uint64)
    """
    return _over(tp.sum, x, axis, keepdims, dtype=_summed(x.dtype, dtype))


def prod(x: Tensor, /, *, axis: Axis = None, dtype: dtype | None = None, keepdims: bool = False) -> Tensor:
    """The product; of integers in 64 bits.

    Arguments:
        x: an array
        axis: along which axis, or axes; None: all
        dtype: the dtype in which is multiplied; None: x's, or the 64-bit one of its kind
        keepdims: whether the axes stay, with size 1

    Returns: an array.

    Example:
        >>> xp.prod(tp.tensor([2, 3, 4]))
        tensor(24)
    """
    return _over(_product, x, axis, keepdims, dtype=_summed(x.dtype, dtype))


def max(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The largest element; NaN where one is.

    Arguments:
        x: an array of real numbers
        axis: along which axis, or axes; None: all
        keepdims: whether the axes stay, with size 1

    Returns: an array of x's dtype.

    Example:
        >>> xp.max(tp.tensor([[1, 5], [3, 2]]), axis=0)
        tensor([3, 5])
    """
    return _over(tp.amax, x, axis, keepdims)


def min(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The smallest element; NaN where one is.

    Arguments:
        x: an array of real numbers
        axis: along which axis, or axes; None: all
        keepdims: whether the axes stay, with size 1

    Returns: an array of x's dtype.

    Example:
        >>> xp.min(tp.tensor([[1, 5], [3, 2]]), axis=0)
        tensor([1, 2])
    """
    return _over(tp.amin, x, axis, keepdims)


def mean(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The mean.

    Arguments:
        x: an array of floating numbers
        axis: along which axis, or axes; None: all
        keepdims: whether the axes stay, with size 1

    Returns: an array of x's dtype.

    Example:
        >>> xp.mean(tp.tensor([1.0, 2.0]))
        tensor(1.5000)
    """
    return _over(tp.mean, x, axis, keepdims)


def var(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The variance.

    Arguments:
        x: an array of floating numbers
        axis: along which axis, or axes; None: all
        correction: what is taken from the number of elements that is divided by; 1 for samples
        keepdims: whether the axes stay, with size 1

    Returns: an array of x's dtype.

    Example:
        >>> xp.var(tp.tensor([1.0, 3.0]))
        tensor(1.)
    """
    return _over(tp.var, x, axis, keepdims, correction=correction)


def std(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The standard deviation.

    Arguments:
        x: an array of floating numbers
        axis: along which axis, or axes; None: all
        correction: what is taken from the number of elements that is divided by; 1 for samples
        keepdims: whether the axes stay, with size 1

    Returns: an array of x's dtype.

    Example:
        >>> xp.std(tp.tensor([1.0, 3.0]))
        tensor(1.)
    """
    return _over(tp.std, x, axis, keepdims, correction=correction)


def all(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether all elements are true, or not 0.

    Arguments:
        x: an array
        axis: along which axis, or axes; None: all
        keepdims: whether the axes stay, with size 1

    Returns: an array of bool.

    Example:
        >>> xp.all(tp.tensor([1, 0]))
        tensor(False)
    """
    return _over(tp.all, as_booleans(x), axis, keepdims)


def any(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether one element is true, or not 0.

    Arguments:
        x: an array
        axis: along which axis, or axes; None: all
        keepdims: whether the axes stay, with size 1

    Returns: an array of bool.

    Example:
        >>> xp.any(tp.tensor([1, 0]))
        tensor(True)
    """
    return _over(tp.any, as_booleans(x), axis, keepdims)


def count_nonzero(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """How many elements are not 0.

    Arguments:
        x: an array
        axis: along which axis, or axes; None: all
        keepdims: whether the axes stay, with size 1

    Returns: an array of int64.

    Example:
        >>> xp.count_nonzero(tp.tensor([0, 5, 6]))
        tensor(2)
    """
    return sum(x != 0, axis=axis, dtype=tp.int64, keepdims=keepdims)


def _running(
    operator: str, first: int, x: Tensor, axis: int | None, dtype: dtype | None, include_initial: bool
) -> Tensor:
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"an array of {x.ndim} dimensions needs an axis")
        axis = 0
    running = getattr(tp, operator)(x, axis, dtype=_summed(x.dtype, dtype))
    if not include_initial:
        return running
    shape = builtins.list(x.shape)
    shape[axis] = 1
    return tp.cat([tp.full(shape, first, dtype=running.dtype, device=x.device), running], axis)


def cumulative_sum(
    x: Tensor, /, *, axis: int | None = None, dtype: dtype | None = None, include_initial: bool = False
) -> Tensor:
    """The sums up to each element; of integers in 64 bits.

    Arguments:
        x: an array of at least one dimension
        axis: along which; None for an array of one dimension
        dtype: the dtype in which is added up; None: x's, or the 64-bit one of its kind
        include_initial: whether a 0 comes first

    Returns: an array.

    Raises: ValueError without an axis for an array of more than one dimension.

    Example:
        >>> xp.cumulative_sum(tp.tensor([1, 2, 3]), include_initial=True)
        tensor([0, 1, 3, 6])
    """
    return _running("cumsum", 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype: dtype | None = None, include_initial: bool = False
) -> Tensor:
    """The products up to each element; of integers in 64 bits.

    Arguments:
        x: an array of at least one dimension
        axis: along which; None for an array of one dimension
        dtype: the dtype in which is multiplied; None: x's, or the 64-bit one of its kind
        include_initial: whether a 1 comes first

    Returns: an array.

    Raises: ValueError without an axis for an array of more than one dimension.

    Example:
        >>> xp.cumulative_prod(tp.tensor([1, 2, 3]))
        tensor([1, 2, 6])
    """
    return _running("cumprod", 1, x, axis, dtype, include_initial)
