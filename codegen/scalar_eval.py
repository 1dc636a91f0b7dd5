"""The value of a scalar expression on Python's numbers: for trying what an entry says before a compiler runs."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from .scalar_ir import Binary, Block, Call, Cast, Compare, Const, Expr, Kind, Select, Unary, Var
from .scalar_math import LeafClass

Number: TypeAlias = bool | int | float | complex


class NoValue(Exception):
    """Python does not have the helper, or the numbers have no value in it."""


def _extreme(choose: Callable[..., Any]) -> Callable[[Any, Any], Number]:
    def chosen(a: Any, b: Any) -> Number:
        result: Number = a if a != a else b if b != b else choose(a, b)
        return result

    return chosen


def _either(real: Callable[[float], float], other: Callable[[complex], complex]) -> Callable[[Any], Number]:
    return lambda x: other(x) if isinstance(x, complex) else real(x)


_OF_BOTH = "sqrt exp log log10 tanh sin cos tan asin acos atan sinh cosh asinh acosh atanh isnan isinf isfinite".split()

_HELPERS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "square": lambda x: x * x,
    "conj": lambda x: x.conjugate(),
    "reciprocal": lambda x: 1 / x,
    "sgn": lambda x: (x / abs(x) if x else 0j) if isinstance(x, complex) else (x > 0) - (x < 0),
    "expm1": math.expm1,
    "log1p": math.log1p,
    "exp2": lambda x: 2**x,
    "log2": math.log2,
    "rsqrt": lambda x: 1 / x**0.5,
    "sigmoid": lambda x: 1 / (1 + cmath.exp(-x)) if isinstance(x, complex) else 1 / (1 + math.exp(-x)),
    "frac": lambda x: x - math.trunc(x),
    "round": round,
    "signbit": lambda x: math.copysign(1, x) < 0,
    "angle": cmath.phase,
    "pow": pow,
    "hypot": math.hypot,
    "atan2": math.atan2,
    "fmod": math.fmod,
    "remainder": lambda a, b: a % b,
    "floor_divide": lambda a, b: a // b,
    "div_trunc": lambda a, b: math.trunc(a / b),
    "copysign": math.copysign,
    "maximum": _extreme(max),
    "minimum": _extreme(min),
    "fmax": lambda a, b: b if a != a else a if b != b else max(a, b),
    "fmin": lambda a, b: b if a != a else a if b != b else min(a, b),
    "logaddexp": lambda a, b: max(a, b) if math.isinf(a) or math.isinf(b) else math.log(math.exp(a) + math.exp(b)),
    "logaddexp2": lambda a, b: max(a, b) if math.isinf(a) or math.isinf(b) else math.log2(2**a + 2**b),
    "xlogy": lambda a, b: 0.0 if a == 0 else a * math.log(b),
    "gcd": math.gcd,
    "lcm": math.lcm,
    "lshift": lambda a, b: a << b,
    "rshift": lambda a, b: a >> b,
    "real": lambda x: x.real,
    "imag": lambda x: x.imag,
    "complex": complex,
    **{name: getattr(math, name) for name in "erf erfc lgamma floor ceil trunc".split()},
    **{name: _either(getattr(math, name), getattr(cmath, name)) for name in _OF_BOTH},
}

_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
}
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda a, b: bool(a == b),
    "!=": lambda a, b: bool(a != b),
    "<": lambda a, b: bool(a < b),
    "<=": lambda a, b: bool(a <= b),
    ">": lambda a, b: bool(a > b),
    ">=": lambda a, b: bool(a >= b),
}


def _as(value: Any, kind: Kind, leaf: LeafClass) -> Number:
    if kind is Kind.B or (kind is Kind.T and leaf == "bool"):
        return bool(value)
    if kind is Kind.T and leaf == "complex":
        return complex(value)
    if kind is Kind.I or (kind in (Kind.T, Kind.R) and leaf in ("uint", "sint")):
        return int(value)
    if isinstance(value, complex) and leaf != "complex":
        raise NoValue(f"its value is {value}")
    return float(value.real)


def _value(expr: Expr, names: Mapping[str, Number], leaf: LeafClass) -> Any:
    def of(e: Expr) -> Any:
        return _value(e, names, leaf)

    match expr:
        case Var(name=name):
            return names[name]
        case Const(value=value, kind=kind):
            return value if kind in (Kind.INT_LITERAL, Kind.FLOAT_LITERAL) else _as(value, kind, leaf)
        case Cast(operand=x, kind=kind):
            return _as(of(x), kind, leaf)
        case Unary(op=op, operand=x, kind=kind):
            value = of(x)
            return _as(-value if op == "-" else not value if op == "not" else ~value, kind, leaf)
        case Binary(op=op, left=a, right=b, kind=kind):
            return _as(_BINARY[op](of(a), of(b)), kind, leaf)
        case Compare(op=op, left=a, right=b):
            return _COMPARE[op](of(a), of(b))
        case Select(test=test, then=then, orelse=orelse):
            return of(then) if of(test) else of(orelse)
        case Call(helper=helper, args=args, kind=kind):
            if helper not in _HELPERS:
                raise NoValue(helper)
            return _as(_HELPERS[helper](*map(of, args)), kind, leaf)
        case _:
            raise NoValue(str(expr))


def evaluate(block: Block, names: Mapping[str, Number], leaf: LeafClass) -> Number:
    """The value of a block in the dtype class; `names` are its variables."""
    known = dict(names)
    try:
        for name, expr in block.lets:
            known[name] = _value(expr, known, leaf)
        result: Number = _value(block.result, known, leaf)
    except (ArithmeticError, ValueError, TypeError, KeyError) as error:
        raise NoValue(str(error)) from error
    return result


def close(a: Number, b: Number) -> bool:
    """But for rounding; NaN is NaN."""
    if a != a or b != b:
        return a != a and b != b
    return a == b or abs(a - b) <= 1e-9 * max(1.0, abs(a), abs(b))
