"""The kernels at the key Layout: operators of tensors that are not strided memory (layouts.py says what an entry says).

They stand above autograd, which records what they are made of.
"""

from __future__ import annotations

from .c_types import c_arguments, c_result, call_arguments, parameters
from .catalog import Catalog, Operator
from .emit_formula import emit_at_key
from .emit_functions import Kernels, kernel_at_key, passed_by
from .layouts import WORDS, layout_function, said


def formula_of(op: Operator, text: str) -> str:
    """The formula, which a word may stand for."""
    if text not in WORDS:
        return text
    first, *rest = op.schema.arguments
    source = f"_merged({first.name})" if text == "values" else first.name
    passed = [a.name if a in op.schema.positional else f"{a.name}={a.name}" for a in rest]
    given = ", ".join(["_layout_values(merged__)", *passed])
    return f"merged__ = {source}\n_layout_like(merged__, {op.schema.name.base}({given}))"


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
        f"    {passed_by(op, 'Layout')}\n"
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
    name, own = layout_function(op), f"layout_{op.c}"
    if name is not None:
        return kernel_at_key(op, "Layout", own, name), name
    return emit_at_key(op, "layouts", formula_of(op, text), catalog, own, passed_by(op, "Layout")), "formula"


def emit_layouts(catalog: Catalog, kernels: Kernels) -> str:
    out = []
    for op in catalog:
        found = _kernel(op, catalog)
        if found is not None:
            out.append(found[0])
            kernels.add("Layout", op, f"layout_{op.c}", found[1])
    return "".join(out)
