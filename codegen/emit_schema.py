"""What each operator of a family is: arguments, returns, tags, where it was declared; and its boxed entry.

Signatures.c: the adaptors between the boxed and the unboxed calling convention, one pair per C signature.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .c_types import (
    CResult,
    c_arguments,
    c_result,
    c_type,
    call_arguments,
    function_type,
    has_optional_outputs,
    is_optional,
    parameters,
    signature_code,
    value_decl,
)
from .catalog import Catalog, Operator
from .emit_functions import YAML, kernel_types, op_of
from .model import FunctionSchema
from .text import Rules, Tables, banner, c_string

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
    masked = has_optional_outputs(schema)
    for r in schema.returns:
        tag = "TP_TENSOR_SEQ" if c_type(r.type).member == "tensors" else c_type(r.type).tag
        optional, write = ("true" if flag else "false" for flag in (masked or is_optional(r.type), r.is_write))
        name, type_ = c_string(r.name or ""), c_string(str(r.type))
        out.append(f"    {{{name}, {type_}, NULL, {tag}, {optional}, false, false, {write}}},\n")
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
        case "values":
            return f"    return {call}({', '.join([*args, 'results'])});\n"
        case _:
            return f"    return tp_result_{result.code}({call}({', '.join(args)}), results);\n"


def boxed_frame(schema: FunctionSchema) -> str:
    """Statements that put the arguments into `args` and make room for what a boxed call leaves in `results`."""
    packed = ", ".join(f"tp_box_{a.c.code}({a.name_in_c})" for a in c_arguments(schema))
    return (
        f"    tp_value args[] = {{{packed}}};\n    tp_value results[{max(len(schema.returns), 1)}] = {{{{TP_NONE}}}};\n"
    )


def result_from_boxed(result: CResult) -> str:
    """Statements that return what a boxed kernel left in `results`."""
    match result.kind:
        case "status" | "values":
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


# ---- adaptors, by signature ----


def _box_head(op: Operator) -> str:
    """The head of the function that packs arguments of this signature for a boxed kernel of the operator `op`."""
    result = c_result(op.schema)
    given = [a.c.declare(f"a{i}") for i, a in enumerate(c_arguments(op.schema))]
    if result.kind == "value":
        given.append(f"{value_decl(result)}*result")
    if result.kind == "values":
        given.append("tp_value *results")
    return f"{result.decl}tp_box_{signature_code(op.schema)}({', '.join(['tp_keyset ks', *given, 'const tp_op *op'])})"


def _result_count(op: Operator) -> int:
    """Room for what any operator of the signature returns: where results are arguments, up to all its tensors."""
    result = c_result(op.schema)
    tensors = [a for a in c_arguments(op.schema) if a.c.member in ("tensor", "tensors")]
    return max(1, len(tensors) if result.kind == "status" else result.count)


def _adaptors(op: Operator) -> str:
    result, code, arguments = c_result(op.schema), signature_code(op.schema), c_arguments(op.schema)
    call = "" if arguments else "    (void)args;\n"
    call += unbox_call(op.schema, function_type(op.schema), ["ks"])
    count = _result_count(op)
    room = f"    tp_value results[{count}];\n    tp_put_none(results, {count});\n" if result.kind != "values" else ""
    codes = "_".join(a.c.code for a in arguments)
    given = ", ".join(["op", "ks", "results", f'"{codes}"', *(f"a{i}" for i in range(len(arguments)))])
    return (
        f"static int call_{code}(tp_fn kernel, tp_keyset ks, const tp_value *args, tp_value *results) {{\n{call}}}\n"
        f"const tp_signature tp_signature_{code} = {{call_{code}}};\n"
        f"{_box_head(op)} {{\n"
        f"{room}"
        f"    if (tp_box_and_call({given}) < 0) return {result.failed};\n"
        f"{result_from_boxed(result)}}}\n\n"
    )


def by_signature(operators: Iterable[Operator]) -> list[Operator]:
    """One operator of each signature, in the order of their names."""
    first = {signature_code(op.schema): op for op in reversed(list(operators))}
    return [first[code] for code in sorted(first)]


def _declarations(op: Operator) -> str:
    return f"extern const tp_signature tp_signature_{signature_code(op.schema)};\n{_box_head(op)};\n"


def emit_signatures(catalog: Catalog) -> str:
    ops = by_signature(catalog)
    out = [
        banner("emit_schema.py", YAML, "Adaptors between the boxed and the unboxed calling convention."),
        '#include "dispatch/boxing.h"\n\n',
        *kernel_types(ops).values(),
        *map(_declarations, ops),
        "\n",
        *map(_adaptors, ops),
    ]
    return "".join(out)


# ---- what an operator is ----


def _boxed_entry(op: Operator) -> str:
    """The unboxed entry that leads to a boxed kernel, and says what is missing where there is none."""
    call = f"tp_box_{signature_code(op.schema)}({call_arguments(op.schema, keyset='ks')}, {op_of(op)})"
    return (
        f"static {c_result(op.schema).decl}box_{op.c}({parameters(op.schema, keyset=True)}) {{\n"
        f"    return {call};\n}}\n"
    )


def empty_list(op: Operator) -> str | None:
    """The class that tells the dispatcher the words for a list without tensors: an operator over lists has its own."""
    return op.function.origin.empty_list or ("IndexError" if op.function.origin.each else None)


def _asked_as(op: Operator) -> str:
    """The field that names the overload as which __torch_dispatch__ is asked, of the entry and its in-place variant."""
    origin = op.function.origin
    same = op.schema.name.overload == origin.name.overload
    return f".asked_as = {c_string(origin.asked_as)}, " if origin.asked_as and same else ""


def registered_by(op: Operator) -> str | None:
    """The module whose import registers the kernels."""
    module = op.function.origin.manual_kernel_registration
    return module if isinstance(module, str) else None


# What only the generator reads: no member of tensorpy.Tag.
UNTOLD_TAGS = ("quantized_dtypes",)


def emit_infos(catalog: Catalog, batching: Rules, forward: Rules, functional: Rules) -> str:
    """`infos`, in the order of `ops`."""
    arguments = Tables("const tp_argument ", "arguments")
    tags = Tables("const char *const ", "tags")
    prims = Tables("tp_op *const ", "prims")
    infos = []
    for op in catalog:
        schema = op.schema
        needed = ", ".join(f"&tp_prims[TP_PRIM_{catalog.primitive(name).c}]" for name in op.prims)
        bits = " | ".join(TAG_BITS[t] for t in op.function.tags if t in TAG_BITS) or "0"
        told = [t for t in op.function.tags if t not in UNTOLD_TAGS]
        infos.append(
            f"    [OP_{op.c}] = {{\n"
            f"        .name = {c_string(schema.name.qualified)}, .overload = {c_string(schema.name.overload)},\n"
            f"        .schema = {c_string(str(schema))},\n"
            f"        .tags = {tags.name(''.join(f'    {c_string(t)},' for t in told) + '    NULL,')},"
            f" .tag_bits = {bits},\n"
            f"        .declared_at = {c_string(op.function.location.in_tree)},\n"
            f"        .args = {arguments.name(argument_rows(schema))}, .nargs = {len(schema.arguments)},\n"
            f"        .returns = {arguments.name(return_rows(schema))}, .nreturns = {len(schema.returns)},\n"
            f"        .signature = &tp_signature_{signature_code(schema)}, .box = (tp_fn)box_{op.c},\n"
            f"        {f'.empty_list = TP_{empty}, ' if (empty := empty_list(op)) else ''}{_asked_as(op)}"
            f"{f'.registered_by = {c_string(module)}, ' if (module := registered_by(op)) else ''}"
            f".prims = {prims.name(f'    {needed}, NULL,' if needed else '')},"
            f" .batching = {batching.of(op.c)}, .forward = {forward.of(op.c)}, .functional = {functional.of(op.c)},\n"
            f"    }},\n"
        )
    return "".join(
        [
            *map(_declarations, by_signature(catalog)),
            "\n",
            *map(_boxed_entry, catalog),
            "\n",
            arguments.text() + tags.text() + prims.text(),
            "static const tp_op_info infos[OP_COUNT] = {\n" + "".join(infos) + "};\n\n",
        ]
    )
