"""Expressions of formulas: names, lists, indices, conditions and arithmetic."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import replace

from .errors import suggest
from .formula import (
    ATTRIBUTES,
    TENSORS,
    Value,
    int_value,
    literal_value,
    named_constant,
)
from .formula_calls import Calls
from .model import BaseType, ListType

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


class Expressions(Calls):
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
                return Value("int", f"tp_ndim_of({v.c})" if v.parts is None else f"{self.part(v, 'sizes', node)}.size")
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
                return self.conjugated(turned, node) if attr == "mH" else turned
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
        return self.integer_of(node, self.expr(node))

    def integer_of(self, node: ast.expr, v: Value) -> str:
        """What a node came to, which has to be an int."""
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
