"""Sizes as symbols: what a FakeTensorMode with a ShapeEnv, and `make_fx` with the mode 'symbolic', know of them.

A symbol has a hint, the example's number, which the program sees where it branches, and a stand-in, a large number that
no program has by chance: the fake tensors have it as their size. Operators, composites and gradients in C compute with
stand-ins as with any number, and what they make of them is read back: 2348782 is 2*s0 where 1174391 stands for s0. That
a reading is right is checked: each operator runs once more on sizes that are the hints, and results must agree; where
they do not, the sizes of its arguments are numbers from there on (`specialise`), and the program is called again.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tensorpy._C import Tensor
from tensorpy._package.symbols import Atom, Expr, SymBool, SymFloat, SymInt, build, number
from tensorpy._tensor.nested import NestedInt

__all__ = [
    "ConstraintViolationError", "Guard", "GuardOnDataDependentSymNode", "Restart", "ShapeEnv", "Symbol",
    "SymbolicContext", "guard_bool", "guard_int", "guard_or_false", "guard_or_true", "has_free_symbols", "has_hint",
    "hint_int", "is_concrete_bool", "is_concrete_int", "is_nested_int", "statically_known_false",
    "statically_known_true",
]  # fmt: skip

_SMALL = 500  # no stand-in, and nothing that is read as an expression, is less
_HUGE = 2**62
_SCALE = 1_174_387  # near no number that programs have


class ConstraintViolationError(RuntimeError):
    """Sizes that were said to vary do not: the program is for one of them, or for fewer than was said."""


class GuardOnDataDependentSymNode(RuntimeError):
    """A branch on a size that depends on elements."""


class Restart(BaseException):
    """A size has turned out to be a number, or another's multiple: the program is to be called again from the start."""


class SymbolicContext:
    """What a program says of a tensor's sizes; ShapeEnv takes dictionaries of them."""


@dataclass
class Symbol:
    """A symbol of a ShapeEnv.

    Arguments:
        name: its name
        hint: the example's number
        stand_in: the number that operators compute with
        source: where it comes from, as `x.size()[0]`
        low: the least number that it stands for
        high: the greatest
        parents: of a result's size: the symbols of the operator's arguments
        place: of an input's size: the input's number and the dimension

    Example:
        >>> from tensorpy.fx.experimental.symbolic_shapes import Symbol
        >>> Symbol("s0", 3, 1174391, "x.size()[0]").low
        2
    """

    name: str
    hint: int
    stand_in: int
    source: str
    low: float = 2
    high: float = math.inf
    parents: frozenset[str] = frozenset()
    place: Any = None


@dataclass
class Guard:
    """A condition that the program, or an operator, asked for.

    Arguments:
        condition: what holds
        line: the program's line, `file:number`

    Example:
        >>> from tensorpy.fx.experimental.symbolic_shapes import Guard
        >>> Guard("s0 > 4", "").condition
        's0 > 4'
    """

    condition: Any
    line: str

    @property
    def expr(self) -> Any:
        """The condition."""
        return self.condition


def _is_prime(n: int) -> bool:
    return all(n % d for d in range(3, math.isqrt(n) + 1, 2))


def _is_read_back(expr: Expr) -> bool:
    """Whether what stands for it is what C computes where it computes the same."""
    return not expr.is_float and all(
        atom.op == "symbol" or (atom.op == "floordiv" and all(map(_is_read_back, atom.args))) for atom in expr.atoms()
    )


def _line() -> str:
    """The line of the program that asks: the first outside of this package."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] != "tensorpy":
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


class ShapeEnv:
    """The symbols of sizes, and the guards: conditions on them that a program has asked for.

    Sizes that are alike in the example are one symbol, 0 and 1 are numbers, as in PyTorch.

    Arguments:
        assume_static_by_default: whether sizes are numbers where nothing else is said
        duck_shape: whether sizes that are alike in the example are one symbol
        specialize_zero_one: is taken: 0 and 1 are numbers

    Example:
        >>> from tensorpy._subclasses import FakeTensorMode
        >>> from tensorpy.fx.experimental.symbolic_shapes import ShapeEnv
        >>> env = ShapeEnv()
        >>> x = FakeTensorMode(shape_env=env).from_tensor(tp.ones(8, 3))
        >>> x.shape[0] > 4, bool(x.shape[0] > 4)
        (s0 > 4, True)
        >>> [guard.condition for guard in env.guards]
        [s0 > 4]
    """

    def __init__(
        self,
        *,
        assume_static_by_default: bool = False,
        duck_shape: bool | None = None,
        specialize_zero_one: bool = True,
        **unused: Any,
    ) -> None:
        self.assume_static_by_default, self.duck_shape = assume_static_by_default, duck_shape is not False
        self.specialize_zero_one = specialize_zero_one
        self.restarts = False  # whether somebody calls the program again after a Restart
        self.bound: dict[str, Expr] = {}  # symbols that have turned out to be something else; stay at a restart
        self.reasons: dict[str, str] = {}
        self._sources: dict[str, str] = {}
        self.scale = _SCALE
        self.clear()

    def clear(self) -> None:
        """Forgets the symbols and guards, but not what these have turned out to be."""
        self.symbols: dict[str, Symbol] = {}
        self.guards: list[Guard] = []
        self._known: dict[Any, Expr] = {}
        self._units: list[tuple[int, Expr]] = []
        self._ducks: dict[Any, Expr] = {}
        self._passed: dict[Expr, Any] = {}
        self._count = 0

    # ---- symbols ----

    @property
    def var_to_val(self) -> dict[str, int]:
        """The hints by symbol."""
        return {name: symbol.hint for name, symbol in self.symbols.items()}

    backed_var_to_val = var_to_val

    @property
    def replacements(self) -> dict[str, Expr]:
        """What symbols have turned out to be."""
        return self.bound

    def expect(self, count: int) -> None:
        """Has stand-ins be small enough that the product of several fits 64 bits. Of tensors of very many dimensions
        sizes are numbers.

        Arguments:
            count: how many symbols a product may have
        """
        self.scale = (_SCALE, _SCALE, _SCALE, 137_443, 11_383, 2_377, 907)[min(count, 6)]
        self.assume_static_by_default = self.assume_static_by_default or count > 6

    def shrink(self) -> None:
        """Has stand-ins be less, since the product of several does not fit 64 bits.

        Raises: Restart.
        """
        self.scale = next(scale for scale in (137_443, 11_383, 2_377, 907) if scale < self.scale)
        self._again()

    def create_symbol(
        self, hint: int, source: str, key: Any = None, low: float = 2, high: float = math.inf, place: Any = None
    ) -> Expr:
        """A symbol for a size, or what stands in its place: a number, another's expression, the symbol of its like.

        Arguments:
            hint: the example's number
            source: where it comes from
            key: what sizes have in common that are one symbol; those that are alike where duck_shape holds
            low: the least number that it stands for
            high: the greatest
            place: the input's number and the dimension

        Returns: Expr.

        Example:
            >>> from tensorpy.fx.experimental.symbolic_shapes import ShapeEnv
            >>> ShapeEnv().create_symbol(5, "x.size()[0]")
            s0
        """
        key = ("alike", hint) if key is None and self.duck_shape else key
        if key is not None and key in self._ducks:
            return self._ducks[key]
        name = f"s{self._count}"
        self._count += 1
        made = self.bound.get(name)
        if made is None:
            made = self._new(name, hint, source, low=low, high=high, place=place)
        else:
            made = self._substituted(made)
        if key is not None:
            self._ducks[key] = made
        return made

    def _substituted(self, expr: Expr) -> Expr:
        """An expression with what its symbols have turned out to be."""
        total = Expr.of(0)
        for monomial, factor in expr.terms.items():
            product = Expr.of(factor)
            for atom in monomial:
                other = self.bound.get(atom.args[0]) if atom.op == "symbol" else None
                product = product * (self._substituted(other) if other is not None else Expr.of(atom))
            total = total + product
        return total

    def _new(self, name: str, hint: int, source: str, **options: Any) -> Expr:
        step = options.pop("stand_in", None)
        step = self._next() if step is None else step
        expr = self.expression_of(name)
        self.symbols[name] = Symbol(name, hint, step, source, **options)
        self._know(step, expr)
        return expr

    def _next(self) -> int:
        """A prime that stands for nothing yet."""
        step = int(self.scale * (1 + 0.11 * (len(self.symbols) + len(self._passed)))) | 1
        while not _is_prime(step) or step in self._known or step % 4 != 1:
            step += 2
        return step

    def _know(self, value: Any, expr: Expr) -> None:
        self._known[value] = expr
        if isinstance(value, int) and expr.constant() is None:
            self._units.append((value, expr))
            self._units.sort(key=lambda unit: -unit[0])

    def hint_of(self, name: str) -> int:
        """A symbol's number in the example.

        Arguments:
            name: its name

        Returns: int.
        """
        return self.symbols[name].hint

    def other_of(self, name: str) -> int:
        """A third number for a symbol, in another order than hints and stand-ins.

        Arguments:
            name: its name

        Returns: int.
        """
        return 911 - 31 * list(self.symbols).index(name)

    def expression_of(self, name: str) -> Expr:
        """A symbol as an expression.

        Arguments:
            name: its name

        Returns: Expr.
        """
        return Expr.of(Atom("symbol", (name,)))

    def constant_of(self, name: str) -> Expr:
        """A symbol's number in the example, as an expression.

        Arguments:
            name: its name

        Returns: Expr.
        """
        return Expr.of(self.symbols[name].hint)

    def stand_in_of(self, name: str) -> int:
        """The number that operators compute with for a symbol.

        Arguments:
            name: its name

        Returns: int.
        """
        return self.symbols[name].stand_in

    def create_unbacked_symint(self, *unused: Any) -> Any:
        """A size that depends on elements: there is none.

        Raises: GuardOnDataDependentSymNode.
        """
        raise GuardOnDataDependentSymNode("a size that depends on elements has no symbol: ask outside of the graph")

    # ---- expressions and what stands for them ----

    def pass_on(self, expr: Expr) -> Any:
        """What operators compute with for an expression.

        Arguments:
            expr: the expression

        Returns: int or float.
        """
        constant = None if expr.is_float else expr.constant()
        if constant is not None:
            return self.keep_number(constant)
        passed = self._passed.get(expr)
        if passed is None:
            passed = expr.evaluate(self.stand_in_of)
            if not _is_read_back(expr) or abs(passed) < _SMALL or self.read(passed) not in (None, expr):
                passed = self._next() + (0.3819660113 if expr.is_float else 0)
                self._know(passed, expr)
            self._known[passed] = expr
            self._passed[expr] = passed
        return passed

    def keep_number(self, value: int) -> int:
        """A large number that is a tensor's size, and no symbol.

        Arguments:
            value: the number

        Returns: the number.
        """
        if value >= _SMALL and self._known.setdefault(value, Expr.of(value)) != Expr.of(value):
            self.specialise(self._known[value])
        return value

    def read(self, value: Any) -> Expr | None:
        """The expression that a number of an operator is: a constant, or what it reads as.

        Arguments:
            value: an int or a float

        Returns: Expr; None where a large number reads as nothing.
        """
        if isinstance(value, float):
            return self._known.get(value) or self._float(value)
        found = self._known.get(value)
        if found is None and abs(value) < _SMALL:
            return Expr.of(value)
        if found is None and abs(value) < _HUGE and (found := self._polynomial(value)) is not None:
            self._known[value] = found
        return found

    def _float(self, value: float) -> Expr | None:
        """A size, its root or their reciprocals as C computes them."""
        if value == 0 or not math.isfinite(value):
            return None
        for is_inverse in (False, True):
            for roots in range(3):
                size = (1 / value if is_inverse else value) ** (2**roots)
                whole = round(size) if abs(size) < _HUGE else 0
                if whole < _SMALL or abs(size - whole) > 1e-10 * whole:
                    continue
                found = self._product(whole)
                if found is None or found.constant() is not None:
                    continue
                found = build("float", found) if roots == 0 else found
                for _ in range(roots):
                    found = build("sqrt", found)
                return build("truediv", Expr.of(1), found) if is_inverse else found
        return None

    def _product(self, value: int) -> Expr | None:
        """A number as a product of symbols."""
        found = self._known.get(value)
        if found is not None or value < _SMALL:
            return found or Expr.of(value)
        for unit, expr in self._units:
            if value % unit == 0 and (factor := self._product(value // unit)) is not None:
                return expr * factor
        return None

    def _polynomial(self, value: int) -> Expr | None:
        if value < 0:
            positive = self.read(-value)
            return None if positive is None else positive * Expr.of(-1)
        for unit, expr in self._units:
            if value % unit == 0 and (factor := self.read(value // unit)) is not None:
                return expr * factor
        for unit, expr in self._units:
            times, rest = divmod(value, unit)
            if unit - rest <= 64:
                times, rest = times + 1, rest - unit
            if 1 <= times < _SMALL and abs(rest) <= 64:
                return expr * Expr.of(times) + Expr.of(rest)
        for unit, expr in self._units:
            for other, second in self._units:
                if abs(value - unit - other) <= 64:
                    return expr + second + Expr.of(value - unit - other)
        return None

    def agree(self, value: int, hint: int, source: str, parents: frozenset[str]) -> bool:
        """Whether a result's size reads as what the example's is; a size that reads as nothing gets a symbol.

        Arguments:
            value: the size that is computed with
            hint: the example's
            source: what it is the size of
            parents: the symbols of the operator's arguments

        Returns: bool.
        """
        expr = self.read(value)
        if expr is None and value == hint:
            self._known[value] = Expr.of(value)
        elif expr is None:
            self._new(f"u{sum(name[0] == 'u' for name in self.symbols)}", hint, source, stand_in=value, parents=parents)
        return expr is None or expr.evaluate(self.hint_of) == hint

    def symbols_of(self, values: Iterable[Any]) -> frozenset[str]:
        """The symbols in numbers that operators get.

        Arguments:
            values: the numbers

        Returns: frozenset.
        """
        found: set[str] = set()
        for value in values:
            if (isinstance(value, float) or abs(value) >= _SMALL) and (expr := self.read(value)) is not None:
                found |= expr.symbols()
        return frozenset(found)

    def hint_for(self, value: Any) -> Any:
        """The example's number for one that operators compute with.

        Arguments:
            value: int or float

        Returns: int or float.
        """
        expr = self.read(value)
        return value if expr is None else expr.evaluate(self.hint_of)

    def size_of(self, value: int) -> Any:
        """A size of a fake tensor as the program sees it.

        Arguments:
            value: the number

        Returns: int or SymInt.
        """
        expr = Expr.of(value) if abs(value) < _SMALL else self.read(value)
        return value if expr is None else number(self, expr)

    def sizes_of(self, values: Iterable[int]) -> tuple[Any, ...]:
        """Sizes of a fake tensor as the program sees them.

        Arguments:
            values: the numbers

        Returns: a tuple.
        """
        return tuple(map(self.size_of, values))

    # ---- guards ----

    def _range(self, expr: Expr) -> tuple[float, float]:
        """Between which numbers an expression lies, by the ranges of its symbols."""
        low, high = 0.0, 0.0
        for monomial, factor in expr.terms.items():
            ends = [1.0, 1.0]
            for atom in monomial:
                if atom.op != "symbol":
                    return -math.inf, math.inf
                symbol = self.symbols[atom.args[0]]
                if symbol.low < 0 and len(monomial) > 1:
                    return -math.inf, math.inf
                ends = [ends[0] * symbol.low, ends[1] * symbol.high]
            if factor < 0:
                ends.reverse()
            low, high = low + factor * ends[0], high + factor * ends[1]
        return low, high

    def known(self, condition: Any) -> bool | None:
        """Whether a condition holds for all numbers that the symbols stand for; None where for some.

        Arguments:
            condition: a SymBool or a bool

        Returns: bool or None.
        """
        if not isinstance(condition, SymBool):
            return bool(condition)
        if condition.op in ("and", "or"):
            sides = (self.known(condition.a), self.known(condition.b))
            if condition.op == "and":
                return False if False in sides else None if None in sides else True
            return True if True in sides else None if None in sides else False
        if not condition.symbols():
            return condition.evaluate(self.hint_of)
        if condition.a.is_float or condition.b.is_float:
            return None
        low, high = self._range(condition.a - condition.b)
        op = condition.op
        if op in ("eq", "ne"):
            return (op == "ne") if low > 0 or high < 0 else None
        if op in ("lt", "ge"):
            return (op == "lt") if high < 0 else (op == "ge") if low >= 0 else None
        return (op == "le") if high <= 0 else (op == "gt") if low > 0 else None

    def decide(self, condition: SymBool) -> bool:
        """The example's answer to a condition; a guard, unless it always holds.

        Arguments:
            condition: the condition

        Returns: bool.
        """
        known = self.known(condition)
        if known is not None:
            return known
        truth = condition.evaluate(self.hint_of)
        holds = condition if truth else condition.negated()
        for guard in self.guards:
            if (guard.condition.op, guard.condition.a, guard.condition.b) == (holds.op, holds.a, holds.b):
                return truth
        self.guards.append(Guard(holds, _line()))
        if holds.op == "eq" and not (holds.a.is_float or holds.b.is_float):
            solved = self.solved(holds.a, holds.b)
            if solved is not None:
                self.unite(**dict([solved]))
        return truth

    def solved(self, a: Expr, b: Expr) -> tuple[str, Expr] | None:
        """A symbol of an equation, and what it is by the others; None where none is alone.

        Arguments:
            a: the left side
            b: the right side

        Returns: (name, Expr) or None.
        """
        difference = a - b
        for name in sorted(difference.symbols(), key=list(self.symbols).index, reverse=True):
            atom = Atom("symbol", (name,))
            factor = difference.terms.get((atom,), 0)
            rest = difference - Expr.of(atom) * Expr.of(factor)
            if abs(factor) == 1 and name not in rest.symbols() and not self.symbols[name].parents:
                return name, rest * Expr.of(-factor)
        return None

    def unite(self, **found: Expr) -> None:
        """Has symbols be expressions of others.

        Arguments:
            found: the expressions by the symbols' names

        Raises: Restart, where somebody calls the program again.
        """
        for name, expr in found.items():
            self._bind(name, expr, f"{name} == {expr} ({_line()})")
        self._again()

    def _bind(self, name: str, expr: Expr, reason: str) -> None:
        symbol = self.symbols[name]
        if symbol.parents:
            for parent in self._first(symbol.parents):
                self._bind(parent, Expr.of(self.symbols[parent].hint), reason)
            return
        self._sources[name] = symbol.source
        self.bound.setdefault(name, expr)
        self.reasons.setdefault(name, reason)

    def _first(self, names: Iterable[str]) -> list[str]:
        """Those that are, of symbols of which one or more are to be numbers: the last one, if the program is called
        again, which tells whether others are. Sizes of batches come first among a tensor's."""
        ordered = sorted(names, key=list(self.symbols).index)
        return ordered[-1:] if self.restarts else ordered

    def _again(self) -> None:
        if self.restarts:
            raise Restart()

    def specialise(self, expr: Expr) -> Any:
        """The example's number of an expression, of which the program makes a number: its symbols are numbers from here
        on, which is a guard.

        Arguments:
            expr: the expression

        Returns: int or float.

        Raises: Restart, where somebody calls the program again.
        """
        value = expr.evaluate(self.hint_of)
        self.settle(expr.symbols(), f"{expr} is used as the number {value}")
        return value

    def settle(self, names: Iterable[str], reason: str) -> None:
        """Has symbols be the example's numbers.

        Arguments:
            names: their names
            reason: why

        Raises: Restart, where somebody calls the program again.
        """
        reason = f"{reason} ({_line()})"
        names = self._first(names)
        for name in names:
            self._bind(name, Expr.of(self.symbols[name].hint), reason)
            condition = SymBool(self, "eq", self.expression_of(name), Expr.of(self.symbols[name].hint))
            if not self.symbols[name].parents and not any(repr(g.condition) == repr(condition) for g in self.guards):
                self.guards.append(Guard(condition, reason))
        if names:
            self._again()

    # ---- what programs ask of it ----

    def specialised(self) -> dict[str, str]:
        """Why sizes are numbers that would have been symbols, by where they come from.

        Returns: dict.

        Example:
            >>> from tensorpy.fx.experimental.proxy_tensor import make_fx
            >>> module = make_fx(lambda x: x * int(x.shape[0]), tracing_mode="symbolic")(tp.ones(8))
            >>> list(module.shape_env.specialised())
            ['x_1.size()[0]']
        """
        numbers = (name for name, expr in self.bound.items() if self._substituted(expr).constant() is not None)
        return {self._sources[name]: self.reasons[name] for name in numbers}

    def source_of(self, name: str) -> str:
        """Where a symbol comes from.

        Arguments:
            name: its name

        Returns: str.
        """
        return self.symbols[name].source

    def produce_guards(self, *unused: Any, **options: Any) -> list[str]:
        """The guards, each as a text in which symbols are the sizes that they come from.

        Returns: list.

        Example:
            >>> from tensorpy.fx.experimental.proxy_tensor import make_fx
            >>> module = make_fx(lambda x: x + 1 if x.shape[0] > 4 else x, tracing_mode="symbolic")(tp.ones(8))
            >>> module.shape_env.produce_guards()
            ['x_1.size()[0] > 4']
        """
        found = [f"{self._sources[name]} == {self.described(expr)}" for name, expr in self.bound.items()]
        return found + [text for guard in self.guards if (text := self.described(guard.condition)) not in found]

    def described(self, condition: Any) -> str:
        """A condition or an expression as a text in which symbols are the sizes that they come from.

        Arguments:
            condition: SymBool or Expr

        Returns: str.
        """
        return re.sub(r"\b[su]\d+\b", self._named, str(condition))

    def _named(self, found: re.Match[str]) -> str:
        symbol = self.symbols.get(found[0])
        return symbol.source if symbol is not None else self._sources.get(found[0], found[0])

    def format_guards(self, verbose: bool = False) -> str:
        """The guards, a line each.

        Arguments:
            verbose: whether the program's lines are said

        Returns: str.
        """
        bound = [f" - {name} == {expr} ({self.reasons[name]})" for name, expr in self.bound.items()]
        return "\n".join(bound + [f" - {g.condition}{f' ({g.line})' if verbose else ''}" for g in self.guards])

    def create_symintnode(self, sym: Any, *, hint: Any = None, **unused: Any) -> Any:
        """An expression as a number.

        Arguments:
            sym: the expression
            hint: is taken

        Returns: int or SymInt.
        """
        return number(self, sym)

    def simplify(self, expr: Any) -> Any:
        """An expression with what its symbols have turned out to be.

        Arguments:
            expr: the expression

        Returns: Expr.
        """
        return self._substituted(expr)

    def check_sizes(self, values: dict[str, int]) -> None:
        """Whether guards hold for other sizes.

        Arguments:
            values: numbers by symbol

        Raises: ValueError, which names the guard and its line.
        """
        for name in values.keys() & self.symbols.keys():
            if not (symbol := self.symbols[name]).low <= values[name] <= symbol.high:
                raise ValueError(
                    f"the graph was recorded for sizes of which {symbol.source} is one from {symbol.low} to "
                    f"{symbol.high}: not {values[name]}"
                )
        for guard in self.guards:
            if guard.condition.symbols() <= values.keys() and not guard.condition.evaluate(values.__getitem__):
                raise ValueError(
                    f"the graph was recorded for sizes of which {self.described(guard.condition)} holds, a guard of "
                    f"{guard.line or 'an operator'}: not for {values}"
                )


# ---- questions ----


def hint_int(a: Any, fallback: int | None = None) -> int:
    """The example's number of a size, without a guard.

    Arguments:
        a: an int or a SymInt
        fallback: is taken

    Returns: int.

    Example:
        >>> from tensorpy.fx.experimental.symbolic_shapes import hint_int
        >>> hint_int(3)
        3
    """
    return int(a.node.hint) if isinstance(a, SymInt) else int(a)


def guard_int(a: Any) -> int:
    """A size as a number, which it is from there on.

    Arguments:
        a: an int or a SymInt

    Returns: int.

    Example:
        >>> from tensorpy.fx.experimental.symbolic_shapes import guard_int
        >>> guard_int(3)
        3
    """
    return int(a)


def guard_bool(a: Any) -> bool:
    """The example's answer to a condition, which is a guard.

    Arguments:
        a: a bool or a SymBool

    Returns: bool.

    Example:
        >>> from tensorpy.fx.experimental.symbolic_shapes import guard_bool
        >>> guard_bool(True)
        True
    """
    return bool(a)


guard_or_true = guard_or_false = guard_bool


def statically_known_true(x: Any) -> bool:
    """Whether a condition holds for all sizes; no guard.

    Arguments:
        x: a bool or a SymBool

    Returns: bool.

    Example:
        >>> from tensorpy.fx.experimental.symbolic_shapes import statically_known_true
        >>> statically_known_true(3 > 2)
        True
    """
    return x.env.known(x) is True if isinstance(x, SymBool) else bool(x)


def statically_known_false(x: Any) -> bool:
    """Whether a condition holds for no sizes; no guard.

    Arguments:
        x: a bool or a SymBool

    Returns: bool.

    Example:
        >>> from tensorpy.fx.experimental.symbolic_shapes import statically_known_false
        >>> statically_known_false(3 > 2)
        False
    """
    return x.env.known(x) is False if isinstance(x, SymBool) else not x


def is_concrete_int(a: Any) -> bool:
    """Whether a size is a number.

    Arguments:
        a: an int or a SymInt

    Returns: bool.

    Example:
        >>> from tensorpy.fx.experimental.symbolic_shapes import is_concrete_int
        >>> is_concrete_int(3)
        True
    """
    return not isinstance(a, SymInt) or a.expr.constant() is not None


def is_nested_int(val: Any) -> bool:
    """Whether a size is that of a nested tensor's dimension whose pieces differ.

    Arguments:
        val: an int or a SymInt

    Returns: bool.

    Example:
        >>> from tensorpy.fx.experimental.symbolic_shapes import is_nested_int
        >>> pieces = tp.nested.nested_tensor([tp.ones(2), tp.ones(3)], layout=tp.jagged)
        >>> is_nested_int(pieces.shape[1])
        True
    """
    return isinstance(val, NestedInt)


def is_concrete_bool(a: Any) -> bool:
    """Whether a condition is a truth value.

    Arguments:
        a: a bool or a SymBool

    Returns: bool.

    Example:
        >>> from tensorpy.fx.experimental.symbolic_shapes import is_concrete_bool
        >>> is_concrete_bool(True)
        True
    """
    return not isinstance(a, SymBool) or not a.symbols()


def has_hint(a: Any) -> bool:
    """Whether a size has an example: always.

    Arguments:
        a: a size

    Returns: bool.

    Example:
        >>> from tensorpy.fx.experimental.symbolic_shapes import has_hint
        >>> has_hint(3)
        True
    """
    return True


def has_free_symbols(val: Any) -> bool:
    """Whether symbols are in a size, a condition or a tensor's sizes.

    Arguments:
        val: a number, a condition, a tensor or a sequence of these

    Returns: bool.

    Example:
        >>> from tensorpy.fx.experimental.symbolic_shapes import has_free_symbols
        >>> has_free_symbols(tp.ones(2))
        False
    """
    if isinstance(val, (SymInt, SymFloat)):
        return bool(val.expr.symbols())
    if isinstance(val, SymBool):
        return bool(val.symbols())
    if isinstance(val, Tensor):
        val = val.shape
    return isinstance(val, Sequence) and not isinstance(val, str) and any(map(has_free_symbols, val))
