"""Primitives.h, PrimitiveKernels.h, Primitives.c: how native/ enters the primitives, and what the devices define.

`tp_prim_<name>` takes the table entry of the backend of the tensor that is written and jumps: no layer, no thread state
but the word that says whether somebody traces. A backend without a kernel is reached through the boxed entry, which
knows the device's fallback, and else says what is missing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from .c_types import CResult, c_arguments, c_result, c_type, call_arguments, parameters, signature_code
from .emit_schema import argument_rows, boxed_frame, result_from_boxed, return_rows, unbox_call
from .primitives import NAMESPACE, Primitive
from .text import banner, c_string

YAML = "yaml/primitives.yaml"


def function_type(primitive: Primitive) -> str:
    return f"tp_prim_fn_{signature_code(primitive.schema)}"


def _declaration(primitive: Primitive, name: str) -> str:
    return f"{c_result(primitive.schema).decl}{name}({parameters(primitive.schema)})"


def _described(primitive: Primitive) -> str:
    doc = " ".join(primitive.doc.split())
    return f"/* {primitive.schema}\n * {doc} */\n"


def kernel_declaration(primitive: Primitive, key: str) -> str:
    """Declares the C function that a device of the tree defines."""
    return f"{_described(primitive)}{_declaration(primitive, primitive.kernel(key))};\n"


def emit_primitives_h(primitives: Sequence[Primitive]) -> str:
    out = [
        banner("emit_primitives.py", YAML, "The primitives as C functions, each under its schema."),
        '#pragma once\n\n#include "dispatch/op.h"\n\nenum {\n',
        *(f"    TP_PRIM_{p.c},\n" for p in primitives),
        "    TP_PRIM_COUNT\n};\nextern tp_op tp_prims[];\n\n",
    ]
    out += [f"{_described(p)}{_declaration(p, 'tp_prim_' + p.c)};\n" for p in primitives]
    return "".join(out)


def emit_primitive_kernels_h(primitives: Sequence[Primitive]) -> str:
    out = [
        banner("emit_primitives.py", YAML, "The C functions that the devices of the tree define."),
        '#pragma once\n\n#include "core/tensor.h"\n\n',
    ]
    for p in primitives:
        out.append(_described(p))
        out += [f"{_declaration(p, p.kernel(key))};\n" for key in p.backends]
        out += [f"extern const struct tp_{p.c}_shortcut {p.shortcut(key)};\n" for key in p.shortcuts]
    return "".join(out)


def _keys(primitive: Primitive) -> str:
    """The key set by which a primitive is entered."""
    guide = next(a for a in c_arguments(primitive.schema) if a.name == primitive.guide)
    tensor = f"{guide.name_in_c}.data[0]" if guide.c.member == "tensors" else guide.name_in_c
    return f"tp_primitive_keys({tensor})"


def _box_entry(p: Primitive, result: CResult) -> str:
    return (
        f"static {result.decl}box_{p.c}({parameters(p.schema)}) {{\n{boxed_frame(p.schema)}"
        f"    if (tp_redispatch_boxed(&tp_prims[TP_PRIM_{p.c}], {_keys(p)}, args, results) < 0) "
        f"return {result.failed};\n" + result_from_boxed(result) + "}\n"
    )


def _refusal(p: Primitive, failed: str) -> str:
    """Dtypes that are formats of memory only are refused unless the entry takes them: no kernel misreads them."""
    if p.stored == "all":
        return ""
    test = "tp_is_float8_dtype" if p.stored else "tp_is_stored_dtype"
    tensors = [a for a in c_arguments(p.schema) if a.c.member == "tensor"]
    checks = []
    for a in tensors:
        one = f"{test}((tp_dtype){a.name_in_c}->dtype)"
        checks.append(f"({a.name_in_c} && {one})" if a.argument.is_optional else one)
    if not checks:
        return ""
    names = ", ".join(a.name_in_c for a in tensors)
    return (
        f"    if (tp_unlikely({' || '.join(checks)}))\n"
        f'        return tp_refuse_stored("{p.name}", (tp_tensor *const[]){{{names}}}, '
        f"{len(tensors)}), {failed};\n"
    )


def _entry(p: Primitive) -> str:
    type_ = function_type(p)
    return (
        f"{_declaration(p, 'tp_prim_' + p.c)} {{\n"
        f"{_refusal(p, c_result(p.schema).failed)}"
        f"    const tp_op *op_ = &tp_prims[TP_PRIM_{p.c}];\n"
        f"    {type_} entry_ = ({type_})tp_kernel_at(op_, tp_highest_key({_keys(p)}));\n"
        f"    if (tp_unlikely(!entry_)) entry_ = box_{p.c};\n"
        f"    return entry_({call_arguments(p.schema)});\n}}\n\n"
    )


def _name_alone(p: Primitive) -> str:
    """The row of one that a small library has not: the error of a call names it."""
    name = f"{NAMESPACE}::{p.schema.name.unqualified}"
    return (
        f"    [TP_PRIM_{p.c}] = {{.name = {c_string(name)}, .overload = {c_string(p.schema.name.overload)}, "
        f'.schema = "", .is_primitive = true, .tags = no_tags, .declared_at = ""}},\n'
    )


def _info(p: Primitive) -> str:
    schema = p.schema
    tags = ["TP_TAG_DYNAMIC_OUTPUT_SHAPE"] * bool(schema.returns) + ["TP_TAG_REFUSES_VALUES"] * p.refuses_values
    return (
        f"    [TP_PRIM_{p.c}] = {{\n"
        f"        .name = {c_string(f'{NAMESPACE}::{schema.name.unqualified}')}, "
        f".overload = {c_string(schema.name.overload)},\n"
        f"        .schema = {c_string(f'{NAMESPACE}::{schema}')}, .is_primitive = true, "
        f".is_optional = {'true' if p.optional else 'false'},\n"
        f"        .guide = {[a.name for a in schema.arguments].index(p.guide)},\n"
        f"        .tags = no_tags, .tag_bits = {' | '.join(tags) or '0'},\n"
        f"        .declared_at = {c_string(p.location.in_tree)},\n"
        f"        .args = args_{p.c}, .nargs = {len(schema.arguments)},\n"
        f"        .returns = {f'returns_{p.c}' if schema.returns else 'NULL'}, .nreturns = {len(schema.returns)},\n"
        f"        .signature = &signature_{signature_code(schema)}, .box = (tp_fn)box_{p.c},\n"
        f"    }},\n"
    )


def _registration(primitives: Sequence[Primitive], key: str, files: Mapping[str, str]) -> str:
    rows = [
        f'    {{&tp_prims[TP_PRIM_{p.c}], (tp_fn){p.kernel(key)}, "{p.kernel(key)}", '
        f"{c_string(files.get(p.kernel(key), ''))}}},\n"
        for p in primitives
        if key in p.backends
    ]
    return f"static const tp_kernel_entry kernels_{key}[] = {{\n{''.join(rows)}}};\n"


def emit_primitives_c(
    primitives: Sequence[Primitive], files: Mapping[str, str], only: Collection[str] | None = None
) -> str:
    """With `only`, a small library's: of the others it has the names alone."""
    named = [p for p in primitives if only is None or p.name in only]
    keys = list(dict.fromkeys(key for p in primitives for key in p.backends))
    out = [
        banner("emit_primitives.py", YAML, "The primitives' entries, boxed adaptors and registration."),
        '#include "Primitives.h"\n#include "PrimitiveKernels.h"\n#include "dispatch/boxing.h"\n'
        '#include "dispatch/entry.h"\n#include "dispatch/generated.h"\n'
        '#include "prim/fault.h"\n#include "prim/meta.h"\n\n',
        "tp_op tp_prims[TP_PRIM_COUNT];\n\n",
    ]
    of_named = {signature_code(p.schema) for p in named}
    for code, p in {signature_code(p.schema): p for p in primitives}.items():
        result = c_result(p.schema)
        types = ", ".join(c_type(a.type).decl.strip() for a in p.schema.arguments)
        out.append(f"typedef {result.decl}(*{function_type(p)})({types});\n")
        if code not in of_named:
            continue
        out.append(
            f"static int call_{code}(tp_fn kernel, tp_keyset ks, const tp_value *args, tp_value *results) {{\n"
            f"    (void)ks;\n{unbox_call(p.schema, function_type(p), [])}}}\n"
            f"static const tp_signature signature_{code} = {{call_{code}}};\n\n"
        )
    out += [_box_entry(p, c_result(p.schema)) + _entry(p) for p in primitives]
    out.append("static const char *const no_tags[] = {NULL};\n")
    for p in named:
        out.append(f"static const tp_argument args_{p.c}[] = {{\n{argument_rows(p.schema)}}};\n")
        if p.schema.returns:
            out.append(f"static const tp_argument returns_{p.c}[] = {{\n{return_rows(p.schema)}}};\n")
    out.append(
        "static const tp_op_info infos[TP_PRIM_COUNT] = {\n"
        + "".join(_info(p) if p in named else _name_alone(p) for p in primitives)
        + "};\n\n"
    )
    out += [_registration(primitives, key, files) + "\n" for key in keys]
    out.append(
        "int tp_register_primitives(void) {\n"
        "    if (tp_declare_ops(tp_prims, infos, TP_PRIM_COUNT) < 0) return -1;\n"
        + "".join(
            f"    if (tp_register_kernels(TP_KEY_{key}, kernels_{key}, TP_COUNTOF(kernels_{key})) < 0) return -1;\n"
            for key in keys
        )
        + "".join(
            f"    if (tp_give_shortcut(&tp_prims[TP_PRIM_{p.c}], TP_KEY_{key}, &{p.shortcut(key)}) < 0) return -1;\n"
            for p in primitives
            for key in p.shortcuts
        )
        + "    return tp_register_for_all(TP_KEY_Meta, tp_prims, TP_PRIM_COUNT, tp_primitive_on_meta, "
        '"prim/meta.c");\n}\n'
    )
    return "".join(out)
