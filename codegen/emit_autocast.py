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

from collections.abc import Callable, Mapping

from .c_types import c_arguments, c_result, call_arguments, parameters
from .catalog import Catalog, Operator
from .emit_functions import AUTOCAST, Kernels
from .errors import YamlError
from .keys import DEVICES
from .text import c_string, lines

TARGET = {
    "lower_precision_fp": "tp_autocast_dtype(device__)",
    "fp32": "TP_FLOAT32",
    "fp32_append_dtype": "TP_FLOAT32",
}


def _widest(op: Operator) -> list[str]:
    """Statements that find the widest floating dtype among the arguments."""
    out = ["tp_dtype to__ = tp_autocast_dtype(device__);"]
    for a in c_arguments(op.schema):
        if a.c.member == "tensor":
            out.append(f"to__ = tp_autocast_promote(to__, {a.name_in_c}, device__);")
        elif a.c.member == "tensors":
            out.append(f"to__ = tp_autocast_promote_list(to__, {a.name_in_c}, device__);")
    return out


def kernel_body(op: Operator, policy: str, device: str, call: Callable[[Mapping[str, str]], str]) -> list[str]:
    """Statements of the kernel for a policy, in the tree and outside. `device` is the device type in C, `call` what
    passes the call on below with other arguments."""
    result = c_result(op.schema)
    if policy == "banned":
        what = f"{op.schema.name.base} is unsafe to autocast: its result leaves the range of 16-bit floats. Join what"
        advice = "comes before it, as binary_cross_entropy_with_logits does, or switch autocast off around it"
        unused = [f"(void){name};" for name in ["ks", *(a.name_in_c for a in c_arguments(op.schema))]]
        fail = f'tp_fail(TP_RuntimeError, "%s", {c_string(f"{what} {advice}")});'
        return [*unused, fail, f"return {result.failed};"]
    guard = "tp_exclude_guard guard__ = tp_exclude(TP_AUTOCAST_KEYS);"
    if policy == "fp32_set_opt_dtype":
        return [guard, *_with_dtype(op, device, call)]
    body = [f"const int device__ = {device};"]
    body += _widest(op) if policy == "promote" else [f"const tp_dtype to__ = {TARGET[policy]};"]
    body.append(guard)  # after the region's dtype was asked for: a library is told of none where autocast is off
    casts = {}
    for a in c_arguments(op.schema):
        cast = f"cast_{a.name_in_c}"
        if a.c.member == "tensor" and not a.argument.is_write:
            body.append(f"tp_autoref *{cast} = tp_cached_cast({a.name_in_c}, to__, device__);")
            body.append(f"if ({a.name_in_c} && !{cast}) return {result.failed};")
            casts[a.name] = cast
        elif a.c.member == "tensors":
            body.append(f"tp_autoseq *{cast} = tp_cached_cast_list({a.name_in_c}, to__, device__);")
            body.append(f"if (!{cast}) return {result.failed};")
            casts[a.name] = f"tp_tensor_seq_borrow({cast})"
    return [*body, f"return {call(casts)};"]


def _with_dtype(op: Operator, device: str, call: Callable[[Mapping[str, str]], str]) -> list[str]:
    """Asks for a float32 result, which is computed from the arguments as they are."""
    first = next(a.name_in_c for a in c_arguments(op.schema) if a.c.member == "tensor")
    dtype = next((a for a in c_arguments(op.schema) if str(a.type) == "ScalarType?"), None)
    if dtype is None:
        what = f"{op.schema.name} has no 'ScalarType? dtype' that fp32_set_opt_dtype could set"
        raise YamlError(op.function.at("func"), what, "name it under fp32, or add the argument")
    name = dtype.name_in_c
    wanted = f"{name} == TP_NO_DTYPE && tp_autocast_takes({first}, {device}) ? TP_FLOAT32 : {name}"
    return [f"const tp_dtype wanted__ = {wanted};", f"return {call({dtype.name: 'wanted__'})};"]


def _kernel(op: Operator, policy: str) -> str:
    def below(replaced: Mapping[str, str]) -> str:
        call = call_arguments(op.schema, keyset="ks & TP_BELOW_AUTOCAST", replaced=replaced)
        return f"redispatch_{op.c}({call})"

    head = f"static {c_result(op.schema).decl}autocast_{policy}_{op.c}({parameters(op.schema, keyset=True)})"
    return f"{head} {{\n{lines(kernel_body(op, policy, 'tp_autocast_device(ks)', below))}}}\n"


def emit_autocast(catalog: Catalog, kernels: Kernels) -> str:
    out = []
    for op in catalog:
        policies = {backend: policy for backend in DEVICES if (policy := op.autocast_on(backend)) is not None}
        for policy in dict.fromkeys(policies.values()):
            out.append(_kernel(op, policy))
            where = [backend for backend, its in policies.items() if its == policy]
            for key in [AUTOCAST] if len(where) == len(DEVICES) else [f"{AUTOCAST}{backend}" for backend in where]:
                kernels.add(key, op, f"autocast_{policy}_{op.c}", policy, "yaml/autocast.yaml")
    return "".join(out)
