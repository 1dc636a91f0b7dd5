"""The kernels of tensors that are not strided memory (layouts.py says what an entry says): of sparse ones at the key
Layout, above autograd, which records what they are made of; of quantized ones at their own key, below it.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .c_types import CArgument, c_arguments, c_result, call_arguments, parameters
from .catalog import Catalog, Operator
from .emit_formula import emit_at_key
from .emit_functions import Kernels, kernel_at_key, keys_of, op_of, passed_by
from .emit_inplace_or_view import view_base
from .formula import parse
from .layouts import NESTED, PLACES, SPARSE, Place, layout_function, said


def formula_of(op: Operator, text: str) -> str:
    """The formula, which a word may stand for."""
    if text == "moves":
        return _moves(op)
    if text not in SPARSE.words:
        return text
    first, *_ = op.schema.arguments
    left_out = ("layout",) if text == "lines" else ()
    source = {"values": f"_merged({first.name})", "lines": f"_in_lines({first.name}, layout)"}.get(text, first.name)
    return f"merged__ = {source}\n_layout_like(merged__, {_call(op, '_layout_values(merged__)', left_out)})"


def _call(op: Operator, first: str, left_out: Sequence[str] = ()) -> str:
    """A call of the operator with another first argument."""
    kept = [a for a in op.schema.arguments[1:] if a.name not in left_out]
    passed = [a.name if a in op.schema.positional else f"{a.name}={a.name}" for a in kept]
    return f"{op.schema.name.base}({', '.join([first, *passed])})"


def _moves(op: Operator) -> str:
    """The first result is made of the integers; others say where they were."""
    quantized = op.schema.arguments[0].name
    call, n = _call(op, f"_layout_part({quantized}, 0)"), len(op.schema.returns)
    if n == 1:
        return f"_quantized_like({quantized}, {call})"
    rest = [f"rest{i}__" for i in range(1, n)]
    return f"moved__, {', '.join(rest)} = {call}\n(_quantized_like({quantized}, moved__), {', '.join(rest)})"


def written_by(op: Operator, place: Place, catalog: Catalog) -> Operator | None:
    """The functional variant whose result the tensor becomes that the operator writes: its entry says what is done."""
    group = op.group.functional
    functional = catalog.by_name[str(group.name)] if group is not None and group is not op.function else None
    if (
        functional is None
        or (place is NESTED and op.function.kind != "out")
        or said(functional, place) is None
        or c_result(op.schema).kind != "status"
    ):
        return None
    return functional if len([a for a in c_arguments(op.schema) if a.argument.is_write]) == 1 else None


def is_merged(op: Operator, functional: Operator, place: Place) -> bool:
    """Whether what is written has to have one value for each place."""
    return place is SPARSE and op.function.kind == "inplace" and said(functional, place) == "values"


def _writing(op: Operator, functional: Operator, place: Place) -> str:
    """The functional variant, and what is written becomes its result."""
    written = [a for a in c_arguments(op.schema) if a.argument.is_write]
    name = written[0].name_in_c
    own = {
        "dtype": f"(tp_dtype){name}->dtype",
        "layout": f"tp_layout_of({name})" if said(functional, place) == "made" else "TP_NO_LAYOUT",
        "device": f"{name}->device",
        "pin_memory": "-1",
    }
    kept = {a.name for a in op.schema.arguments}
    given = call_arguments(functional.schema, replaced={k: v for k, v in own.items() if k not in kept})
    merged = is_merged(op, functional, place)
    once = f'    if (tp_refuse_unmerged({name}, "{op.schema.name}") < 0) return -1;\n' if merged else ""
    return (
        f"static int {place.prefix}_{op.c}({parameters(op.schema, keyset=True)}) {{\n"
        f"    {passed_by(op, place.key)}\n{once}"
        f"    tp_autoref *made = {functional.call}({given});\n"
        f'    return made ? tp_write_layout({name}, made, "{op.schema.name}") : -1;\n}}\n'
    )


def passed_on(op: Operator, formula: str, place: Place) -> list[CArgument]:
    """The tensors that the formula gives to a call of the same operator as they came: of the same layout they would
    come here again, and are refused.
    """
    found: set[str] = set()
    for statement in parse(formula, op.function.at(place.field)):
        for node in ast.walk(statement):
            match node:
                case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name == op.schema.name.base:
                    given = (*node.args, *(k.value for k in node.keywords))
                    found.update(a.id for a in given if isinstance(a, ast.Name))
    return [a for a in c_arguments(op.schema) if a.name in found and a.c.member in ("tensor", "tensors")]


def _refusals(op: Operator, formula: str, place: Place) -> list[str]:
    """A statement for each tensor that may not be of the layout."""
    out = []
    for a in passed_on(op, formula, place):
        layout = f"TP_BIT({place.key})"
        one = f"tp_refuse_layout({op_of(op)}, {a.name_in_c})"
        call = one if a.c.member == "tensor" else f"tp_refuse_layouts({op_of(op)}, {a.name_in_c}, {layout})"
        out.append(f"if ({keys_of(a)} & {layout}) return {call}, {c_result(op.schema).failed};")
    return out


def _shown(op: Operator, place: Place) -> str:
    """A view of a sparse tensor says of which one, though it is made of values."""
    base = view_base(op, op.schema.returns[0]) if place is SPARSE and op.schema.returns else None
    how = {"tensor": "tp_show_base", "seq": "tp_show_bases"}.get(c_result(op.schema).kind)
    return f"{how}({base}, {{}})" if base is not None and how is not None else "{}"


def _kernel(op: Operator, place: Place, catalog: Catalog) -> tuple[str, str] | None:
    """The C text, and what it comes from."""
    text = said(op, place)
    if text is None:
        functional = written_by(op, place, catalog)
        if functional is None:
            return None
        return _writing(op, functional, place), "writing"
    if text == "made":
        return None
    name, own = layout_function(op, place), f"{place.prefix}_{op.c}"
    if text == "through":
        return kernel_at_key(op, place.key, own, ""), "through"
    if name is not None:
        return kernel_at_key(op, place.key, own, name, _shown(op, place)), name
    formula = formula_of(op, text)
    first = [passed_by(op, place.key), *_refusals(op, formula, place)]
    return emit_at_key(op, place.field, formula, catalog, own, first), "formula"


def emit_layouts(catalog: Catalog, kernels: Kernels) -> str:
    out = []
    for op in catalog:
        for place in PLACES:
            found = _kernel(op, place, catalog)
            if found is not None:
                out.append(found[0])
                kernels.add(place.key, op, f"{place.prefix}_{op.c}", found[1])
    return "".join(out)
