"""What the lowering of a formula stands on: the C text being written, the names that are bound, conversions between
kinds, and the variable that branches join in.

Invariants of the C text:
  - every new tensor or list of tensors lies in a variable that releases it (tp_autoref, tp_autoseq), so that
    `return <failed>` after any call leaks nothing;
  - a branch that is not taken computes nothing;
  - a list literal that leaves its block lies in an array of the function.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NoReturn

from .c_types import c_type
from .catalog import Catalog, Operator
from .errors import Location, YamlError
from .formula import (
    DECLARATIONS,
    NONE,
    NUMBERS,
    TENSORS,
    Result,
    Value,
    Variable,
    kind_of,
    place_in,
)
from .model import BaseType, ListType, OptionalType, Type

_index_of: tuple[Mapping[str, Operator], dict[str, list[Operator]]] | None = None


def operators_by_name(catalog: Catalog) -> dict[str, list[Operator]]:
    """Name -> overloads in YAML order."""
    global _index_of
    if _index_of is None or _index_of[0] is not catalog.by_name:
        index: dict[str, list[Operator]] = {}
        for op in catalog.by_name.values():
            index.setdefault(op.schema.name.qualified, []).append(op)
        _index_of = (catalog.by_name, index)
    return _index_of[1]


class Context:
    def __init__(
        self, variables: Mapping[str, Variable], text: str, result: Result, catalog: Catalog, location: Location
    ) -> None:
        self.source = text
        self.location = location
        self.result = result
        self.operators = operators_by_name(catalog)
        self.names: dict[str, Value] = {name: self.variable(name, v) for name, v in variables.items()}
        self.variables = frozenset(variables)
        self.half_bound: set[str] = set()  # assigned in one branch only
        self.to_come: list[Sequence[ast.stmt]] = []  # after each `if` that encloses the statement
        self.assigned: dict[str, ast.AST] = {}
        self.mistakes: list[YamlError] = []
        self.unknown: set[str] = set()  # names whose statement has a mistake
        self.read: set[str] = set()
        self.hoisted: list[str] = []
        self.called: dict[str, Operator] = {}
        self.calls: list[Operator] = []  # each, as often as it is written
        self.lines: list[str] = []
        self.block = 0
        self.blocks = 0
        self.counts: dict[str, int] = {}
        self.taken = {word for v in self._all(variables.values()) for word in re.findall(r"\w+", v.c)}

    def _all(self, variables: Iterable[Variable]) -> Iterator[Variable]:
        for v in variables:
            yield v
            yield from self._all(v.items)

    def variable(self, name: str, v: Variable) -> Value:
        items = tuple(self.variable(f"{name}[{i}]", item) for i, item in enumerate(v.items)) if v.items else None
        return Value(v.kind, v.c, items, parts=v.parts, writable=v.writable, length=v.length, text=name)

    # ---- mistakes ----

    def fail(self, node: ast.AST, what: str, fix: str) -> NoReturn:
        raise YamlError(place_in(self.location, self.source, getattr(node, "lineno", 1)), what, fix)

    # ---- text ----

    def emit(self, line: str) -> None:
        self.lines.append(line)

    def fresh(self, prefix: str) -> str:
        while True:
            self.counts[prefix] = self.counts.get(prefix, 0) + 1
            name = f"{prefix}{self.counts[prefix]}"
            if name not in self.taken:
                return name

    def check(self, condition: str) -> None:
        self.emit(f"if ({condition}) return {self.result.failed};")

    @contextmanager
    def branch(self) -> Iterator[list[str]]:
        """A block of its own, whose lines the caller places; names that are bound inside are gone after it."""
        lines, names, block = self.lines, self.names, self.block
        self.blocks += 1
        self.lines, self.names, self.block = [], dict(names), self.blocks
        try:
            yield self.lines
        finally:
            self.lines, self.names, self.block = lines, names, block

    def place(self, head: str, lines: list[str]) -> None:
        self.emit(f"{head} {{")
        self.lines += [f"    {line}" for line in lines]

    # ---- conversions ----

    def cost(self, v: Value, type_: Type) -> int | None:
        """How far the value is from the type; None: it cannot be passed."""
        target = kind_of(type_)
        if v.kind == target:
            return 0
        if isinstance(type_, OptionalType):
            return 0 if v.kind == "none" else self.cost(v, type_.elem)
        if isinstance(type_, ListType):
            if v.kind == "[]":
                return 0
            if target == "float[]" and v.items is not None and v.kind == "int[]":
                return 1
            if v.kind == kind_of(type_.elem) and type_.size is not None:
                return 2
            return None
        if v.is_number and target in NUMBERS and v.kind != "Scalar":
            distance = NUMBERS.index(target) - NUMBERS.index(v.kind)
            return distance if distance > 0 and (v.kind != "bool" or target == "Scalar") else None
        return None

    def coerce(self, v: Value, type_: Type) -> str:
        """The C expression for a value whose cost is not None."""
        target = kind_of(type_)
        if v.kind == "none":
            return c_type(type_).none or "NULL"
        if isinstance(type_, OptionalType):
            if v.kind == target:
                return v.c
            inner = self.coerce(v, type_.elem)
            wrap = {"int?": "TP_SOME_INT({})", "float?": "TP_SOME_FLOAT({})", "bool?": "(tp_opt_bool)({})"}.get(target)
            return wrap.format(inner) if wrap else inner
        if isinstance(type_, ListType):
            if v.items is None and v.kind == kind_of(type_.elem):
                return self.display((v,) * (type_.size or 1), target)
            return self.display(v.items, target) if v.items is not None else v.c
        return self.number(v, target) if v.is_number else v.c

    def number(self, v: Value, target: str) -> str:
        if target != "Scalar" or v.kind == "Scalar":
            return v.c
        return f"TP_SCALAR_{v.kind[0].upper()}({v.c})"

    def scalar(self, c: str) -> Value:
        name = self.fresh("s")
        self.emit(f"const tp_scalar {name} = {c};")
        return Value("Scalar", f"&{name}")

    def display(self, items: Sequence[Value], kind: str) -> str:
        """A list that lives as long as the block."""
        inner = ", ".join(item.c for item in items)
        if not items:
            return {"int[]": "TP_EMPTY_INTS"}.get(kind) or f"((tp_{kind[:-2].lower()}s){{NULL, 0}})"
        match kind:
            case "int[]":
                return f"TP_INTS({inner})"
            case "Tensor[]":
                return f"((tp_tensors){{(tp_tensor *const[]){{{inner}}}, {len(items)}}})"
            case _:
                element = {"float[]": "double", "bool[]": "bool"}[kind]
                return f"((tp_{kind[:-2]}s){{(const {element}[]){{{inner}}}, {len(items)}}})"

    def kept_list(self, v: Value) -> str:
        """A list that lives as long as the function."""
        if v.items is None or not v.items or v.kind == "Tensor[]":
            return self.display(v.items, v.kind) if v.items is not None else v.c
        name = self.fresh("a")
        self.hoisted.append(f"{DECLARATIONS[v.kind[:-2]]}{name}[{len(v.items)}];")
        for i, item in enumerate(v.items):
            self.emit(f"{name}[{i}] = {item.c};")
        return f"((tp_{v.kind[:-2]}s){{{name}, {len(v.items)}}})"

    def new_reference(self, v: Value, shared: bool = False) -> str:
        """A C expression that gives a reference away; of a variable of this block only, if it is not needed again."""
        if v.kind == "none":
            return "NULL"
        if v.owner and v.block == self.block and not shared:
            return f"tp_take({v.owner})"
        return f"tp_retain({v.c})"

    def new_seq(self, v: Value, shared: bool = False) -> str:
        if v.owner and v.block == self.block and not shared:
            return f"tp_take({v.owner})"
        return f"tp_tensor_seq_of({self.coerce(v, ListType(BaseType('Tensor')))})"

    # ---- joining branches ----

    def common_kind(self, kinds: Sequence[str]) -> str | None:
        rest = [k for k in kinds if k != "none"]
        if not rest:
            return "none"
        optional = len(rest) < len(kinds) or any(k.endswith("?") for k in rest)
        bare = {k.removesuffix("?") for k in rest}
        lists = bare - {"[]"}
        if len(lists) == 1 and len(bare) > 1 and next(iter(lists)).endswith("[]"):
            bare = lists
        if len(bare) > 1 and bare <= set(NUMBERS):
            bare = {max(bare, key=NUMBERS.index)}
        if len(bare) != 1:
            return None
        kind = next(iter(bare))
        return kind + "?" if optional else kind

    def join(self, node: ast.AST, what: str, arms: Sequence[tuple[Value, list[str], int]]) -> Value:
        """One variable for the values of all branches: (value, the branch's lines, its block)."""
        values = [v for v, _, _ in arms]
        if all(v.kind == "tuple" for v in values):
            counts = {len(v.items or ()) for v in values}
            if len(counts) == 1:
                items = tuple(
                    self.join(node, what, [(replace((v.items or ())[i], block=-1), lines, b) for v, lines, b in arms])
                    for i in range(counts.pop())
                )
                return Value("tuple", items=items)
        kind = self.common_kind([v.kind for v in values])
        if kind is None:
            kinds = " and ".join(dict.fromkeys(v.kind for v in values))
            self.fail(node, f"{what} is {kinds}", "let both branches give the same type")
        if kind == "none":
            return NONE
        if kind in TENSORS:
            name = self.fresh("t")
            self.emit(f"tp_autoref *{name} = NULL;")
            joined = Value(kind, name, owner=name, block=self.block)
        elif kind == "Tensor[]":
            name = self.fresh("q")
            self.emit(f"tp_autoseq *{name} = NULL;")
            joined = Value(kind, f"tp_tensor_seq_borrow({name})", owner=name, block=self.block)
        elif kind in DECLARATIONS:
            name = self.fresh("v")
            self.emit(f"{DECLARATIONS[kind]}{name};")
            joined = Value(kind, f"&{name}" if kind == "Scalar" else name)
        else:
            self.fail(node, f"{what} is {kind}, which cannot depend on a condition", "pass it in both branches")
        outer = self.lines, self.block
        for v, lines, block in arms:
            self.lines, self.block = lines, block
            if kind in TENSORS:
                self.emit(f"{name} = {self.new_reference(v)};")
            elif kind == "Tensor[]":
                self.emit(f"{name} = {self.new_seq(v)};")
                self.check(f"!{name}")
            elif kind == "Scalar":
                self.emit(f"{name} = *{self.number(v, 'Scalar')};")
            elif kind == "int[]?" and v.kind == "none":
                self.emit(f"{name} = TP_NO_INTS;")
            elif kind.removesuffix("?").endswith("[]"):
                kept = self.kept_list(replace(v, kind=kind.removesuffix("?")))
                self.emit(f"{name} = {kept};")
            elif kind.endswith("?"):
                self.emit(f"{name} = {self.coerce(v, OptionalType(BaseType(kind[:-1])))};")
            else:
                self.emit(f"{name} = {v.c};")
        self.lines, self.block = outer
        return joined

    # ---- expressions ----

    def expr(self, node: ast.expr) -> Value:
        raise NotImplementedError
