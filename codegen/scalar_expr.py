"""The scalar expression of a pointwise operator: Python syntax, typed per dtype class.

    expression = a Python expression over the operator's arguments, numbers, pi, e, inf, nan, largest and the helpers
    block      = {name "=" expression (";" | newline)} expression

Arithmetic is C's in the compute type T of the dtype class: `/` needs a floating or complex T, `//` and `%` are
Python's, integers wrap. A str parameter is compared with a literal, an optional one tested with `is None`. A literal
becomes a constant of the type it meets, so float stays float. The tree is in scalar_ir.py, its lowering in
scalar_lower.py.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import NoReturn

from .errors import Location, YamlError, YamlErrors, nearest
from .scalar_ir import (
    LITERALS,
    Binary,
    Block,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    IsNone,
    Kind,
    Name,
    Select,
    StrEqual,
    Unary,
    Var,
    leaf_of,
)
from .scalar_math import CONSTANTS, FORMS, HELPERS, Helper, LeafClass

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_AS_CALL = {"//": "floor_divide", "%": "remainder", "**": "pow", "<<": "lshift", ">>": "rshift"}

_CLASS_NAMES: dict[LeafClass, str] = {
    "bool": "bool",
    "uint": "unsigned integers",
    "sint": "signed integers",
    "float": "floating types",
    "complex": "complex types",
}


class _Typer:
    def __init__(self, names: Mapping[str, Name], leaf: LeafClass, location: Location, source: str) -> None:
        self.names = dict(names)
        self.leaf = leaf
        self.location = location
        self.source = source
        self.mistakes: list[YamlError] = []
        self.unknown: set[str] = set()  # locals whose line has a mistake

    def mistaken(self, statement: ast.stmt, error: YamlError) -> None:
        """Keeps a mistake, unless it comes of another one."""
        names = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
        if not any(name.id in self.unknown and isinstance(name.ctx, ast.Load) for name in names):
            self.mistakes.append(error)
        self.unknown |= {name.id for name in names if isinstance(name.ctx, ast.Store)}

    def fail(self, what: str, fix: str, at: ast.AST | None = None) -> NoReturn:
        text = ast.get_source_segment(self.source, at) if isinstance(at, ast.expr) else None
        where = f" in `{text}`" if text and text != self.source else ""
        raise YamlError(self.location, f"{what}{where} (expression for {_CLASS_NAMES[self.leaf]})", fix)

    # ---- conversions ----

    @property
    def real(self) -> Kind:
        return Kind.R if self.leaf == "complex" else Kind.T

    def join(self, a: Kind, b: Kind, at: ast.expr) -> Kind:
        """The type in which two operands meet."""
        if Kind.S in (a, b):
            self.fail("a str in arithmetic", 'compare it with a literal: mode == "floor"', at)
        if a in LITERALS and b in LITERALS:
            return Kind.FLOAT_LITERAL if Kind.FLOAT_LITERAL in (a, b) else Kind.INT_LITERAL
        if a in LITERALS:
            a, b = b, a
        if b in LITERALS:
            if a is Kind.B:
                a = Kind.T
            if b is Kind.FLOAT_LITERAL and (a is Kind.I or (a is Kind.T and self.leaf in ("bool", "uint", "sint"))):
                self.fail(
                    "a fractional literal meets an integer", "write a whole number, or an own expression for float", at
                )
            return a
        if a is b:
            return Kind.T if a is Kind.B else a
        rank = (
            [Kind.B, Kind.I, Kind.R, Kind.T] if self.leaf in ("float", "complex") else [Kind.B, Kind.I, Kind.T, Kind.D]
        )
        return max(a, b, key=rank.index)

    def cast(self, expr: Expr, kind: Kind, at: ast.expr) -> Expr:
        if expr.kind is kind:
            return expr
        if expr.kind is Kind.S or kind is Kind.S:
            self.fail("a str where a number is needed", 'compare it with a literal: mode == "floor"', at)
        if isinstance(expr, Const) and expr.kind in LITERALS:
            if kind is Kind.B:
                return Const(int(expr.value != 0), Kind.B)
            if expr.kind is Kind.FLOAT_LITERAL and (
                kind is Kind.I or (kind is Kind.T and self.leaf in ("bool", "uint", "sint"))
            ):
                self.fail("a fractional literal where an integer is needed", "write a whole number", at)
            return Const(expr.value, kind)
        if expr.kind is Kind.T and self.leaf == "complex" and kind is not Kind.B:
            self.fail("a complex value where a real one is needed", "take real(...), imag(...) or abs(...)", at)
        if kind is Kind.T and expr.kind is Kind.D:
            self.fail("a float value where an integer is needed", "convert it: int(...)", at)
        if isinstance(expr, Select):  # so that literals inside become constants
            return Select(expr.test, self.cast(expr.then, kind, at), self.cast(expr.orelse, kind, at), kind)
        return Cast(expr, kind)

    # ---- nodes ----

    def type(self, node: ast.expr) -> Expr:
        match node:
            case ast.Constant(value=bool() as flag):
                return Const(int(flag), Kind.B)
            case ast.Constant(value=int() as number):
                return Const(number, Kind.INT_LITERAL)
            case ast.Constant(value=float() as number):
                return Const(number, Kind.FLOAT_LITERAL)
            case ast.Constant(value=str()):
                self.fail("a string by itself", 'compare a str argument with it: mode == "floor"', node)
            case ast.Name(id=name):
                return self.name(name, node)
            case ast.UnaryOp(op=op, operand=operand):
                return self.unary(op, operand, node)
            case ast.BinOp(left=left, op=op, right=right):
                return self.binary(_BINARY.get(type(op), "@"), self.type(left), self.type(right), node)
            case ast.BoolOp(op=op, values=values):
                word = "&" if isinstance(op, ast.And) else "|"
                parts = [self.cast(self.type(v), Kind.B, v) for v in values]
                result = parts[0]
                for part in parts[1:]:
                    result = Binary(word, result, part, Kind.B)
                return result
            case ast.Compare():
                return self.compare(node)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self.select(test, body, orelse, node)
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
                return self.call(name, args, node)
            case _:
                self.fail(
                    f"`{ast.unparse(node)}` is not part of the scalar language",
                    "use names, numbers, operators, comparisons, `a if c else b` and helper calls f(x)",
                    node,
                )

    def name(self, name: str, node: ast.expr) -> Expr:
        if name in self.names:
            known = self.names[name]
            return Var(name, known.kind, known.uniform)
        if name in CONSTANTS:
            return Const(CONSTANTS[name], Kind.FLOAT_LITERAL)
        close = nearest(name, [*self.names, *CONSTANTS])
        self.fail(
            f"unknown name '{name}'",
            f"did you mean '{close}'?" if close else f"use one of {', '.join([*self.names, *CONSTANTS])}",
            node,
        )

    def unary(self, op: ast.unaryop, operand: ast.expr, node: ast.expr) -> Expr:
        x = self.type(operand)
        if isinstance(op, ast.UAdd):
            return x
        if isinstance(op, ast.Not):
            return Unary("not", self.cast(x, Kind.B, operand), Kind.B)
        if isinstance(op, ast.USub):
            if isinstance(x, Const) and x.kind in LITERALS:
                return Const(-x.value, x.kind)
            if self.leaf == "bool" and x.kind in (Kind.T, Kind.B):
                self.fail("a bool cannot be negated", "use `not`, or leave bool out of this operator's classes", node)
            x = self.cast(x, Kind.T, operand) if x.kind is Kind.B else x
            return Unary("-", x, x.kind)
        if x.kind is Kind.B or (x.kind is Kind.T and self.leaf == "bool"):
            return self.cast(Unary("not", self.cast(x, Kind.B, operand), Kind.B), x.kind, node)
        self.need_integer("~", x.kind, node)
        x = self.cast(x, Kind.T, operand) if x.kind in LITERALS else x
        return Unary("~", x, x.kind)

    def need_integer(self, op: str, kind: Kind, node: ast.expr) -> None:
        if kind in (Kind.D, Kind.R, Kind.FLOAT_LITERAL) or (kind is Kind.T and self.leaf in ("float", "complex")):
            self.fail(f"`{op}` works on bool and integers only", "leave this class out of the operator", node)

    def binary(self, op: str, a: Expr, b: Expr, node: ast.expr) -> Expr:
        assert isinstance(node, ast.BinOp)
        if op == "@":
            self.fail("`@` is not part of the scalar language", "use + - * / // % ** & | ^ << >>", node)
        if isinstance(a, Const) and isinstance(b, Const) and a.kind in LITERALS and b.kind in LITERALS:
            return self.fold(op, a, b, node)
        if op in ("&", "|", "^") and a.kind is b.kind is Kind.B:
            return Binary(op, a, b, Kind.B)
        if op == "**" and isinstance(b, Const) and b.value in (2, 3) and isinstance(a, Var) and a.kind is not Kind.B:
            power = Binary("*", a, a, a.kind)
            return power if b.value == 2 else Binary("*", power, a, a.kind)
        kind = self.join(a.kind, b.kind, node)
        a, b = self.cast(a, kind, node.left), self.cast(b, kind, node.right)
        if op in _AS_CALL:
            return self.call_helper(HELPERS[_AS_CALL[op]], (a, b), kind, node, op)
        if op in ("&", "|", "^"):
            self.need_integer(op, kind, node)
        elif kind is Kind.T and self.leaf == "bool" and op == "-":
            self.fail("bools cannot be subtracted", "use ^, or leave bool out of this operator's classes", node)
        if op == "/" and (kind is Kind.I or (kind is Kind.T and self.leaf in ("bool", "uint", "sint"))):
            self.fail(
                "`/` on integers",
                "use //, leave integers out, or compute as floats (a pointwise operator's `promotion: int_to_float`)",
                node,
            )
        return Binary(op, a, b, kind)

    def fold(self, op: str, a: Const, b: Const, node: ast.expr) -> Expr:
        x, y = a.value, b.value
        try:
            match op:
                case "+":
                    value: float = x + y
                case "-":
                    value = x - y
                case "*":
                    value = x * y
                case "/":
                    value = x / y
                case "//":
                    value = x // y
                case "%":
                    value = x % y
                case "**":
                    value = x**y
                case "<<" | ">>" if isinstance(x, int) and isinstance(y, int):
                    value = x << y if op == "<<" else x >> y
                case _:
                    self.fail(f"`{op}` between two literals", "write the result", node)
        except (ZeroDivisionError, OverflowError, ValueError) as error:
            self.fail(f"the constant cannot be computed: {error}", "write inf or nan where that is meant", node)
        return Const(value, Kind.INT_LITERAL if isinstance(value, int) else Kind.FLOAT_LITERAL)

    def compare(self, node: ast.Compare) -> Expr:
        if len(node.ops) == 1:
            special = self.compare_param(node)
            if special is not None:
                return special
        parts: list[Expr] = []
        operands = [node.left, *node.comparators]
        for op, left, right in zip(node.ops, operands, operands[1:], strict=False):
            if type(op) not in _COMPARE:
                self.fail(
                    "this comparison is not part of the scalar language",
                    "use == != < <= > >=, and `is None` on an optional parameter",
                    node,
                )
            word = _COMPARE[type(op)]
            a, b = self.type(left), self.type(right)
            kind = Kind.B if a.kind is b.kind is Kind.B else self.join(a.kind, b.kind, node)
            if kind in LITERALS:
                self.fail("a comparison of two literals", "write its result", node)
            if kind is Kind.T and self.leaf == "complex" and word not in ("==", "!="):
                self.fail(f"`{word}` on complex numbers", "leave complex out of this operator's classes", node)
            parts.append(Compare(word, self.cast(a, kind, left), self.cast(b, kind, right)))
        result = parts[0]
        for part in parts[1:]:
            result = Binary("&", result, part, Kind.B)
        return result

    def compare_param(self, node: ast.Compare) -> Expr | None:
        op, left, right = node.ops[0], node.left, node.comparators[0]
        if isinstance(op, (ast.Is, ast.IsNot)):
            if not (isinstance(left, ast.Name) and isinstance(right, ast.Constant) and right.value is None):
                self.fail("`is` is for `name is None` only", "use == for values", node)
            name = self.names.get(left.id)
            if name is None:
                self.name(left.id, left)
            elif not name.optional:
                self.fail(f"'{left.id}' is never None", "take the test out, or declare the argument optional", node)
            return Unary("not", IsNone(left.id), Kind.B) if isinstance(op, ast.IsNot) else IsNone(left.id)
        if isinstance(left, ast.Constant) and isinstance(left.value, str):
            left, right = right, left
        if isinstance(right, ast.Constant) and isinstance(right.value, str):
            if not isinstance(left, ast.Name) or left.id not in self.names or self.names[left.id].kind is not Kind.S:
                self.fail("a string literal compared with something that is not a str", "compare a str argument", node)
            if isinstance(op, ast.Eq):
                return StrEqual(left.id, right.value)
            if isinstance(op, ast.NotEq):
                return Unary("not", StrEqual(left.id, right.value), Kind.B)
            self.fail("strings are only equal or not", "use == or !=", node)
        return None

    def select(self, test: ast.expr, body: ast.expr, orelse: ast.expr, node: ast.expr) -> Expr:
        condition = self.cast(self.type(test), Kind.B, test)
        a, b = self.type(body), self.type(orelse)
        kind = a.kind if a.kind is b.kind else self.join(a.kind, b.kind, node)
        if kind in LITERALS:
            kind = Kind.D if kind is Kind.FLOAT_LITERAL and self.leaf in ("bool", "uint", "sint") else self.real
        return Select(condition, self.cast(a, kind, body), self.cast(b, kind, orelse), kind)

    def call(self, name: str, args: list[ast.expr], node: ast.Call) -> Expr:
        if name in self.names:
            self.fail(f"'{name}' is an argument, not a helper", "write `*` for a product", node)
        if name not in HELPERS and name not in FORMS:
            close = nearest(name, [*HELPERS, *FORMS])
            self.fail(
                f"unknown helper '{name}'",
                f"did you mean '{close}'?" if close else "the helpers are listed in codegen/scalar_math.py",
                node,
            )
        arity = FORMS[name] if name in FORMS else HELPERS[name].arity
        if len(args) != arity:
            self.fail(
                f"'{name}' takes {arity} argument{'s' if arity != 1 else ''}, not {len(args)}",
                f"write {name}({', '.join('xyz'[:arity])})",
                node,
            )
        if name in FORMS:
            return self.form(name, args, node)
        values = [self.type(a) for a in args]
        kind = values[0].kind
        for value in values[1:]:
            kind = kind if kind is value.kind else self.join(kind, value.kind, node)
        if kind in (Kind.B, Kind.I):
            kind = Kind.T
        if kind in LITERALS:
            kind = Kind.D if kind is Kind.FLOAT_LITERAL and self.leaf in ("bool", "uint", "sint") else self.real
        typed = tuple(self.cast(v, kind, a) for v, a in zip(values, args, strict=True))
        return self.call_helper(HELPERS[name], typed, kind, node, name)

    def call_helper(self, helper: Helper, args: tuple[Expr, ...], kind: Kind, node: ast.expr, written: str) -> Expr:
        leaf = leaf_of(kind, self.leaf)
        if leaf not in helper.classes:
            known = sorted({_CLASS_NAMES[c] for c in helper.classes})
            self.fail(
                f"'{written}' is not there for {_CLASS_NAMES[leaf]}",
                f"it works on {' and '.join(known)}; write an own expression for this class, or leave the class out",
                node,
            )
        if helper.result == "bool":
            return Call(helper.name, args, kind, Kind.B)
        return Call(helper.name, args, kind, self.real if helper.result == "real" and kind is Kind.T else kind)

    def form(self, name: str, args: list[ast.expr], node: ast.Call) -> Expr:
        match name:
            case "where":
                return self.select(args[0], args[1], args[2], node)
            case "bool":
                return self.cast(self.type(args[0]), Kind.B, args[0])
            case "T":
                return self.cast(self.type(args[0]), Kind.T, args[0])
            case "int":
                return self.cast(self.type(args[0]), Kind.I, args[0])
            case "complex":
                if self.leaf != "complex":
                    self.fail("complex(re, im) outside the complex class", "give complex an own expression", node)
                parts = tuple(self.cast(self.type(a), Kind.R, a) for a in args)
                return Call("complex", parts, Kind.T, Kind.T)
            case _:  # real, imag
                value = self.type(args[0])
                if self.leaf == "complex":
                    return Call(name, (self.cast(value, Kind.T, args[0]),), Kind.T, Kind.R)
                return value if name == "real" else Const(0, Kind.T)

    def let(self, statement: ast.stmt) -> tuple[str, Expr]:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                if name in self.names or name in HELPERS or name in CONSTANTS or name in FORMS:
                    self.fail(f"'{name}' has a meaning already", "give the local another name")
                expr = self.type(value)
                if expr.kind in LITERALS:
                    expr = self.cast(expr, self.real, value)
                self.names[name] = Name(expr.kind)
                return name, expr
        self.fail(f"`{ast.unparse(statement)}` is not part of the scalar language", "only `name = expression` lines")


def parse(source: str, names: Mapping[str, Name], leaf: LeafClass, result: Kind, location: Location) -> Block:
    """Parses and types an expression for one dtype class; the result is converted to `result`."""
    text = "\n".join(line.strip() for line in source.replace(";", "\n").splitlines() if line.strip())
    typer = _Typer(names, leaf, location, text)
    try:
        module = ast.parse(text)
    except SyntaxError as error:
        raise YamlError(
            location,
            f"not a Python expression: {error.msg} (line {error.lineno} of `{text}`)",
            "write `name = expression` lines and a last expression, in Python syntax",
        ) from None
    if not module.body or not isinstance(module.body[-1], ast.Expr):
        typer.fail("no result", "end the block with an expression")
    lets: list[tuple[str, Expr]] = []
    for statement in module.body[:-1]:
        try:
            lets.append(typer.let(statement))
        except YamlError as error:
            typer.mistaken(statement, error)
    last = module.body[-1]
    assert isinstance(last, ast.Expr)
    final: Expr = Const(0, Kind.T)
    try:
        final = typer.cast(typer.type(last.value), typer.real if result is Kind.R else result, last.value)
    except YamlError as error:
        typer.mistaken(last, error)
    if typer.mistakes:
        raise typer.mistakes[0] if len(typer.mistakes) == 1 else YamlErrors(typer.mistakes)
    return Block(tuple(lets), final, text)
