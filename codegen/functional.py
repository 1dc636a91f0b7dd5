"""What functionalisation knows of an operator (csrc/functionalize/rule.h).

Which operator gives what another writes follows from the families of variants. How a view is undone its entry says:

    inverse: select_scatter(base, view, dim, index)

`base` is what is viewed, `view` what the view is to show; the other arguments go by their names, and of a view that
gives a list `which` is the place in it. What is given is the base with that view. An inverse that names `stored` in
place of `base` is of a view that goes by strides and not by dimensions: its base is the memory itself, as it lies.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from .catalog import Catalog, Operator
from .errors import ErrorCollector, YamlError, YamlErrors
from .formula import used
from .model import TENSOR, Argument, FunctionSchema, NativeFunction, Return


@dataclass(frozen=True)
class Functional:
    """The operator that does without writing (or without a view), the inverse, whether it goes by strides."""

    other: Operator | None
    inverse: str | None = None
    by_places: bool = False


def writes(op: Operator) -> bool:
    return any(a.is_write for a in op.schema.arguments)


def _turned(op: Operator, catalog: Catalog) -> Operator | None:
    """The view `transpose.int` of `transpose_`: of its overload, or of the same arguments."""
    types = [str(a.type) for a in op.schema.arguments]
    views = [o for o in catalog.overloads(op.schema.name.base) if o.is_view and not writes(o)]
    same = [o for o in views if [str(a.type) for a in o.schema.arguments] == types]
    return next((o for o in same if o.schema.name.overload == op.schema.name.overload), next(iter(same), None))


def _fits(op: Operator, other: Operator) -> bool:
    """Whether results and arguments of the functional variant are those that the layer puts together."""
    returned = [r for r in op.schema.returns if r.annotation is None or not r.is_write]
    written = [a for a in op.schema.arguments if a.is_write]
    known = {a.name for a in op.schema.arguments} | {"dtype", "layout", "device", "pin_memory", "memory_format"}
    takes = all(a.name in known for a in other.schema.arguments)
    return takes and not writes(other) and len(other.schema.returns) == len(returned) + len(written)


def _functional(op: Operator, catalog: Catalog) -> Operator | None:
    if "inplace_view" in op.function.tags:
        return _turned(op, catalog)
    functional = op.group.functional
    other = catalog.by_name.get(str(functional.name)) if functional is not None else None
    return other if other is not None and _fits(op, other) else None


def functional_of(op: Operator, catalog: Catalog) -> Functional | None:
    if writes(op):
        other = _functional(op, catalog)
        return Functional(other) if other is not None else None
    if not op.is_view:
        return None
    name = op.schema.name
    copy = catalog.by_name.get(f"{name.unqualified}_copy" + (f".{name.overload}" if name.overload else ""))
    inverse = op.function.inverse
    by_places = inverse is not None and "stored" in used(inverse, op.function.at("inverse"))
    return Functional(copy, inverse, by_places) if copy is not None or inverse is not None else None


def check_inverses(operators: Iterable[Operator]) -> None:
    """Every view that is no composite says how it is undone; nothing else does."""
    errors = []
    for op in operators:
        function = op.function
        has = function.inverse is not None
        if has and not (op.is_view and not writes(op)):
            fix = "take 'inverse' out, or name the alias in the schema: Tensor(a) self -> Tensor(a)"
            errors.append(YamlError(function.at("inverse"), f"{op.schema.name} has an 'inverse' and is no view", fix))
        elif not has and op.is_view and not writes(op) and not op.is_implicit and op.kernels:
            what = f"the view {op.schema.name} does not say how it is undone"
            fix = "write 'inverse:', the base with `view` in place of what is shown: select_scatter(base, view, ...)"
            errors.append(YamlError(function.location, what, fix))
    if errors:
        raise YamlErrors(errors)


def inverse_entries(functions: Iterable[NativeFunction], errors: ErrorCollector) -> list[NativeFunction]:
    """The inverses of a library's views as operators of its own: `turn_inverse(Tensor base, Tensor view, int dim)`."""
    entries = []
    for function in functions:
        text, where, schema = function.inverse, function.at("inverse"), function.func
        if text is None:
            continue
        if not any(r.annotation is not None and not r.is_write for r in schema.returns):
            what = f"{function.name} has an 'inverse' and is no view"
            errors.add(where, what, "take 'inverse' out, or name the alias in the schema: Tensor(a) self -> Tensor(a)")
            continue
        if "stored" in used(text, where):
            fix = "name 'base': views that go by strides are made of tensorpy's as_strided"
            errors.add(where, f"the inverse of {function.name} names 'stored'", fix)
            continue
        name = replace(schema.name, base=f"{schema.name.base}_inverse")
        own = (Argument("base", TENSOR), Argument("view", TENSOR))
        rest = tuple(a for a in schema.positional if a.annotation is None)
        func = FunctionSchema(name, (*own, *rest), schema.kwarg_only, (), (Return(None, TENSOR),))
        entries.append(
            NativeFunction(
                func=func,
                location=function.location,
                locations={"composite": where},
                composite=text,
                doc=f"A base with a view that {function.name} gave in place of what it shows.",
            )
        )
    return entries
