"""Functions of each element of one array that compute as tensorpy's own do, with the standard's signature."""

from __future__ import annotations

from collections.abc import Callable

import tensorpy as tp
from tensorpy import Tensor

Function = Callable[[Tensor], Tensor]


def _of_one(name: str, says: str, example: str, operator: Function | None = None) -> Function:
    """A function of one array, which is the operator of that name if none is given."""
    compute = operator or getattr(tp, name)

    def function(x: Tensor, /) -> Tensor:
        return compute(x)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{says}, element by element.

    Arguments:
        x: an array

    Returns: an array of x's shape.

    Example:
        >>> xp.{name}({example.partition(" -> ")[0]})
        {example.partition(" -> ")[2]}
    """
    return function


abs: Function = _of_one("abs", "The magnitude", "tp.tensor([-2, 3]) -> tensor([2, 3])")
acos: Function = _of_one("acos", "The arccosine, in radians", "tp.ones(1) -> tensor([0.])")
acosh: Function = _of_one("acosh", "The inverse hyperbolic cosine", "tp.ones(1) -> tensor([0.])")
asin: Function = _of_one("asin", "The arcsine, in radians", "tp.ones(1) -> tensor([1.5708])")
asinh: Function = _of_one("asinh", "The inverse hyperbolic sine", "tp.zeros(1) -> tensor([0.])")
atan: Function = _of_one("atan", "The arctangent, in radians", "tp.ones(1) -> tensor([0.7854])")
atanh: Function = _of_one("atanh", "The inverse hyperbolic tangent", "tp.zeros(1) -> tensor([0.])")
bitwise_invert: Function = _of_one(
    "bitwise_invert",
    "The integer, or boolean, with each bit turned",
    "tp.tensor([0, 1]) -> tensor([-1, -2])",
    tp.bitwise_not,
)
conj: Function = _of_one(
    "conj", "The conjugate of a complex number", "tp.tensor([1 + 2j]) -> tensor([1.-2.j])", tp.conj_physical
)
cos: Function = _of_one("cos", "The cosine of an angle in radians", "tp.zeros(1) -> tensor([1.])")
cosh: Function = _of_one("cosh", "The hyperbolic cosine", "tp.zeros(1) -> tensor([1.])")
exp: Function = _of_one("exp", "The exponential", "tp.zeros(1) -> tensor([1.])")
expm1: Function = _of_one("expm1", "The exponential less 1, exact near 0", "tp.zeros(1) -> tensor([0.])")
isfinite: Function = _of_one(
    "isfinite", "Whether the number is finite", "tp.tensor([1.0, tp.inf]) -> tensor([ True, False])"
)
isinf: Function = _of_one(
    "isinf", "Whether the number is infinite", "tp.tensor([1.0, tp.inf]) -> tensor([False,  True])"
)
isnan: Function = _of_one("isnan", "Whether the number is NaN", "tp.tensor([1.0, tp.nan]) -> tensor([False,  True])")
log: Function = _of_one("log", "The natural logarithm", "tp.ones(1) -> tensor([0.])")
log1p: Function = _of_one(
    "log1p", "The natural logarithm of the number and 1, exact near 0", "tp.zeros(1) -> tensor([0.])"
)
log2: Function = _of_one("log2", "The logarithm to base 2", "tp.tensor([8.0]) -> tensor([3.])")
log10: Function = _of_one("log10", "The logarithm to base 10", "tp.tensor([100.0]) -> tensor([2.])")
logical_not: Function = _of_one(
    "logical_not", "Whether the element is false", "tp.tensor([True, False]) -> tensor([False,  True])"
)
negative: Function = _of_one("negative", "The number with the other sign", "tp.tensor([1, -2]) -> tensor([-1,  2])")
positive: Function = _of_one(
    "positive", "The number itself, in a new array", "tp.tensor([1, -2]) -> tensor([ 1, -2])", Tensor.clone
)
reciprocal: Function = _of_one("reciprocal", "One divided by the number", "tp.tensor([4.0]) -> tensor([0.2500])")
signbit: Function = _of_one(
    "signbit", "Whether the sign bit is set", "tp.tensor([1.0, -0.0]) -> tensor([False,  True])"
)
sin: Function = _of_one("sin", "The sine of an angle in radians", "tp.zeros(1) -> tensor([0.])")
sinh: Function = _of_one("sinh", "The hyperbolic sine", "tp.zeros(1) -> tensor([0.])")
sqrt: Function = _of_one("sqrt", "The square root", "tp.tensor([9.0]) -> tensor([3.])")
square: Function = _of_one("square", "The square", "tp.tensor([3]) -> tensor([9])")
tan: Function = _of_one("tan", "The tangent of an angle in radians", "tp.zeros(1) -> tensor([0.])")
tanh: Function = _of_one("tanh", "The hyperbolic tangent", "tp.zeros(1) -> tensor([0.])")
