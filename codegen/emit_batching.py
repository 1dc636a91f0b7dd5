"""The batched layer: a rule for each operator (csrc/batched/rule.h), and the kernels at the key.

A kernel there is one of the tree's C functions, or a formula; both are passed by where nothing is batched.
"""

from __future__ import annotations

from .batching import Batching, batching_of
from .c_types import c_arguments, c_result
from .catalog import Catalog, Operator
from .emit_formula import emit_at_key
from .emit_functions import Kernels, kernel_at_key, op_of, passed_by
from .text import Rules, c_string, lines


def rules_of(catalog: Catalog) -> dict[str, Batching]:
    """By the operator's C name: those that the fallback of the key is asked for."""
    found = ((op, batching_of(op, catalog)) for op in catalog)
    return {op.c: rule for op, rule in found if rule is not None and rule.formula is None}


def emit_rules(catalog: Catalog) -> Rules:
    rules = Rules("tp_batch_rule", "batching")
    for name, rule in rules_of(catalog).items():
        other = op_of(rule.other) if rule.other is not None else "NULL"
        random = "true" if rule.random else "false"
        rules.add(name, f"TP_BATCH_{rule.kind}, {random}, {c_string(rule.roles)}, {other}")
    return rules


def _lifted(op: Operator) -> tuple[str, dict[str, str]]:
    """The statements that lift the tensors of a call (Note [Batched tangents]), and what stands for each afterwards.
    What is written stays as it is.
    """
    arguments = [a for a in c_arguments(op.schema) if not a.argument.is_write]
    alone, lists = ([a for a in arguments if a.c.member == member] for member in ("tensor", "tensors"))
    if not alone and not lists:
        return "", {}
    replaced = {a.name: f"given[{i}]" for i, a in enumerate(alone)}
    fill, count = [f"given[{i}] = {a.name_in_c};" for i, a in enumerate(alone)], str(len(alone))
    for a in lists:
        size = f"{a.name_in_c}.size"
        fill.append(f"for (int64_t i = 0; i < {size}; i++) given[{count} + i] = {a.name_in_c}.data[i];")
        replaced[a.name] = f"((tp_tensors){{given + {count}, {size}}})"
        count += f" + {size}"
    statements = [
        "tp_autolifted lifted = {0};",
        f"tp_tensor *given[{count}];",
        *fill,
        f"if (tp_batch_lift(&lifted, given, {count}) < 0) return {c_result(op.schema).failed};",
    ]
    return lines(statements), replaced


def emit_batched(catalog: Catalog, kernels: Kernels) -> str:
    out = []
    for op in catalog:
        rule = batching_of(op, catalog)
        source = next((k.name for k in op.kernels if k.key == "Batched"), None)
        if source is not None:
            before, replaced = _lifted(op)
            out.append(kernel_at_key(op, "Batched", f"batched_{op.c}", source, before=before, replaced=replaced))
            kernels.add("Batched", op, f"batched_{op.c}", source)
        elif rule is not None and rule.formula is not None:
            first = [passed_by(op, "Batched")]
            out.append(emit_at_key(op, "batching", rule.formula, catalog, f"batched_{op.c}", first))
            kernels.add("Batched", op, f"batched_{op.c}", "formula")
    return "".join(out)
