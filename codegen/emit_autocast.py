"""The autocast layer of a family, from yaml/autocast.yaml.

A kernel of this layer casts its floating arguments by the operator's policy and passes the call on below itself. One
kernel serves every device that has the policy; which device it acts for is told by the key set. A policy is one of

lower_precision_fp   the region's dtype
fp32                 float32; so is fp32_append_dtype, whose results PyTorch asks for by a dtype
fp32_set_opt_dtype   the argument dtype is float32, unless it is given or the first tensor is not to be cast
promote              the widest dtype among the arguments
banned               a RuntimeError
"""

from __future__ import annotations

from .c_types import c_arguments, c_result, call_arguments, parameters
from .catalog import Catalog, Operator
from .emit_functions import AUTOCAST, Kernels
from .text import c_string

BACKENDS = ("CPU", "Meta", "OpenCL", "PrivateUse1", "PrivateUse2", "PrivateUse3")
TARGET = {
    "lower_precision_fp": "tp_autocast_dtype(device)",
    "fp32": "TP_FLOAT32",
    "fp32_append_dtype": "TP_FLOAT32",
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
    head = f"static {result.decl}autocast_{policy}_{op.c}({parameters(op.schema, keyset=True)})"
    if policy == "banned":
        what = f"{op.schema.name.base} is unsafe to autocast: its result leaves the range of 16-bit floats. Join what"
        advice = "comes before it, as binary_cross_entropy_with_logits does, or switch autocast off around it"
        unused = "".join(f"    (void){name};\n" for name in ["ks", *(a.name_in_c for a in c_arguments(op.schema))])
        fail = f'    tp_fail(TP_RuntimeError, "%s", {c_string(f"{what} {advice}")});\n'
        return f"{head} {{\n{unused}{fail}    return {result.failed};\n}}\n"
    if policy == "fp32_set_opt_dtype":
        return _with_dtype(op, head)
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
    return f"{head} {{\n{body}}}\n"


def _with_dtype(op: Operator, head: str) -> str:
    """Asks for a float32 result, which is computed from the arguments as they are."""
    first = next(a.name_in_c for a in c_arguments(op.schema) if a.c.member == "tensor")
    dtype = next(a for a in c_arguments(op.schema) if str(a.type) == "ScalarType?")
    name = dtype.name_in_c
    wanted = f"{name} == TP_NO_DTYPE && tp_autocast_takes({first}, tp_autocast_device(ks)) ? TP_FLOAT32 : {name}"
    call = call_arguments(op.schema, keyset="ks & TP_BELOW_AUTOCAST", replaced={dtype.name: "wanted"})
    return (
        f"{head} {{\n    tp_exclude_guard guard = tp_exclude(TP_AUTOCAST_KEYS);\n"
        f"    const tp_dtype wanted = {wanted};\n    return redispatch_{op.c}({call});\n}}\n"
    )


def emit_autocast(catalog: Catalog, kernels: Kernels) -> str:
    out = []
    for op in catalog:
        policies = {backend: policy for backend in BACKENDS if (policy := op.autocast_on(backend)) is not None}
        for policy in dict.fromkeys(policies.values()):
            out.append(_kernel(op, policy))
            where = [backend for backend, its in policies.items() if its == policy]
            for key in [AUTOCAST] if len(where) == len(BACKENDS) else [f"{AUTOCAST}{backend}" for backend in where]:
                kernels.add(key, op, f"autocast_{policy}_{op.c}", policy, "yaml/autocast.yaml")
    return "".join(out)
