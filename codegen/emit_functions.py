"""Functions.h: the C API of the operators. And, for ops/<family>.c, their numbers, their way into the dispatcher, and
the kernels that are registered.

For each operator `tp_<op>` computes the key set of its tensors and `redispatch_<op>` jumps through the table. A layer
calls the second with the keys that are left. An operator is a place in its family's table: no number is known outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .c_types import (
    CArgument,
    c_arguments,
    c_result,
    call_arguments,
    function_type,
    parameters,
    passed_by_parts,
    signature_code,
    value_decl,
)
from .catalog import Catalog, Operator
from .keys import ALIASES
from .model import is_tensor_like
from .text import banner, c_string

YAML = "yaml/native_functions/"
AUTOCAST = "Autocast"  # one key per device; its kernels are registered for all


def op_of(op: Operator) -> str:
    """The operator's table entry, in its own family's file."""
    return f"&ops[OP_{op.c}]"


def key_in_c(key: str) -> str:
    return f"TP_ALIAS_KEY({key})" if key in ALIASES else f"TP_KEY_{key}"


class Kernels:
    """What a family registers: rows by key, gathered while the kernels are written. `files` says which file of the tree
    defines a C function.
    """

    def __init__(self, files: Mapping[str, str] | None = None) -> None:
        self.files = files or {}
        self.rows: dict[str, list[str]] = {}

    def add(self, key: str, op: Operator, function: str, origin: str, file: str | None = None) -> None:
        """`file`: that the kernel comes from; without it, the one of the C function `origin`, or the operator's."""
        file = file or self.files.get(origin) or op.function.location.in_tree.rpartition(":")[0]
        row = f"    {{{op_of(op)}, (tp_fn){function}, {c_string(origin)}, {c_string(file)}}},\n"
        self.rows.setdefault(key, []).append(row)

    def text(self) -> str:
        """The tables, and `kernels`, the list of them."""
        out = [
            f"static const tp_kernel_entry kernels_{key}[] = {{\n{''.join(rows)}}};\n"
            for key, rows in self.rows.items()
        ]
        out.append("static const tp_kernel_list kernels[] = {\n")
        for key in self.rows:
            if key == AUTOCAST:
                row = f"{{TP_KEY_##key, kernels_{key}, TP_COUNTOF(kernels_{key})}},"
                out.append(f"#define ROW(key) {row}\n    TP_FORALL_BACKENDS(ROW, {AUTOCAST})\n#undef ROW\n")
            else:
                out.append(f"    {{{key_in_c(key)}, kernels_{key}, TP_COUNTOF(kernels_{key})}},\n")
        return "".join([*out, "};\n"])


def keys_of(a: CArgument) -> str:
    """The key set of an argument of tensors."""
    if a.c.member == "tensors":
        return f"tp_keys_of_tensors({a.name_in_c})"
    return f"tp_keys_of_optional({a.name_in_c})" if a.argument.is_optional else f"{a.name_in_c}->keys"


def keyset_expression(op: Operator) -> str:
    """The union of the tensors' key sets; a factory's comes from its `device` argument in BackendSelect."""
    return " | ".join(keys_of(a) for a in c_arguments(op.schema) if is_tensor_like(a.type)) or "TP_FACTORY_KEYS"


def passed_by(op: Operator, key: str) -> str:
    """The statement of a kernel at a key for calls none of whose tensors has it: they go on below."""
    call = f"redispatch_{op.c}({call_arguments(op.schema, keyset=f'ks & TP_BELOW({key})')})"
    return f"if (!(({keyset_expression(op)}) & TP_BIT({key}))) return {call};"


def kernel_at_key(
    op: Operator,
    key: str,
    name: str,
    called: str,
    around: str = "{}",
    before: str = "",
    replaced: Mapping[str, str] | None = None,
) -> str:
    """A kernel at a key: a C function of the tree, which is passed by; or with none, what is below. `around` is the
    call that the result goes through, `before` the statements that come first and `replaced` what they leave in the
    place of arguments.
    """
    head = f"static {c_result(op.schema).decl}{name}({parameters(op.schema, keyset=True)}) {{\n"
    if not called:
        below = call_arguments(op.schema, keyset=f"ks & TP_BELOW({key})")
        return f"{head}    return redispatch_{op.c}({below});\n}}\n"
    made = around.format(f"{called}({call_arguments(op.schema, replaced=replaced)})")
    return f"{head}    {passed_by(op, key)}\n{before}    return {made};\n}}\n"


def declaration(op: Operator) -> str:
    return f"/* {op.schema} */\n{c_result(op.schema).decl}tp_{op.c}({parameters(op.schema)});\n"


def functions_h(declarations: Iterable[str]) -> str:
    head = banner("emit_functions.py", YAML, "The operators as C functions, each under its schema.")
    includes = '#pragma once\n\n#include "core/generator.h"\n#include "core/tensor.h"\n\n'
    return "".join([head, includes, *declarations])


def emit_functions_h(catalog: Catalog) -> str:
    return functions_h(map(declaration, catalog))


def emit_numbers(catalog: Catalog) -> str:
    """The family's table, and the types of its kernels."""
    out = ["enum {\n", *(f"    OP_{op.c},\n" for op in catalog), "    OP_COUNT\n};\nstatic tp_op ops[OP_COUNT];\n\n"]
    return "".join(out) + "".join(kernel_types(catalog).values())


def kernel_types(operators: Iterable[Operator]) -> dict[str, str]:
    """By the signature's code: the type of a kernel."""
    types = {}
    for op in operators:
        code = signature_code(op.schema)
        if code not in types:
            types[code] = (
                f"typedef {c_result(op.schema).decl}(*{function_type(op.schema)})({_kernel_parameters(op)});\n"
            )
    return types


def _kernel_parameters(op: Operator) -> str:
    types = ["tp_keyset", *(a.c.decl.strip() for a in c_arguments(op.schema))]
    result = c_result(op.schema)
    if result.kind == "value":
        types.append(f"{value_decl(result)}*")
    if result.kind == "values":
        types.append("tp_value *")
    return ", ".join(types)


def emit_entries(catalog: Catalog) -> str:
    out = []
    for op in catalog:
        result, type_ = c_result(op.schema), function_type(op.schema)
        out.append(
            f"static {result.decl}redispatch_{op.c}({parameters(op.schema, keyset=True)}) {{\n"
            f"    const tp_op *op = {op_of(op)};\n"
            f"    {type_} kernel = ({type_})tp_kernel_at(op, tp_live_key(op, ks));\n"
            f"    if (tp_unlikely(!kernel)) kernel = ({type_})op->info->box;\n"
            f"    return kernel({call_arguments(op.schema, keyset='ks', replaced=passed_by_parts(op.schema))});\n}}\n"
        )
        out.append(
            f"{result.decl}tp_{op.c}({parameters(op.schema)}) {{\n"
            f"    tp_keyset ks = tp_effective_keys({keyset_expression(op)});\n"
            f"    return redispatch_{op.c}({call_arguments(op.schema, keyset='ks')});\n}}\n\n"
        )
    return "".join(out)
