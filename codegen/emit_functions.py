"""Functions.h and Functions.c: the C API of the operators, and their way into the dispatcher.

For each operator `tp_<op>` computes the key set of its tensors and `tp_redispatch_<op>` jumps through the table. A
layer calls the second with the keys that are left.
"""

from __future__ import annotations

from .c_types import c_arguments, c_result, call_arguments, function_type, parameters, signature_code
from .catalog import Catalog, Operator
from .model import is_tensor_like
from .text import banner

YAML = "yaml/native_functions/"


def keyset_expression(op: Operator) -> str:
    """The union of the tensors' key sets; a factory's comes from its `device` argument in BackendSelect."""
    parts = []
    for a in c_arguments(op.schema):
        if not is_tensor_like(a.type):
            continue
        if a.c.member == "tensors":
            parts.append(f"tp_keys_of_tensors({a.name_in_c})")
        elif a.argument.is_optional:
            parts.append(f"tp_keys_of_optional({a.name_in_c})")
        else:
            parts.append(f"{a.name_in_c}->keys")
    if not parts:
        parts.append("TP_FACTORY_KEYS")
    return " | ".join(parts)


def emit_functions_h(catalog: Catalog) -> str:
    out = [
        banner("emit_functions.py", YAML, "The operators as C functions, each under its schema."),
        '#pragma once\n\n#include "core/generator.h"\n#include "core/tensor.h"\n\n',
    ]
    for op in catalog:
        out.append(f"/* {op.schema} */\n{c_result(op.schema).decl}tp_{op.c}({parameters(op.schema)});\n")
    return "".join(out)


def emit_redispatch_h(catalog: Catalog) -> str:
    out = [
        banner("emit_functions.py", YAML, "Operator numbers, C signatures, and the entries that a layer calls."),
        '#pragma once\n\n#include "Functions.h"\n#include "dispatch/op.h"\n\nenum {\n',
    ]
    out += [f"    TP_OP_{op.c},\n" for op in catalog]
    out.append("    TP_OP_COUNT\n};\nextern tp_op tp_ops[TP_OP_COUNT];\n\n")
    seen = set()
    for op in catalog:
        code = signature_code(op.schema)
        if code not in seen:
            seen.add(code)
            result = c_result(op.schema).decl
            types = ["tp_keyset", *(a.c.decl.strip() for a in c_arguments(op.schema))]
            if c_result(op.schema).kind == "value":
                types.append(parameters(op.schema).rsplit(",", 1)[-1].replace("*result", "*").strip())
            out.append(f"typedef {result}(*{function_type(op.schema)})({', '.join(types)});\n")
    out.append("\n")
    for op in catalog:
        out.append(f"{c_result(op.schema).decl}tp_redispatch_{op.c}({parameters(op.schema, keyset=True)});\n")
    return "".join(out)


def box_arguments(op: Operator, array: str = "args") -> str:
    """Statements that pack the C arguments into `tp_value array[]`."""
    packed = []
    for a in c_arguments(op.schema):
        packed.append(f"tp_box_{a.c.code}({a.name_in_c})")
    return f"    tp_value {array}[] = {{{', '.join(packed)}}};\n" if packed else f"    tp_value {array}[1];\n"


def emit_functions_c(catalog: Catalog) -> str:
    out = [
        banner("emit_functions.py", YAML, "The operators' entries into the dispatcher."),
        '#include "Redispatch.h"\n#include "dispatch/entry.h"\n\n',
        "tp_op tp_ops[TP_OP_COUNT];\n\n",
    ]
    for op in catalog:
        result = c_result(op.schema)
        out.append(
            f"{result.decl}tp_redispatch_{op.c}({parameters(op.schema, keyset=True)}) {{\n"
            f"    const tp_op *op = &tp_ops[TP_OP_{op.c}];\n"
            f"    {function_type(op.schema)} kernel = ({function_type(op.schema)})tp_kernel_at(op, "
            "tp_live_key(op, ks));\n"
            f"    if (tp_unlikely(!kernel)) kernel = ({function_type(op.schema)})op->info->box;\n"
            f"    return kernel({call_arguments(op.schema, keyset='ks')});\n}}\n"
        )
        out.append(
            f"{result.decl}tp_{op.c}({parameters(op.schema)}) {{\n"
            f"    tp_keyset ks = tp_effective_keys({keyset_expression(op)});\n"
            f"    return tp_redispatch_{op.c}({call_arguments(op.schema, keyset='ks')});\n}}\n\n"
        )
    return "".join(out)
