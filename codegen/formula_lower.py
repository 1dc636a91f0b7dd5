"""Lowering of formulas to C (formula.py says what a formula is).

One pass types each expression and writes the statements that compute it; a Value says what came of it and which C
variable holds the reference. Each layer of it stands on the one before: formula_context.py, formula_calls.py,
formula_expressions.py, and the statements here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from .catalog import Catalog, Operator
from .errors import Location, YamlError, YamlErrors, suggest
from .formula import (
    DECLARATIONS,
    NONE,
    NUMBERS,
    Result,
    Value,
    Variable,
    parse,
)
from .formula_expressions import Expressions
from .model import BaseType, ListType
from .text import c_string, c_warning

# What a formula may raise: the classes that csrc/core/error.h has.
ERRORS = ("RuntimeError", "TypeError", "ValueError", "IndexError", "NotImplementedError")


class _Lowering(Expressions):
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
                self.unknown.discard(name)
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
            try:
                ended = self.statement(statement, body[i + 1 :], last)
            except YamlError as error:
                self.mistaken(statement, error)
                ended = last or isinstance(statement, ast.Return)
            if ended:
                return True
        return False

    def mistaken(self, statement: ast.stmt, error: YamlError) -> None:
        """Keeps a mistake, unless it comes of another one; what the statement assigns is known no more."""
        names = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
        if not any(name.id in self.unknown and isinstance(name.ctx, ast.Load) for name in names):
            self.mistakes.append(error)
        self.unknown |= {name.id for name in names if isinstance(name.ctx, ast.Store)}

    def statement(self, statement: ast.stmt, rest: Sequence[ast.stmt], is_last: bool) -> bool:
        match statement:
            case ast.Return(value=value):
                self.finish(self.expr(value) if value is not None else NONE, statement)
                if rest:
                    self.fail(rest[0], "a statement after `return`", "take it out")
                return True
            case ast.Expr(
                value=ast.Call(func=ast.Name(id="warn"), args=[ast.Constant(value=str() as text)], keywords=[])
            ):
                self.emit(c_warning(text, self.result.failed))
            case ast.Expr(value=value) if is_last:
                self.finish(self.expr(value), statement)
                return True
            case ast.Expr(value=ast.Call() as call):
                self.call_statement(call, statement)
            case ast.Assign(targets=[target], value=value):
                self.assign(target, self.expr(value), statement)
            case ast.AugAssign():
                self.fail(statement, "an augmented assignment", "write `x = x + ...`, or `x.add_(...)`")
            case ast.Raise():
                self.raise_statement(statement)
                return True
            case ast.If():
                self.to_come.append(rest)
                ended = self.if_statement(statement, is_last)
                self.to_come.pop()
                return ended
            case ast.Pass():
                pass
            case _:
                self.fail(
                    statement,
                    f"`{ast.unparse(statement)}` is not part of a formula",
                    "write `name = expression`, `if`, in-place calls and a last expression",
                )
        return False

    def call_statement(self, call: ast.Call, node: ast.stmt) -> None:
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        name = call.func.id if isinstance(call.func, ast.Name) else name
        overloads = self.operators.get(name, ())
        nothing = bool(overloads) and not any(op.schema.returns for op in overloads)
        if not (name.endswith("_") and not name.startswith("__")) and not nothing:
            self.fail(node, f"the result of `{ast.unparse(call)}` is lost", "assign it, or call an in-place operator")
        self.expr(call)

    def raise_statement(self, node: ast.Raise) -> None:
        """raise ValueError("text"), or an f-string with ints, lists of ints, strings and dtypes"""
        match node.exc:
            case ast.Call(func=ast.Name(id=name), args=[ast.JoinedStr(values=values)], keywords=[]) if name in ERRORS:
                text, arguments = "", []
                for value in values:
                    if isinstance(value, ast.Constant):
                        text += str(value.value).replace("%", "%%")
                        continue
                    assert isinstance(value, ast.FormattedValue)
                    shown = self.expr(value.value)
                    if shown.kind == "int[]":
                        text += "%s"
                        arguments.append(f"tp_ints_text((char[256]){{0}}, 256, {shown.c})")
                    elif shown.kind == "str":
                        text += "%s"
                        arguments.append(shown.c)
                    elif shown.kind == "ScalarType":
                        text += "%s"
                        arguments.append(f"tp_scalar_type_name({shown.c})")
                    else:
                        text += "%lld"
                        arguments.append(f"(long long)({self.integer_of(value.value, shown)})")
                self.emit(f"tp_fail(TP_{name}, {', '.join([c_string(text), *arguments])});")
                self.emit(f"return {self.result.failed};")
            case ast.Call(func=ast.Name(id=name), args=[ast.Constant(value=str() as text)], keywords=[]):
                if name not in ERRORS:
                    self.fail(node, f"unknown exception '{name}'", suggest(name, ERRORS, f"use {', '.join(ERRORS)}"))
                self.emit(f'tp_fail(TP_{name}, "%s", {c_string(text)});')
                self.emit(f"return {self.result.failed};")
            case _:
                self.fail(node, f"`{ast.unparse(node)}`", 'write `raise RuntimeError("operator: what is wrong")`')

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
        to_come = {n.id for rest in self.to_come for s in rest for n in ast.walk(s) if isinstance(n, ast.Name)}
        assigned = [
            name
            for name in self.assigned
            if name in to_come and any(names.get(name) is not self.names.get(name) for names, _, _ in open_arms)
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
                if value.kind != "none" and not value.writable:
                    what = f"`{ast.unparse(node)}` is given, and the operator gives what it has written"
                    self.fail(node, what, "end with a call that writes: `self.copy_(...)`")
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
        """Raises all the mistakes of the formula: one of each statement."""
        body = parse(self.source, self.location)
        try:
            self.end(body, self.statements(body, True))
        except YamlError as error:
            self.mistakes.append(error)
        if len(self.mistakes) > 1:
            raise YamlErrors(self.mistakes)
        if self.mistakes:
            raise self.mistakes[0]
        return self.hoisted + self.lines

    def end(self, body: Sequence[ast.stmt], ended: bool) -> None:
        if self.mistakes:
            return
        if not ended and self.result.form == "status":
            self.emit("return 0;")
        elif not ended:
            self.fail(body[-1], "no result", "end the formula, and each branch of a last `if`, with an expression")
        for name, node in self.assigned.items():
            if name not in self.read and not name.startswith("_"):
                self.fail(node, f"'{name}' is assigned and never used", "take it out, or call it `_`")


class Lowered:
    """A formula in C: its statements, which end in `return`, the operators that they call (`calls`: each as often as it
    is written, a number's and a view's among them) and those that any of its branches dispatches to (`called`).

    Mistakes are raised, or go to the catalogue's list of them.
    """

    def __init__(
        self, variables: Mapping[str, Variable], text: str, result: Result, catalog: Catalog, location: Location
    ) -> None:
        lowering = _Lowering(variables, text, result, catalog, location)
        self.lines: list[str] = []
        try:
            self.lines = lowering.lower()
        except (YamlError, YamlErrors) as error:
            if catalog.mistakes is None:
                raise
            catalog.mistakes.take(error)
        self.calls: list[Operator] = lowering.calls
        self.called = tuple(lowering.called.values())


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
    body = [*prologue, *Lowered(variables, text, result, catalog, location).lines]
    lines = "".join(f"    {line}\n" for line in body)
    return f"static {result.decl}{name}({parameters}) {{\n{lines}}}\n"
