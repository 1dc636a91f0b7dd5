"""Lowering of formulas to C (formula.py says what a formula is).

One pass types each expression and writes the statements that compute it; a Value says what came of it and which C
variable holds the reference.

Invariants of the C text:
  - every new tensor or list of tensors lies in a variable that releases it (tp_autoref, tp_autoseq), so that
    `return <failed>` behind any call leaks nothing;
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

from .c_types import c_result, c_type, value_decl
from .catalog import Catalog, Operator
from .errors import Location, YamlError, nearest, suggest
from .formula import (
    ATTRIBUTES,
    BUILTINS,
    DECLARATIONS,
    METHODS,
    NONE,
    NUMBERS,
    TENSORS,
    Result,
    Value,
    Variable,
    default_value,
    int_value,
    kind_of,
    literal_value,
    named_constant,
    parse,
    place_in,
)
from .model import Argument, BaseType, FunctionSchema, ListType, OptionalType, Type

# ---------------------------------------------------------------------------------------------------------------------
# Operators
# ---------------------------------------------------------------------------------------------------------------------

_index_of: tuple[Catalog, dict[str, list[Operator]]] | None = None


def operators_by_name(catalog: Catalog) -> dict[str, list[Operator]]:
    """Unqualified name -> overloads in YAML order."""
    global _index_of
    if _index_of is None or _index_of[0] is not catalog:
        index: dict[str, list[Operator]] = {}
        for op in catalog:
            index.setdefault(op.schema.name.unqualified, []).append(op)
        _index_of = (catalog, index)
    return _index_of[1]


def has_optional_outputs(schema: FunctionSchema) -> bool:
    """`output_mask` leaves outputs undefined, so that a NULL output is no sign of failure."""
    return any(a.name == "output_mask" for a in schema.arguments)


def call_failed(schema: FunctionSchema, name: str) -> str:
    """A C condition: the call whose result is in `name` failed."""
    test = c_result(schema).is_error(name)
    return f"{test} && tp_error_pending()" if has_optional_outputs(schema) else test


_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floor_divide",
    ast.Mod: "remainder",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
    ast.BitAnd: "bitwise_and",
    ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor",
}
_COMPARE: dict[type[ast.cmpop], tuple[str, str, str]] = {  # operator, the same seen from the right, C
    ast.Lt: ("lt", "gt", "<"),
    ast.LtE: ("le", "ge", "<="),
    ast.Gt: ("gt", "lt", ">"),
    ast.GtE: ("ge", "le", ">="),
    ast.Eq: ("eq", "eq", "=="),
    ast.NotEq: ("ne", "ne", "!="),
}
_COMMUTATIVE = ("add", "mul", "bitwise_and", "bitwise_or", "bitwise_xor")
_C_ARITHMETIC: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}
_SCALAR_ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.Pow: "pow",
}


# ---------------------------------------------------------------------------------------------------------------------
# Lowering
# ---------------------------------------------------------------------------------------------------------------------


class _Lowering:
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
        self.assigned: dict[str, ast.AST] = {}
        self.read: set[str] = set()
        self.hoisted: list[str] = []
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
        """A block of its own, whose lines the caller places; names that are bound inside are gone behind it."""
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
        match node:
            case ast.Constant(value=value):
                literal = literal_value(value)
                if literal is None:
                    self.fail(node, f"`{ast.unparse(node)}` in a formula", "use numbers, strings, True, False, None")
                return literal
            case ast.Name(id=name):
                return self.name(name, node)
            case ast.Tuple(elts=elements):
                return Value("tuple", items=tuple(map(self.expr, elements)))
            case ast.List(elts=elements):
                return self.list_display(node, [self.expr(e) for e in elements])
            case ast.Attribute(value=base, attr=attr):
                return self.attribute(self.expr(base), attr, node)
            case ast.Subscript(value=base, slice=index):
                return self.subscript(self.expr(base), index, node)
            case ast.Call():
                return self.call(node)
            case ast.UnaryOp(op=op, operand=operand):
                return self.unary(op, operand, node)
            case ast.BinOp(left=left, op=op, right=right):
                return self.binary(type(op), self.expr(left), self.expr(right), node)
            case ast.Compare():
                return self.comparison(node)
            case ast.BoolOp(op=op, values=operands):
                return self.bool_op(isinstance(op, ast.And), operands)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self.conditional(test, body, orelse, node)
            case _:
                self.fail(
                    node,
                    f"`{ast.unparse(node)}` is not part of a formula",
                    "use calls, operators, conditional expressions, lists and tuples",
                )

    def name(self, name: str, node: ast.AST) -> Value:
        self.read.add(name)
        if name in self.names:
            return self.names[name]
        if name in self.half_bound:
            self.fail(node, f"'{name}' is assigned in one branch only", "assign it in both, or before the `if`")
        constant = named_constant(name)
        if constant is not None:
            return constant
        known = ", ".join(self.names)
        self.fail(node, f"unknown name '{name}'", suggest(name, self.names, f"the formula knows {known}"))

    def list_display(self, node: ast.AST, items: Sequence[Value]) -> Value:
        if not items:
            return Value("[]", items=())
        kinds = {v.kind for v in items}
        if kinds <= {"Tensor", "Tensor?", "none"}:
            return Value("Tensor[]", items=tuple(items))
        for kind, wanted in (("int", {"int"}), ("bool", {"bool"}), ("float", {"int", "float"})):
            if kinds <= wanted:
                return Value(f"{kind}[]", items=tuple(items))
        self.fail(node, f"a list of {', '.join(sorted(kinds))}", "make lists of tensors, ints, floats or bools")

    def part(self, v: Value, part: str, node: ast.AST) -> str:
        """A part of a tensor in C."""
        if v.parts is not None:
            if part not in v.parts:
                self.fail(node, f"'{v.text}' is not there as a whole", "report this: used() missed a use")
            return v.parts[part]
        match part:
            case "sizes" | "strides":
                return f"tp_{part}({v.c})"
            case "dtype":
                return f"(tp_dtype){v.c}->dtype"
            case "device":
                return f"{v.c}->device"
            case "offset":
                return f"tp_storage_offset({v.c})"
            case "requires_grad":
                return f"tp_requires_grad({v.c})"
            case _:
                return f"({v.c} != NULL)"

    def whole(self, v: Value, node: ast.AST) -> Value:
        if v.is_tensor and v.parts is not None:
            self.fail(node, f"'{v.text}' is not there as a whole", "report this: used() missed a use")
        return v

    def need_tensor(self, v: Value, node: ast.AST) -> None:
        if v.kind == "Tensor?":
            self.fail(
                node,
                f"`{v.text or ast.unparse(node)}` may be None",
                f"write `... if {v.text or 'x'} is not None else undefined()`",
            )

    def attribute(self, v: Value, attr: str, node: ast.expr) -> Value:
        if v.kind == "ScalarType" and attr in ("is_complex", "is_floating_point"):
            test = "tp_is_complex_dtype" if attr == "is_complex" else "tp_is_floating_dtype"
            return Value("bool", f"{test}({v.c})")
        self.need_tensor(v, node)
        if v.kind != "Tensor":
            self.fail(node, f"`.{attr}` of {v.kind}", "only a tensor has attributes")
        match attr:
            case "shape" | "strides":
                return Value("int[]", self.part(v, ATTRIBUTES[attr], node))
            case "ndim":
                return Value(
                    "int", f"(int64_t){v.c}->ndim" if v.parts is None else f"{self.part(v, 'sizes', node)}.size"
                )
            case "dtype":
                return Value("ScalarType", self.part(v, "dtype", node))
            case "device":
                return Value("Device", self.part(v, "device", node))
            case "requires_grad":
                return Value("bool", self.part(v, attr, node))
            case "layout":
                return Value("Layout", "TP_STRIDED")
            case "T":
                return self.operator("t", v, [], {}, node)
            case "mT" | "mH":
                turned = self.operator("transpose", v, [int_value(-2), int_value(-1)], {}, node)
                return self.operator("conj", turned, [], {}, node) if attr == "mH" else turned
            case "real" | "imag":
                return self.operator(attr, v, [], {}, node)
            case _:
                known = (*ATTRIBUTES, "T", "mT", "mH", "real", "imag")
                self.fail(node, f"a tensor has no `.{attr}`", suggest(attr, known, f"use {', '.join(known)}"))

    def constant_index(self, index: ast.expr) -> int | None:
        match index:
            case ast.Constant(value=int() as i):
                return i
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as i)):
                return -i
            case _:
                return None

    def subscript(self, v: Value, index: ast.expr, node: ast.expr) -> Value:
        if v.kind == "tuple" or (v.items is not None and v.kind.endswith("[]")):
            items = v.items or ()
            i = self.constant_index(index)
            if i is None:
                self.fail(node, "an index that is no constant", "write the number of the item")
            if not -len(items) <= i < len(items):
                self.fail(node, f"item {i} of {len(items)}", f"count from 0 to {len(items) - 1}")
            return items[i]
        if v.kind in TENSORS:
            self.fail(node, "an index into a tensor", "call select(dim, index) or slice(dim, start, end)")
        if v.kind not in ("int[]", "bool[]", "float[]", "Tensor[]"):
            self.fail(node, f"an index into {v.kind}", "only lists and tuples take one")
        if isinstance(index, ast.Slice):
            if v.kind != "int[]" or index.step is not None:
                self.fail(node, "a slice with a step, or of another list than int[]", "slice int lists as a[1:3]")
            low, high = (self.integer(b) if b is not None else None for b in (index.lower, index.upper))
            return Value("int[]", f"tp_ints_slice({v.c}, {low or '0'}, {high or 'INT64_MAX'})")
        i = self.constant_index(index)
        if v.length is not None and i is not None:
            if not -v.length <= i < v.length:
                self.fail(node, f"item {i} of {v.length}", f"count from 0 to {v.length - 1}")
            return Value(v.kind[:-2], f"{v.c}.data[{i % v.length}]")
        at = self.fresh("i")
        self.emit(f"const int64_t {at} = tp_list_index({v.c}.size, {self.integer(index)});")
        self.check(f"{at} < 0")
        return Value(v.kind[:-2], f"{v.c}.data[{at}]")

    def integer(self, node: ast.expr) -> str:
        v = self.expr(node)
        if v.kind not in ("int", "bool"):
            self.fail(node, f"`{ast.unparse(node)}` is {v.kind}", "give an int")
        return v.c

    # ---- conditions ----

    def truth(self, node: ast.expr) -> str:
        v = self.expr(node)
        match v.kind:
            case "bool":
                return v.c
            case "int" | "float":
                return f"({v.c} != 0)"
            case "Scalar":
                return f"tp_scalar_bool({v.c})"
            case "Tensor" | "Tensor?":
                self.fail(
                    node,
                    f"the tensor `{ast.unparse(node)}` as a condition",
                    "test its shape, its dtype or for None, or choose elements with where(condition, a, b)",
                )
            case _:
                self.fail(node, f"{v.kind} as a condition", "write a comparison, or `is not None`")

    def is_none(self, v: Value, node: ast.AST) -> str:
        if v.kind == "none":
            return "true"
        if not v.kind.endswith("?"):
            self.fail(node, f"`{v.text or 'this'}` is never None here", "take the test out")
        if v.kind == "Tensor?":
            return f"!{self.part(v, 'defined', node)}" if v.parts is not None else f"({v.c} == NULL)"
        if v.kind.endswith("[]?"):
            return f"({v.c}.size < 0)"
        match v.kind:
            case "int?" | "float?":
                return f"!{v.c}.has"
            case "bool?":
                return f"({v.c} < 0)"
            case "ScalarType?":
                return f"({v.c} == TP_NO_DTYPE)"
            case "MemoryFormat?":
                return f"({v.c} == TP_NO_FORMAT)"
            case "Layout?":
                return f"({v.c} == TP_NO_LAYOUT)"
            case "Device?":
                return f"({v.c}.type < 0)"
            case _:
                return f"({v.c} == NULL)"

    def none_tests(self, node: ast.expr, outcome: bool) -> set[str]:
        """The names that are not None where the condition has the outcome."""
        match node:
            case ast.Compare(left=ast.Name(id=name), ops=[op], comparators=[ast.Constant(value=None)]):
                return {name} if isinstance(op, ast.IsNot if outcome else ast.Is) else set()
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self.none_tests(operand, not outcome)
            case ast.BoolOp(op=op, values=operands) if isinstance(op, ast.And if outcome else ast.Or):
                return set().union(*(self.none_tests(operand, outcome) for operand in operands))
            case _:
                return set()

    def narrow(self, names: Iterable[str]) -> None:
        """From here on in this block the names are not None."""
        for name in names:
            v = self.names.get(name)
            if v is None or not v.kind.endswith("?"):
                continue
            c = {"int?": f"{v.c}.value", "float?": f"{v.c}.value", "bool?": f"({v.c} != 0)"}.get(v.kind, v.c)
            self.names[name] = replace(v, kind=v.kind[:-1], c=c)

    def bool_op(self, is_and: bool, operands: Sequence[ast.expr]) -> Value:
        test = self.truth(operands[0])
        for i, operand in enumerate(operands[1:], 1):
            with self.branch() as lines:
                for before in operands[:i]:
                    self.narrow(self.none_tests(before, is_and))
                c = self.truth(operand)
            if lines:  # what it computes is computed only if it is needed
                name = self.fresh("b")
                self.emit(f"bool {name} = {test};")
                self.place(f"if ({name if is_and else '!' + name})", [*lines, f"{name} = {c};"])
                self.emit("}")
                test = name
            else:
                test = f"({test} {'&&' if is_and else '||'} {c})"
        return Value("bool", test)

    def comparison(self, node: ast.Compare) -> Value:
        parts = []
        left = self.expr(node.left)
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            if isinstance(op, (ast.Is, ast.IsNot)):
                if not (isinstance(right_node, ast.Constant) and right_node.value is None):
                    self.fail(node, "`is` with something else than None", "write `==`, or `is None`")
                test = self.is_none(left, node)
                if isinstance(op, ast.IsNot):
                    test = test[1:] if test.startswith("!") else f"!{test}"
                parts.append(Value("bool", test))
                continue
            if isinstance(op, (ast.In, ast.NotIn)):
                if not isinstance(right_node, (ast.Tuple, ast.List)):
                    self.fail(node, "`in` with something else than a list of constants", "write `x in ('a', 'b')`")
                tests = [self.compare(ast.Eq(), left, self.expr(e), node).c for e in right_node.elts]
                test = f"({' || '.join(tests) or 'false'})"
                parts.append(Value("bool", test if isinstance(op, ast.In) else f"!{test}"))
                continue
            right = self.expr(right_node)
            parts.append(self.compare(op, left, right, node))
            left = right
        if len(parts) == 1:
            return parts[0]
        if any(p.kind != "bool" for p in parts):
            self.fail(node, "a chain of comparisons of tensors", "join two comparisons by `&`")
        return Value("bool", f"({' && '.join(p.c for p in parts)})")

    def compare(self, op: ast.cmpop, left: Value, right: Value, node: ast.expr) -> Value:
        name, mirrored, c_op = _COMPARE[type(op)]
        if left.is_tensor or right.is_tensor:
            if left.is_tensor:
                return self.operator(name, None, [left, right], {}, node)
            return self.operator(mirrored, None, [right, left], {}, node)
        equality = c_op in ("==", "!=")
        bare = {left.kind.removesuffix("?"), right.kind.removesuffix("?")}
        if left.is_number and right.is_number:
            if "Scalar" not in bare:
                return Value("bool", f"({left.c} {c_op} {right.c})")
            a, b = self.number(left, "Scalar"), self.number(right, "Scalar")
            if equality:
                return Value("bool", f"{'!' if c_op == '!=' else ''}tp_scalar_equal({a}, {b})")
            a, b = (a, b) if "<" in c_op else (b, a)
            return Value("bool", f"tp_scalar_{'less_equal' if '=' in c_op else 'less'}({a}, {b})")
        if len(bare) == 1 and equality:
            kind = bare.pop()
            prefix = "!" if c_op == "!=" else ""
            if kind in ("ScalarType", "MemoryFormat", "Layout"):
                return Value("bool", f"({left.c} {c_op} {right.c})")
            equal = {"str": "tp_str_equal", "Device": "tp_device_equal", "int[]": "tp_ints_equal"}.get(kind)
            if equal is not None:
                as_list = ListType(BaseType("int"))
                a, b = (self.coerce(v, as_list) if kind == "int[]" else v.c for v in (left, right))
                return Value("bool", f"{prefix}{equal}({a}, {b})")
        self.fail(
            node,
            f"`{ast.unparse(node)}` compares {left.kind} with {right.kind}",
            "compare numbers, strings, dtypes, int lists, or tensors; test an optional for None first",
        )

    def conditional(self, test: ast.expr, body: ast.expr, orelse: ast.expr, node: ast.expr) -> Value:
        c = self.truth(test)
        arms: list[tuple[Value, list[str], int]] = []
        for outcome, arm in ((True, body), (False, orelse)):
            with self.branch() as lines:
                self.narrow(self.none_tests(test, outcome))
                arms.append((self.expr(arm), lines, self.block))
        (a, a_lines, _), (b, b_lines, _) = arms
        kind = self.common_kind([a.kind, b.kind])
        simple = kind in ("bool", "int", "float", "str", "ScalarType", "MemoryFormat")
        if simple and not a_lines and not b_lines:
            return Value(kind or "", f"({c} ? {a.c} : {b.c})")
        joined = self.join(node, f"`{ast.unparse(node)}`", arms)
        self.place(f"if ({c})", a_lines)
        self.place("} else", b_lines)
        self.emit("}")
        return joined

    # ---- arithmetic ----

    def unary(self, op: ast.unaryop, operand: ast.expr, node: ast.expr) -> Value:
        if isinstance(op, ast.Not):
            return Value("bool", f"!{self.truth(operand)}")
        v = self.expr(operand)
        if isinstance(op, ast.USub) and isinstance(v.literal, (int, float)) and not isinstance(v.literal, bool):
            return literal_value(-v.literal) or v
        if v.is_tensor:
            if isinstance(op, ast.UAdd):
                return v
            return self.operator("neg" if isinstance(op, ast.USub) else "bitwise_not", v, [], {}, node)
        if isinstance(op, ast.USub) and v.kind in ("int", "float"):
            return Value(v.kind, f"(-{v.c})")
        if isinstance(op, ast.USub) and v.kind == "Scalar":
            return self.scalar(f"tp_scalar_neg({v.c})")
        self.fail(node, f"`{ast.unparse(node)}` on {v.kind}", "negate tensors and numbers only")

    def scalar(self, c: str) -> Value:
        name = self.fresh("s")
        self.emit(f"const tp_scalar {name} = {c};")
        return Value("Scalar", f"&{name}")

    def binary(self, op: type[ast.operator], left: Value, right: Value, node: ast.expr) -> Value:
        name = _BINARY.get(op)
        if name is not None and left.is_tensor:
            return self.operator(name, None, [left, right], {}, node)
        if name is not None and right.is_tensor:
            return self.reflected(name, left, right, node)
        if left.is_number and right.is_number:
            value = self.number_binary(op, left, right)
            if value is not None:
                return value
        if op is ast.Add and left.kind in ("int[]", "[]") and right.kind in ("int[]", "[]"):
            return self.concatenate(left, right)
        if op is ast.Mult and left.kind == "int[]" and left.items is not None and isinstance(right.literal, int):
            return replace(left, items=left.items * right.literal)
        self.fail(
            node,
            f"`{ast.unparse(node)}` on {left.kind} and {right.kind}",
            "compute with tensors and numbers, and join int lists by `+`",
        )

    def reflected(self, name: str, left: Value, right: Value, node: ast.expr) -> Value:
        """number op tensor."""
        if name in _COMMUTATIVE:
            return self.operator(name, None, [right, left], {}, node)
        if name == "sub":
            if self.best("rsub", None, [right, left], {}) is not None:
                return self.operator("rsub", None, [right, left], {}, node)
            return self.operator("add", None, [self.operator("neg", right, [], {}, node), left], {}, node)
        if name == "div":
            inverse = self.operator("reciprocal", right, [], {}, node)
            return inverse if left.literal == 1 else self.operator("mul", None, [inverse, left], {}, node)
        return self.operator(name, None, [left, right], {}, node)

    def number_binary(self, op: type[ast.operator], left: Value, right: Value) -> Value | None:
        if "Scalar" in (left.kind, right.kind):
            name = _SCALAR_ARITHMETIC.get(op)
            if name is None:
                return None
            return self.scalar(f"tp_scalar_{name}({self.number(left, 'Scalar')}, {self.number(right, 'Scalar')})")
        kind = "float" if "float" in (left.kind, right.kind) else "int"
        if op in _C_ARITHMETIC:
            return Value(kind, f"({left.c} {_C_ARITHMETIC[op]} {right.c})")
        if op is ast.Div:
            return Value("float", f"((double){left.c} / (double){right.c})")
        if op in (ast.FloorDiv, ast.Mod) and kind == "int":
            return Value("int", f"tp_floor_{'div' if op is ast.FloorDiv else 'mod'}({left.c}, {right.c})")
        if op is ast.Pow:
            return Value("float", f"pow({left.c}, {right.c})")
        if op in (ast.BitAnd, ast.BitOr) and left.kind == right.kind == "bool":
            return Value("bool", f"({left.c} {'&' if op is ast.BitAnd else '|'} {right.c})")
        return None

    def concatenate(self, left: Value, right: Value) -> Value:
        if left.items is not None and right.items is not None:
            return Value("int[]", items=left.items + right.items)
        room = self.fresh("a")
        self.hoisted.append(f"int64_t {room}[TP_MAX_DIMS];")
        name = self.fresh("v")
        as_list = ListType(BaseType("int"))
        a, b = self.coerce(left, as_list), self.coerce(right, as_list)
        self.emit(f"const tp_ints {name} = tp_ints_join({room}, {a}, {b});")
        self.check(f"{name}.size < 0")
        return Value("int[]", name)

    # ---- calls ----

    def call(self, node: ast.Call) -> Value:
        if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
            self.fail(node, "`*` or `**` in a call", "write the arguments out")
        if isinstance(node.func, ast.Attribute):
            receiver = self.expr(node.func.value)
            args = [self.expr(a) for a in node.args]
            return self.method(receiver, node.func.attr, args, self.keywords(node), node)
        if not isinstance(node.func, ast.Name):
            self.fail(node, f"a call of `{ast.unparse(node.func)}`", "call an operator by its name")
        name = node.func.id
        args = [self.expr(a) for a in node.args]
        if name in BUILTINS and not node.keywords:
            value = self.builtin(name, args, node)
            if value is not None:
                return value
        return self.operator(name, None, args, self.keywords(node), node)

    def keywords(self, node: ast.Call) -> dict[str, Value]:
        return {k.arg: self.expr(k.value) for k in node.keywords if k.arg is not None}

    def method(self, v: Value, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.Call) -> Value:
        if v.is_tensor and name in METHODS and not kwargs:
            self.need_tensor(v, node)
            return self.known_of_tensor(v, name, args, node)
        if v.kind == "Tensor[]" and name == "sizes" and len(node.args) == 1:
            key = f"sizes({ast.unparse(node.args[0])})"
            if v.parts is None or key not in v.parts:
                self.fail(node, "`.sizes(dim)` of a list that is not an argument", "use it in derivatives.yaml only")
            return Value("int[]", v.parts[key])
        if v.kind == "Scalar" and not args and not kwargs:
            if name == "is_complex":
                return Value("bool", f"(({v.c})->kind == TP_SCALAR_COMPLEX)")
            if name in ("conj", "neg", "log", "exp", "sqrt"):
                return self.scalar(f"tp_scalar_{name}({v.c})")
        if v.is_number and name == "conj":
            return v
        if v.kind == "Tensor" and name == "conj" and not args and not kwargs and v.parts is None:
            local = self.fresh("t")  # a real tensor is its own conjugate: no call
            test = f"tp_is_complex_dtype({self.part(v, 'dtype', node)})"
            self.emit(f"tp_autoref *{local} = {test} ? tp_conj({v.c}) : tp_retain({v.c});")
            self.check(f"!{local}")
            return Value("Tensor", local, owner=local, block=self.block)
        return self.operator(name, v, args, kwargs, node)

    def known_of_tensor(self, v: Value, name: str, args: list[Value], node: ast.Call) -> Value:
        part = METHODS[name]
        if name in ("size", "stride"):
            if len(args) != 1 or args[0].kind != "int":
                self.fail(node, f"`{ast.unparse(node)}`", f"write `.{name}(dim)`, or `.shape` for all")
            at = self.fresh("i")
            c = self.part(v, part, node)
            self.emit(f"const int64_t {at} = tp_wrap_dim({args[0].c}, {c}.size);")
            self.check(f"{at} < 0")
            return Value("int", f"tp_size_at({c}, {at})")
        if args:
            self.fail(node, f"`.{name}()` takes no arguments", f"write `.{name}()`")
        match name:
            case "numel":
                return Value("int", f"{v.c}->numel" if v.parts is None else f"tp_ints_numel({v.parts['sizes']})")
            case "dim":
                return Value("int", f"(int64_t){v.c}->ndim" if v.parts is None else f"{v.parts['sizes']}.size")
            case "storage_offset":
                return Value("int", self.part(v, part, node))
            case _:
                test = "tp_is_complex_dtype" if name == "is_complex" else "tp_is_floating_dtype"
                return Value("bool", f"{test}({self.part(v, part, node)})")

    def builtin(self, name: str, args: list[Value], node: ast.Call) -> Value | None:
        """None: it is an operator after all (`exp(x)`, `max(a, b)`)."""
        if name == "undefined":
            if args:
                self.fail(node, "`undefined()` takes no arguments", "write `undefined()`")
            return NONE
        if name == "len":
            if len(args) != 1 or not (args[0].kind.endswith("[]") or args[0].kind == "tuple"):
                self.fail(node, f"`{ast.unparse(node)}`", "`len` takes one list; a tensor has `.shape` and `.ndim`")
            v = args[0]
            if v.kind == "Tensor[]" and v.parts is not None:
                return Value("int", v.parts["length"])
            return int_value(len(v.items)) if v.items is not None else Value("int", f"{v.c}.size")
        if not args or not all(v.is_number for v in args):
            if name in ("float", "int", "bool"):
                self.fail(node, f"`{ast.unparse(node)}`", f"`{name}` converts one number")
            return None
        kinds = {v.kind for v in args}
        if name in ("float", "int", "bool"):
            v = args[0]
            if v.kind == "Scalar":
                return Value(name, f"tp_scalar_{'double' if name == 'float' else name}({v.c})")
            return Value(name, f"({v.c} != 0)" if name == "bool" else f"({DECLARATIONS[name].strip()}){v.c}")
        if name in ("sqrt", "exp", "log"):
            v = args[0]
            return self.scalar(f"tp_scalar_{name}({v.c})") if v.kind == "Scalar" else Value("float", f"{name}({v.c})")
        if "Scalar" in kinds:
            self.fail(node, f"`{name}` of a Scalar", "convert it with float() or int() first")
        suffix = "double" if "float" in kinds else "int"
        kind = "float" if "float" in kinds else "int"
        c = args[0].c
        if name == "abs":
            return Value(kind, f"tp_abs_{suffix}({c})")
        for v in args[1:]:
            c = f"tp_{name}_{suffix}({c}, {v.c})"
        return Value(kind, c)

    # ---- operators ----

    def bind(
        self, op: Operator, receiver: Value | None, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> tuple[int, list[tuple[Argument, Value]]] | None:
        """The arguments by the schema, and how far they are from it."""
        given = dict(kwargs)
        positional = list(op.schema.positional)
        if receiver is not None:
            if all(a.name != "self" for a in positional):
                positional = positional[1:] if positional else []
                given.setdefault(op.schema.positional[0].name if op.schema.positional else "", receiver)
            else:
                positional = [a for a in positional if a.name != "self"]
                if given.setdefault("self", receiver) is not receiver:
                    return None
        if len(args) > len(positional):
            return None
        for argument, value in zip(positional, args, strict=False):
            if given.setdefault(argument.name, value) is not value:
                return None
        total = 0
        bound: list[tuple[Argument, Value]] = []
        for argument in op.schema.arguments:
            value_or_none = given.pop(argument.name, None)
            if value_or_none is None:
                if argument.default is None:
                    return None
                default = default_value(argument.default)
                if default is None:
                    return None
                bound.append((argument, default))
                continue
            cost = self.cost(value_or_none, argument.type)
            if cost is None:
                return None
            total += cost
            bound.append((argument, value_or_none))
        return None if given else (total, bound)

    def best(
        self, name: str, receiver: Value | None, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> tuple[Operator, list[tuple[Argument, Value]]] | None:
        found: tuple[int, Operator, list[tuple[Argument, Value]]] | None = None
        for op in self.operators.get(name, ()):
            bound = self.bind(op, receiver, args, kwargs)
            if bound is not None and (found is None or bound[0] < found[0]):
                found = (bound[0], op, bound[1])
        return None if found is None else found[1:]

    def operator(
        self, name: str, receiver: Value | None, args: Sequence[Value], kwargs: Mapping[str, Value], node: ast.expr
    ) -> Value:
        if name not in self.operators:
            close = nearest(name, [*self.operators, *(BUILTINS if receiver is None else METHODS)])
            fix = f"did you mean '{close}'?" if close else "declare it in native_functions.yaml first"
            self.fail(node, f"unknown operator '{name}'", fix)
        found = self.best(name, receiver, args, kwargs)
        if found is None:
            every = ([] if receiver is None else [receiver.kind]) + [v.kind for v in args]
            given = ", ".join(every + [f"{k}={v.kind}" for k, v in kwargs.items()])
            candidates = " | ".join(str(op.schema) for op in self.operators[name] if not op.schema.out)
            hint = ""
            if "Tensor?" in every:
                hint = "; a `Tensor?` has to be tested for None first"
            self.fail(node, f"no overload of '{name}' takes ({given})", f"there is {candidates or 'no such'}{hint}")
        op, bound = found
        return self.call_operator(op, bound, node)

    def call_operator(self, op: Operator, bound: Sequence[tuple[Argument, Value]], node: ast.expr) -> Value:
        values = []
        target: Value | None = None
        for argument, value in bound:
            self.whole(value, node)
            if value.items is not None:
                for item in value.items:
                    self.whole(item, node)
            if argument.is_write:
                if not (value.owner or value.writable):
                    self.fail(
                        node,
                        f"`{op.schema.name}` would write to the given '{value.text or argument.name}'",
                        f"call `{op.schema.name.base}`, or write to a new tensor",
                    )
                target = target or value
            values.append(self.coerce(value, argument.type))
        schema = op.schema
        result = c_result(schema)
        call = f"tp_{op.c}({', '.join(values)})"
        match result.kind:
            case "status":
                self.check(f"{call} < 0")
                return target if target is not None else NONE
            case "tensor":
                name = self.fresh("t")
                self.emit(f"tp_autoref *{name} = {call};")
                self.check(f"!{name}")
                return Value("Tensor", name, owner=name, block=self.block)
            case "tensors":
                pack = self.fresh("r")
                self.emit(f"{result.decl}{pack} = {call};")
                self.check(call_failed(schema, pack))
                kind = "Tensor?" if has_optional_outputs(schema) else "Tensor"
                items = []
                for i in range(result.count):
                    name = self.fresh("t")
                    self.emit(f"tp_autoref *{name} = {pack}.v[{i}];")
                    items.append(Value(kind, name, owner=name, block=self.block))
                return Value("tuple", items=tuple(items))
            case "seq":
                name = self.fresh("q")
                self.emit(f"tp_autoseq *{name} = {call};")
                self.check(f"!{name}")
                return Value("Tensor[]", f"tp_tensor_seq_borrow({name})", owner=name, block=self.block)
            case _:
                name = self.fresh("v")
                self.emit(f"{value_decl(result)}{name};")
                self.check(f"tp_{op.c}({', '.join([*values, '&' + name])}) < 0")
                kind = kind_of(schema.returns[0].type)
                return Value(kind, f"&{name}" if kind == "Scalar" else name)

    # ---- statements ----

    def assign(self, target: ast.expr, value: Value, node: ast.stmt) -> None:
        match target:
            case ast.Name(id=name):
                if name in self.variables:
                    self.fail(node, f"an assignment to '{name}', which is given", "take another name")
                if value.kind == "none" and name != "_":
                    value = Value("none", "NULL")
                if value.is_number and value.literal is None and not re.fullmatch(r"&?\w+", value.c):
                    local = self.fresh("v")
                    if value.kind == "Scalar":
                        self.emit(f"const tp_scalar {local} = *{value.c};")
                        value = Value("Scalar", f"&{local}")
                    else:
                        self.emit(f"const {DECLARATIONS[value.kind]}{local} = {value.c};")
                        value = Value(value.kind, local)
                self.names[name] = replace(value, text=name)
                self.half_bound.discard(name)
                self.assigned.setdefault(name, node)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                if value.kind != "tuple" or value.items is None:
                    what = f"{len(targets)} names for one {value.kind}"
                    self.fail(node, what, "unpack a call with several results, or index a list")
                if len(value.items) != len(targets):
                    self.fail(
                        node,
                        f"{len(targets)} names for {len(value.items)} results",
                        f"write {len(value.items)} names; `_` for one that is not needed",
                    )
                for each, item in zip(targets, value.items, strict=True):
                    self.assign(each, item, node)
            case _:
                self.fail(node, f"an assignment to `{ast.unparse(target)}`", "assign to a name")

    def statements(self, body: Sequence[ast.stmt], is_tail: bool) -> bool:
        """True if the end cannot be reached. `is_tail`: the last statement gives the result."""
        for i, statement in enumerate(body):
            last = is_tail and i == len(body) - 1
            match statement:
                case ast.Return(value=value):
                    self.finish(self.expr(value) if value is not None else NONE, statement)
                    if i < len(body) - 1:
                        self.fail(body[i + 1], "a statement behind `return`", "take it out")
                    return True
                case ast.Expr(value=value) if last:
                    self.finish(self.expr(value), statement)
                    return True
                case ast.Expr(value=ast.Call() as call):
                    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
                    name = call.func.id if isinstance(call.func, ast.Name) else name
                    if not (name.endswith("_") and not name.startswith("__")):
                        self.fail(
                            statement,
                            f"the result of `{ast.unparse(call)}` is lost",
                            "assign it, or call an in-place operator",
                        )
                    self.expr(call)
                case ast.Assign(targets=[target], value=value):
                    self.assign(target, self.expr(value), statement)
                case ast.AugAssign():
                    self.fail(statement, "an augmented assignment", "write `x = x + ...`, or `x.add_(...)`")
                case ast.If():
                    if self.if_statement(statement, last):
                        return True
                case ast.Pass():
                    pass
                case _:
                    self.fail(
                        statement,
                        f"`{ast.unparse(statement)}` is not part of a formula",
                        "write `name = expression`, `if`, in-place calls and a last expression",
                    )
        return False

    def if_statement(self, node: ast.If, is_tail: bool) -> bool:
        test = self.truth(node.test)
        arms: list[tuple[dict[str, Value], list[str], int, bool]] = []
        half_bound = set(self.half_bound)
        for outcome, body in ((True, node.body), (False, node.orelse)):
            with self.branch() as lines:
                self.narrow(self.none_tests(node.test, outcome))
                tail = is_tail and bool(body)
                ended = self.statements(body, tail)
                arms.append((self.names, lines, self.block, ended))
            half_bound |= self.half_bound
        self.half_bound = half_bound
        open_arms = [(names, lines, block) for names, lines, block, ended in arms if not ended]
        assigned = [
            name
            for name in self.assigned
            if any(names.get(name) is not self.names.get(name) for names, _, _ in open_arms)
        ]

        def once(names: Mapping[str, Value], name: str) -> Value:
            """A reference that two names share stays in its variable."""
            v = names[name]
            shared = v.owner and sum(n in names and names[n].owner == v.owner for n in assigned) > 1
            return replace(v, block=-1) if shared else v

        for name in assigned:
            if any(name not in names for names, _, _ in open_arms):
                self.half_bound.add(name)
                self.names.pop(name, None)
                continue
            joined = self.join(
                node, f"'{name}'", [(once(names, name), lines, block) for names, lines, block in open_arms]
            )
            self.names[name] = replace(joined, text=name)
        self.place(f"if ({test})", arms[0][1])
        if arms[1][1]:
            self.place("} else", arms[1][1])
        self.emit("}")
        for outcome, other in ((True, 1), (False, 0)):
            if arms[other][3]:  # only this outcome comes here
                self.narrow(self.none_tests(node.test, outcome))
        return not open_arms

    # ---- the result ----

    def finish(self, value: Value, node: ast.AST) -> None:
        r = self.result
        values: tuple[Value, ...] = (value,)
        if len(r.kinds) != 1:
            values = value.items or () if value.kind == "tuple" else (value,)
            if r.form == "status":
                self.emit("return 0;")
                return
            if value.kind == "none" and r.form == "slots":
                values = (NONE,) * len(r.kinds)
            if len(values) != len(r.kinds):
                self.fail(
                    node, f"{len(values)} results where {len(r.kinds)} are wanted", f"give a tuple of {len(r.kinds)}"
                )
        for i, (v, kind) in enumerate(zip(values, r.kinds, strict=True)):
            self.check_result(v, kind, f"result {i}" if len(values) > 1 else "the result", node)
        owners = [v.owner for v in values if v.owner]
        # Everything ends here, so an outer block's variable may be taken as well, unless it is wanted twice.
        values = tuple(replace(v, block=self.block) if owners.count(v.owner) == 1 else v for v in values)
        shared = [owners.count(v.owner) > 1 for v in values]
        match r.form:
            case "tensor":
                self.emit(f"return {self.new_reference(values[0], shared[0])};")
            case "tensors":
                items = ", ".join(self.new_reference(v, s) for v, s in zip(values, shared, strict=True))
                self.emit(f"return ({r.decl.strip()}){{{{{items}}}}};")
            case "seq":
                self.emit(f"return {self.new_seq(values[0])};")
            case "value":
                c = f"*{self.number(values[0], 'Scalar')}" if r.kinds[0] == "Scalar" else values[0].c
                self.emit(f"*result = {c};")
                self.emit("return 0;")
            case _:
                for v, s, slot in zip(values, shared, r.slots, strict=True):
                    if v.kind == "none":
                        continue
                    if slot.count:
                        c = self.coerce(v, ListType(BaseType("Tensor")))
                        self.check(f"tp_put_gradients({slot.c}, {slot.count}, {c}) < 0")
                    else:
                        self.emit(f"{slot.c} = {self.new_reference(v, s)};")
                self.emit("return 0;")

    def check_result(self, v: Value, kind: str, what: str, node: ast.AST) -> None:
        self.whole(v, node)
        number = v.is_number and kind in NUMBERS and NUMBERS.index(v.kind) <= NUMBERS.index(kind)
        if v.kind == kind or number or (kind.endswith("?") and v.kind in ("none", kind[:-1])):
            return
        if kind == "Tensor[]" and (v.kind == "[]" or (v.kind == "none" and self.result.form == "slots")):
            return
        fix = f"give a {kind}"
        if kind == "Tensor" and v.kind in ("none", "Tensor?"):
            fix = "return a tensor in every case"
        self.fail(node, f"{what} is {v.kind}, not {kind}", fix)

    def lower(self) -> list[str]:
        body = parse(self.source, self.location)
        if not self.statements(body, True):
            if self.result.form == "status":
                self.emit("return 0;")
            else:
                self.fail(body[-1], "no result", "end the formula, and each branch of a last `if`, with an expression")
        for name, node in self.assigned.items():
            if name not in self.read and not name.startswith("_"):
                self.fail(node, f"'{name}' is assigned and never used", "take it out, or call it `_`")
        return self.hoisted + self.lines


def lower_body(
    variables: Mapping[str, Variable], text: str, result: Result, catalog: Catalog, location: Location
) -> list[str]:
    """The C statements of a formula, without indentation; they end in `return`."""
    return _Lowering(variables, text, result, catalog, location).lower()


def lower_function(
    name: str,
    parameters: str,
    variables: Mapping[str, Variable],
    text: str,
    result: Result,
    catalog: Catalog,
    location: Location,
    prologue: Sequence[str] = (),
) -> str:
    """A static C function that computes the formula; `prologue` makes the variables."""
    body = [*prologue, *lower_body(variables, text, result, catalog, location)]
    lines = "".join(f"    {line}\n" for line in body)
    return f"static {result.decl}{name}({parameters}) {{\n{lines}}}\n"
