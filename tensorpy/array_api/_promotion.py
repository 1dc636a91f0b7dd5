"""Which dtype an operation of several arrays has, as the standard says: a 0-d array counts as any other array.

PyTorch's rules differ in two points: there a 0-d tensor gives way to one with dimensions, and uint16, uint32 and uint64
meet no other dtype. https://data-apis.org/array-api/2025.12/API_specification/type_promotion.html
"""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import tensorpy as tp
from tensorpy import Tensor, dtype

SIGNED = (tp.int8, tp.int16, tp.int32, tp.int64)
UNSIGNED = (tp.uint8, tp.uint16, tp.uint32, tp.uint64)
REAL = (tp.float32, tp.float64)
COMPLEX = (tp.complex64, tp.complex128)
KINDS = {
    "bool": (tp.bool,),
    "signed integer": SIGNED,
    "unsigned integer": UNSIGNED,
    "integral": (*SIGNED, *UNSIGNED),
    "real floating": REAL,
    "complex floating": COMPLEX,
    "numeric": (*SIGNED, *UNSIGNED, *REAL, *COMPLEX),
}


def _kind(d: dtype) -> int:
    """Booleans before integers before floating numbers."""
    return 0 if d == tp.bool else 2 if d.is_floating_point or d.is_complex else 1


def _promoted_dtype(a: dtype, b: dtype) -> dtype:
    if _kind(a) != _kind(b):
        return max(a, b, key=_kind)
    if a in SIGNED and b in UNSIGNED:
        a, b = b, a
    if a in UNSIGNED and b in UNSIGNED:
        return a if a.itemsize >= b.itemsize else b
    if a in UNSIGNED and b in SIGNED:
        wide = [d for d in SIGNED if d.itemsize >= b.itemsize and d.itemsize > a.itemsize]
        if not wide:
            raise TypeError(f"{a} and {b} have no common dtype")
        return wide[0]
    return tp.promote_types(a, b)


def result_type(*arrays_and_dtypes: Tensor | dtype | complex) -> dtype:
    """The dtype of an operation of arrays, dtypes and numbers. Numbers do not widen a dtype of their kind.

    Arguments:
        arrays_and_dtypes: arrays, dtypes and Python's numbers, at least one of them no number

    Returns: a dtype.

    Raises: ValueError without an array or a dtype; TypeError for uint64 with a signed integer.

    Example:
        >>> xp.result_type(tp.tensor(1.0, dtype=tp.float64), tp.ones(2))
        tensorpy.float64
    """
    dtypes = [each.dtype for each in arrays_and_dtypes if isinstance(each, Tensor)]
    dtypes += [each for each in arrays_and_dtypes if isinstance(each, dtype)]
    if not dtypes:
        raise ValueError("result_type() takes at least one array or dtype")
    found = reduce(_promoted_dtype, dtypes)
    for number in arrays_and_dtypes:
        if isinstance(number, (bool, int, float, complex)):
            found = tp.result_type(tp.empty(1, dtype=found, device="meta"), number)
    return found


def promoted(*values: Tensor | complex) -> tuple[Tensor, ...]:
    """The values as arrays of their common dtype, numbers on the device of the first array."""
    first = next((value for value in values if isinstance(value, Tensor)), None)
    if first is None:
        raise TypeError("at least one argument has to be an array")
    common = result_type(*values)
    return tuple(
        value.to(common) if isinstance(value, Tensor) else tp.asarray(value, dtype=common, device=first.device)
        for value in values
    )


def as_indices(indices: Tensor) -> Tensor:
    """Integers as the dtype that all of tensorpy's operators take for indices: uint8 is a mask there."""
    return indices.to(tp.int64)


def as_booleans(x: Tensor) -> Tensor:
    """Whether elements are not 0; the dtype's conversion warns of an imaginary part that is lost."""
    return x != 0 if x.is_complex() else x.to(tp.bool)


def can_cast(from_: Tensor | dtype, to: dtype, /) -> bool:
    """Whether promotion leads from a dtype to another.

    Arguments:
        from_: an array or a dtype
        to: a dtype

    Returns: bool.

    Example:
        >>> xp.can_cast(tp.int8, tp.int16), xp.can_cast(tp.int16, tp.uint8)
        (True, False)
    """
    try:
        return _promoted_dtype(from_.dtype if isinstance(from_, Tensor) else from_, to) == to
    except TypeError:
        return False


def isdtype(dtype: dtype, kind: dtype | str | tuple[dtype | str, ...]) -> bool:
    """Whether a dtype is one of a kind.

    Arguments:
        dtype: the dtype
        kind: a dtype, "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating" or
            "numeric", or a tuple of these

    Returns: bool.

    Raises: ValueError for a kind that the standard does not have.

    Example:
        >>> xp.isdtype(tp.float32, ("bool", "real floating"))
        True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, str):
        if kind not in KINDS:
            raise ValueError(f"isdtype(): no kind is called {kind!r}; there are {', '.join(KINDS)}")
        return dtype in KINDS[kind]
    return dtype == kind


class FloatingInfo(NamedTuple):
    """What finfo() says of a floating dtype.

    Arguments:
        bits: the bits of a real number
        eps: the distance from 1.0 to the next number
        max: the largest number
        min: the least number
        smallest_normal: the smallest number above 0 of full precision
        dtype: the dtype of a real number
    """

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: tp.dtype


class IntegerInfo(NamedTuple):
    """What iinfo() says of an integer dtype.

    Arguments:
        bits: the bits of a number
        max: the largest number
        min: the least number
        dtype: the dtype
    """

    bits: int
    max: int
    min: int
    dtype: tp.dtype


def finfo(type: dtype | Tensor, /) -> FloatingInfo:
    """The limits of a floating dtype; of a complex one, those of its real numbers.

    Arguments:
        type: a floating or complex dtype, or an array of one

    Returns: a named tuple (bits, eps, max, min, smallest_normal, dtype).

    Raises: TypeError for another dtype.

    Example:
        >>> xp.finfo(tp.complex64).bits, xp.finfo(tp.complex64).dtype
        (32, tensorpy.float32)
    """
    limits = tp.finfo(type.dtype if isinstance(type, Tensor) else type)
    return FloatingInfo(
        limits.bits, limits.eps, limits.max, limits.min, limits.smallest_normal, getattr(tp, limits.dtype)
    )


def iinfo(type: dtype | Tensor, /) -> IntegerInfo:
    """The limits of an integer dtype.

    Arguments:
        type: an integer dtype, or an array of one

    Returns: a named tuple (bits, max, min, dtype).

    Raises: TypeError for another dtype.

    Example:
        >>> xp.iinfo(tp.ones(1, dtype=tp.int8)).max
        127
    """
    limits = tp.iinfo(type.dtype if isinstance(type, Tensor) else type)
    return IntegerInfo(limits.bits, limits.max, limits.min, getattr(tp, limits.dtype))


def astype(x: Tensor, dtype: dtype, /, *, copy: bool = True, device: tp.device | str | None = None) -> Tensor:
    """An array of another dtype.

    Arguments:
        x: an array
        dtype: the dtype
        copy: False to give x itself where nothing changes
        device: the result's device; None: x's

    Returns: an array.

    Raises: TypeError for complex numbers to real ones.

    Example:
        >>> xp.astype(tp.tensor([1.5]), tp.int32)
        tensor([1], dtype=tensorpy.int32)
    """
    if x.is_complex() and not dtype.is_complex and dtype != tp.bool:
        raise TypeError(f"astype(): complex numbers do not become {dtype}; take xp.real or xp.abs first")
    if x.is_complex() and dtype == tp.bool:
        x, copy = as_booleans(x), False
    return x.to(device=x.device if device is None else device, dtype=dtype, copy=copy)
