"""Scalar expressions as data: the list of steps that stands in the library beside the compiled loops (prim/program.h).

A step gives one value from earlier ones, so it is named by its place in the list; the last one is the result. Numbers
of operations are part of the library's interface: new ones go after the others.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .scalar_ir import (
    Binary,
    Block,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    IsNone,
    Kind,
    Select,
    StrEqual,
    Unary,
    Var,
    walk,
)
from .scalar_math import CONSTANTS, FORMS, HELPERS, LEAF_CLASSES, QUICK, VECTOR_BUILT_IN, LeafClass
from .text import Tables

# a and b are the numbers of steps, unless the line says something else.
OPERATIONS = (
    *("input", "number", "none", "word"),  # a: which input; which parameter; word: b: which of its words
    *("constant", "integer", "largest"),  # a: its place among the constants; largest: negative if a is 1
    *("cast", "neg", "invert", "not"),
    *("add", "sub", "mul", "div", "and", "or", "xor"),
    *("eq", "ne", "lt", "le", "gt", "ge"),  # kind: of what is compared
    "select",  # a ? b : c, of which only one is looked at
)
# From here on: functions of tensorpy/math.h on a, or on a and b, of the step's kind; c: the kind of what they give.
FIRST_HELPER = 32
HELPER_NUMBERS = (
    *"abs sgn square conj reciprocal sqrt rsqrt exp exp2 expm1 log log2 log10 log1p sigmoid tanh sin cos".split(),
    *"tan asin acos atan sinh cosh asinh acosh atanh erf erfc erfinv ndtri lgamma digamma trigamma".split(),
    *"i0 i0e i1 i1e log_ndtr zeta polygamma floor ceil round trunc frac isnan isinf isfinite signbit angle".split(),
    *"pow atan2 hypot fmod remainder floor_divide div_trunc copysign nextafter maximum minimum fmax fmin".split(),
    *"logaddexp logaddexp2 xlogy xlog1py gcd lcm lshift rshift".split(),
    *"real imag complex erfcx gamma_p gamma_q gamma_slope".split(),
    *"bessel_j0 bessel_j1 bessel_y0 bessel_y1 bessel_k0 bessel_k1 bessel_k0e bessel_k1e airy_ai".split(),
    *"chebyshev_t chebyshev_u chebyshev_v chebyshev_w hermite_h hermite_he laguerre_l legendre_p".split(),
)
_KINDS = {Kind.T: 0, Kind.R: 1, Kind.B: 2, Kind.I: 3, Kind.D: 4}
NAMED = 0x80  # in a step's kind: used several times, so a translation gives it a name
_UNARY = {"-": "neg", "~": "invert", "not": "not"}
_BINARY = {"+": "add", "-": "sub", "*": "mul", "/": "div", "&": "and", "|": "or", "^": "xor"}
_COMPARE = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


def number_of(operation: str) -> int:
    if operation in HELPER_NUMBERS:
        return FIRST_HELPER + HELPER_NUMBERS.index(operation)
    return OPERATIONS.index(operation)


def words_of(blocks: Sequence[Block], name: str) -> list[str]:
    """The words that expressions tell a str parameter from, in the order of their numbers."""
    return sorted(
        {
            e.literal
            for block in blocks
            for root in block.expressions()
            for e in walk(root)
            if isinstance(e, StrEqual) and e.name == name
        }
    )


@dataclass
class Program:
    steps: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    constants: list[str] = field(default_factory=list)  # as C initialisers


class _Flattener:
    def __init__(self, inputs: Sequence[str], params: Sequence[str], words: Mapping[str, Sequence[str]]) -> None:
        self.inputs, self.params, self.words = list(inputs), list(params), words
        self.program = Program()
        self.lets: dict[str, int] = {}

    def step(self, operation: str, kind: Kind, a: int = 0, b: int = 0, c: int = 0) -> int:
        self.program.steps.append((number_of(operation), _KINDS[kind], a, b, c))
        return len(self.program.steps) - 1

    def constant(self, value: float, kind: Kind) -> int:
        if abs(value) == CONSTANTS["largest"]:
            return self.step("largest", kind, int(value < 0))
        whole = isinstance(value, int)
        row = f"{{.bits = UINT64_C({_bits(value):#x})}}"
        if row not in self.program.constants:
            self.program.constants.append(row)
        return self.step("integer" if whole else "constant", kind, self.program.constants.index(row), int(value < 0))

    def visit(self, e: Expr) -> int:
        match e:
            case Var(name=name, kind=kind, uniform=uniform):
                if name in self.lets:
                    return self.lets[name]
                if uniform:
                    return self.step("number", kind, self.params.index(name))
                return self.step("input", kind, self.inputs.index(name))
            case Const(value=value, kind=kind):
                return self.constant(value, kind)
            case StrEqual(name=name, literal=literal):
                return self.step("word", Kind.B, self.params.index(name), self.words[name].index(literal))
            case IsNone(name=name):
                return self.step("none", Kind.B, self.params.index(name))
            case Cast(operand=x, kind=kind):
                return self.step("cast", kind, self.visit(x))
            case Unary(op=op, operand=x, kind=kind):
                return self.step(_UNARY[op], kind, self.visit(x))
            case Binary(op=op, left=x, right=y, kind=kind):
                return self.step(_BINARY[op], kind, self.visit(x), self.visit(y))
            case Compare(op=op, left=x, right=y):
                return self.step(_COMPARE[op], x.kind, self.visit(x), self.visit(y))
            case Select(test=test, then=x, orelse=y, kind=kind):
                return self.step("select", kind, self.visit(test), self.visit(x), self.visit(y))
            case Call(helper=helper, args=args, on=on, kind=kind):
                first, second = (*(self.visit(arg) for arg in args), 0)[:2]
                return self.step(helper, on, first, second, _KINDS[kind])

    def block(self, block: Block) -> Program:
        for name, e in block.lets:
            at = self.visit(e)
            operation, kind, a, b, c = self.program.steps[at]
            self.program.steps[at] = (operation, kind | NAMED, a, b, c)
            self.lets[name] = at
        at = self.visit(block.result)
        if at != len(self.program.steps) - 1:
            self.step("cast", block.result.kind, at)
        return self.program


def _bits(value: float) -> int:
    if isinstance(value, int):
        return value & (2**64 - 1)
    return int.from_bytes(struct.pack("<d", value), "little")


def flatten(
    block: Block, inputs: Sequence[str], params: Sequence[str] = (), words: Mapping[str, Sequence[str]] | None = None
) -> Program:
    return _Flattener(inputs, params, words or {}).block(block)


class Programs:
    """The tables of the programs of a C file."""

    def __init__(self) -> None:
        self.steps = Tables("const tp_step ", "steps")
        self.constants = Tables("const tp_step_constant ", "constants")

    def row(self, program: Program) -> str:
        """The initialiser of a tp_program."""
        steps = "".join(f"    {{{', '.join(map(str, step))}}},\n" for step in program.steps)
        constants = "".join(f"    {row},\n" for row in program.constants)
        return f"{{{len(program.steps)}, {self.steps.name(steps)}, {self.constants.name(constants)}}}"

    def by_class(self, programs: Mapping[LeafClass, Program]) -> str:
        """An initialiser of them by dtype class; what is missing has no steps."""
        rows = (self.row(programs[leaf]) if leaf in programs else "{0, NULL, NULL}" for leaf in LEAF_CLASSES)
        return f"{{{', '.join(rows)}}}"

    def text(self) -> str:
        return self.steps.text() + self.constants.text()


def _arity(helper: str) -> int:
    return HELPERS[helper].arity if helper in HELPERS else FORMS[helper]


def _helper_row(name: str) -> str:
    quick = f'"quick_{name}"' if name in QUICK["OpenCL"] else "NULL"
    vectors = ", ".join(str(int(name in VECTOR_BUILT_IN[dtype])) for dtype in ("float32", "float64"))
    return f'{{"{name}", {quick}, {_arity(name)}, {{{vectors}}}}}'


def emit() -> dict[str, str]:
    """ProgramSteps.h: names of operations, what they are to OpenCL C (scalar_math.py), and that the public
    header has them under the same numbers.
    """
    numbers = {f"TP_STEP_{name.upper()}": number for number, name in enumerate(OPERATIONS)}
    numbers |= {f"TP_STEP_OF_{name}": FIRST_HELPER + number for number, name in enumerate(HELPER_NUMBERS)}
    numbers["TP_STEP_END"] = FIRST_HELPER + len(HELPER_NUMBERS)
    lines = [
        "/* Generated by codegen/scalar_program.py; do not edit. The names of a program's operations. */",
        "#pragma once",
        "",
        '#include "tensorpy/program.h"',
        "",
        *(f'_Static_assert({name} == {n}, "tensorpy/program.h: {name}");' for name, n in numbers.items()),
        "",
        "static const char *const tp_step_operations[] = {",
        *(f'    "{name}",' for name in OPERATIONS),
        "};",
        "static const struct {",
        "    const char *name;",
        "    const char *quick;      /* its quick form in OpenCL C, of float32, or NULL */",
        "    uint8_t arity;",
        "    bool vectors[2];        /* of float32, of float64: OpenCL C has it as a function of vectors */",
        "} tp_step_helpers[] = {",
        *(f"    {_helper_row(name)}," for name in HELPER_NUMBERS),
        "};",
    ]
    return {"ProgramSteps.h": "\n".join(lines) + "\n"}
