"""The math helpers that a scalar expression may call: the one list of them.

Each is `tp_<name>_<dtype>` of csrc/include/tensorpy/math.h. A helper that has no entry for a dtype class cannot be used
in an expression of that class; one that is not vectorisable gets a plain strided loop only.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Literal, TypeAlias

LeafClass: TypeAlias = Literal["bool", "uint", "sint", "float", "complex"]
ResultKind: TypeAlias = Literal["same", "bool", "real"]

LEAF_CLASSES: tuple[LeafClass, ...] = ("bool", "uint", "sint", "float", "complex")

_LETTERS: dict[str, tuple[LeafClass, ...]] = {
    "b": ("bool",),
    "i": ("uint", "sint"),
    "f": ("float",),
    "c": ("complex",),
}


@dataclass(frozen=True, slots=True)
class Helper:
    """`result` is the type against that of the arguments; `vector` are the classes that the compiler vectorises."""

    name: str
    arity: int
    classes: frozenset[LeafClass]
    vector: frozenset[LeafClass]
    result: ResultKind
    cost: int


def _classes(letters: str) -> frozenset[LeafClass]:
    return frozenset(leaf for letter in letters for leaf in _LETTERS[letter])


HELPERS: dict[str, Helper] = {}


def _declare(
    names: str, arity: int, classes: str, vector: str = "", result: ResultKind = "same", cost: int = 0
) -> None:
    for name in names.split():
        HELPERS[name] = Helper(name, arity, _classes(classes), _classes(vector), result, cost)


# Names, number of arguments, classes (b, i, f, c), vectorised classes.
_declare("abs", 1, "ifc", "if", "real")
_declare("sgn", 1, "ifc", "if")
_declare("square", 1, "ifc", "if")
_declare("conj", 1, "c", "c")
_declare("reciprocal", 1, "fc", "f")
_declare("sqrt rsqrt", 1, "fc", "f", cost=1)
_declare("exp exp2 expm1 log log2 log10 log1p sigmoid tanh", 1, "fc", "f", cost=3)
_declare("sin cos", 1, "fc", "f", cost=3)
_declare("tan asin acos atan sinh cosh asinh acosh atanh", 1, "fc", "f", cost=4)
_declare("erf erfc", 1, "f", "f", cost=3)
_declare("erfinv ndtri", 1, "f", "f", cost=4)
_declare("lgamma digamma trigamma log_ndtr erfcx", 1, "f", cost=5)
_declare("i0 i0e i1 i1e bessel_j0 bessel_j1 bessel_y0 bessel_y1", 1, "f", "f", cost=5)
_declare("bessel_k0 bessel_k1 bessel_k0e bessel_k1e airy_ai", 1, "f", "f", cost=5)
_declare("chebyshev_t chebyshev_u chebyshev_v chebyshev_w", 2, "f", cost=6)
_declare("hermite_h hermite_he laguerre_l legendre_p", 2, "f", cost=6)
_declare("zeta polygamma gamma_p gamma_q gamma_slope", 2, "f", cost=6)
_declare("floor ceil round trunc frac", 1, "f", "f")
_declare("isnan isinf isfinite", 1, "fc", "fc", "bool")
_declare("signbit", 1, "if", "if", "bool")
_declare("angle", 1, "fc", "fc", "real", cost=3)
_declare("pow", 2, "ifc", "f", cost=4)
_declare("atan2 hypot", 2, "f", "f", cost=4)
_declare("fmod remainder", 2, "if", cost=3)
_declare("floor_divide", 2, "if", "f", cost=3)
_declare("div_trunc", 2, "if", "f", cost=3)
_declare("copysign", 2, "f", "f")
_declare("nextafter", 2, "f", "f")
_declare("maximum minimum", 2, "bif", "bif")
_declare("fmax fmin", 2, "bif", "bif")
_declare("logaddexp logaddexp2", 2, "fc", "f", cost=5)
_declare("xlogy xlog1py", 2, "f", "f", cost=3)
_declare("gcd lcm", 2, "i", cost=4)
_declare("lshift rshift", 2, "i", "i")

# Helpers of floats that have a quick form in math.h (tp_quick_fmod_f32), by the language of the loop: a form that
# vectorises where the other does not, and gives NaN where it does not know better. In C the loops of sin, cos and tan
# vectorise as they are; OpenCL C has quick forms of float32 alone.
QUICK: Mapping[Literal["C", "OpenCL"], Set[str]] = {
    "C": frozenset({"fmod", "remainder", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1"}),
    "OpenCL": frozenset({"fmod", "remainder", "sin", "cos", "tan"}),
}

# Helpers that are functions built into OpenCL C, by dtype, which a CPU device's compiler vectorises only when they are
# called with vectors. Those that math_f32.h has for float32 are loops already.
VECTOR_BUILT_IN: Mapping[str, Set[str]] = {
    "float32": frozenset({"pow"}),
    "float64": frozenset(
        "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh "
        "erf erfc pow atan2 hypot".split()
    ),
}

# Helpers of float32 that may be calls of functions on vectors (Note [Vector libm] in csrc/include/tensorpy/math.h); the
# steps of the others are in the loop itself.
VECTOR_CALLS: Set[str] = frozenset(
    "sin cos tan asin acos atan sinh cosh asinh acosh atanh erfc pow atan2 hypot".split()
)

# Forms that look like calls and are part of the language.
FORMS = {"real": 1, "imag": 1, "complex": 2, "T": 1, "bool": 1, "int": 1, "where": 3}

# `largest` stands for the largest finite number of the type it is used in.
CONSTANTS = {
    "pi": math.pi,
    "e": math.e,
    "inf": float("inf"),
    "nan": float("nan"),
    "largest": sys.float_info.max,
}
