"""`autogen`: the in-place, out= and functional variants of an operator, derived from the entry that asks for them.

What a derived schema looks like follows from PyTorch's own pairs: the in-place variant writes self and returns it; the
out= variant lacks the tensor options of a factory, takes one out argument per return and returns them. An out argument
is named as the return; where that has no name, `out`, or `out0`, `out1`; a single one by an overload that does not
speak of out (`sigmoid_backward.grad_input`). Where lists of tensors are written, nothing is returned. What does not
follow these rules is written out: an `autogen` item may be a whole schema.

`ops_only` derives in the same way what Python's functions and methods do not show: PyTorch binds no variant that its
own generator adds, and a call of relu with `out=` is refused there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from .errors import ErrorCollector
from .model import (
    TENSOR,
    Annotation,
    Argument,
    FunctionSchema,
    ListType,
    NativeFunction,
    OperatorName,
    Return,
    Type,
    is_tensor_like,
)
from .schema import SchemaError, parse_operator_name, parse_schema

# What a variant does not take over from its source: these speak of the functional form alone.
_FUNCTIONAL_ONLY_TAGS = frozenset(("core", "view_copy", "inplace_view"))

_SAYS_OUT = re.compile(r"(?:^|_)out(?:_|$)|^Out")


class AutogenError(Exception):
    def __init__(self, what: str, fix: str) -> None:
        super().__init__(what, fix)
        self.what = what
        self.fix = fix


def _letters(used: Iterable[str]) -> Iterator[str]:
    taken = set(used)
    return (letter for letter in "abcdefghijklmnopqrstuvwxyz" if letter not in taken)


def _writable(type_: Type) -> bool:
    return type_ == TENSOR or type_ == ListType(TENSOR)


def _plain(argument: Argument) -> Argument:
    return replace(argument, annotation=None)


def derive_inplace(func: FunctionSchema, name: OperatorName) -> FunctionSchema:
    if not func.positional or func.positional[0].name != "self" or not _writable(func.positional[0].type):
        raise AutogenError(
            f"{name} cannot be derived: the first argument of {func.name} is not 'Tensor self'",
            "take it out of 'autogen'; an in-place variant writes its first argument, self",
        )
    first = func.positional[0]
    if len(func.returns) != 1 or func.returns[0].type != first.type:
        raise AutogenError(
            f"{name} cannot be derived: {func.name} does not return one {first.type}",
            "take it out of 'autogen', or write the whole schema there",
        )
    write = Annotation(("a",), True)
    rest = tuple(a if a.is_write else _plain(a) for a in func.positional[1:])
    positional = (replace(first, annotation=write, default=None), *rest)
    returns = (Return(None, TENSOR, write),) if first.type == TENSOR else ()
    return FunctionSchema(name, positional, func.kwarg_only, (), returns)


def derive_functional(func: FunctionSchema, name: OperatorName) -> FunctionSchema:
    """Each argument that was written is returned as well: self first, the others as `<argument>_out`."""
    written = [a for a in func.positional + func.kwarg_only if a.is_write]
    returned = {r.annotation.before for r in func.returns if r.annotation is not None and r.is_write}
    returns = [Return(r.name, r.type) for r in func.returns]
    for argument in written:
        assert argument.annotation is not None
        if argument.annotation.before not in returned:
            returns.append(Return(f"{argument.name}_out", argument.type))
    return FunctionSchema(
        name,
        tuple(map(_plain, func.positional)),
        tuple(map(_plain, func.kwarg_only)),
        (),
        tuple(returns),
    )


def derive_out(func: FunctionSchema, name: OperatorName) -> FunctionSchema:
    """From a functional or mutable schema, or from an in-place one, whose self is then only read."""
    positional = func.positional
    outputs: list[Return] = list(func.returns)
    if func.kind == "inplace":
        outputs = [Return(None, positional[0].type)]
        positional = (_plain(positional[0]), *positional[1:])
    if not outputs or not all(_writable(r.type) for r in outputs):
        raise AutogenError(
            f"{name} cannot be derived: {func.name} returns "
            + (f"{', '.join(str(r.type) for r in outputs)}" if outputs else "nothing"),
            "take it out of 'autogen'; an out= variant needs returns that are Tensor or Tensor[]",
        )
    positional = tuple(a if a.is_write else _plain(a) for a in positional)
    kept = func.without_tensor_options()
    used = {letter for a in (*positional, *kept) if a.annotation is not None for letter in a.annotation.before}
    letters = _letters(used)
    taken = {a.name for a in (*positional, *kept)}
    out: list[Argument] = []
    returns: list[Return] = []
    for i, output in enumerate(outputs):
        if len(outputs) > 1:
            fallback = f"out{i}"
        else:
            fallback = "out" if not name.overload or _SAYS_OUT.search(name.overload) else name.overload
        out_name = output.name if output.name is not None and output.name not in taken else fallback
        write = Annotation((next(letters),), True)
        out.append(Argument(out_name, output.type, None, write))
        returns.append(Return(output.name, output.type, write))
    if any(r.type != TENSOR for r in returns):
        returns.clear()
    return FunctionSchema(name, positional, kept, tuple(out), tuple(returns))


def _is_out_name(name: OperatorName) -> bool:
    return name.overload == "out" or name.overload.endswith("_out")


def derive(func: FunctionSchema, item: str) -> FunctionSchema:
    """The schema that an `autogen` item of an operator stands for; AutogenError if there is none."""
    try:
        if "(" in item:
            return _given(func, parse_schema(item))
        name = parse_operator_name(item)
    except SchemaError as error:
        raise AutogenError(f"'autogen': {error} in '{item}'", error.fix) from None
    base = func.name.base
    if func.kind in ("out", "scratch"):
        raise AutogenError(
            f"'autogen' on the out= operator {func.name}", "put 'autogen' on the functional or the in-place entry"
        )
    to_functional = not name.inplace and not _is_out_name(name) and func.kind in ("inplace", "mutable")
    related = {base, f"{base}_functional"} if to_functional else {base}
    if name.base not in related or name.dunder_method != func.name.dunder_method:
        raise AutogenError(
            f"{name} cannot be derived from {func.name}: it is another operator",
            f"start the name with '{base}', or give {name} an entry of its own",
        )
    if name == func.name:
        raise AutogenError(f"{name} is to be derived from itself", "take it out of 'autogen'")
    if name.inplace:
        if func.kind != "functional":
            raise AutogenError(
                f"{name} cannot be derived: {func.name} is {func.kind}",
                "derive in-place variants from the functional one",
            )
        return derive_inplace(func, name)
    return derive_functional(func, name) if to_functional else derive_out(func, name)


def _given(func: FunctionSchema, schema: FunctionSchema) -> FunctionSchema:
    if schema.signature() != func.signature():
        raise AutogenError(
            f"the autogen schema of {schema.name} has not the arguments of {func.name}",
            f"give it the arguments of '{func.signature()}', besides out arguments",
        )
    if schema.kind == func.kind:
        raise AutogenError(
            f"the autogen schema of {schema.name} is {schema.kind}, as {func.name} is",
            "write the schema of another variant: an in-place name, or an out argument such as 'Tensor(a!) out'",
        )
    return schema


def _variants(source: NativeFunction, func: FunctionSchema) -> tuple[str, ...]:
    """In-place: what the entry says; else a function where the functional is one and has a single tensor and nothing
    else that must be given (`abs_`), or is no method; else a method only (`add_.Tensor`), as PyTorch mostly has it."""
    if func.kind == "functional":
        return source.variants if source.kind == "mutable" else ("function",)
    if func.kind != "inplace":
        return ("function",)
    if source.inplace_variants is not None:
        return source.inplace_variants
    if not source.is_method:
        return ("function",)
    unary = not any(is_tensor_like(a.type) or a.default is None for a in (*func.positional[1:], *func.kwarg_only))
    return ("function", "method") if unary and source.is_function else ("method",)


def derive_function(source: NativeFunction, item: str, key: str = "autogen") -> NativeFunction:
    """`key` is the one that has the item. What does not belong to one variant (module, device checks, doc) is taken
    over; kernels are not."""
    func = derive(source.func, item)
    return NativeFunction(
        func=func,
        location=source.at(key),
        locations=source.locations,
        variants=() if key == "ops_only" else _variants(source, func),
        structured_delegate=source.structured_delegate,
        tags=tuple(tag for tag in source.tags if tag not in _FUNCTIONAL_ONLY_TAGS),
        device_check=source.device_check,
        device_guard=source.device_guard,
        python_module=source.python_module,
        category_override=source.category_override,
        doc=source.doc,
        layouts=source.inplace_layouts if func.kind == "inplace" else None,
        autogenerated=True,
        source=source,
    )


def expand_autogen(functions: Iterable[NativeFunction], errors: ErrorCollector | None = None) -> list[NativeFunction]:
    """The entries, each followed by the variants derived from it."""
    collector = ErrorCollector() if errors is None else errors
    expanded: list[NativeFunction] = []
    derived: set[FunctionSchema] = set()
    for function in functions:
        expanded.append(function)
        wanted = [(item, "autogen") for item in function.autogen] + [(item, "ops_only") for item in function.ops_only]
        for item, key in wanted:
            try:
                variant = derive_function(function, item, key)
            except AutogenError as error:
                collector.add(function.at(key), error.what, error.fix)
                continue
            # The functional and the in-place entry may both ask for the same variant.
            if variant.func not in derived:
                derived.add(variant.func)
                expanded.append(variant)
    if errors is None:
        collector.raise_if_any()
    return expanded
