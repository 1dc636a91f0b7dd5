"""A typed scalar expression as C or OpenCL C text, for one dtype.

Both lowerings print the same text but for the names of types: what differs between the languages (complex numbers first
of all) is after the helpers and type names of csrc/include/tensorpy/math.h.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

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
    leaf_of,
)
from .scalar_math import CONSTANTS, QUICK, LeafClass


@dataclass(frozen=True, slots=True)
class DtypeInfo:
    """A dtype as the loops know it: `suffix` names its type tp_<suffix> and its helpers."""

    name: str  # the schema's name, "float32"
    suffix: str
    leaf: LeafClass
    size: int
    real: str  # the suffix of the real type

    @property
    def enumerator(self) -> str:
        return f"TP_{self.name.upper()}"


COMPUTE_DTYPES: tuple[DtypeInfo, ...] = (
    DtypeInfo("bool", "bool", "bool", 1, "bool"),
    DtypeInfo("uint8", "u8", "uint", 1, "u8"),
    DtypeInfo("uint16", "u16", "uint", 2, "u16"),
    DtypeInfo("uint32", "u32", "uint", 4, "u32"),
    DtypeInfo("uint64", "u64", "uint", 8, "u64"),
    DtypeInfo("int8", "i8", "sint", 1, "i8"),
    DtypeInfo("int16", "i16", "sint", 2, "i16"),
    DtypeInfo("int32", "i32", "sint", 4, "i32"),
    DtypeInfo("int64", "i64", "sint", 8, "i64"),
    DtypeInfo("float32", "f32", "float", 4, "f32"),
    DtypeInfo("float64", "f64", "float", 8, "f64"),
    DtypeInfo("complex64", "c64", "complex", 8, "f32"),
    DtypeInfo("complex128", "c128", "complex", 16, "f64"),
)
BY_SUFFIX: Mapping[str, DtypeInfo] = {d.suffix: d for d in COMPUTE_DTYPES}

_RESERVED = frozenset(
    "auto break case char const continue default do double else enum extern float for goto if inline int long register "
    "restrict return short signed sizeof static struct switch typedef union unsigned void volatile while bool true "
    "false half quad global local constant private kernel uchar ushort uint ulong image sampler event complex "
    "imaginary I read_only write_only out data strides params params_ n i m".split()
)
_VECTOR_TYPE = re.compile(r"(u?(char|short|int|long)|float|double|half)(2|3|4|8|16)$")


def c_identifier(name: str) -> str:
    """The name in C and OpenCL C."""
    return f"{name}_" if name in _RESERVED or _VECTOR_TYPE.match(name) else name


@dataclass(frozen=True, slots=True)
class Dialect:
    """What differs between the texts: the bool type in expressions."""

    name: str
    bool_type: str = "bool"


C = Dialect("C")
OPENCL = Dialect("OpenCL C")


def str_flag(name: str, literal: str) -> str:
    return f"{name}_is_{re.sub(r'[^A-Za-z0-9]', '_', literal) or 'empty'}"


def none_flag(name: str) -> str:
    return f"{name}_is_none"


@dataclass(frozen=True, slots=True)
class Lowering:
    """Prints a typed block for one concrete dtype."""

    dtype: DtypeInfo
    dialect: Dialect = C
    quick: bool = False  # helpers that have a quick form are called by it

    def suffix(self, kind: Kind) -> str:
        match kind:
            case Kind.T:
                return self.dtype.suffix
            case Kind.R:
                return self.dtype.real
            case Kind.B:
                return "bool"
            case Kind.I:
                return "i64"
            case _:
                return "f64"

    def type_name(self, kind: Kind) -> str:
        return self.dialect.bool_type if kind is Kind.B else f"tp_{self.suffix(kind)}"

    def constant(self, value: float, suffix: str) -> str:
        info = BY_SUFFIX[suffix]
        if info.leaf == "complex":
            return f"tp_complex_{suffix}({self.constant(value, info.real)}, {self.constant(0, info.real)})"
        if info.leaf == "bool":
            return "true" if value else "false"
        if info.leaf == "float":
            if math.isnan(value):
                return f"TP_NAN_{suffix}"
            if math.isinf(value):
                return f"-TP_INF_{suffix}" if value < 0 else f"TP_INF_{suffix}"
            if abs(value) == CONSTANTS["largest"]:
                return f"-TP_MAX_{suffix}" if value < 0 else f"TP_MAX_{suffix}"
            return repr(float(value)) + ("f" if suffix == "f32" else "")
        if info.leaf == "uint" and value < 0:
            return f"(tp_{suffix})({value})"
        if value == -(2**63):
            return "(-9223372036854775807 - 1)"
        return f"{value}u" if value > 2**63 - 1 or suffix in ("u32", "u64") else f"{value}"

    def text(self, expr: Expr) -> str:
        """The expression with an outer pair of parentheses taken off."""
        out = self.expr(expr)
        return out[1:-1] if out.startswith("(") and _closes(out) else out

    def expr(self, expr: Expr) -> str:
        match expr:
            case Var(name=name):
                return c_identifier(name)
            case Const(value=value, kind=kind):
                text = self.constant(value, self.suffix(kind))
                return f"({text})" if text.startswith("-") else text
            case StrEqual(name=name, literal=literal):
                return str_flag(name, literal)
            case IsNone(name=name):
                return none_flag(name)
            case Cast(operand=operand, kind=kind):
                return self.cast(operand, kind)
            case Unary(op=op, operand=operand, kind=kind):
                return self.unary(op, self.expr(operand), kind)
            case Binary(op=op, left=a, right=b, kind=kind):
                return self.binary(op, self.expr(a), self.expr(b), kind)
            case Compare(op=op, left=a, right=b):
                if leaf_of(a.kind, self.dtype.leaf) == "complex":
                    call = f"tp_eq_{self.suffix(a.kind)}({self.text(a)}, {self.text(b)})"
                    return call if op == "==" else f"!{call}"
                return f"({self.expr(a)} {op} {self.expr(b)})"
            case Select(test=test, then=a, orelse=b):
                return f"({self.expr(test)} ? {self.expr(a)} : {self.expr(b)})"
            case Call(helper=name, args=args, on=on):
                form = "quick_" if self.quick and has_quick_form(expr, self.dtype) else ""
                return f"tp_{form}{name}_{self.suffix(on)}({', '.join(self.text(a) for a in args)})"

    def cast(self, operand: Expr, kind: Kind) -> str:
        text = self.expr(operand)
        source, target = self.suffix(operand.kind), self.suffix(kind)
        if source == target:
            return text
        if BY_SUFFIX[source].leaf == "complex":
            return f"tp_nonzero_{source}({self.text(operand)})"  # to bool; the typer refuses all else
        if target == "bool":
            return f"({text} != 0)"
        if BY_SUFFIX[target].leaf == "complex":
            real = BY_SUFFIX[target].real
            return f"tp_complex_{target}((tp_{real}){text}, {self.constant(0, real)})"
        return f"(tp_{target}){text}"

    def unary(self, op: str, x: str, kind: Kind) -> str:
        if op == "not":
            return f"!{x}"
        info = BY_SUFFIX[self.suffix(kind)]
        if info.leaf in ("sint", "uint"):
            if op == "-":
                wide = "tp_u64" if info.size == 8 else "tp_u32"
                return f"(tp_{info.suffix})(0u - ({wide}){x})"
            return f"(tp_{info.suffix})~{x}"
        return f"({op}{x})"

    def binary(self, op: str, a: str, b: str, kind: Kind) -> str:
        info = BY_SUFFIX[self.suffix(kind)]
        match info.leaf:
            case "bool":
                return f"({a} {({'+': '|', '*': '&'}).get(op, op)} {b})"
            case "complex" if op in "*/":
                return f"tp_{'mul' if op == '*' else 'div'}_{info.suffix}({_bare(a)}, {_bare(b)})"
            case "sint" | "uint":
                if info.size == 8 and info.leaf == "sint" and op in "+-*":
                    return f"(tp_{info.suffix})((tp_u64){a} {op} (tp_u64){b})"
                if info.size == 4 and info.leaf == "sint" and op in "+-*":
                    return f"(tp_{info.suffix})((tp_u32){a} {op} (tp_u32){b})"
                if info.suffix == "u16" and op == "*":  # two of them overflow the int they would be promoted to
                    return f"(tp_u16)((tp_u32){a} * (tp_u32){b})"
                if info.size < 4:
                    return f"(tp_{info.suffix})({a} {op} {b})"
        return f"({a} {op} {b})"

    def statements(self, block: Block) -> list[str]:
        """The body of a function that returns the block's value."""
        lines = [f"const {self.type_name(e.kind)} {c_identifier(name)} = {self.text(e)};" for name, e in block.lets]
        return [*lines, f"return {self.text(block.result)};"]


def has_quick_form(e: Expr, dtype: DtypeInfo) -> bool:
    return isinstance(e, Call) and e.helper in QUICK["C"] and leaf_of(e.on, dtype.leaf) == "float"


def _closes(text: str) -> bool:
    """The first parenthesis closes at the very end."""
    depth = 0
    for position, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth == 0:
            return position == len(text) - 1
    return False


def _bare(text: str) -> str:
    return text[1:-1] if text.startswith("(") and _closes(text) else text


def lower_c(block: Block, dtype: DtypeInfo) -> list[str]:
    return Lowering(dtype, C).statements(block)


def lower_opencl(block: Block, dtype: DtypeInfo) -> list[str]:
    return Lowering(dtype, OPENCL).statements(block)
