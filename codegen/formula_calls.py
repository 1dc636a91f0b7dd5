"""Calls in formulas: the operator that fits the kinds of the arguments, methods, and the few functions that are no
operators.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence

from .c_types import c_result, has_optional_outputs, value_decl
from .catalog import Operator
from .errors import nearest
from .formula import (
    BUILTINS,
    DECLARATIONS,
    METHODS,
    NONE,
    PARTS,
    Value,
    default_value,
    int_value,
    kind_of,
)
from .formula_context import Context
from .model import Argument, FunctionSchema


def call_failed(schema: FunctionSchema, name: str) -> str:
    """A C condition: the call whose result is in `name` failed."""
    test = c_result(schema).is_error(name)
    return f"{test} && tp_error_pending()" if has_optional_outputs(schema) else test


class Calls(Context):
    def part(self, v: Value, part: str, node: ast.AST) -> str:
        """A part of a tensor in C."""
        if v.parts is not None:
            if part not in v.parts:
                self.fail(node, f"'{v.text}' is not there as a whole", "report this: used() missed a use")
            return v.parts[part]
        c = PARTS[part].of(v.c)
        return f"({c})" if part == "defined" else c

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

    # ---- calls ----

    def call(self, node: ast.Call) -> Value:
        if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
            self.fail(node, "`*` or `**` in a call", "write the arguments out")
        if isinstance(node.func, ast.Attribute):
            match node.func.value:
                case ast.Attribute(value=ast.Name(id="ops"), attr=namespace):
                    args = [self.expr(a) for a in node.args]
                    return self.operator(f"{namespace}::{node.func.attr}", None, args, self.keywords(node), node)
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
                self.fail(node, "`.sizes(dim)` of a list that is not an argument", "use it in derivatives/ only")
            return Value("int[]", v.parts[key])
        if v.kind == "Scalar" and not args and not kwargs:
            if name == "is_complex":
                return Value("bool", f"(({v.c})->kind == TP_SCALAR_COMPLEX)")
            if name in ("conj", "neg", "log", "exp", "sqrt"):
                return self.scalar(f"tp_scalar_{name}({v.c})")
        if v.is_number and name == "conj":
            return v
        if v.kind == "Tensor" and name == "conj" and not args and not kwargs and v.parts is None:
            return self.conjugated(v, node)
        return self.operator(name, v, args, kwargs, node)

    def conjugated(self, v: Value, node: ast.AST) -> Value:
        """Computed at once, since what follows reads it; a real tensor is its own conjugate: no call."""
        local = self.fresh("t")
        test = f"tp_is_complex_dtype({self.part(v, 'dtype', node)})"
        op = self.overloads("conj_physical", node)[0]
        self.called.setdefault(str(op.schema.name), op)
        self.emit(f"tp_autoref *{local} = {test} ? {op.call}({v.c}) : tp_retain({v.c});")
        self.check(f"!{local}")
        return Value("Tensor", local, owner=local, block=self.block)

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
                return Value("int", f"tp_numel_of({v.c})" if v.parts is None else f"tp_ints_numel({v.parts['sizes']})")
            case "dim":
                return Value("int", f"tp_ndim_of({v.c})" if v.parts is None else f"{v.parts['sizes']}.size")
            case "storage_offset" | "by_columns":
                return Value("int" if name == "storage_offset" else "bool", self.part(v, part, node))
            case _:
                test = "tp_is_complex_dtype" if name == "is_complex" else "tp_is_floating_dtype"
                return Value("bool", f"{test}({self.part(v, part, node)})")

    def builtin(self, name: str, args: list[Value], node: ast.Call) -> Value | None:
        """None: it is an operator after all (`exp(x)`, `max(a, b)`)."""
        if name == "undefined":
            if args:
                self.fail(node, "`undefined()` takes no arguments", "write `undefined()`")
            return NONE
        if name == "is_grad_enabled":
            if args:
                self.fail(node, "`is_grad_enabled()` takes no arguments", "write `is_grad_enabled()`")
            return Value("bool", "tp_is_differentiated()")
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
                if name != "bool":  # an imaginary part would be dropped
                    self.check(f"tp_scalar_check_fits({v.c}, {'TP_FLOAT64' if name == 'float' else 'TP_INT64'}) < 0")
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

    def overloads(self, name: str, node: ast.AST, others: Iterable[str] = ()) -> Sequence[Operator]:
        """Those of a name; `others` are names that may have been meant."""
        if name not in self.operators:
            close = nearest(name, [*self.operators, *others])
            fix = f"did you mean '{close}'?" if close else "declare it in native_functions/ first"
            self.fail(node, f"unknown operator '{name}'", fix)
        return self.operators[name]

    def operator(
        self, name: str, receiver: Value | None, args: Sequence[Value], kwargs: Mapping[str, Value], node: ast.expr
    ) -> Value:
        self.overloads(name, node, METHODS if receiver is not None else BUILTINS)
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
        self.called.setdefault(str(schema.name), op)
        self.calls.append(op)
        result = c_result(schema)
        call = f"{op.call}({', '.join(values)})"
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
                self.check(f"{op.call}({', '.join([*values, '&' + name])}) < 0")
                kind = kind_of(schema.returns[0].type)
                return Value(kind, f"&{name}" if kind == "Scalar" else name)
