"""The backward nodes of a family: for each entry of derivatives/ a struct with what its formulas need, a function per
formula, and its tp_node_type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .autograd_nodes import LIST_COPIES, Kept, Node, joined, nodes_of, wants
from .c_types import c_arguments, has_optional_outputs
from .catalog import Catalog
from .errors import YamlError
from .formula import PARTS, Result, Slot, Use, Variable, kind_of
from .formula_lower import Lowered
from .rounding import is_rounded_once
from .text import c_string


def _fields(node: Node) -> list[str]:
    out = []
    for a in node.edges:
        if kind_of(a.type) == "Tensor[]":
            out.append(f"int {a.name_in_c}_count;")
    for k in node.kept:
        if k.saves_tensor:
            out.append(f"tp_saved {k.field};")
            if k.kind == "Tensor?":
                out.append(f"bool {k.field}_defined;")
        if k.is_tensor:
            out += [f"{PARTS[part].type} {k.field}_{part};" for part in k.parts()]
        elif k.kind == "Tensor[]":
            if k.saves_list:
                out.append(f"tp_saved_list *{k.field};")
            out += [f"tp_ints {field};" for field, _ in k.sizes_along()]
        elif k.bare_kind == "Scalar":
            out.append(f"tp_scalar {k.field};")
            if k.kind == "Scalar?":
                out.append(f"bool {k.field}_defined;")
        elif k.bare_kind == "str":
            out.append(f"char *{k.field};")
        elif k.output >= 0:
            raise YamlError(node.entry.location, f"a formula uses the {k.kind} output {k.name}", "use tensors only")
        else:
            argument = next(a for a in c_arguments(node.schema) if a.name == k.name)
            out.append(argument.c.declare(f"{k.field};"))
    return out


def _field_order(field: str) -> int:
    """Saved tensors first, then lists of them, as tp_node_type says where they are by their numbers."""
    return 0 if field.startswith("tp_saved ") else 1 if field.startswith("tp_saved_list *") else 2


def _struct(node: Node) -> str:
    fields = ["tp_node base;", *sorted(_fields(node), key=_field_order)]
    text = "".join(f"    {field}\n" for field in fields)
    return f"/* {node.schema} */\ntypedef struct {{\n{text}}} {node.name};\n"


def _copy_variable(k: Kept) -> Variable:
    c = f"node->{k.field}"
    if k.kind == "Scalar":
        c = f"&{c}"
    elif k.kind == "Scalar?":
        c = f"({c}_defined ? &{c} : NULL)"
    return Variable(k.kind, c)


_TAKEN_NAMES = frozenset(("node", "grads", "out", "all"))


def _parts_variable(k: Kept) -> Variable:
    return Variable(k.kind, "", {part: f"node->{k.field}_{part}" for part in k.parts()})


def _kept_variable(k: Kept, use: Use, prologue: list[str]) -> Variable:
    """The variable of a kept value in one formula; what it takes to get at it goes to the prologue."""
    local = k.field + ("_" if k.field in _TAKEN_NAMES else "")
    if k.saves_tensor:
        if k.beside and not use.whole:
            return _parts_variable(k)
        if not use.whole and not use.parts:
            return Variable(k.kind, local)
        prologue.append(f"tp_autoref *{local} = tp_saved_get(&node->{k.field}, &node->base);")
        absent = f" && node->{k.field}_defined" if k.kind == "Tensor?" else ""
        prologue.append(f"if (!{local}{absent}) return -1;")
        return Variable(k.kind, local)
    if k.is_tensor:
        return _parts_variable(k)
    if k.kind == "Tensor[]":
        parts = {f"sizes({dim})": f"node->{field}" for field, dim in k.sizes_along()}
        parts["length"] = f"node->{k.field}_count"
        if not k.saves_list:
            return Variable(k.kind, "", parts)
        prologue.append(f"tp_autoseq *{local} = NULL;")
        prologue.append(f"if (tp_saved_list_get(node->{k.field}, &node->base, &{local}) < 0) return -1;")
        return Variable(k.kind, f"tp_tensor_seq_borrow({local})", parts)
    return _copy_variable(k)


@dataclass(frozen=True)
class Form:
    """What a formula's function calls the node and what it keeps: here, and in emit_library_nodes.py."""

    this: str  # the node
    kept: str  # `node`, of node->field
    variable: Callable[[Kept, Use, list[str]], Variable]
    parameters: Callable[[Node], str]

    @property
    def count_of(self) -> str:
        return f"{self.kept}->{{}}_count"


TREE = Form(
    "&node->base", "node", _kept_variable, lambda n: f"{n.name} *node, tp_tensor *const *grads, tp_tensor **out"
)


def _gradient_variables(node: Node, uses: dict[str, Use], prologue: list[str], form: Form) -> dict[str, Variable]:
    """`grad`, `grads` and `grad_<return>`; one that has not arrived is zeros, if another one has."""
    if node.returns_list:
        prologue.append(f"tp_autoseq *all = tp_gradients_of_list({form.this}, grads);")
        prologue.append("if (!all) return -1;")
        return {"grads": Variable("Tensor[]", "tp_tensor_seq_borrow(all)")}
    first = next((i for i in range(node.inputs) if node.differentiable(i)), 0)
    names: dict[int, set[str]] = {i: {f"grads[{i}]"} for i in range(node.inputs)}
    if node.inputs:
        names[first].add("grad")
    for i in range(node.inputs):
        returned = node.schema.returns[i].name
        if returned is not None:
            names[i].add(f"grad_{returned}")
    whole = "grads" in uses and uses["grads"].whole
    indexed = uses["grads"].indices if "grads" in uses else set()
    needed = [i for i in range(node.inputs) if whole or i in indexed or any(name in uses for name in names[i])]
    if node.inputs > 1 and needed:
        prologue.append(f"if ({' && '.join(f'!grads[{i}]' for i in needed)}) return 0;")
    variables: dict[str, Variable] = {}
    items = []
    for i in range(node.inputs):
        tested = any("defined" in uses[name].parts for name in names[i] if name in uses)
        c = f"grads[{i}]"
        if tested or has_optional_outputs(node.schema):
            variable = Variable("Tensor?", c)
        elif i in needed and len(needed) > 1:
            local = f"grad{i}"
            prologue.append(f"tp_autoref *{local} = {c} ? tp_retain({c}) : tp_zeros_for_input({form.this}, {i});")
            prologue.append(f"if (!{local}) return -1;")
            variable = Variable("Tensor", local)
        else:
            variable = Variable("Tensor", c)
        items.append(variable)
        for name in names[i]:
            if "[" not in name:
                variables[name] = variable
    variables["grads"] = Variable("tuple", items=tuple(items))
    return variables


_SAVED = re.compile(r"(tp_autoref \*\w+ = )(tp_saved(?:_get)?\(.*\));")
_SAVED_LIST = re.compile(r"tp_autoseq \*(\w+) = .*;")


def _widened(node: Node, prologue: list[str]) -> list[str]:
    """The prologue of a formula that is computed in float32: of what is kept, and of the gradients that come in."""
    lines: list[str] = []
    if node.inputs and not node.returns_list:
        for i in range(node.inputs):
            lines.append(f"tp_autoref *wide{i} = tp_widened(grads[{i}]);")
            lines.append(f"if (grads[{i}] && !wide{i}) return -1;")
        wide = ", ".join(f"wide{i}" for i in range(node.inputs))
        lines.append(f"tp_tensor *const wide[] = {{{wide}}};")
        lines.append("grads = wide;")
    lists: list[str] = []
    for line in prologue:
        lines.append(_SAVED.sub(r"\1tp_widened_steal(\2);", line))
        if found := _SAVED_LIST.match(line):
            lists.append(f"if (tp_widen_list({found[1]}) < 0) return -1;")
    return lines + lists


def formula_function(node: Node, index: int, catalog: Catalog, form: Form = TREE) -> str:
    """The function that computes the gradients of one formula."""
    formula, uses = node.formulas[index], node.uses[index]
    prologue: list[str] = []
    variables = _gradient_variables(node, uses, prologue, form)
    for k in node.kept:
        names = (k.name,) if k.output < 0 else node.output_names(k.output)
        use = joined(uses, names)
        if use is None:
            continue
        variable = form.variable(k, use, prologue)
        for name in names:
            variables[name] = variable
    edges = {a.name: a for a in node.edges}
    if "grad_input_mask" in uses:
        wanted = [wants(node, name, form.this, form.count_of) for name in formula.names]
        prologue.append(f"const bool grad_input_mask[] = {{{', '.join(wanted)}}};")
        c = f"((tp_bools){{grad_input_mask, {len(wanted)}}})"
        variables["grad_input_mask"] = Variable("bool[]", c, length=len(wanted))
    slots = []
    for name in formula.names:
        edge = node.edge(name, form.count_of)
        if kind_of(edges[name].type) == "Tensor[]":
            slots.append(Slot(f"out + {edge}" if edge != "0" else "out", form.count_of.format(edges[name].name_in_c)))
        else:
            slots.append(Slot(f"out[{edge}]"))
    for a in c_arguments(node.schema):  # the others, so that a misspelt name finds its neighbour
        variables.setdefault(a.name, Variable(kind_of(a.type), parts={}))
    lowered = Lowered(variables, formula.text, Result.of_slots(slots), catalog, formula.location)
    if is_rounded_once(node.entry.rounding, lowered.calls, catalog):
        prologue = _widened(node, prologue)
    body = [*prologue, *lowered.lines]
    whole = "\n".join(body)
    unused = [f"(void){name};" for name in (form.kept, "grads", "out") if not re.search(rf"\b{name}\b", whole)]
    text = "".join(f"    {line}\n" for line in unused + body)
    comment = "".join(f" * {line}\n" for line in formula.text.strip().splitlines())
    name = f"{node.name}_{'_'.join(formula.names)}"
    head = f"static int {name}({form.parameters(node)})"
    return f"/* {', '.join(formula.names)}:\n{comment} */\n{head} {{\n{text}}}\n"


def _emit_apply(node: Node) -> str:
    out = [
        f"static int {node.name}_apply(tp_node *base, tp_tensor *const *grads, tp_tensor **out) {{\n"
        f"    {node.name} *node = ({node.name} *)base;\n"
    ]
    if node.returns_list:
        out.append("    if (!tp_any_gradient(grads, base->ninputs)) return 0;\n")
    elif node.inputs:
        missing = " && ".join(f"!grads[{i}]" for i in range(node.inputs) if node.differentiable(i))
        out.append(f"    if ({missing}) return 0;\n")
    for formula in node.in_order:
        wanted = " || ".join(wants(node, name) for name in formula.names)
        wanted = f"({wanted})" if len(formula.names) > 1 else wanted
        function = f"{node.name}_{'_'.join(formula.names)}"
        out.append(f"    if ({wanted} && {function}(node, grads, out) < 0) return -1;\n")
    out.append("    return 0;\n}\n")
    return "".join(out)


def _release_lines(node: Node) -> tuple[list[str], list[str]]:
    """For saved tensors, and for copies."""
    tensors, copies = [], []
    for k in node.kept:
        if k.saves_tensor:
            tensors.append(f"tp_saved_free(&node->{k.field});")
        if k.is_tensor:
            copies += [
                f"tp_saved_ints_free(&node->{k.field}_{part});" for part in k.parts() if part in ("sizes", "strides")
            ]
        elif k.kind == "Tensor[]":
            if k.saves_list:
                tensors.append(f"tp_saved_list_free(&node->{k.field});")
            copies += [f"tp_saved_ints_free(&node->{field});" for field, _ in k.sizes_along()]
        elif k.bare_kind in LIST_COPIES:
            copies.append(f"tp_saved_{LIST_COPIES[k.bare_kind]}_free(&node->{k.field});")
        elif k.bare_kind == "str":
            copies.append(f"tp_saved_str_free(&node->{k.field});")
    return tensors, copies


def _emit_release(node: Node) -> str:
    out = []
    tensors, copies = _release_lines(node)
    for name, lines in (("release", tensors), ("free_copies", copies)):
        if lines:
            body = "".join(f"    {line}\n" for line in [f"{node.name} *node = ({node.name} *)base;", *lines])
            out.append(f"static void {node.name}_{name}(tp_node *base) {{\n{body}}}\n")
        elif name == "release":
            out.append(f"static void {node.name}_release(tp_node *base) {{ (void)base; }}\n")
    free_copies = f"{node.name}_free_copies" if copies else "NULL"
    kept = [k for k in node.kept if k.saves_tensor] + [k for k in node.kept if k.saves_list]
    saved = [(k.output >= 0 and node.schema.returns[k.output].name) or k.name for k in kept]
    numbers = _numbers(node)
    out.append(_emit_number(node))
    of_numbers = ""
    if numbers:
        names = c_string(" ".join(name for name, _ in numbers))
        of_numbers = f"    .numbers = {names},\n    .number = {node.name}_number,\n"
    out.append(
        f"static const tp_node_type {node.name}_type = {{\n"
        f"    .name = {c_string(node.shown)},\n"
        f"    .op = {c_string(str(node.schema.name))},\n"
        f"    .size = sizeof({node.name}),\n"
        f"    .apply = {node.name}_apply,\n"
        f"    .release = {node.name}_release,\n"
        f"    .free_copies = {free_copies},\n"
        f"    .nsaved = {sum(k.saves_tensor for k in node.kept)},\n"
        f"    .nlists = {sum(k.saves_list for k in node.kept)},\n"
        f"    .saved = {c_string(' '.join(saved)) if saved else 'NULL'},\n{of_numbers}}};\n\n"
    )
    return "".join(out)


_READ_NAMES = {  # what is read of a part -> its part, name and C value
    "sizes": ("sizes", "sym_sizes", "tp_box_Jl({})"),
    "numel": ("sizes", "sym_numel", "tp_box_J(tp_ints_numel({}))"),
    "dim": ("sizes", "dim", "tp_box_J({}.size)"),
    "size": ("sizes", "sym_argsize_", ""),
    "strides": ("strides", "sym_strides", "tp_box_Jl({})"),
    "offset": ("offset", "sym_storage_offset", "tp_box_J({})"),
}


def _numbers_of_tensor(k: Kept) -> Iterator[tuple[str, str]]:
    for read, at in sorted(k.use.read):
        part, name, c = _READ_NAMES.get(read, ("", "", ""))
        if part and part in k.parts():
            which = at.replace("-", "minus_") if read == "size" else "_opt" if k.kind == "Tensor?" else ""
            field = f"node->{k.field}_{part}"
            if read == "size":
                last = at.removeprefix("-")  # of all that there are, from the end
                here = f"{field}.size < {last} ? 1 : {field}.data[{field}.size - {last}]"
                c = f"tp_box_J({here if at != last else f'tp_size_at({field}, {at})'})"
            yield f"{k.name}_{name}{which}", c.format(field)


def _numbers(node: Node) -> list[tuple[str, str]]:
    """What Python sees beside the tensors, under PyTorch's names: (name, the boxed value in C). As there, dtypes and
    devices are not shown.
    """
    found: list[tuple[str, str]] = []
    codes = {a.name: a.c.code for a in c_arguments(node.schema)}
    for k in node.kept:
        c = f"node->{k.field}"
        if k.is_tensor:
            found += _numbers_of_tensor(k)
        elif k.bare_kind == "Scalar":
            given = f"{c}_defined ? &{c} : NULL" if k.kind == "Scalar?" else f"&{c}"
            found.append((k.name, f"tp_box_S({given})"))
        elif k.kind != "Tensor[]" and k.bare_kind not in ("ScalarType", "Layout", "MemoryFormat", "Device"):
            found.append((k.name, f"tp_box_{codes[k.name]}({c})"))
    return found


def _emit_number(node: Node) -> str:
    numbers = _numbers(node)
    if not numbers:
        return ""
    *first, last = [value for _, value in numbers]
    lines = [f"    if (i == {i}) return {value};\n" for i, value in enumerate(first)]
    unused = "" if first else "    (void)i;\n"
    return (
        f"static tp_value {node.name}_number(const tp_node *base, int i) {{\n"
        f"    const {node.name} *node = (const {node.name} *)base;\n{unused}{''.join(lines)}    return {last};\n}}\n"
    )


def emit_nodes(catalog: Catalog) -> str:
    out = []
    for node in nodes_of(catalog):
        out.append(_struct(node))
        for index in range(len(node.formulas)):
            out.append(formula_function(node, index, catalog))
        out.append(_emit_apply(node))
        out.append(_emit_release(node))
    return "".join(out)
