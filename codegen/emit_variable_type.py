"""The autograd layer of a family: the kernels under the alias key Autograd, which record the backward nodes.

Note [Hot and cold]
The kernel of an operator is a test and a redispatch; what makes a node is a function of its own (`record_<op>`), so
that a call without gradient carries none of its registers and stack.
"""

from __future__ import annotations

from collections.abc import Sequence

from .autograd_nodes import LIST_COPIES, Kept, Node, by_key, node_of, refused_of, wants
from .c_types import CArgument, c_arguments, c_result, call_arguments, parameters, passed_by_parts
from .catalog import Catalog, Operator
from .emit_functions import Kernels
from .formula import PARTS
from .formula_calls import call_failed
from .model import TENSOR, is_tensor_like
from .text import c_string


def _tensor_arguments(op: Operator) -> list[CArgument]:
    return [a for a in c_arguments(op.schema) if is_tensor_like(a.type)]


def _requires_grad(arguments: Sequence[CArgument]) -> str:
    tests = [
        f"tp_wants_grad_list({a.name_in_c})" if a.c.member == "tensors" else f"tp_requires_grad({a.name_in_c})"
        for a in arguments
    ]
    return f"({' || '.join(tests)})" if len(tests) > 1 else tests[0]


def _call_below(op: Operator, mask: str = "TP_BELOW_AUTOGRAD") -> str:
    call = call_arguments(op.schema, keyset=f"ks & {mask}", replaced=passed_by_parts(op.schema))
    return f"redispatch_{op.c}({call})"


def makes_fresh(op: Operator) -> bool:
    """Whether what it gives is new memory, and it writes to nothing else."""
    annotations = [a.annotation for a in op.schema.arguments] + [r.annotation for r in op.schema.returns]
    return op.kind == "functional" and not any(annotations)


def layers_off(op: Operator) -> str:
    """What a kernel below the autograd layer calls without: a graph, and versions of a result that nobody has yet."""
    return "TP_AUTOGRAD_KEYS | TP_BIT(ADInplaceOrView)" if makes_fresh(op) else "TP_AUTOGRAD_KEYS"


def guarded_call(op: Operator, excluded: str, mask: str) -> list[str]:
    """Statements that leave the result in `got`."""
    result = c_result(op.schema)
    return [
        f"{result.decl}got;",
        "{",
        f"    tp_exclude_guard guard = tp_exclude({excluded});",
        f"    got = {_call_below(op, mask)};",
        "}",
        f"if ({call_failed(op.schema, 'got')}) return {result.failed};",
    ]


def _save_parts(op: Operator, k: Kept, source: str) -> list[str]:
    """Statements that keep what is known of a tensor without its elements."""
    out = []
    for part in k.parts():
        field = f"node->{k.field}_{part}"
        guard = f"if ({source}) " if k.kind == "Tensor?" and part != "defined" else ""
        if part in ("sizes", "strides"):
            there = f"{source} && " if k.kind == "Tensor?" else ""
            out.append(f"{guard}{field} = tp_save_ints({PARTS[part].of(source)});")
            out.append(f"if ({there}{source}->ndim && !{field}.data) return {c_result(op.schema).failed};")
        else:
            out.append(f"{guard}{field} = {PARTS[part].of(source)};")
    return out


def _save_argument(op: Operator, node: Node, k: Kept, source: str) -> list[str]:
    """Statements that keep an argument, or an output, whose C expression is `source`."""
    failed = c_result(op.schema).failed
    out = []
    if k.saves_tensor:
        call, owns = "", k.output >= 0 and node.differentiable(k.output)
        if not k.use.elements:
            call = f"tp_save_pattern(&node->{k.field}, {source}, {k.output if owns else -1})"
        elif owns:  # another output does not own the node
            call = f"tp_save_output(&node->{k.field}, {source}, {k.output})"
        if not call and op.kind == "inplace" and k.name == "self":
            call = f"tp_save_before_write(&node->{k.field}, {source})"
        call = call or f"tp_save(&node->{k.field}, {source})"
        out.append(f"if ({call} < 0) return {failed};")
        if k.kind == "Tensor?":
            out.append(f"node->{k.field}_defined = {source} != NULL;")
    elif k.is_tensor:
        pass  # of which only parts are kept
    elif k.kind == "Tensor[]":
        if k.saves_list:
            out.append(f"node->{k.field} = tp_save_list({source});")
            out.append(f"if (!node->{k.field}) return {failed};")
        for field, dim in k.sizes_along():
            out.append(f"node->{field} = tp_save_sizes_along({source}, {dim});")
            out.append(f"if (node->{field}.size < 0) return {failed};")
    elif k.kind == "Scalar":
        out.append(f"node->{k.field} = *{source};")
    elif k.kind == "Scalar?":
        out.append(f"node->{k.field}_defined = {source} != NULL;")
        out.append(f"if ({source}) node->{k.field} = *{source};")
    elif k.bare_kind in LIST_COPIES:
        out.append(f"node->{k.field} = tp_save_{LIST_COPIES[k.bare_kind]}({source});")
        out.append(f"if ({source}.size > 0 && !node->{k.field}.data) return {failed};")
    elif k.bare_kind == "str":
        out.append(f"node->{k.field} = tp_save_str({source});")
        out.append(f"if ({source} && !node->{k.field}) return {failed};")
    else:
        out.append(f"node->{k.field} = {source};")
    return out


def _save(op: Operator, node: Node, k: Kept, source: str) -> list[str]:
    """Only for a gradient that is wanted; cheap copies always."""
    parts = _save_parts(op, k, source) if k.is_tensor else []
    lines = _save_argument(op, node, k, source)
    if not (k.saves_tensor or k.saves_list) or len(k.formulas) == len(node.formulas):
        return parts + lines
    names = [name for i in sorted(k.formulas) for name in node.formulas[i].names]
    test = " || ".join(wants(node, name, "fn") for name in names)
    return [*parts, f"if ({test}) {{", *(f"    {line}" for line in lines), "}"]


def _own_outputs(op: Operator) -> tuple[list[str], list[str], str]:
    """(statements that take the call's outputs over, their names, what to return)."""
    result = c_result(op.schema)
    match result.kind:
        case "tensor":
            return ["tp_autoref *result0 = got;"], ["result0"], "tp_take(result0)"
        case "tensors":
            names = [f"result{i}" for i in range(result.count)]
            lines = [f"tp_autoref *{name} = got.v[{i}];" for i, name in enumerate(names)]
            return lines, names, f"({result.decl.strip()}){{{{{', '.join(f'tp_take({n})' for n in names)}}}}}"
        case "seq":
            return ["tp_autoseq *results = got;"], ["results"], "tp_take(results)"
        case _:
            return [], [], "0"


def _set_outputs(op: Operator, node: Node | None, names: Sequence[str]) -> list[str]:
    failed = c_result(op.schema).failed
    if c_result(op.schema).kind == "seq":
        return [
            f"for (int64_t i = 0; i < {names[0]}->size; i++)",
            f"    if (tp_node_set_output(fn, {names[0]}->items[i]) < 0) return {failed};",
        ]
    out = []
    for i, name in enumerate(names):
        if node is not None and i >= node.inputs:
            break
        skip = node is not None and not node.differentiable(i)
        call = "tp_node_skip_output(fn)" if skip else f"tp_node_set_output(fn, {name})"
        out.append(f"if ({call} < 0) return {failed};")
    return out


def _edge_lines(op: Operator, arguments: Sequence[CArgument], lists_in_node: bool) -> tuple[str, list[str]]:
    """(how many edges, statements that set them)."""
    failed = c_result(op.schema).failed
    fixed = 0
    lists: list[str] = []
    out: list[str] = []
    for a in arguments:
        at = " + ".join([str(fixed), *lists] if fixed or not lists else lists)
        if a.c.member == "tensors":
            if lists_in_node:
                out.append(f"node->{a.name_in_c}_count = (int){a.name_in_c}.size;")
            out.append(f"if (tp_node_set_edges(fn, {at}, {a.name_in_c}) < 0) return {failed};")
            lists.append(f"(int){a.name_in_c}.size")
        else:
            test = f"{a.name_in_c} && " if a.argument.is_optional else ""
            out.append(f"if ({test}tp_node_set_edge(fn, {at}, {a.name_in_c}) < 0) return {failed};")
            fixed += 1
    return " + ".join([str(fixed), *lists] if fixed or not lists else lists), out


def _record(op: Operator, node: Node | None, suffix: str) -> str:
    """The half that records: `record_<op>`."""
    result = c_result(op.schema)
    lines: list[str] = []
    inplace, written = op.kind == "inplace", c_arguments(op.schema)[0].name_in_c
    if inplace:
        lines.append(f"if (tp_check_inplace({written}, {c_string(op.schema.name.qualified)}, true) < 0) return -1;")
    if node is not None:
        arguments = [a for a in c_arguments(op.schema) if a.name in {e.name for e in node.edges}]
        count, edges = _edge_lines(op, arguments, True)
        lines.append(f"tp_autonode *fn = tp_node_new(&{node.name}_type, {count});")
        lines.append(f"if (!fn) return {result.failed};")
        lines.append(f"{node.name} *node = ({node.name} *)fn;")
        if not node.kept and "node->" not in "".join(edges):
            lines.append("(void)node;")
    else:
        count, edges = _edge_lines(op, _tensor_arguments(op), False)
        lines.append(f"tp_autonode *fn = tp_not_differentiable_node({c_string(str(op.schema.name))}, {count});")
        lines.append(f"if (!fn) return {result.failed};")
    lines += edges
    names_in_c = {a.name: a.name_in_c for a in c_arguments(op.schema)}
    for k in node.kept if node is not None else ():
        if k.output < 0:
            lines += _save(op, node, k, names_in_c[k.name]) if node is not None else []
    lines += guarded_call(op, layers_off(op), "TP_BELOW_AUTOGRAD")
    taken, names, returned = _own_outputs(op)
    lines += taken
    if inplace:
        rebase = "tp_restride_history" if "inplace_view" in op.function.tags else "tp_rebase_history"
        lines.append(f"if ({rebase}({written}, fn) < 0) return -1;")
        names = [written]
    elif names:
        lines += _set_outputs(op, node, names)
    if node is not None:
        for k in node.kept:
            if k.output >= 0:
                lines += _save(op, node, k, names[k.output])
    lines.append(f"return {returned};")
    body = "".join(f"    {line}\n" for line in lines)
    signature = f"{result.decl}record_{op.c}{suffix}({parameters(op.schema, keyset=True)})"
    return f"static __attribute__((noinline)) {signature} {{\n{body}}}\n"


def writes_list(op: Operator) -> bool:
    """In place on a list of tensors: nothing is recorded of that."""
    return op.kind == "inplace" and op.schema.positional[0].type != TENSOR


def _records_without_formula(op: Operator) -> bool:
    """Whether outputs of an operator without formulas may be floating and so must say that they have no gradient."""
    if op.derivative is not None or op.schema.name.base == "detach":
        return False
    if op.kind == "inplace":
        return not writes_list(op)
    if not any(is_tensor_like(r.type) and not r.is_write for r in op.schema.returns):
        return False
    return op.pointwise is None or op.pointwise.promotion != "always_bool"


def _base_too(op: Operator, test: str) -> str:
    """In place on a view: what is written may belong to a base that wants a gradient though the view has none."""
    if op.kind != "inplace":
        return test
    written = c_arguments(op.schema)[0].name_in_c
    return f"({test} || ({written}->base && tp_requires_grad({written}->base)))"


def has_autograd_kernel(op: Operator) -> bool:
    own = any(k.key.startswith("Autograd") for k in op.kernels)
    return bool(op.kernels) and not op.is_implicit and not own and bool(op.tensor_arguments and op.autograd_keys)


def _autograd_kernel(op: Operator, catalog: Catalog, suffix: str = "") -> str:
    node = node_of(op, catalog)
    result = c_result(op.schema)
    lines = []
    before = ""
    call = call_arguments(op.schema, keyset="ks")
    for a in () if op.kind == "out" else refused_of(op):
        told = f"tp_refuse_grad({c_string(op.schema.name.unqualified)}, {c_string(a.name)})"
        lines.append(f"if (tp_unlikely({_requires_grad([a])} && tp_grad_enabled())) {{")
        lines.append(f"    {told};")
        lines.append(f"    return {result.failed};")
        lines.append("}")
    if op.kind == "out":
        test = _requires_grad(_tensor_arguments(op))
        lines.append(f"if (tp_unlikely({test} && tp_grad_enabled())) {{")
        lines.append(f"    tp_out_no_grad({c_string(str(op.schema.name))});")
        lines.append(f"    return {result.failed};")
        lines.append("}")
    elif node is not None and not writes_list(op):
        names = {e.name for e in node.edges}
        test = _base_too(op, _requires_grad([a for a in c_arguments(op.schema) if a.name in names]))
        lines.append(f"if (tp_unlikely({test} && tp_grad_enabled())) return record_{op.c}{suffix}({call});")
        before = _record(op, node, suffix)
    elif writes_list(op):
        test = _requires_grad(_tensor_arguments(op))
        lines.append(
            f"if (tp_unlikely({test} && tp_grad_enabled())) return tp_list_no_grad({c_string(str(op.schema.name))});"
        )
    elif _records_without_formula(op):
        test = _base_too(op, _requires_grad(_tensor_arguments(op)))
        lines.append(f"if (tp_unlikely({test} && tp_grad_enabled())) return record_{op.c}{suffix}({call});")
        before = _record(op, None, suffix)
    lines.append(f"tp_exclude_guard guard = tp_exclude({layers_off(op)});")
    lines.append(f"return {_call_below(op)};")
    body = "".join(f"    {line}\n" for line in lines)
    head = f"static {result.decl}autograd_{op.c}{suffix}({parameters(op.schema, keyset=True)}) {{\n"
    return f"/* {op.schema} */\n{before}{head}{body}}}\n\n"


def emit_variable_type(catalog: Catalog, kernels: Kernels) -> str:
    out = []
    for op in catalog:
        if has_autograd_kernel(op):
            out.append(_autograd_kernel(op, catalog))
            for key in op.autograd_keys:
                kernels.add(key, op, f"autograd_{op.c}", "autograd", "codegen/emit_variable_type.py")
            for key, alone in by_key(op):
                out.append(_autograd_kernel(alone, catalog, f"_{key}"))
                kernels.add(key, alone, f"autograd_{op.c}_{key}", "autograd", "codegen/emit_variable_type.py")
    return "".join(out)
