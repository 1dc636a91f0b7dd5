"""The layer ADInplaceOrView of a family: the versions of written tensors, and what views are views of."""

from __future__ import annotations

from .c_types import c_arguments, c_result, parameters
from .catalog import Catalog, Operator
from .emit_functions import Kernels
from .emit_variable_type import guarded_call
from .model import Return
from .text import c_string


def view_base(op: Operator, returned: Return) -> str | None:
    """The argument that a returned view aliases."""
    if returned.annotation is None or returned.is_write or op.schema.name.base == "detach":
        return None  # what detach gives shares memory and version, but no gradient flows from one to the other
    letters = set(returned.annotation.before)
    for a in c_arguments(op.schema):
        annotation = a.argument.annotation
        if annotation is not None and letters & set(annotation.before) and a.c.member == "tensor":
            return a.name_in_c
    return None


def _inplace_or_view_kernel(op: Operator) -> str | None:
    result = c_result(op.schema)
    written = [a for a in c_arguments(op.schema) if a.argument.is_write]
    lines = [
        f"if ({f'{a.name_in_c} && ' if a.argument.is_optional else ''}tp_may_write({a.name_in_c}, "
        f"{c_string(str(op.schema.name))}) < 0) return {result.failed};"
        for a in written
        if a.c.member == "tensor"
    ]
    lines += guarded_call(op, "TP_AUTOGRAD_KEYS | TP_BIT(ADInplaceOrView)", "TP_BELOW_ADINPLACEORVIEW")
    bases = [view_base(op, r) for r in op.schema.returns]
    if not written and not any(bases):
        return None
    for a in written:
        name = a.name_in_c
        if a.c.member == "tensors":
            test = f"if ({name}.data[i]) "
            lines.append(
                f"for (int64_t i = 0; i < {name}.size; i++) {test}tp_note_write({name}.data[i], "
                f"{c_string(str(op.schema.name))});"
            )
        else:
            lines.append(
                f"{f'if ({name}) ' if a.argument.is_optional else ''}tp_note_write({name}, "
                f"{c_string(str(op.schema.name))});"
            )
    returned = "got"
    match result.kind:
        case "status" | "value":
            returned = "0"
        case "tensor" if bases[0]:
            returned = f"tp_as_view({bases[0]}, got)"
        case "seq" if bases[0]:
            returned = f"tp_as_views({bases[0]}, got)"
        case "tensors":
            for i, base in enumerate(bases):
                if base:
                    lines.append(f"got.v[{i}] = tp_as_view({base}, got.v[{i}]);")
    lines.append(f"return {returned};")
    body = "".join(f"    {line}\n" for line in lines)
    head = f"static {result.decl}inplace_or_view_{op.c}({parameters(op.schema, keyset=True)}) {{\n"
    return f"/* {op.schema} */\n{head}{body}}}\n\n"


EMITTER = "codegen/emit_inplace_or_view.py"


def emit_inplace_or_view(catalog: Catalog, kernels: Kernels) -> str:
    out = []
    for op in catalog:
        text = _inplace_or_view_kernel(op) if op.kernels and not op.is_implicit and op.tensor_arguments else None
        if text is not None:
            out.append(text)
            kernels.add("ADInplaceOrView", op, f"inplace_or_view_{op.c}", "versions and views", EMITTER)
    return "".join(out)
