"""The kernels at the key Layout: operators of tensors that are not strided memory (layouts.py says what an entry says).

They stand above autograd, which records what they are made of.
"""

from __future__ import annotations

from .c_types import c_arguments, c_result, call_arguments, parameters
from .catalog import Catalog, Operator
from .emit_functions import Kernels, keyset_expression
from .formula import Result, schema_variables, used
from .formula_lower import lower_function
from .layouts import WORDS, layout_function, said


def formula_of(op: Operator, text: str) -> str:
    """The formula, which a word may stand for."""
    if text not in WORDS:
        return text
    first, *rest = op.schema.arguments
    merged = f"_merged({first.name})" if text == "values" else first.name
    passed = [a.name if a in op.schema.positional else f"{a.name}={a.name}" for a in rest]
    result = f"{op.schema.name.base}({', '.join([f'_layout_values({merged})', *passed])})"
    return f"merged__ = {merged}\n_layout_like(merged__, {result.replace(merged, 'merged__', 1)})"


def _passed_by(op: Operator) -> str:
    """Who puts the key into a call of other tensors gets what they get without it."""
    call = f"redispatch_{op.c}({call_arguments(op.schema, keyset='ks & TP_BELOW(Layout)')})"
    return f"if (!(({keyset_expression(op)}) & TP_BIT(Layout))) return {call};"


def _formula(op: Operator, text: str, catalog: Catalog) -> str:
    location = op.function.at("layouts")
    names = used(text, location)
    unused = [a.name_in_c for a in c_arguments(op.schema) if a.name not in names]
    return lower_function(
        f"layout_{op.c}",
        parameters(op.schema, keyset=True),
        schema_variables(op.schema),
        text,
        Result.of_schema(op.schema),
        catalog,
        location,
        prologue=[*(f"(void){name};" for name in unused), _passed_by(op)],
    )


def _writing(op: Operator, functional: Operator) -> str:
    """The functional variant, and what is written becomes its result."""
    written = [a for a in c_arguments(op.schema) if a.argument.is_write]
    name = written[0].name_in_c
    own = {
        "dtype": f"(tp_dtype){name}->dtype",
        "layout": "TP_NO_LAYOUT",
        "device": f"{name}->device",
        "pin_memory": "-1",
    }
    kept = {a.name for a in op.schema.arguments}
    given = call_arguments(functional.schema, replaced={k: v for k, v in own.items() if k not in kept})
    return (
        f"static int layout_{op.c}({parameters(op.schema, keyset=True)}) {{\n"
        f"    {_passed_by(op)}\n"
        f"    tp_autoref *made = {functional.call}({given});\n"
        f'    return made ? tp_write_layout({name}, made, "{op.schema.name}") : -1;\n}}\n'
    )


def _kernel(op: Operator, catalog: Catalog) -> tuple[str, str] | None:
    """The C text, and what it comes from."""
    text = said(op)
    if text is None:
        group = op.group.functional
        functional = catalog.by_name[str(group.name)] if group is not None and group is not op.function else None
        if functional is None or said(functional) is None or c_result(op.schema).kind != "status":
            return None
        if len([a for a in c_arguments(op.schema) if a.argument.is_write]) != 1:
            return None
        return _writing(op, functional), "writing"
    name = layout_function(op)
    if name is not None:
        return (
            f"static {c_result(op.schema).decl}layout_{op.c}({parameters(op.schema, keyset=True)}) {{\n"
            f"    {_passed_by(op)}\n    return {name}({call_arguments(op.schema)});\n}}\n"
        ), name
    return _formula(op, formula_of(op, text), catalog), "formula"


def emit_layouts(catalog: Catalog, kernels: Kernels) -> str:
    out = []
    for op in catalog:
        found = _kernel(op, catalog)
        if found is not None:
            out.append(found[0])
            kernels.add("Layout", op, f"layout_{op.c}", found[1])
    return "".join(out)
