"""Sizes that are symbols: expressions, and the numbers SymInt, SymFloat and SymBool that Python computes with.

An expression is a polynomial with whole coefficients over atoms; an atom is a symbol, or an operation that is
no polynomial (a division, a maximum, whatever gives a float). Each number belongs to a shape environment
(fx/experimental/symbolic_shapes.py), which knows what its symbols are, and is asked where a program wants to know.

An operator in C computes with ints: it is passed what the environment has stand for the expression (`_passed`, which
csrc/python/types.c reads). Everything else that wants an int gets the example's, and the environment is told
(`__index__`).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tensorpy import _C

__all__ = ["SymBool", "SymFloat", "SymInt"]


class Atom(NamedTuple):
    """A symbol, or an operation on expressions.

    Arguments:
        op: 'symbol' or the operation
        args: the symbol's name, or the operands: expressions and numbers

    Example:
        >>> from tensorpy._package.symbols import Atom, Expr
        >>> str(Expr.of(Atom("symbol", ("s0",))))
        's0'
    """

    op: str
    args: tuple[Any, ...]


_ARITHMETIC = (
    operator.add, operator.sub, operator.mul, operator.floordiv, operator.truediv, operator.mod, operator.pow,
    operator.neg, max, min, math.sqrt, math.floor, math.ceil, math.trunc, float, abs,
)  # fmt: skip
_ORDER = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
OPERATIONS: dict[str, Callable[..., Any]] = {function.__name__: function for function in _ARITHMETIC}
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {function.__name__: function for function in _ORDER}
_SIGNS = dict(zip(OPERATIONS, "+ - * // / % **".split(), strict=False))
_RELATIONS = dict(zip(COMPARISONS, "== != < <= > >=".split(), strict=True))
_NEGATED = dict(zip(COMPARISONS, "ne eq ge gt le lt".split(), strict=True))
_FLOATS = ("truediv", "sqrt", "float")


class Expr:
    """A polynomial of atoms: monomials and their coefficients, which two equal ones have alike.

    Arguments:
        terms: the coefficient of each monomial, a sorted tuple of atoms

    Example:
        >>> from tensorpy._package.symbols import Expr
        >>> str(Expr.of(2) + Expr.of(3))
        '5'
    """

    __slots__ = ("_hash", "is_float", "terms")

    def __init__(self, terms: dict[tuple[Atom, ...], int], is_float: bool = False) -> None:
        self.terms, self.is_float = terms, is_float
        self._hash = hash(frozenset(terms.items()))

    @staticmethod
    def of(value: Any) -> Expr:
        """An atom, a number or an expression as an expression."""
        if isinstance(value, Expr):
            return value
        if isinstance(value, Atom):
            return Expr({(value,): 1}, value.op in _FLOATS or (_is_float(value.args) and value.op in _SIGNS))
        if isinstance(value, int):
            return Expr({(): int(value)} if value else {})
        return Expr.of(Atom("float", (float(value),)))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expr) and self.terms == other.terms

    def constant(self) -> int | None:
        """The number that it is; None where symbols are in it."""
        return self.terms.get((), 0) if all(not monomial for monomial in self.terms) else None

    def atoms(self) -> Iterator[Atom]:
        """Its atoms, one after the other, and some again."""
        for monomial in self.terms:
            yield from monomial

    def symbol(self) -> str | None:
        """The name of the symbol that it is; None where it is something else."""
        if len(self.terms) != 1:
            return None
        ((monomial, factor),) = self.terms.items()
        if factor == 1 and len(monomial) == 1 and monomial[0].op == "symbol":
            return str(monomial[0].args[0])
        return None

    def symbols(self) -> set[str]:
        """The names of the symbols in it."""
        found: set[str] = set()
        for atom in self.atoms():
            if atom.op == "symbol":
                found.add(atom.args[0])
            else:
                found.update(*(arg.symbols() for arg in atom.args if isinstance(arg, Expr)))
        return found

    def __add__(self, other: Expr) -> Expr:
        terms = dict(self.terms)
        for monomial, factor in other.terms.items():
            terms[monomial] = terms.get(monomial, 0) + factor
        return Expr({m: f for m, f in terms.items() if f})

    def __sub__(self, other: Expr) -> Expr:
        return self + other * Expr.of(-1)

    def __mul__(self, other: Expr) -> Expr:
        terms: dict[tuple[Atom, ...], int] = {}
        for a, f in self.terms.items():
            for b, g in other.terms.items():
                monomial = tuple(sorted((*a, *b), key=str))
                terms[monomial] = terms.get(monomial, 0) + f * g
        return Expr({m: f for m, f in terms.items() if f})

    def divided(self, other: Expr) -> Expr | None:
        """What times a monomial gives it; None where there is no such polynomial."""
        if len(other.terms) != 1:
            return Expr.of(1) if self == other else None
        ((by, divisor),) = other.terms.items()
        terms: dict[tuple[Atom, ...], int] = {}
        for monomial, factor in self.terms.items():
            left = list(monomial)
            for atom in by:
                if atom not in left:
                    return None
                left.remove(atom)
            if factor % divisor:
                return None
            terms[tuple(left)] = factor // divisor
        return Expr(terms)

    def evaluate(self, value_of: Callable[[str], Any]) -> Any:
        """Its number, of those of its symbols."""
        total: Any = 0
        for monomial, factor in self.terms.items():
            product: Any = factor
            for atom in monomial:
                value = _atom_value(atom, value_of)
                product = value if product == 1 and len(monomial) == 1 else product * value
            total = product if len(self.terms) == 1 else total + product
        return total

    def __str__(self) -> str:
        words: list[str] = []
        ordered = sorted(self.terms.items(), key=lambda item: (not item[0], str(item[0])))
        for monomial, factor in ordered:
            parts = [str(abs(factor))] if abs(factor) != 1 or not monomial else []
            parts += [_atom_text(atom) for atom in monomial]
            sign = "-" if factor < 0 else "+"
            words.append(f" {sign} {'*'.join(parts)}" if words else f"{'-' * (factor < 0)}{'*'.join(parts)}")
        return "".join(words) or "0"

    __repr__ = __str__


def _is_float(args: tuple[Any, ...]) -> bool:
    return any(arg.is_float if isinstance(arg, Expr) else isinstance(arg, float) for arg in args)


def _atom_value(atom: Atom, value_of: Callable[[str], Any]) -> Any:
    if atom.op == "symbol":
        return value_of(atom.args[0])
    return OPERATIONS[atom.op](*(a.evaluate(value_of) if isinstance(a, Expr) else a for a in atom.args))


def _atom_text(atom: Atom) -> str:
    if atom.op == "symbol":
        return str(atom.args[0])
    if atom.op == "float" and not isinstance(atom.args[0], Expr):
        return repr(atom.args[0])
    texts = [f"({arg})" if isinstance(arg, Expr) and len(arg.terms) > 1 else str(arg) for arg in atom.args]
    if atom.op in _SIGNS:
        return f"({texts[0]}{_SIGNS[atom.op]}{texts[1]})"
    return f"{atom.op}({', '.join(map(str, atom.args))})"


def build(kind: str, *args: Expr) -> Expr:
    """An operation on expressions: simple where it is one of polynomials, an atom otherwise.

    Arguments:
        kind: the operation's name
        args: its operands

    Returns: Expr.

    Example:
        >>> from tensorpy._package.symbols import Expr, build
        >>> str(build("floordiv", Expr.of(7), Expr.of(2)))
        '3'
    """
    constants = [arg.constant() for arg in args]
    if not any(arg.is_float for arg in args):
        if kind in ("add", "sub", "mul"):
            return Expr.of(OPERATIONS[kind](*args))
        if kind == "neg":
            return args[0] * Expr.of(-1)
        if kind in ("floor", "ceil", "trunc"):
            return args[0]
        if kind == "pow" and constants[1] is not None and 0 <= constants[1] <= 8:
            return math.prod([args[0]] * constants[1], start=Expr.of(1))
        if kind == "floordiv" and constants[1] != 0 and (exact := args[0].divided(args[1])) is not None:
            return exact
        if kind == "mod" and constants[1] != 0 and args[0].divided(args[1]) is not None:
            return Expr.of(0)
        if all(c is not None for c in constants):
            return Expr.of(OPERATIONS[kind](*constants))
        if kind in ("max", "min") and (more := (args[0] - args[1]).constant()) is not None:
            return args[0] if (more >= 0) == (kind == "max") else args[1]
    return Expr.of(Atom(kind, args))


# ---- numbers ----


class _Number:
    """What SymInt and SymFloat share: an expression and the environment of its symbols."""

    __slots__ = ("env", "expr")

    def __init__(self, env: Any, expr: Expr) -> None:
        self.env, self.expr = env, expr

    @property
    def node(self) -> Any:
        """What has the number's parts (`expr`, `hint`, `shape_env`), as PyTorch's programs ask for them."""
        return SymNode(self.expr, self.env)

    def _passed(self) -> Any:
        """The number that stands for it where an operator computes."""
        return self.env.pass_on(self.expr)

    def __repr__(self) -> str:
        return str(self.expr)

    def __hash__(self) -> int:
        return hash(self.expr)

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __int__(self) -> int:
        return int(self.env.specialise(self.expr))

    def __float__(self) -> float:
        return float(self.env.specialise(self.expr))

    def __add__(self, other: Any) -> Any:
        return _computed("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return _computed("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return _computed("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return _computed("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return _computed("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return _computed("mul", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return _computed("floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _computed("floordiv", other, self)

    def __truediv__(self, other: Any) -> Any:
        return _computed("truediv", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _computed("truediv", other, self)

    def __mod__(self, other: Any) -> Any:
        return _computed("mod", self, other)

    def __rmod__(self, other: Any) -> Any:
        return _computed("mod", other, self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __pow__(self, other: Any) -> Any:
        return _computed("pow", self, other)

    def __rpow__(self, other: Any) -> Any:
        return _computed("pow", other, self)

    def __neg__(self) -> Any:
        return _computed("neg", self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __floor__(self) -> Any:
        return _computed("floor", self)

    def __ceil__(self) -> Any:
        return _computed("ceil", self)

    def __trunc__(self) -> Any:
        return _computed("trunc", self)

    def __eq__(self, other: object) -> Any:
        return _compared("eq", self, other)

    def __ne__(self, other: object) -> Any:
        return _compared("ne", self, other)

    def __lt__(self, other: Any) -> Any:
        return _compared("lt", self, other)

    def __le__(self, other: Any) -> Any:
        return _compared("le", self, other)

    def __gt__(self, other: Any) -> Any:
        return _compared("gt", self, other)

    def __ge__(self, other: Any) -> Any:
        return _compared("ge", self, other)


class SymInt(_Number):
    """A size that is an expression of symbols, where FakeTensorMode has a shape environment, as under `make_fx` with
    the mode 'symbolic'.

    Arithmetic gives more of them. A comparison is a SymBool; where a program branches on one, the answer is the
    example's, and a guard of the environment. So is the number where a program takes it as an int (`int`, `range`).

    Arguments:
        env: the shape environment
        expr: the expression

    Example:
        >>> from tensorpy._subclasses import FakeTensorMode
        >>> from tensorpy.fx.experimental.symbolic_shapes import ShapeEnv
        >>> x = FakeTensorMode(shape_env=ShapeEnv()).from_tensor(tp.ones(3, 4))
        >>> x.shape[0] * 2 + 1
        2*s0 + 1
    """

    __slots__ = ()
    __module__ = "tensorpy"

    def __index__(self) -> int:
        return int(self.env.specialise(self.expr))

    def __round__(self, ndigits: Any = None) -> Any:
        return self

    def is_integer(self) -> bool:
        """Whether it is whole: it is."""
        return True


class SymFloat(_Number):
    """A float that is computed of sizes, `x.shape[0] / 2`. See SymInt.

    Arguments:
        env: the shape environment
        expr: the expression

    Example:
        >>> tp.SymFloat.__name__
        'SymFloat'
    """

    __slots__ = ()
    __module__ = "tensorpy"

    def is_integer(self) -> bool:
        """Whether it is whole, in the example; a guard."""
        return float(self).is_integer()


class SymBool:
    """A comparison of sizes. Where a program branches on it (`bool`), the answer is the example's, and a guard.

    Arguments:
        env: the shape environment
        op: 'eq', 'ne', 'lt', 'le', 'gt' or 'ge'; 'and' or 'or', of two others
        a: the left side
        b: the right side

    Example:
        >>> tp.SymBool.__name__
        'SymBool'
    """

    __slots__ = ("a", "b", "env", "op")
    __module__ = "tensorpy"

    def __init__(self, env: Any, op: str, a: Any, b: Any) -> None:
        self.env, self.op, self.a, self.b = env, op, a, b

    @property
    def node(self) -> Any:
        """What has its parts, as PyTorch's programs ask for them."""
        return SymNode(self, self.env)

    def evaluate(self, value_of: Callable[[str], Any]) -> bool:
        """Whether it holds, for numbers of its symbols.

        Arguments:
            value_of: a symbol's number by its name

        Returns: bool.
        """
        if self.op in ("and", "or"):
            sides = (self.a.evaluate(value_of), self.b.evaluate(value_of))
            return all(sides) if self.op == "and" else any(sides)
        return bool(COMPARISONS[self.op](self.a.evaluate(value_of), self.b.evaluate(value_of)))

    def symbols(self) -> set[str]:
        """The names of the symbols in it.

        Returns: set.
        """
        return set(self.a.symbols() | self.b.symbols())

    def negated(self) -> SymBool:
        """What holds where it does not.

        Returns: SymBool.
        """
        if self.op in ("and", "or"):
            return SymBool(self.env, "or" if self.op == "and" else "and", self.a.negated(), self.b.negated())
        return SymBool(self.env, _NEGATED[self.op], self.a, self.b)

    def __bool__(self) -> bool:
        return bool(self.env.decide(self))

    def __index__(self) -> int:
        return int(bool(self))

    __int__ = __index__

    def __and__(self, other: Any) -> Any:
        return SymBool(self.env, "and", self, other) if isinstance(other, SymBool) else bool(self) & other

    def __or__(self, other: Any) -> Any:
        return SymBool(self.env, "or", self, other) if isinstance(other, SymBool) else bool(self) | other

    __rand__, __ror__ = __and__, __or__

    def __eq__(self, other: object) -> Any:
        return bool(self) == (bool(other) if isinstance(other, SymBool) else other)

    def __hash__(self) -> int:
        return hash((self.op, self.a, self.b))

    def __sym_not__(self) -> SymBool:
        return self.negated()

    def __repr__(self) -> str:
        if self.op in ("and", "or"):
            return f"({self.a!r}) {self.op} ({self.b!r})"
        return f"{self.a} {_RELATIONS[self.op]} {self.b}"


class SymNode:
    """The parts of a SymInt, SymFloat or SymBool.

    Arguments:
        expr: the expression
        shape_env: the environment

    Example:
        >>> from tensorpy._package.symbols import Expr, SymNode
        >>> SymNode(Expr.of(3), None).expr
        3
    """

    def __init__(self, expr: Any, shape_env: Any) -> None:
        self.expr, self.shape_env = expr, shape_env

    @property
    def hint(self) -> Any:
        """The example's number."""
        return self.expr.evaluate(self.shape_env.hint_of)

    def has_hint(self) -> bool:
        """Whether there is an example: always."""
        return True

    def maybe_as_int(self) -> int | None:
        """The number, where no symbols are in it."""
        constant = self.expr.constant()
        return None if constant is None else int(constant)

    def require_hint(self, fallback: Any = None) -> Any:
        """The example's number."""
        return self.hint


def _operand(value: Any) -> Expr | None:
    if isinstance(value, _Number):
        return value.expr
    if isinstance(value, SymBool):
        return Expr.of(int(bool(value)))
    return Expr.of(value) if isinstance(value, (int, float)) else None


def _computed(kind: str, *values: Any) -> Any:
    operands = [operand for value in values if (operand := _operand(value)) is not None]
    if len(operands) < len(values):
        return NotImplemented
    env = next(value.env for value in values if isinstance(value, _Number))
    if kind in ("floordiv", "mod", "truediv") and operands[1] == Expr.of(0):
        raise ZeroDivisionError("division by zero")
    return number(env, build(kind, *operands))


def _compared(op: str, a: Any, b: Any) -> Any:
    left, right = _operand(a), _operand(b)
    if left is None or right is None:
        return NotImplemented
    difference = None if left.is_float or right.is_float else (left - right).constant()
    if difference is not None:
        return bool(COMPARISONS[op](difference, 0))
    return SymBool(a.env, op, left, right)


def number(env: Any, expr: Expr) -> Any:
    """An expression as what programs compute with: an int where no symbols are in it.

    Arguments:
        env: the shape environment
        expr: the expression

    Returns: int, SymInt or SymFloat.

    Example:
        >>> from tensorpy._package.symbols import Expr, number
        >>> number(None, Expr.of(3))
        3
    """
    constant = None if expr.is_float else expr.constant()
    if constant is not None:
        return constant
    return SymFloat(env, expr) if expr.is_float else SymInt(env, expr)


def operation(op: str, *values: Any) -> Any:
    """An operation on numbers of which one may be symbolic.

    Arguments:
        op: its name
        values: the operands

    Returns: a number.

    Example:
        >>> from tensorpy._package.symbols import operation
        >>> operation("max", 2, 3)
        3
    """
    if any(isinstance(value, _Number) for value in values):
        return _computed(op, *values)
    return OPERATIONS[op](*values)


_C._set_symbolic_number(_Number)
