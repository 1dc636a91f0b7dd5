"""Functions of sizes, which may be symbols (symbols.py): on numbers they do what Python does."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from typing import Any

from tensorpy._package.symbols import SymBool, SymFloat, SymInt, operation

__all__ = [
    "sym_float", "sym_fresh_size", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sqrt", "sym_sum",
]  # fmt: skip


def _picked(pick: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """One of two numbers, a float where one of them is."""
    if isinstance(a, (SymInt, SymFloat)) or isinstance(b, (SymInt, SymFloat)):
        return operation(pick.__name__, a, b)
    for value in (a, b):
        if not isinstance(value, numbers.Real):
            raise AssertionError(f"a size is an int or a float, not {type(value).__name__}")
    return float(pick(a, b)) if isinstance(a, float) or isinstance(b, float) else pick(a, b)


def sym_int(a: Any) -> Any:
    """A number as an int, without what follows the point.

    Arguments:
        a: the number

    Returns: int.

    Example:
        >>> tp.sym_int(-2.7)
        -2
    """
    return operation("trunc", a) if isinstance(a, (SymInt, SymFloat)) else int(a)


def sym_float(a: Any) -> Any:
    """A number as a float.

    Arguments:
        a: the number

    Returns: float.

    Example:
        >>> tp.sym_float(3)
        3.0
    """
    return operation("float", a) if isinstance(a, (SymInt, SymFloat)) else float(a)


def sym_max(a: Any, b: Any) -> Any:
    """The greater of two numbers, a float where one of them is.

    Arguments:
        a: a number
        b: another

    Returns: a number.

    Example:
        >>> tp.sym_max(3, 2.0)
        3.0
    """
    return _picked(max, a, b)


def sym_min(a: Any, b: Any) -> Any:
    """The lesser of two numbers, a float where one of them is.

    Arguments:
        a: a number
        b: another

    Returns: a number.

    Example:
        >>> tp.sym_min(3, 2)
        2
    """
    return _picked(min, a, b)


def sym_sum(args: Sequence[Any]) -> Any:
    """The sum of numbers.

    Arguments:
        args: the numbers

    Returns: a number.

    Example:
        >>> tp.sym_sum([1, 2, 3])
        6
    """
    return sum(args)


def sym_not(a: Any) -> Any:
    """Whether a condition does not hold.

    Arguments:
        a: the condition

    Returns: bool.

    Example:
        >>> tp.sym_not(True)
        False
    """
    return a.negated() if isinstance(a, SymBool) else not a


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """One of two values of one type.

    Arguments:
        b: the condition
        t: the value where it holds
        f: the value where it does not

    Returns: t or f.

    Raises: AssertionError for a condition that is no bool, and for values of two types.

    Example:
        >>> tp.sym_ite(2 > 1, "yes", "no")
        'yes'
    """
    b = bool(b) if isinstance(b, SymBool) else b
    if not isinstance(b, bool):
        raise AssertionError(f"sym_ite: the condition is a bool, not {type(b).__name__}")
    if type(t) is not type(f):
        raise AssertionError(f"sym_ite: values of two types, {type(t).__name__} and {type(f).__name__}")
    return t if b else f


def sym_sqrt(a: Any) -> Any:
    """The square root of a number.

    Arguments:
        a: the number

    Returns: float.

    Example:
        >>> tp.sym_sqrt(4)
        2.0
    """
    return operation("sqrt", a)


def sym_fresh_size(expr: Any) -> Any:
    """The size itself.

    Arguments:
        expr: the size

    Returns: the size.

    Example:
        >>> tp.sym_fresh_size(4)
        4
    """
    return expr
