"""The autocast layer of a family, from yaml/autocast.yaml.

A kernel of this layer casts its floating arguments by the operator's policy and passes the call on below itself. One
kernel serves every device; which device it acts for is told by the key set.
"""

from __future__ import annotations

from .c_types import c_arguments, c_result, call_arguments, parameters
from .catalog import Catalog, Operator
from .emit_functions import AUTOCAST, Kernels

TARGET = {
    "lower_precision_fp": "tp_autocast_dtype(device)",
    "fp32": "TP_FLOAT32",
}


def _widest(op: Operator) -> str:
    """Statements that find the widest floating dtype among the arguments."""
    out = ["    tp_dtype to = tp_autocast_dtype(device);\n"]
    for a in c_arguments(op.schema):
        if a.c.member == "tensor":
            out.append(f"    to = tp_autocast_promote(to, {a.name_in_c}, device);\n")
        elif a.c.member == "tensors":
            out.append(f"    to = tp_autocast_promote_list(to, {a.name_in_c}, device);\n")
    return "".join(out)


def _kernel(op: Operator, policy: str) -> str:
    result = c_result(op.schema)
    body = "    tp_exclude_guard guard = tp_exclude(TP_AUTOCAST_KEYS);\n    int device = tp_autocast_device(ks);\n"
    body += _widest(op) if policy == "promote" else f"    tp_dtype to = {TARGET[policy]};\n"
    casts = {}
    for a in c_arguments(op.schema):
        cast = f"{a.name_in_c}_cast"
        if a.c.member == "tensor" and not a.argument.is_write:
            body += f"    tp_autoref *{cast} = tp_cached_cast({a.name_in_c}, to, device);\n"
            body += f"    if ({a.name_in_c} && !{cast}) return {result.failed};\n"
            casts[a.name] = cast
        elif a.c.member == "tensors":
            body += f"    tp_autoseq *{cast} = tp_cached_cast_list({a.name_in_c}, to, device);\n"
            body += f"    if (!{cast}) return {result.failed};\n"
            casts[a.name] = f"tp_tensor_seq_borrow({cast})"
    call = call_arguments(op.schema, keyset="ks & TP_BELOW_AUTOCAST", replaced=casts)
    body += f"    return redispatch_{op.c}({call});\n"
    return f"static {result.decl}autocast_{op.c}({parameters(op.schema, keyset=True)}) {{\n{body}}}\n"


def emit_autocast(catalog: Catalog, kernels: Kernels) -> str:
    out = []
    for op in catalog:
        for entry in op.autocast:
            if entry.policy in ("lower_precision_fp", "fp32", "promote"):
                out.append(_kernel(op, entry.policy))
                kernels.add(AUTOCAST, op, f"autocast_{op.c}", entry.policy, "yaml/autocast.yaml")
    return "".join(out)
