"""Functions of each element: of two arrays, which promote as the standard says, and of one where tensorpy's differ."""

from __future__ import annotations

import tensorpy as tp
from tensorpy import Tensor

from ._promotion import promoted


def _two(operator: str, x1: Tensor | complex, x2: Tensor | complex) -> Tensor:
    return getattr(tp, operator)(*promoted(x1, x2))


def add(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """The sum, element by element.

    Arguments:
        x1: an array, or a number
        x2: an array, or a number; one of both is an array

    Returns: an array of the shape to which both broadcast.

    Example:
        >>> xp.add(tp.ones(2), 1)
        tensor([2., 2.])
    """
    return _two("add", x1, x2)


def atan2(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """The angle of the point (x2, x1), in radians, element by element.

    Arguments:
        x1: an array, or a number
        x2: an array, or a number; one of both is an array

    Returns: an array of the shape to which both broadcast.

    Example:
        >>> xp.atan2(tp.zeros(1), tp.ones(1))
        tensor([0.])
    """
    return _two("atan2", x1, x2)


def bitwise_and(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """The bits that both have, of integers or booleans, element by element.

    Arguments:
        x1: an array, or a number
        x2: an array, or a number; one of both is an array

    Returns: an array of the shape to which both broadcast.

    Example:
        >>> xp.bitwise_and(tp.tensor([6]), 3)
        tensor([2])
    """
    return _two("bitwise_and", x1, x2)


def bitwise_left_shift(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """The integers x1 with x2 zeros put behind their bits, element by element.

    Arguments:
        x1: an array, or a number
        x2: an array, or a number; one of both is an array

    Returns: an array of the shape to which both broadcast.

    Example:
        >>> xp.bitwise_left_shift(tp.tensor([3]), 2)
        tensor([12])
    """
    return _two("bitwise_left_shift", x1, x2)


def bitwise_or(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """The bits that one of both has, of integers or booleans, element by element.

    Arguments:
        x1: an array, or a number
        x2: an array, or a number; one of both is an array

    Returns: an array of the shape to which both broadcast.

    Example:
        >>> xp.bitwise_or(tp.tensor([6]), 3)
        tensor([7])
    """
    return _two("bitwise_or", x1, x2)


def bitwise_right_shift(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """The integers x1 without their last x2 bits, element by element.

    Arguments:
        x1: an array, or a number
        x2: an array, or a number; one of both is an array

    Returns: an array of the shape to which both broadcast.

    Example:
        >>> xp.bitwise_right_shift(tp.tensor([12]), 2)
        tensor([3])
    """
    return _two("bitwise_right_shift", x1, x2)


def bitwise_xor(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """The bits that differ, of integers or booleans, element by element.

    Arguments:
        x1: an array, or a number
        x2: an array, or a number; one of both is an array

    Returns: an array of the shape to which both broadcast.

    Example:
        >>> xp.bitwise_xor(tp.tensor([6]), 3)
        tensor([5])
    """
    return _two("bitwise_xor", x1, x2)


def copysign(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """The magnitude of x1 with the sign of x2, element by element.

    Arguments:
        x1: an array, or a number
        x2: an array, or a number; one of both is an array

    Returns: an array of the shape to which both broadcast.

    Example:
        >>> xp.copysign(tp.ones(2), -1.0)
        tensor([-1., -1.])
    """
    return _two("copysign", x1, x2)


def divide(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """The quotient of floating numbers, element by element.

    Arguments:
        x1: an array, or a number
        x2: an array, or a number; one of both is an array

    Returns: an array of the shape to which both broadcast.

    Example:
        >>> xp.divide(tp.ones(2), 4.0)
        tensor([0.2500, 0.2500])
    """
    return _two("true_divide", x1, x2)


def equal(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """Whether the numbers are equal, element by element.

    Arguments:
        x1: an array, or a number
        x2: an array, or a number; one of both is an array

    Returns: an array of the shape to which both broadcast.

    Example:
        >>> xp.equal(tp.tensor([1, 2]), 2)
        tensor([False,  True])
    """
    return _two("eq", x1, x2)


def floor_divide(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """The quotient rounded down, element by element.

    Arguments:
        x1: an array, or a number
        x2: an array, or a number; one of both is an array

    Returns: an array of the shape to which both broadcast.

    Example:
        >>> xp.floor_divide(tp.tensor([-7]), 2)
        tensor([-4])
    """
    return _two("floor_divide", x1, x2)


def greater(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """Whether x1 is greater than x2, element by element.

    Arguments:
        x1: an array, or a number
        x2: an array, or a number; one of both is an array

    Returns: an array of the shape to which both broadcast.

    Example:
        >>> xp.greater(tp.tensor([1, 2]), 1)
        tensor([False,  True])
    """
    return _two("gt", x1, x2)


def greater_equal(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """Whether x1 is greater than x2 or equal, element by element.

    Arguments:
        x1: an array, or a number
        x2: an array, or a number; one of both is an array

    Returns: an array of the shape to which both broadcast.

    Example:
        >>> xp.greater_equal(tp.tensor([1, 2]), 2)
        tensor([False,  True])
    """
    return _two("ge", x1, x2)


def hypot(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """The square root of the sum of squares, element by element.

    Arguments:
        x1: an array, or a number
        x2: an array, or a number; one of both is an array

    Returns: an array of the shape to which both broadcast.

    Example:
        >>> xp.hypot(tp.tensor([3.0]), 4.0)
        tensor([5.])
    """
    return _two("hypot", x1, x2)


def less(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """Whether x1 is less than x2, element by element.

    Arguments:
        x1: an array, or a number
        x2: an array, or a number; one of both is an array

    Returns: an array of the shape to which both broadcast.

    Example:
        >>> xp.less(tp.tensor([1, 2]), 2)
        tensor([ True, False])
    """
    return _two("lt", x1, x2)


def less_equal(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """Whether x1 is less than x2 or equal, element by element.

    Arguments:
        x1: an array, or a number
        x2: an array, or a number; one of both is an array

    Returns: an array of the shape to which both broadcast.

    Example:
        >>> xp.less_equal(tp.tensor([1, 2]), 1)
        tensor([ True, False])
    """
    return _two("le", x1, x2)


def logaddexp(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """The logarithm of the sum of exponentials, element by element.

    Arguments:
        x1: an array, or a number
        x2: an array, or a number; one of both is an array

    Returns: an array of the shape to which both broadcast.

    Example:
        >>> xp.logaddexp(tp.zeros(1), 0.0)
        tensor([0.6931])
    """
    return _two("logaddexp", x1, x2)


def logical_and(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """Whether both are true, element by element.

    Arguments:
        x1: an array, or a number
        x2: an array, or a number; one of both is an array

    Returns: an array of the shape to which both broadcast.

    Example:
        >>> xp.logical_and(tp.tensor([True, False]), True)
        tensor([ True, False])
    """
    return _two("logical_and", x1, x2)


def logical_or(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """Whether one is true, element by element.

    Arguments:
        x1: an array, or a number
        x2: an array, or a number; one of both is an array

    Returns: an array of the shape to which both broadcast.

    Example:
        >>> xp.logical_or(tp.tensor([True, False]), False)
        tensor([ True, False])
    """
    return _two("logical_or", x1, x2)


def logical_xor(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """Whether one is true and the other is not, element by element.

    Arguments:
        x1: an array, or a number
        x2: an array, or a number; one of both is an array

    Returns: an array of the shape to which both broadcast.

    Example:
        >>> xp.logical_xor(tp.tensor([True, False]), True)
        tensor([False,  True])
    """
    return _two("logical_xor", x1, x2)


def maximum(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """The larger number; NaN where one is, element by element.

    Arguments:
        x1: an array, or a number
        x2: an array, or a number; one of both is an array

    Returns: an array of the shape to which both broadcast.

    Example:
        >>> xp.maximum(tp.tensor([1, 3]), 2)
        tensor([2, 3])
    """
    return _two("maximum", x1, x2)


def minimum(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """The smaller number; NaN where one is, element by element.

    Arguments:
        x1: an array, or a number
        x2: an array, or a number; one of both is an array

    Returns: an array of the shape to which both broadcast.

    Example:
        >>> xp.minimum(tp.tensor([1, 3]), 2)
        tensor([1, 2])
    """
    return _two("minimum", x1, x2)


def multiply(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """The product, element by element.

    Arguments:
        x1: an array, or a number
        x2: an array, or a number; one of both is an array

    Returns: an array of the shape to which both broadcast.

    Example:
        >>> xp.multiply(tp.ones(2), 3)
        tensor([3., 3.])
    """
    return _two("mul", x1, x2)


def nextafter(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """The next floating number after x1 towards x2, element by element.

    Arguments:
        x1: an array, or a number
        x2: an array, or a number; one of both is an array

    Returns: an array of the shape to which both broadcast.

    Example:
        >>> xp.nextafter(tp.ones(1, dtype=tp.float64), 2.0)
        tensor([1.0000], dtype=tensorpy.float64)
    """
    return _two("nextafter", x1, x2)


def not_equal(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """Whether the numbers differ, element by element.

    Arguments:
        x1: an array, or a number
        x2: an array, or a number; one of both is an array

    Returns: an array of the shape to which both broadcast.

    Example:
        >>> xp.not_equal(tp.tensor([1, 2]), 2)
        tensor([ True, False])
    """
    return _two("ne", x1, x2)


def pow(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """The power of x1 to x2, element by element.

    Arguments:
        x1: an array, or a number
        x2: an array, or a number; one of both is an array

    Returns: an array of the shape to which both broadcast.

    Example:
        >>> xp.pow(tp.tensor([2.0]), 3)
        tensor([8.])
    """
    return _two("pow", x1, x2)


def remainder(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """The remainder of the division, with the sign of x2, which a zero has as well, element by element.

    Arguments:
        x1: an array, or a number
        x2: an array, or a number; one of both is an array

    Returns: an array of the shape to which both broadcast.

    Example:
        >>> xp.remainder(tp.tensor([-7]), 3)
        tensor([2])
    """
    first, second = promoted(x1, x2)
    rest = tp.remainder(first, second)
    return tp.where(rest == 0, tp.copysign(rest, second), rest) if rest.is_floating_point() else rest


def subtract(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """The difference, element by element.

    Arguments:
        x1: an array, or a number
        x2: an array, or a number; one of both is an array

    Returns: an array of the shape to which both broadcast.

    Example:
        >>> xp.subtract(tp.ones(2), 3)
        tensor([-2., -2.])
    """
    return _two("sub", x1, x2)


def _whole(x: Tensor, operator: str) -> Tensor:
    """What the operator gives for real floating numbers; integers are whole already."""
    return getattr(tp, operator)(x) if x.is_floating_point() else x.clone()


def ceil(x: Tensor, /) -> Tensor:
    """The numbers rounded up.

    Arguments:
        x: an array of real numbers

    Returns: an array of the same dtype.

    Example:
        >>> xp.ceil(tp.tensor([1.2, -1.2]))
        tensor([ 2., -1.])
    """
    return _whole(x, "ceil")


def floor(x: Tensor, /) -> Tensor:
    """The numbers rounded down.

    Arguments:
        x: an array of real numbers

    Returns: an array of the same dtype.

    Example:
        >>> xp.floor(tp.tensor([1.2, -1.2]))
        tensor([ 1., -2.])
    """
    return _whole(x, "floor")


def trunc(x: Tensor, /) -> Tensor:
    """The numbers rounded towards 0.

    Arguments:
        x: an array of real numbers

    Returns: an array of the same dtype.

    Example:
        >>> xp.trunc(tp.tensor([1.7, -1.7]))
        tensor([ 1., -1.])
    """
    return _whole(x, "trunc")


def round(x: Tensor, /) -> Tensor:
    """The numbers rounded to the nearest whole one, of two to the even one; of complex numbers each part.

    Arguments:
        x: an array

    Returns: an array of the same dtype.

    Example:
        >>> xp.round(tp.tensor([0.5, 1.5 + 2.4j]))
        tensor([0.+0.j, 2.+2.j])
    """
    return tp.complex(x.real.round(), x.imag.round()) if x.is_complex() else _whole(x, "round")


def sign(x: Tensor, /) -> Tensor:
    """-1, 0 or 1 by the number's sign; of a complex number the number of magnitude 1 in its direction, or 0.

    Arguments:
        x: an array

    Returns: an array of the same dtype.

    Example:
        >>> xp.sign(tp.tensor([-2.0, 0.0]))
        tensor([-1.,  0.])
    """
    if not (x.is_floating_point() or x.is_complex()):
        return tp.sgn(x)
    unclear = complex(tp.nan, tp.nan) if x.is_complex() else tp.nan
    return tp.where(x == 0, 0, tp.where(x.isnan(), unclear, tp.sgn(x)))


def real(x: Tensor, /) -> Tensor:
    """The real parts of complex numbers.

    Arguments:
        x: an array

    Returns: an array of real numbers.

    Example:
        >>> xp.real(tp.tensor([1 + 2j]))
        tensor([1.])
    """
    return tp.real(x)


def imag(x: Tensor, /) -> Tensor:
    """The imaginary parts of complex numbers; zeros for real ones.

    Arguments:
        x: an array

    Returns: an array of real numbers.

    Example:
        >>> xp.imag(tp.tensor([1 + 2j]))
        tensor([2.])
    """
    return tp.imag(x) if x.is_complex() else tp.zeros_like(x)


def clip(x: Tensor, /, min: Tensor | float | None = None, max: Tensor | float | None = None) -> Tensor:
    """The numbers, those below `min` or above `max` in place of them these limits.

    Arguments:
        x: an array of real numbers
        min: the lower limit, a number or an array that broadcasts with x; None: none
        max: the upper limit

    Returns: an array of x's dtype.

    Example:
        >>> xp.clip(tp.tensor([-3, 5]), 0, 2)
        tensor([0, 2])
    """
    if min is None and max is None:
        return x.clone()
    if min is not None:
        x = maximum(x, min).to(x.dtype)
    return x if max is None else minimum(x, max).to(x.dtype)
