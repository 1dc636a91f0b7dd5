"""The batched layer: a rule for each operator as a row of a table (csrc/batched/rule.h), and the kernels at the key.

A kernel there is one of the tree's C functions, or a formula; both are passed by where nothing is batched.
"""

from __future__ import annotations

from .batching import Batching, batching_of
from .c_types import c_arguments, c_result, call_arguments, parameters
from .catalog import Catalog, Operator
from .emit_functions import Kernels, keyset_expression, op_of
from .formula import Result, schema_variables, used
from .formula_lower import lower_function
from .text import c_string


def rules_of(catalog: Catalog) -> dict[str, Batching]:
    """By the operator's C name: those that the fallback of the key is asked for."""
    found = ((op, batching_of(op, catalog)) for op in catalog)
    return {op.c: rule for op, rule in found if rule is not None and rule.formula is None}


def emit_rules(catalog: Catalog) -> str:
    rows = []
    for name, rule in rules_of(catalog).items():
        other = op_of(rule.other) if rule.other is not None else "NULL"
        random = "true" if rule.random else "false"
        rows.append(f"    [OP_{name}] = {{TP_BATCH_{rule.kind}, {random}, {c_string(rule.roles)}, {other}}},\n")
    return f"static const tp_batch_rule batching[OP_COUNT] = {{\n{''.join(rows)}}};\n" if rows else ""


def _passed_by(op: Operator) -> str:
    call = f"redispatch_{op.c}({call_arguments(op.schema, keyset='ks & TP_BELOW(Batched)')})"
    return f"if (!(({keyset_expression(op)}) & TP_BIT(Batched))) return {call};"


def _kernel(op: Operator, name: str) -> str:
    return (
        f"static {c_result(op.schema).decl}batched_{op.c}({parameters(op.schema, keyset=True)}) {{\n"
        f"    {_passed_by(op)}\n"
        f"    return {name}({call_arguments(op.schema)});\n}}\n"
    )


def _formula(op: Operator, text: str, catalog: Catalog) -> str:
    location = op.function.at("batching")
    names = used(text, location)
    unused = [f"(void){a.name_in_c};" for a in c_arguments(op.schema) if a.name not in names]
    return lower_function(
        f"batched_{op.c}",
        parameters(op.schema, keyset=True),
        schema_variables(op.schema),
        text,
        Result.of_schema(op.schema),
        catalog,
        location,
        prologue=[*unused, _passed_by(op)],
    )


def emit_batched(catalog: Catalog, kernels: Kernels) -> str:
    out = []
    for op in catalog:
        rule = batching_of(op, catalog)
        source = next((k.name for k in op.kernels if k.key == "Batched"), None)
        if source is not None:
            out.append(_kernel(op, source))
            kernels.add("Batched", op, f"batched_{op.c}", source)
        elif rule is not None and rule.formula is not None:
            out.append(_formula(op, rule.formula, catalog))
            kernels.add("Batched", op, f"batched_{op.c}", "formula")
    return "".join(out)
