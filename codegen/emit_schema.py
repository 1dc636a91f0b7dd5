"""RegisterSchema.c: what each operator is: arguments, returns, tags, where it was declared.

Also the boxed adaptors, one pair per C signature and one packing entry per operator.
"""

from __future__ import annotations

from collections.abc import Sequence

from .c_types import CResult, c_arguments, c_result, c_type, function_type, is_optional, parameters, signature_code
from .catalog import Catalog, Operator
from .emit_functions import YAML, box_arguments
from .model import FunctionSchema
from .text import banner, c_string

# Tags that C code asks for, dispatch/op.h.
TAG_BITS = {
    "nondeterministic_bitwise": "TP_TAG_NONDETERMINISTIC_BITWISE",
    "dynamic_output_shape": "TP_TAG_DYNAMIC_OUTPUT_SHAPE",
    "data_dependent_output": "TP_TAG_DATA_DEPENDENT_OUTPUT",
    "needs_contiguous_strides": "TP_TAG_NEEDS_CONTIGUOUS_STRIDES",
}


def argument_rows(schema: FunctionSchema) -> str:
    out = []
    out_names = {a.name for a in schema.out}
    keyword = {a.name for a in schema.kwarg_only} | out_names
    for a in c_arguments(schema):
        flags = ", ".join(
            "true" if flag else "false"
            for flag in (is_optional(a.type), a.name in keyword, a.name in out_names, a.argument.is_write)
        )
        out.append(
            f"    {{{c_string(a.name)}, {c_string(str(a.type))}, {c_string(a.argument.default)}, {a.c.tag}, "
            f"{flags}}},\n"
        )
    return "".join(out)


def return_rows(schema: FunctionSchema) -> str:
    out = []
    for r in schema.returns:
        tag = "TP_TENSOR_SEQ" if c_type(r.type).member == "tensors" else c_type(r.type).tag
        write = "true" if r.is_write else "false"
        out.append(
            f"    {{{c_string(r.name or '')}, {c_string(str(r.type))}, NULL, {tag}, false, false, false, {write}}},\n"
        )
    return "".join(out)


def unbox_call(schema: FunctionSchema, type_: str, leading: Sequence[str]) -> str:
    """Statements that call `kernel`, a function of type_, with what `args` holds, and keep what it gives."""
    result = c_result(schema)
    args = [*leading, *(f"tp_unbox_{a.c.code}(&args[{i}])" for i, a in enumerate(c_arguments(schema)))]
    call = f"(({type_})kernel)"
    match result.kind:
        case "status":
            return f"    (void)results;\n    return {call}({', '.join(args)});\n"
        case "value":
            assert result.value is not None
            code = result.value.code
            args.append(f"tp_slot_{code}(results)")
            return f"    return tp_result_{code}({call}({', '.join(args)}), results);\n"
        case _:
            return f"    return tp_result_{result.code}({call}({', '.join(args)}), results);\n"


def result_from_boxed(result: CResult) -> str:
    """Statements that return what a boxed kernel left in `results`."""
    match result.kind:
        case "status":
            return "    return 0;\n"
        case "tensor":
            return "    return results[0].tensor;\n"
        case "seq":
            return "    return results[0].seq;\n"
        case "tensors":
            items = ", ".join(f"results[{i}].tensor" for i in range(result.count))
            return f"    return ({result.decl.strip()}){{{{{items}}}}};\n"
        case _:
            assert result.value is not None
            return f"    *result = tp_unbox_{result.value.code}_value(&results[0]);\n    return 0;\n"


def _box_entry(op: Operator, result: CResult) -> str:
    """The unboxed entry that leads to a boxed kernel, and says what is missing where there is none."""
    body = box_arguments(op) + f"    tp_value results[{max(1, len(op.schema.returns))}] = {{{{TP_NONE}}}};\n"
    body += f"    if (tp_call_boxed_kernel(&tp_ops[TP_OP_{op.c}], ks, args, results) < 0) return {result.failed};\n"
    body += result_from_boxed(result)
    return f"static {result.decl}box_{op.c}({parameters(op.schema, keyset=True)}) {{\n{body}}}\n"


def emit_boxed_adaptors(catalog: Catalog) -> str:
    out = [
        banner("emit_schema.py", YAML, "Adaptors between the boxed and the unboxed calling convention."),
        '#include "BoxedAdaptors.h"\n#include "dispatch/boxing.h"\n\n',
    ]
    seen = set()
    for op in catalog:
        code = signature_code(op.schema)
        if code not in seen:
            seen.add(code)
            out.append(
                f"static int call_{code}(tp_fn kernel, tp_keyset ks, const tp_value *args, tp_value *results) {{\n"
                + ("    (void)args;\n" if not op.schema.arguments else "")
                + unbox_call(op.schema, function_type(op.schema), ["ks"])
                + f"}}\nconst tp_signature tp_signature_{code} = {{call_{code}}};\n\n"
            )
    for op in catalog:
        out.append(_box_entry(op, c_result(op.schema)))
    out.append("\nconst tp_fn tp_box_entries[TP_OP_COUNT] = {\n")
    out += [f"    [TP_OP_{op.c}] = (tp_fn)box_{op.c},\n" for op in catalog]
    out.append("};\n")
    return "".join(out)


def emit_boxed_adaptors_h(catalog: Catalog) -> str:
    out = [
        banner("emit_schema.py", YAML, "The adaptors' names, for RegisterSchema.c."),
        '#pragma once\n\n#include "Redispatch.h"\n\nextern const tp_fn tp_box_entries[TP_OP_COUNT];\n',
    ]
    codes = sorted({signature_code(op.schema) for op in catalog})
    out += [f"extern const tp_signature tp_signature_{code};\n" for code in codes]
    return "".join(out)


def emit_register_schema(catalog: Catalog) -> str:
    out = [
        banner("emit_schema.py", YAML, "What each operator is; read by tp_declare_ops."),
        '#include "BoxedAdaptors.h"\n#include "Primitives.h"\n#include "dispatch/generated.h"\n\n',
    ]
    infos = []
    for op in catalog:
        schema = op.schema
        if schema.arguments:
            out.append(f"static const tp_argument args_{op.c}[] = {{\n{argument_rows(schema)}}};\n")
        if schema.returns:
            out.append(f"static const tp_argument returns_{op.c}[] = {{\n{return_rows(schema)}}};\n")
        tags = ", ".join([*(c_string(t) for t in op.function.tags), "NULL"])
        out.append(f"static const char *const tags_{op.c}[] = {{{tags}}};\n")
        if op.prims:
            needed = ", ".join(f"&tp_prims[TP_PRIM_{catalog.primitive(name).c}]" for name in op.prims)
            out.append(f"static tp_op *const prims_{op.c}[] = {{{needed}, NULL}};\n")
        bits = " | ".join(TAG_BITS[t] for t in op.function.tags if t in TAG_BITS) or "0"
        infos.append(
            f"    [TP_OP_{op.c}] = {{\n"
            f"        .name = {c_string(schema.name.unqualified)}, .overload = {c_string(schema.name.overload)},\n"
            f"        .schema = {c_string(str(schema))},\n"
            f"        .tags = tags_{op.c}, .tag_bits = {bits},\n"
            f"        .declared_at = {c_string(str(op.function.location))},\n"
            f"        .args = {f'args_{op.c}' if schema.arguments else 'NULL'}, .nargs = {len(schema.arguments)},\n"
            f"        .returns = {f'returns_{op.c}' if schema.returns else 'NULL'}, "
            f".nreturns = {len(schema.returns)},\n"
            f"        .signature = &tp_signature_{signature_code(schema)},\n"
            f"        .prims = {f'prims_{op.c}' if op.prims else 'NULL'},\n"
            f"    }},\n"
        )
    out.append("static tp_op_info infos[TP_OP_COUNT] = {\n" + "".join(infos) + "};\n\n")
    out.append(
        "int tp_register_schemas(void) {\n"
        "    for (int i = 0; i < TP_OP_COUNT; i++) infos[i].box = tp_box_entries[i];\n"
        "    return tp_declare_ops(tp_ops, infos, TP_OP_COUNT);\n}\n"
    )
    return "".join(out)
