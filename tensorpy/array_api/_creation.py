"""Functions that make arrays."""

from __future__ import annotations

import builtins
from typing import Any

import tensorpy as tp
from tensorpy import Tensor, device, dtype

from ._promotion import promoted

Device = device | str | None


def asarray(obj: object, /, *, dtype: dtype | None = None, device: Device = None, copy: bool | None = None) -> Tensor:
    """An array of a number, nested lists, an array, or what has DLPack or the buffer protocol.

    Arguments:
        obj: what the array is made of
        dtype: the dtype; None: that of obj
        device: the device; None: that of obj
        copy: True: the memory is the array's own; False: it is obj's; None: obj's where that is possible

    Returns: an array.

    Raises: ValueError where copy=False cannot be done.

    Example:
        >>> xp.asarray([[1, 2], [3, 4]])
        tensor([[1, 2],
                [3, 4]])
    """
    if isinstance(obj, Tensor) and copy is None and dtype is None and device is None:
        return obj
    return tp.asarray(obj, dtype=dtype, device=device, copy=copy)


def from_dlpack(x: Any, /, *, device: Device = None, copy: bool | None = None) -> Tensor:
    """An array of another library's memory.

    Arguments:
        x: what has `__dlpack__` and `__dlpack_device__`
        device: the device; None: where x is
        copy: True: a copy; False: no copy; None: a copy only where it is needed

    Returns: an array.

    Raises: AttributeError without these methods, BufferError where the memory cannot be taken, ValueError where
        copy=False cannot be done.

    Example:
        >>> xp.from_dlpack(tp.ones(2))
        tensor([1., 1.])
    """
    if isinstance(x, Tensor):
        made = x.detach()
    elif hasattr(x, "__dlpack__"):
        made = tp.from_dlpack(x, device="cpu", copy=None if copy else copy)
    else:
        raise AttributeError(f"from_dlpack(): {type(x).__name__} has no __dlpack__")
    moves = device is not None and tp.device(device) != made.device
    if moves and copy is False:
        raise ValueError(f"from_dlpack(copy=False): the memory is on {made.device}, not on {device}")
    return made.to(made.device if device is None else device, copy=bool(copy) and not moves)


def arange(
    start: float, /, stop: float | None = None, step: float = 1, *, dtype: dtype | None = None, device: Device = None
) -> Tensor:
    """Numbers at equal distances, without the end; none where the end lies on the other side.

    Arguments:
        start: the first number, or with stop None the end of a range from 0
        stop: the end
        step: the distance
        dtype: the dtype; None: int64 for whole numbers, else the default
        device: the device

    Returns: an array of one dimension.

    Raises: ValueError for a step of 0.

    Example:
        >>> xp.arange(5, 0, -2)
        tensor([5, 3, 1])
    """
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise ValueError("arange(): the step is 0")
    whole = builtins.all(isinstance(number, int) for number in (start, stop, step))
    if (stop - start) / step <= 0:
        return tp.empty(0, dtype=dtype or (tp.int64 if whole else None), device=device)
    return tp.arange(start, stop, step, dtype=dtype, device=device)


def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    *,
    dtype: dtype | None = None,
    device: Device = None,
    endpoint: bool = True,
) -> Tensor:
    """So many numbers at equal distances.

    Arguments:
        start: the first number
        stop: the last one, or with endpoint=False the one after it
        num: how many
        dtype: the dtype; None: the default floating one
        device: the device
        endpoint: whether stop is among them

    Returns: an array of one dimension.

    Example:
        >>> xp.linspace(0, 1, 4, endpoint=False)
        tensor([0.0000, 0.2500, 0.5000, 0.7500])
    """
    if endpoint:
        return tp.linspace(start, stop, num, dtype=dtype, device=device)
    return tp.linspace(start, stop, num + 1, dtype=dtype, device=device)[:-1].clone()


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: dtype | None = None,
    device: Device = None,
) -> Tensor:
    """Ones on a diagonal and zeros beside it.

    Arguments:
        n_rows: the rows
        n_cols: the columns; None: as many
        k: which diagonal; above the main one for k > 0
        dtype: the dtype; None: the default floating one
        device: the device

    Returns: an array of two dimensions.

    Example:
        >>> xp.eye(2, 3, k=1)
        tensor([[0., 1., 0.],
                [0., 0., 1.]])
    """
    made = tp.zeros(n_rows, n_rows if n_cols is None else n_cols, dtype=dtype, device=device)
    if -n_rows < k < made.shape[1]:
        made.diagonal(k).fill_(1)
    return made


def empty(shape: int | tuple[int, ...], *, dtype: dtype | None = None, device: Device = None) -> Tensor:
    """An array whose numbers are what the memory holds.

    Arguments:
        shape: the sizes, or one
        dtype: the dtype; None: the default floating one
        device: the device

    Returns: an array.

    Example:
        >>> xp.empty((2, 3)).shape
        tensorpy.Size([2, 3])
    """
    return tp.empty(shape, dtype=dtype, device=device)


def zeros(shape: int | tuple[int, ...], *, dtype: dtype | None = None, device: Device = None) -> Tensor:
    """An array of zeros.

    Arguments:
        shape: the sizes, or one
        dtype: the dtype; None: the default floating one
        device: the device

    Returns: an array.

    Example:
        >>> xp.zeros(2)
        tensor([0., 0.])
    """
    return tp.zeros(shape, dtype=dtype, device=device)


def ones(shape: int | tuple[int, ...], *, dtype: dtype | None = None, device: Device = None) -> Tensor:
    """An array of ones.

    Arguments:
        shape: the sizes, or one
        dtype: the dtype; None: the default floating one
        device: the device

    Returns: an array.

    Example:
        >>> xp.ones(2, dtype=tp.int64)
        tensor([1, 1])
    """
    return tp.ones(shape, dtype=dtype, device=device)


def full(
    shape: int | tuple[int, ...], fill_value: complex, *, dtype: dtype | None = None, device: Device = None
) -> Tensor:
    """An array of one number.

    Arguments:
        shape: the sizes, or one
        fill_value: the number
        dtype: the dtype; None: that of the number
        device: the device

    Returns: an array.

    Example:
        >>> xp.full(2, 7)
        tensor([7, 7])
    """
    return tp.full((shape,) if isinstance(shape, int) else shape, fill_value, dtype=dtype, device=device)


def empty_like(x: Tensor, /, *, dtype: dtype | None = None, device: Device = None) -> Tensor:
    """An array of x's shape whose numbers are what the memory holds.

    Arguments:
        x: an array
        dtype: the dtype; None: x's
        device: the device; None: x's

    Returns: an array.

    Example:
        >>> xp.empty_like(tp.ones(2, 3)).shape
        tensorpy.Size([2, 3])
    """
    return tp.empty_like(x, dtype=dtype, device=device)


def zeros_like(x: Tensor, /, *, dtype: dtype | None = None, device: Device = None) -> Tensor:
    """Zeros of x's shape.

    Arguments:
        x: an array
        dtype: the dtype; None: x's
        device: the device; None: x's

    Returns: an array.

    Example:
        >>> xp.zeros_like(tp.ones(2))
        tensor([0., 0.])
    """
    return tp.zeros_like(x, dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: dtype | None = None, device: Device = None) -> Tensor:
    """Ones of x's shape.

    Arguments:
        x: an array
        dtype: the dtype; None: x's
        device: the device; None: x's

    Returns: an array.

    Example:
        >>> xp.ones_like(tp.zeros(2))
        tensor([1., 1.])
    """
    return tp.ones_like(x, dtype=dtype, device=device)


def full_like(x: Tensor, /, fill_value: complex, *, dtype: dtype | None = None, device: Device = None) -> Tensor:
    """One number in x's shape.

    Arguments:
        x: an array
        fill_value: the number
        dtype: the dtype; None: x's
        device: the device; None: x's

    Returns: an array.

    Example:
        >>> xp.full_like(tp.zeros(2), 3)
        tensor([3., 3.])
    """
    return tp.full_like(x, fill_value, dtype=dtype, device=device)


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> tuple[Tensor, ...]:
    """The coordinates of a grid, an array for each axis.

    Arguments:
        arrays: arrays of one dimension and of one dtype
        indexing: "xy": the first array runs along columns; "ij": along rows

    Returns: a tuple of arrays.

    Raises: ValueError for another indexing.

    Example:
        >>> xp.meshgrid(tp.tensor([1, 2]), tp.tensor([3]))[0]
        tensor([[1, 2]])
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid(): indexing is 'xy' or 'ij', not {indexing!r}")
    return tuple(tp.meshgrid(*promoted(*arrays), indexing=indexing)) if arrays else ()


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The matrices with zeros above a diagonal.

    Arguments:
        x: an array of at least two dimensions
        k: which diagonal; above the main one for k > 0

    Returns: an array of x's shape.

    Example:
        >>> xp.tril(tp.ones(2, 2))
        tensor([[1., 0.],
                [1., 1.]])
    """
    return tp.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The matrices with zeros below a diagonal.

    Arguments:
        x: an array of at least two dimensions
        k: which diagonal; above the main one for k > 0

    Returns: an array of x's shape.

    Example:
        >>> xp.triu(tp.ones(2, 2))
        tensor([[1., 1.],
                [0., 1.]])
    """
    return tp.triu(x, k)
