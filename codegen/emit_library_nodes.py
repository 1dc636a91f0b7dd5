"""The backward of a library's operators (library.py), on tp_record of tensorpy/api.h.

A record keeps tensors by number; all else that the formulas need is in a struct that it copies.
"""

from __future__ import annotations

from .autograd_nodes import LIST_COPIES, Kept, Node, node_of, wants
from .c_types import CArgument, c_arguments, c_result
from .catalog import Catalog, Operator
from .emit_nodes import Form, formula_function
from .errors import YamlError
from .formula import PARTS, Use, Variable, kind_of
from .formula_calls import call_failed
from .model import is_tensor_like
from .text import c_string, lines

COUNT = "kept->{}_count"


def _is_list(a: CArgument) -> bool:
    return kind_of(a.type) == "Tensor[]"


def _fields(node: Node) -> list[str]:
    out = {f"int64_t {a.name_in_c}_count;": None for a in node.edges if _is_list(a)}
    for k in node.kept:
        if k.saves_tensor or k.saves_list:
            out[f"int {k.field}_at;"] = None
        if k.kind in ("Tensor?", "Scalar?") and (k.saves_tensor or not k.is_tensor):
            out[f"bool {k.field}_defined;"] = None
        for part in k.parts() if k.is_tensor else ():
            type_ = "tensorpy_kept_ints" if part in ("sizes", "strides") else PARTS[part].type
            out[f"{type_} {k.field}_{part};"] = None
        if k.kind == "Tensor[]":
            out[f"int64_t {k.field}_count;"] = None
            out.update(dict.fromkeys(f"tensorpy_kept_ints {sizes};" for sizes, _ in k.sizes_along()))
        elif k.bare_kind == "Scalar":
            out[f"tp_scalar {k.field};"] = None
        elif k.bare_kind == "str":
            out[f"tensorpy_kept_str {k.field};"] = None
        elif k.bare_kind in LIST_COPIES:
            out[f"tensorpy_kept_{LIST_COPIES[k.bare_kind]} {k.field};"] = None
        elif not k.is_tensor:
            if k.output >= 0:
                what = f"a formula uses the {k.kind} output {k.name}"
                raise YamlError(node.entry.location, what, "use tensors only")
            argument = next(a for a in c_arguments(node.schema) if a.name == k.name)
            out[argument.c.declare(f"{k.field};")] = None
    return [*out] or ["char nothing;"]


def _parts_variable(k: Kept, field: str) -> Variable:
    parts = {
        part: f"tensorpy_kept_ints_of(&{field}_{part})" if part in ("sizes", "strides") else f"{field}_{part}"
        for part in k.parts()
    }
    return Variable(k.kind, "", parts)


def _variable(k: Kept, use: Use, prologue: list[str]) -> Variable:
    """The variable of a kept value in one formula; what it takes to get at it goes to the prologue."""
    field = f"kept->{k.field}"
    local = k.field + ("_" if k.field in ("record", "kept", "grads", "out", "all") else "")
    if k.saves_tensor:
        if k.beside and not use.whole:
            return _parts_variable(k, field)
        if use.whole or use.parts:
            prologue.append(f"tp_autoref *{local} = tp_saved(record, {field}_at);")
            absent = f" && {field}_defined" if k.kind == "Tensor?" else ""
            prologue.append(f"if (!{local}{absent}) return -1;")
        return Variable(k.kind, local)
    if k.is_tensor:
        return _parts_variable(k, field)
    if k.kind == "Tensor[]":
        parts = {f"sizes({dim})": f"tensorpy_kept_ints_of(&kept->{sizes})" for sizes, dim in k.sizes_along()}
        parts["length"] = f"{field}_count"
        if not k.saves_list:
            return Variable(k.kind, "", parts)
        prologue.append(f"tp_autoseq *{local} = tensorpy_saved_list(record, {field}_at, {field}_count);")
        prologue.append(f"if (!{local}) return -1;")
        return Variable(k.kind, f"tp_tensor_seq_borrow({local})", parts)
    if k.bare_kind == "Scalar":
        return Variable(k.kind, f"({field}_defined ? &{field} : NULL)" if k.kind == "Scalar?" else f"&{field}")
    if k.bare_kind == "str":
        return Variable(k.kind, f"tensorpy_kept_str_of(&{field})")
    if k.bare_kind in LIST_COPIES:
        return Variable(k.kind, f"tensorpy_kept_{LIST_COPIES[k.bare_kind]}_of(&{field})")
    return Variable(k.kind, field)


OUTSIDE = Form(
    "record",
    "kept",
    _variable,
    lambda n: f"tp_record *record, const {n.name} *kept, tp_tensor *const *grads, tp_tensor **out",
)


def _backward(node: Node) -> str:
    name = node.name
    out = [f"const {name} *kept = tp_record_data(record);", "(void)kept;"]
    if not node.returns_list and node.inputs:
        missing = " && ".join(f"!grads[{i}]" for i in range(node.inputs) if node.differentiable(i))
        out.append(f"if ({missing}) return 0;")
    for formula in node.in_order:
        wanted = " || ".join(wants(node, n, "record", COUNT) for n in formula.names)
        wanted = f"({wanted})" if len(formula.names) > 1 else wanted
        out.append(f"if ({wanted} && {name}_{'_'.join(formula.names)}(record, kept, grads, out) < 0) return -1;")
    head = f"static int {name}_apply(tp_record *record, tp_tensor *const *grads, tp_tensor **out) {{\n"
    return head + lines([*out, "return 0;"]) + "}\n"


def _keep(k: Kept, source: str, failed: str) -> list[str]:
    """Statements that put a value into `kept`, before there is a record."""
    field = f"kept__.{k.field}"
    if k.is_tensor:
        out = [f"{field}_defined = {source} != NULL;"] if k.saves_tensor and k.kind == "Tensor?" else []
        for part in k.parts():
            there = f"{source} && " if k.kind == "Tensor?" and part != "defined" else ""
            if part in ("sizes", "strides"):
                out.append(f"if ({there}tensorpy_keep_ints(&{field}_{part}, tp_{part}({source})) < 0) return {failed};")
            else:
                guard = f"if ({there.removesuffix(' && ')}) " if there else ""
                out.append(f"{guard}{field}_{part} = {PARTS[part].of(source)};")
        return out
    if k.kind == "Tensor[]":
        sizes = [f"tensorpy_keep_sizes_along(&kept__.{name}, {source}, {dim})" for name, dim in k.sizes_along()]
        return [f"{field}_count = {source}.size;", *(f"if ({call} < 0) return {failed};" for call in sizes)]
    if k.kind == "Scalar":
        return [f"{field} = *{source};"]
    if k.kind == "Scalar?":
        return [f"{field}_defined = {source} != NULL;", f"if ({source}) {field} = *{source};"]
    if k.bare_kind == "str":
        return [f"if (tensorpy_keep_str(&{field}, {source}) < 0) return {failed};"]
    if k.bare_kind in LIST_COPIES:
        return [f"if (tensorpy_keep_{LIST_COPIES[k.bare_kind]}(&{field}, {source}) < 0) return {failed};"]
    return [f"{field} = {source};"]


def _save(node: Node, k: Kept, source: str, failed: str) -> list[str]:
    """Statements that save a tensor, or a list of them, in the record; only for a gradient that is wanted."""
    at = f"&into__->{k.field}_at"
    own = k.output if k.output >= 0 and node.differentiable(k.output) else -1
    if k.saves_tensor:
        saved = [f"if (tensorpy_save(record__, {source}, {own}, {at}, &saved__) < 0) return {failed};"]
    elif k.saves_list:
        saved = [
            f"into__->{k.field}_at = saved__;",
            f"for (int64_t i = 0; i < {source}.size; i++, saved__++)",
            f"    if (tp_record_save(record__, {source}.data[i]) < 0) return {failed};",
        ]
    else:
        return []
    if len(k.formulas) == len(node.formulas):
        return saved
    names = [name for i in sorted(k.formulas) for name in node.formulas[i].names]
    count_of = "kept__.{}_count"
    test = " || ".join(wants(node, name, "record__", count_of) for name in names)
    return [f"if ({test}) {{", *(f"    {line}" for line in saved), "}"]


def _inputs(node: Node, schema_arguments: tuple[CArgument, ...]) -> list[str]:
    """Statements that list what the record's inputs are."""
    edges = [a for a in schema_arguments if a.name in {e.name for e in node.edges}]
    if not any(_is_list(a) for a in edges):
        names = ", ".join(a.name_in_c for a in edges)
        return [f"tp_tensor *const edges__[] = {{{names}}};", f"const int64_t nedges__ = {len(edges)};"]
    fixed = sum(not _is_list(a) for a in edges)
    count = " + ".join([str(fixed), *(f"{a.name_in_c}.size" for a in edges if _is_list(a))])
    out = [f"const int64_t nedges__ = {count};", "tp_tensor *edges__[nedges__ + 1];", "int64_t at__ = 0;"]
    for a in edges:
        if _is_list(a):
            out.append(f"kept__.{a.name_in_c}_count = {a.name_in_c}.size;")
            out.append(f"for (int64_t i = 0; i < {a.name_in_c}.size; i++) edges__[at__++] = {a.name_in_c}.data[i];")
        else:
            out.append(f"edges__[at__++] = {a.name_in_c};")
    return out


def _own_outputs(op: Operator) -> tuple[list[str], list[str], str]:
    """(statements that take the call's outputs over, their names, what to return)."""
    result = c_result(op.schema)
    match result.kind:
        case "tensor":
            return ["tp_autoref *result0 = got__;"], ["result0"], "tp_take(result0)"
        case "tensors":
            names = [f"result{i}" for i in range(result.count)]
            taken = [f"tp_autoref *{name} = got__.v[{i}];" for i, name in enumerate(names)]
            return taken, names, f"({result.decl.strip()}){{{{{', '.join(f'tp_take({n})' for n in names)}}}}}"
        case "values":  # boxed, into `results`
            return [], [f"results[{i}].tensor" for i in range(result.count)], "got__"
        case _:
            return ["tp_autoseq *results__ = got__;"], ["results__"], "tp_take(results__)"


def _outputs(op: Operator, node: Node, names: list[str], failed: str) -> list[str]:
    if c_result(op.schema).kind == "seq":
        return [
            f"const tp_tensors made__ = tp_tensor_seq_borrow({names[0]});",
            "for (int64_t i = 0; i < made__.size; i++)",
            f"    if (tp_record_output(record__, made__.data[i]) < 0) return {failed};",
        ]
    return [
        f"if (tp_record_output(record__, {name if node.differentiable(i) else 'NULL'}) < 0) return {failed};"
        for i, name in enumerate(names)
        if i < node.inputs
    ]


def _record(op: Operator, node: Node, kernel: str) -> str:
    """The kernel for Autograd: it records the call, and computes below."""
    result, arguments = c_result(op.schema), c_arguments(op.schema)
    failed = result.failed
    names_in_c = {a.name: a.name_in_c for a in arguments}
    out = [f"{node.name} kept__;", "memset(&kept__, 0, sizeof kept__);"]
    out += _inputs(node, arguments)
    for k in node.kept:
        if k.output < 0:
            out += _keep(k, names_in_c[k.name], failed)
    shown, apply = c_string(node.shown), f"{node.name}_apply"
    out.append(f"tp_autorecord *record__ = tp_record_new({shown}, {apply}, (tp_tensors){{edges__, nedges__}}, &kept__,")
    out.append("                                      sizeof kept__);")
    out.append(f"if (!record__ && tp_error_pending()) return {failed};")
    saving: list[str] = []
    for k in node.kept:
        if k.output < 0:
            saving += _save(node, k, names_in_c[k.name], failed)
    keeps = [k for k in node.kept if k.saves_tensor or k.saves_list]
    if keeps:
        out.append("int saved__ = 0;")
        out.append(f"{node.name} *into__ = record__ ? tp_record_data(record__) : NULL;")
    if saving:
        out += ["if (record__) {", *(f"    {line}" for line in saving), "}"]
    out += [f"{result.decl}got__;", "{"]
    boxed = ["results"] if result.kind == "values" else []
    passed = ", ".join(["ks & TP_BELOW_AUTOGRAD", *(a.name_in_c for a in arguments), *boxed])
    out.append("    tp_exclude_guard guard__ = tp_exclude(TP_AUTOGRAD_KEYS | TP_BIT(ADInplaceOrView));")
    out += [f"    got__ = {op.call}_below({passed});", "}"]
    out.append(f"if ({call_failed(op.schema, 'got__')}) return {failed};")
    taken, names, returned = _own_outputs(op)
    out += taken
    after = _outputs(op, node, names, failed)
    for k in node.kept:
        if k.output >= 0:
            after += _save(node, k, names[k.output], failed)
    out += ["if (record__) {", *(f"    {line}" for line in after), "}"]
    out.append(f"return {returned};")
    return f"{kernel} {{\n{lines(out)}}}\n"


def emit_node(op: Operator, catalog: Catalog, kernel: str) -> str:
    """The struct, a function per formula, the backward, and the kernel, whose head is `kernel`."""
    node = node_of(op, catalog)
    assert node is not None
    if any(is_tensor_like(a.type) and a.is_write for a in op.schema.arguments):
        raise YamlError(node.entry.location, f"{op.schema.name} writes", "declare a functional operator")
    struct = f"/* {op.schema} */\ntypedef struct {{\n{lines(_fields(node))}}} {node.name};\n"
    formulas = [formula_function(node, i, catalog, OUTSIDE) for i in range(len(node.formulas))]
    return "".join([struct, *formulas, _backward(node), _record(op, node, kernel)])
