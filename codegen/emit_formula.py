"""Composite operators that are written as a formula: one static C function each, called by the dispatcher."""

from __future__ import annotations

from collections.abc import Sequence

from .c_types import c_arguments, parameters
from .catalog import Catalog, Operator
from .formula import Result, schema_variables, used
from .formula_lower import Lowered, lower_function
from .rounding import prologue as rounding_prologue
from .rounding import rounds_once
from .tag_rules import prologue


def operators_called(op: Operator, catalog: Catalog) -> tuple[Operator, ...]:
    """Those that the formula of a composite dispatches to."""
    name = str(op.schema.name)
    if name not in catalog.called:
        origin = op.function.origin
        assert origin.composite is not None
        variables, result = schema_variables(op.schema), Result.of_schema(op.schema)
        lowered = Lowered(variables, origin.composite, result, catalog, origin.at("composite"))
        catalog.called[name] = lowered.called
    return catalog.called[name]


def emit_at_key(op: Operator, field: str, text: str, catalog: Catalog, name: str, first: Sequence[str]) -> str:
    """A static C function with a key set: the formula that the entry's `field` gives for a layer, after `first`."""
    location = op.function.at(field)
    names = used(text, location)
    return lower_function(
        name,
        parameters(op.schema, keyset=True),
        schema_variables(op.schema),
        text,
        Result.of_schema(op.schema),
        catalog,
        location,
        prologue=[*(f"(void){a.name_in_c};" for a in c_arguments(op.schema) if a.name not in names), *first],
    )


def emit_composite(op: Operator, catalog: Catalog) -> str:
    """`formula_<op>`, for an operator whose entry has `composite`."""
    origin = op.function.origin
    assert origin.composite is not None
    location = origin.at("composite")
    names = used(origin.composite, location)
    rounded = rounding_prologue(op, f"formula_{op.c}") if rounds_once(op, catalog) else []
    unused = ["ks", *(a.name_in_c for a in c_arguments(op.schema) if a.name not in names)]
    return lower_function(
        f"formula_{op.c}",
        parameters(op.schema, keyset=True),
        schema_variables(op.schema),
        origin.composite,
        Result.of_schema(op.schema),
        catalog,
        location,
        prologue=[
            *(f"(void){name};" for name in unused),
            *prologue(op.function, composite=True).splitlines(),
            *rounded,
        ],
    )
