"""The typed tree of a scalar expression, and what the emitters ask about it.

Types are relative to the dtype class: T is the compute type. Invariant: every operand has exactly the type that its
operator works in; all conversions are Cast nodes, so lowering never guesses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeAlias

from .scalar_math import HELPERS, LeafClass


class Kind(Enum):
    """The type of an expression relative to the dtype class. In all classes but complex R is T."""

    T = "T"  # the compute type
    R = "R"  # the real type of a complex T
    B = "bool"
    I = "int"  # noqa: E741  (int64)
    D = "double"  # a float parameter where T is an integer
    S = "str"
    INT_LITERAL = "an integer literal"
    FLOAT_LITERAL = "a number literal"


LITERALS = (Kind.INT_LITERAL, Kind.FLOAT_LITERAL)


@dataclass(frozen=True, slots=True)
class Var:
    name: str
    kind: Kind
    uniform: bool  # the same for all elements: a parameter


@dataclass(frozen=True, slots=True)
class Const:
    value: float
    kind: Kind


@dataclass(frozen=True, slots=True)
class Cast:
    operand: Expr
    kind: Kind


@dataclass(frozen=True, slots=True)
class Unary:
    op: str  # - ~ not
    operand: Expr
    kind: Kind


@dataclass(frozen=True, slots=True)
class Binary:
    op: str  # + - * / & | ^
    left: Expr
    right: Expr
    kind: Kind


@dataclass(frozen=True, slots=True)
class Compare:
    op: str
    left: Expr
    right: Expr
    kind: Kind = Kind.B


@dataclass(frozen=True, slots=True)
class Select:
    test: Expr
    then: Expr
    orelse: Expr
    kind: Kind


@dataclass(frozen=True, slots=True)
class Call:
    helper: str
    args: tuple[Expr, ...]
    on: Kind  # the type of the arguments
    kind: Kind


@dataclass(frozen=True, slots=True)
class StrEqual:
    """`name == "literal"` of a str parameter."""

    name: str
    literal: str
    kind: Kind = Kind.B


@dataclass(frozen=True, slots=True)
class IsNone:
    name: str
    kind: Kind = Kind.B


Expr: TypeAlias = Var | Const | Cast | Unary | Binary | Compare | Select | Call | StrEqual | IsNone


@dataclass(frozen=True, slots=True)
class Block:
    """Local names in order, then the result."""

    lets: tuple[tuple[str, Expr], ...]
    result: Expr
    source: str

    def expressions(self) -> Iterator[Expr]:
        for _, expr in self.lets:
            yield expr
        yield self.result


@dataclass(frozen=True, slots=True)
class Name:
    """What an argument of the operator is in an expression."""

    kind: Kind
    uniform: bool = False
    optional: bool = False


def children(expr: Expr) -> tuple[Expr, ...]:
    match expr:
        case Cast(operand=x) | Unary(operand=x):
            return (x,)
        case Binary(left=a, right=b) | Compare(left=a, right=b):
            return (a, b)
        case Select(test=a, then=b, orelse=c):
            return (a, b, c)
        case Call(args=args):
            return args
        case _:
            return ()


def walk(expr: Expr) -> Iterator[Expr]:
    yield expr
    for child in children(expr):
        yield from walk(child)


def rebuild(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """The expression with each child changed."""
    match expr:
        case Cast(operand=x) | Unary(operand=x):
            return replace(expr, operand=change(x))
        case Binary(left=a, right=b) | Compare(left=a, right=b):
            return replace(expr, left=change(a), right=change(b))
        case Select(test=a, then=b, orelse=c):
            return replace(expr, test=change(a), then=change(b), orelse=change(c))
        case Call(args=args):
            return replace(expr, args=tuple(change(a) for a in args))
        case _:
            return expr


def is_uniform(expr: Expr) -> bool:
    """Depends on parameters only, so it is the same for all elements. Local names count as varying."""
    return all(not isinstance(e, Var) or e.uniform for e in walk(expr))


def uniform_test(block: Block) -> Expr | None:
    """A test of a conditional that is the same for all elements, where a loop may be split."""
    for expr in block.expressions():
        for e in walk(expr):
            if isinstance(e, Select) and is_uniform(e.test) and not isinstance(e.test, Const):
                return e.test
    return None


def assume(block: Block, test: Expr, value: bool) -> Block:
    """The block where `test` is known."""

    def visit(expr: Expr) -> Expr:
        if isinstance(expr, Select) and expr.test == test:
            return visit(expr.then if value else expr.orelse)
        if expr == test:
            return Const(int(value), Kind.B)
        return rebuild(expr, visit)

    lets = [(name, visit(e)) for name, e in block.lets]
    result = visit(block.result)
    kept: list[tuple[str, Expr]] = []
    used = {e.name for e in walk(result) if isinstance(e, Var)}
    for name, e in reversed(lets):
        if name in used:
            kept.append((name, e))
            used |= {v.name for v in walk(e) if isinstance(v, Var)}
    return Block(tuple(reversed(kept)), result, block.source)


def leaf_of(kind: Kind, leaf: LeafClass) -> LeafClass:
    """The dtype class of a value."""
    match kind:
        case Kind.T:
            return leaf
        case Kind.B:
            return "bool"
        case Kind.I:
            return "sint"
        case _:
            return "float"


def is_vectorisable(block: Block, leaf: LeafClass) -> bool:
    return all(
        not isinstance(e, Call) or e.helper not in HELPERS or leaf_of(e.on, leaf) in HELPERS[e.helper].vector
        for expr in block.expressions()
        for e in walk(expr)
    ) and not (
        leaf == "complex" and any(isinstance(e, Binary) and e.op == "/" for x in block.expressions() for e in walk(x))
    )


def helpers_of(block: Block) -> set[str]:
    """The names of the helpers that the block calls."""
    return {e.helper for x in block.expressions() for e in walk(x) if isinstance(e, Call) and e.helper in HELPERS}


def cost_of(block: Block) -> int:
    """The grain shift that the helpers suggest."""
    return max((HELPERS[name].cost for name in helpers_of(block)), default=0)


def is_move(block: Block) -> bool:
    """Only chooses among its inputs: any dtype of the same width may share the loop, 16-bit floats too."""

    def moves(expr: Expr) -> bool:
        match expr:
            case Var(kind=Kind.T):
                return True
            case Select(test=test, then=a, orelse=b):
                return all(leaf.kind is not Kind.T for leaf in walk(test)) and moves(a) and moves(b)
            case _:
                return False

    return not block.lets and block.result.kind is Kind.T and moves(block.result)


def on_sign_bits(block: Block) -> Block | None:
    """A float expression that only changes signs, on the bits of 16-bit floats; None for any other."""
    sign, rest = Const(0x8000, Kind.T), Const(0x7FFF, Kind.T)
    match block.result:
        case _ if block.lets:
            return None
        case Unary(op="-", operand=Var(kind=Kind.T) as x):
            bits = Binary("^", x, sign, Kind.T)
        case Call(helper="abs", args=(Var(kind=Kind.T) as x,)):
            bits = Binary("&", x, rest, Kind.T)
        case Call(helper="copysign", args=(Var(kind=Kind.T) as x, Var(kind=Kind.T) as y)):
            bits = Binary("|", Binary("&", x, rest, Kind.T), Binary("&", y, sign, Kind.T), Kind.T)
        case _:
            return None
    return replace(block, result=bits)


def is_sign_agnostic(block: Block) -> bool:
    """Gives the same bits for signed and unsigned integers of one width."""

    def agnostic(expr: Expr) -> bool:
        match expr:
            case Var() | StrEqual() | IsNone():
                ok = True
            case Const(value=value):
                ok = isinstance(value, int)
            case Cast(operand=x, kind=kind):
                ok = x.kind is Kind.B or (x.kind is Kind.T and kind is Kind.B)
            case Unary() | Binary() | Select():
                ok = expr.kind in (Kind.T, Kind.B)
            case Compare(op=op, left=a):
                ok = op in ("==", "!=") or a.kind is Kind.B
            case Call(helper=name):
                ok = name == "square"
        return ok and all(agnostic(c) for c in children(expr))

    return all(agnostic(e) and e.kind in (Kind.T, Kind.B) for e in block.expressions())
