"""The autograd layer: a backward node per entry of derivatives.yaml, and the kernels that record them.

AutogradNodes.{h,c}: for each entry a struct with what its formulas need, a function per formula, and its tp_node_type.
VariableType.c: the kernels under the alias key Autograd. ADInplaceOrViewType.c: versions and view relations.

Note [Hot and cold]
The kernel of an operator is a test and a redispatch; what makes a node is a function of its own (`record_<op>`), so
that a call without gradient carries none of its registers and stack.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from .c_types import CArgument, c_arguments, c_result, call_arguments, parameters
from .catalog import Catalog, Operator
from .errors import ErrorCollector, YamlError
from .formula import Result, Slot, Use, Variable, kind_of, used
from .formula_lower import call_failed, has_optional_outputs, lower_body
from .model import DerivativeEntry, Formula, FunctionSchema, Return, is_tensor_like
from .text import banner, c_string

YAML = "yaml/derivatives.yaml"

HEAD = """#include "AutogradNodes.h"
#include "Redispatch.h"
#include "autograd/formula.h"
#include "core/scalar_math.h"

"""

_PART_TYPES = {
    "sizes": "tp_ints ",
    "strides": "tp_ints ",
    "dtype": "tp_dtype ",
    "device": "tp_device ",
    "offset": "int64_t ",
    "requires_grad": "bool ",
    "defined": "bool ",
}
_PART_VALUES = {
    "dtype": "(tp_dtype){}->dtype",
    "device": "{}->device",
    "offset": "tp_storage_offset({})",
    "requires_grad": "tp_requires_grad({})",
    "defined": "{} != NULL",
}
_LIST_COPIES = {"int[]": "ints", "float[]": "floats", "bool[]": "bools"}


# ---------------------------------------------------------------------------------------------------------------------
# What a node keeps
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Kept:
    """One value that a node keeps: an argument, or output number `output` of the call.

    `use` is joined over all formulas; `formulas` are the numbers of those that need it.
    """

    name: str  # in formulas; the first of an output's names
    field: str
    kind: str
    use: Use
    formulas: frozenset[int]
    output: int = -1

    @property
    def is_tensor(self) -> bool:
        return self.kind in ("Tensor", "Tensor?")

    @property
    def saves_tensor(self) -> bool:
        return self.is_tensor and self.use.whole

    @property
    def saves_list(self) -> bool:
        return self.kind == "Tensor[]" and bool(self.use.whole or self.use.indices)

    @property
    def bare_kind(self) -> str:
        return self.kind.removesuffix("?")

    def parts(self) -> list[str]:
        return [] if self.use.whole else sorted(self.use.parts)

    def sizes_along(self) -> list[tuple[str, str]]:
        """(field, dimension) for each `.sizes(dim)` of a list."""
        return [(f"{self.field}_sizes{i}", dim) for i, dim in enumerate(sorted(self.use.sizes_along))]


@dataclass(frozen=True)
class Node:
    name: str
    entry: DerivativeEntry

    @property
    def schema(self) -> FunctionSchema:
        return self.entry.function.func

    @cached_property
    def formulas(self) -> tuple[Formula, ...]:
        return tuple(f for f in self.entry.formulas if not f.non_differentiable)

    @cached_property
    def edges(self) -> tuple[CArgument, ...]:
        """The arguments that have a gradient, in schema order; a list stands for as many edges as it is long."""
        names = {name for f in self.formulas for name in f.names}
        return tuple(a for a in c_arguments(self.schema) if a.name in names)

    def edge(self, name: str, count_of: str = "node->{}_count") -> str:
        """The C expression for the number of an argument's (first) edge."""
        fixed = 0
        lists: list[str] = []
        for a in self.edges:
            if a.name == name:
                return " + ".join([str(fixed), *lists] if fixed or not lists else lists)
            if kind_of(a.type) == "Tensor[]":
                lists.append(count_of.format(a.name_in_c))
            else:
                fixed += 1
        raise KeyError(name)

    def differentiable(self, i: int) -> bool:
        marks = self.entry.output_differentiability
        return (marks is None or bool(marks[i])) and is_tensor_like(self.schema.returns[i].type)

    @property
    def returns_list(self) -> bool:
        """The outputs are the tensors of a list: `grads` is a list as well."""
        return any(kind_of(r.type) == "Tensor[]" for r in self.schema.returns)

    @cached_property
    def inputs(self) -> int:
        """How many of the outputs get a number: all up to the last that has a gradient."""
        return max((i + 1 for i in range(len(self.schema.returns)) if self.differentiable(i)), default=0)

    def output_names(self, i: int) -> tuple[str, ...]:
        returned: Return = self.schema.returns[i]
        names = [f"result{i}"] if len(self.schema.returns) > 1 else ["result", "result0"]
        if returned.name is not None and self.schema.argument(returned.name) is None:
            names.append(returned.name)
        return tuple(names)

    @cached_property
    def uses(self) -> tuple[dict[str, Use], ...]:
        return tuple(used(f.text, f.location) for f in self.formulas)

    @cached_property
    def kept(self) -> tuple[Kept, ...]:
        found: list[Kept] = []

        def keep(names: Sequence[str], field: str, kind: str, output: int = -1) -> None:
            use, formulas = Use(), set()
            for i, uses in enumerate(self.uses):
                for name in names:
                    if name in uses:
                        use.merge(uses[name])
                        formulas.add(i)
            if not formulas:
                return
            if kind in ("Generator", "Generator?", "Storage"):
                raise YamlError(self.formulas[min(formulas)].location, f"a formula uses {names[0]}", "do without it")
            found.append(Kept(names[0], field, kind, use, frozenset(formulas), output))

        for a in c_arguments(self.schema):
            keep((a.name,), "base_" if a.name == "base" else a.name_in_c, kind_of(a.type))
        for i, returned in enumerate(self.schema.returns):
            names = self.output_names(i)
            keep(names, names[0], kind_of(returned.type), i)
        return tuple(found)


def camel_case(name: str) -> str:
    """As PyTorch names nodes: `max_pool2d` is MaxPool2D, `nll_loss_forward` is NllLoss."""
    words = "".join(word.title() for word in name.split("_"))
    return f"{words}Backward".replace("ForwardBackward", "Backward")


_nodes_of: tuple[Catalog, dict[int, Node]] | None = None


def _nodes(catalog: Catalog) -> dict[int, Node]:
    """By the identity of the entry, in the order of derivatives.yaml."""
    global _nodes_of
    if _nodes_of is not None and _nodes_of[0] is catalog:
        return _nodes_of[1]
    entries = {id(op.derivative): op.derivative for op in catalog if op.derivative is not None}
    counts: dict[str, int] = {}
    nodes: dict[int, Node] = {}
    for entry in sorted(entries.values(), key=lambda e: e.location):
        if all(f.non_differentiable for f in entry.formulas):
            continue
        prefix = camel_case(entry.function.name.base)
        nodes[id(entry)] = Node(f"{prefix}{counts.setdefault(prefix, 0)}", entry)
        counts[prefix] += 1
    _nodes_of = (catalog, nodes)
    return nodes


def node_of(op: Operator, catalog: Catalog) -> Node | None:
    return None if op.derivative is None else _nodes(catalog).get(id(op.derivative))


# ---------------------------------------------------------------------------------------------------------------------
# AutogradNodes
# ---------------------------------------------------------------------------------------------------------------------


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
        elif k.is_tensor:
            out += [f"{_PART_TYPES[part]}{k.field}_{part};" for part in k.parts()]
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


def emit_nodes_h(catalog: Catalog) -> str:
    out = [
        banner("emit_autograd.py", YAML, "The backward nodes: what each keeps of its call."),
        '#pragma once\n\n#include "autograd/formula.h"\n\n',
    ]
    for node in _nodes(catalog).values():
        fields = "".join(f"    {field}\n" for field in ["tp_node base;", *_fields(node)])
        out.append(f"/* {node.schema} */\ntypedef struct {{\n{fields}}} {node.name};\n")
        out.append(f"extern const tp_node_type {node.name}_type;\n\n")
    return "".join(out)


def _copy_variable(k: Kept) -> Variable:
    c = f"node->{k.field}"
    if k.kind == "Scalar":
        c = f"&{c}"
    elif k.kind == "Scalar?":
        c = f"({c}_defined ? &{c} : NULL)"
    return Variable(k.kind, c)


_TAKEN_NAMES = frozenset(("node", "grads", "out", "all"))


def _kept_variable(k: Kept, use: Use, prologue: list[str]) -> Variable:
    """The variable of a kept value in one formula; what it takes to get at it goes to the prologue."""
    local = k.field + ("_" if k.field in _TAKEN_NAMES else "")
    if k.saves_tensor:
        if not use.whole and not use.parts:
            return Variable(k.kind, local)
        prologue.append(f"tp_autoref *{local} = tp_saved_get(&node->{k.field}, &node->base);")
        absent = f" && node->{k.field}_defined" if k.kind == "Tensor?" else ""
        prologue.append(f"if (!{local}{absent}) return -1;")
        return Variable(k.kind, local)
    if k.is_tensor:
        return Variable(k.kind, "", {part: f"node->{k.field}_{part}" for part in k.parts()})
    if k.kind == "Tensor[]":
        parts = {f"sizes({dim})": f"node->{field}" for field, dim in k.sizes_along()}
        parts["length"] = f"node->{k.field}_count"
        if not k.saves_list:
            return Variable(k.kind, "", parts)
        prologue.append(f"tp_autoseq *{local} = NULL;")
        prologue.append(f"if (tp_saved_list_get(node->{k.field}, &node->base, &{local}) < 0) return -1;")
        return Variable(k.kind, f"tp_tensor_seq_borrow({local})", parts)
    return _copy_variable(k)


def _gradient_variables(node: Node, uses: dict[str, Use], prologue: list[str]) -> dict[str, Variable]:
    """`grad`, `grads` and `grad_<return>`; one that has not arrived is zeros, if another one has."""
    if node.returns_list:
        prologue.append("tp_autoseq *all = tp_gradients_of_list(&node->base, grads);")
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
            prologue.append(f"tp_autoref *{local} = {c} ? tp_retain({c}) : tp_zeros_for_input(&node->base, {i});")
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


def _emit_formula(node: Node, index: int, catalog: Catalog) -> str:
    formula, uses = node.formulas[index], node.uses[index]
    prologue: list[str] = []
    variables = _gradient_variables(node, uses, prologue)
    used_names = set(uses)
    for k in node.kept:
        names = (k.name,) if k.output < 0 else node.output_names(k.output)
        if not used_names.intersection(names):
            continue
        use = Use()
        for name in names:
            if name in uses:
                use.merge(uses[name])
        variable = _kept_variable(k, use, prologue)
        for name in names:
            variables[name] = variable
    edges = {a.name: a for a in node.edges}
    if "grad_input_mask" in uses:
        wants = [_wants(node, name, "&node->base") for name in formula.names]
        prologue.append(f"const bool grad_input_mask[] = {{{', '.join(wants)}}};")
        c = f"((tp_bools){{grad_input_mask, {len(wants)}}})"
        variables["grad_input_mask"] = Variable("bool[]", c, length=len(wants))
    slots = []
    for name in formula.names:
        edge = node.edge(name)
        if kind_of(edges[name].type) == "Tensor[]":
            slots.append(Slot(f"out + {edge}" if edge != "0" else "out", f"node->{edges[name].name_in_c}_count"))
        else:
            slots.append(Slot(f"out[{edge}]"))
    for a in c_arguments(node.schema):  # the others, so that a misspelt name finds its neighbour
        variables.setdefault(a.name, Variable(kind_of(a.type), parts={}))
    body = [
        *prologue,
        *lower_body(variables, formula.text, Result.of_slots(slots), catalog, formula.location),
    ]
    whole = "\n".join(body)
    unused = [f"(void){name};" for name in ("node", "grads", "out") if not re.search(rf"\b{name}\b", whole)]
    text = "".join(f"    {line}\n" for line in unused + body)
    comment = "".join(f" * {line}\n" for line in formula.text.strip().splitlines())
    name = f"{node.name}_{'_'.join(formula.names)}"
    head = f"static int {name}({node.name} *node, tp_tensor *const *grads, tp_tensor **out)"
    return f"/* {', '.join(formula.names)}:\n{comment} */\n{head} {{\n{text}}}\n"


def _wants(node: Node, name: str, base: str = "base", count_of: str = "node->{}_count") -> str:
    a = next(e for e in node.edges if e.name == name)
    edge = node.edge(name, count_of)
    if kind_of(a.type) == "Tensor[]":
        return f"tp_node_wants_any({base}, {edge}, {count_of.format(a.name_in_c)})"
    return f"tp_node_wants({base}, {edge})"


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
    for formula in node.formulas:
        wanted = " || ".join(_wants(node, name) for name in formula.names)
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
        elif k.is_tensor:
            copies += [
                f"tp_saved_ints_free(&node->{k.field}_{part});" for part in k.parts() if part in ("sizes", "strides")
            ]
        elif k.kind == "Tensor[]":
            if k.saves_list:
                tensors.append(f"tp_saved_list_free(&node->{k.field});")
            copies += [f"tp_saved_ints_free(&node->{field});" for field, _ in k.sizes_along()]
        elif k.bare_kind in _LIST_COPIES:
            copies.append(f"tp_saved_{_LIST_COPIES[k.bare_kind]}_free(&node->{k.field});")
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
    out.append(
        f"const tp_node_type {node.name}_type = {{\n"
        f"    .name = {c_string(node.name)},\n"
        f"    .op = {c_string(str(node.schema.name))},\n"
        f"    .size = sizeof({node.name}),\n"
        f"    .apply = {node.name}_apply,\n"
        f"    .release = {node.name}_release,\n"
        f"    .free_copies = {free_copies},\n}};\n\n"
    )
    return "".join(out)


def emit_nodes_c(catalog: Catalog, shard: int = 0, shards: int = 1) -> str:
    """The nodes whose number is `shard` modulo `shards`."""
    out = [banner("emit_autograd.py", YAML, "The backward nodes and their formulas."), HEAD]
    errors = ErrorCollector()
    for node in list(_nodes(catalog).values())[shard::shards]:
        out.append(f"/* ---- {node.schema.name} ---- */\n\n")
        for index in range(len(node.formulas)):
            try:
                out.append(_emit_formula(node, index, catalog))
            except YamlError as error:
                errors.add(error.location, error.what, error.fix)
        out.append(_emit_apply(node))
        out.append(_emit_release(node))
    errors.raise_if_any()
    return "".join(out)


# ---------------------------------------------------------------------------------------------------------------------
# VariableType
# ---------------------------------------------------------------------------------------------------------------------


def _tensor_arguments(op: Operator) -> list[CArgument]:
    return [a for a in c_arguments(op.schema) if is_tensor_like(a.type)]


def _requires_grad(arguments: Sequence[CArgument]) -> str:
    tests = [
        f"tp_wants_grad_list({a.name_in_c})" if a.c.member == "tensors" else f"tp_requires_grad({a.name_in_c})"
        for a in arguments
    ]
    return f"({' | '.join(tests)})" if len(tests) > 1 else tests[0]


def _call_below(op: Operator, mask: str = "TP_BELOW_AUTOGRAD") -> str:
    return f"tp_redispatch_{op.c}({call_arguments(op.schema, keyset=f'ks & {mask}')})"


def _guarded_call(op: Operator, excluded: str, mask: str) -> list[str]:
    """Statements that leave the result in `got`."""
    result = c_result(op.schema)
    return [
        f"{result.decl}got;",
        "{",
        f"    tp_dispatch_guard guard = tp_exclude({excluded});",
        f"    got = {_call_below(op, mask)};",
        "}",
        f"if ({call_failed(op.schema, 'got')}) return {result.failed};",
    ]


def _save_argument(op: Operator, node: Node, k: Kept, source: str) -> list[str]:
    """Statements that keep an argument, or an output, whose C expression is `source`."""
    failed = c_result(op.schema).failed
    out = []
    if k.saves_tensor:
        call = ""
        if k.output >= 0 and node.differentiable(k.output):  # another output does not own the node
            call = f"tp_save_output(&node->{k.field}, {source}, {k.output})"
        if not call and op.kind == "inplace" and k.name == "self":
            out.append(f"tp_autoref *original = tp_clone({source}, TP_NO_FORMAT);")
            out.append(f"if (!original || tp_save(&node->{k.field}, original) < 0) return {failed};")
        else:
            call = call or f"tp_save(&node->{k.field}, {source})"
            out.append(f"if ({call} < 0) return {failed};")
        if k.kind == "Tensor?":
            out.append(f"node->{k.field}_defined = {source} != NULL;")
    elif k.is_tensor:
        for part in k.parts():
            field = f"node->{k.field}_{part}"
            guard = f"if ({source}) " if k.kind == "Tensor?" and part != "defined" else ""
            if part in ("sizes", "strides"):
                guard = f"if ({source}) " if k.kind == "Tensor?" else ""
                out.append(f"{guard}{field} = tp_save_ints(tp_{part}({source}));")
                there = f"{source} && " if k.kind == "Tensor?" else ""
                out.append(f"if ({there}{source}->ndim && !{field}.data) return {failed};")
            else:
                out.append(f"{guard}{field} = {_PART_VALUES[part].format(source)};")
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
    elif k.bare_kind in _LIST_COPIES:
        out.append(f"node->{k.field} = tp_save_{_LIST_COPIES[k.bare_kind]}({source});")
        out.append(f"if ({source}.size > 0 && !node->{k.field}.data) return {failed};")
    elif k.bare_kind == "str":
        out.append(f"node->{k.field} = tp_save_str({source});")
        out.append(f"if ({source} && !node->{k.field}) return {failed};")
    else:
        out.append(f"node->{k.field} = {source};")
    return out


def _save(op: Operator, node: Node, k: Kept, source: str) -> list[str]:
    """Only for a gradient that is wanted; cheap copies always."""
    lines = _save_argument(op, node, k, source)
    if not (k.saves_tensor or k.saves_list) or len(k.formulas) == len(node.formulas):
        return lines
    names = [name for i in sorted(k.formulas) for name in node.formulas[i].names]
    test = " || ".join(_wants(node, name, "fn") for name in names)
    return [f"if ({test}) {{", *(f"    {line}" for line in lines), "}"]


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


def _record(op: Operator, node: Node | None) -> str:
    """The half that records: `record_<op>`."""
    result = c_result(op.schema)
    lines: list[str] = []
    inplace = op.kind == "inplace"
    if inplace:
        lines.append(f"if (tp_check_inplace(self, {c_string(op.schema.name.unqualified)}, true) < 0) return -1;")
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
    lines += _guarded_call(op, "TP_AUTOGRAD_KEYS", "TP_BELOW_AUTOGRAD")
    taken, names, returned = _own_outputs(op)
    lines += taken
    if inplace:
        rebase = "tp_restride_history" if "inplace_view" in op.function.tags else "tp_rebase_history"
        lines.append(f"if ({rebase}(self, fn) < 0) return -1;")
        names = ["self"]
    elif names:
        lines += _set_outputs(op, node, names)
    if node is not None:
        for k in node.kept:
            if k.output >= 0:
                lines += _save(op, node, k, names[k.output])
    lines.append(f"return {returned};")
    body = "".join(f"    {line}\n" for line in lines)
    signature = f"{result.decl}record_{op.c}({parameters(op.schema, keyset=True)})"
    return f"static __attribute__((noinline)) {signature} {{\n{body}}}\n"


def _records_without_formula(op: Operator) -> bool:
    """Whether outputs of an operator without formulas may be floating and so must say that they have no gradient."""
    if op.derivative is not None or op.schema.name.base == "detach":
        return False
    if op.kind == "inplace":
        return True
    if not any(is_tensor_like(r.type) and not r.is_write for r in op.schema.returns):
        return False
    return op.pointwise is None or op.pointwise.promotion != "always_bool"


def _base_too(op: Operator, test: str) -> str:
    """In place on a view: what is written may belong to a base that wants a gradient though the view has none."""
    return f"({test} || (self->base && tp_requires_grad(self->base)))" if op.kind == "inplace" else test


def has_autograd_kernel(op: Operator) -> bool:
    own = any(k.key.startswith("Autograd") for k in op.kernels)
    return bool(op.kernels) and not op.is_implicit and not own and bool(op.tensor_arguments)


def _autograd_kernel(op: Operator, catalog: Catalog) -> str:
    node = node_of(op, catalog)
    result = c_result(op.schema)
    lines = []
    before = ""
    call = call_arguments(op.schema, keyset="ks")
    if op.kind == "out":
        test = _requires_grad(_tensor_arguments(op))
        lines.append(f"if (tp_unlikely({test} && tp_grad_enabled())) {{")
        lines.append(f"    tp_out_no_grad({c_string(str(op.schema.name))});")
        lines.append(f"    return {result.failed};")
        lines.append("}")
    elif node is not None:
        names = {e.name for e in node.edges}
        test = _base_too(op, _requires_grad([a for a in c_arguments(op.schema) if a.name in names]))
        lines.append(f"if (tp_unlikely({test} && tp_grad_enabled())) return record_{op.c}({call});")
        before = _record(op, node)
    elif _records_without_formula(op):
        test = _base_too(op, _requires_grad(_tensor_arguments(op)))
        lines.append(f"if (tp_unlikely({test} && tp_grad_enabled())) return record_{op.c}({call});")
        before = _record(op, None)
    lines.append("tp_dispatch_guard guard = tp_exclude(TP_AUTOGRAD_KEYS);")
    lines.append(f"return {_call_below(op)};")
    body = "".join(f"    {line}\n" for line in lines)
    head = f"static {result.decl}autograd_{op.c}({parameters(op.schema, keyset=True)}) {{\n"
    return f"/* {op.schema} */\n{before}{head}{body}}}\n\n"


def _registration(function: str, key: str, rows: Sequence[tuple[Operator, str]], origin: str) -> str:
    entries = "".join(f"    {{&tp_ops[TP_OP_{op.c}], (tp_fn){name}, {c_string(origin)}}},\n" for op, name in rows)
    if not entries:
        return f"int {function}(void);\nint {function}(void) {{ return 0; }}\n"
    return (
        f"static const tp_kernel_entry entries[] = {{\n{entries}}};\n"
        f"int {function}(void);\n"
        f"int {function}(void) {{\n    return tp_register_kernels({key}, entries, TP_COUNTOF(entries));\n}}\n"
    )


def emit_variable_type(catalog: Catalog) -> str:
    out = [banner("emit_autograd.py", YAML, "The autograd kernels: Note [Hot and cold] in the emitter."), HEAD]
    rows = []
    for op in catalog:
        if has_autograd_kernel(op):
            out.append(_autograd_kernel(op, catalog))
            rows.append((op, f"autograd_{op.c}"))
    out.append(_registration("tp_register_VariableType", "TP_ALIAS_KEY(Autograd)", rows, "autograd"))
    return "".join(out)


# ---------------------------------------------------------------------------------------------------------------------
# ADInplaceOrViewType
# ---------------------------------------------------------------------------------------------------------------------


def _view_base(op: Operator, returned: Return) -> str | None:
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
    lines = _guarded_call(op, "TP_AUTOGRAD_KEYS | TP_BIT(ADInplaceOrView)", "TP_BELOW_ADINPLACEORVIEW")
    written = [a for a in c_arguments(op.schema) if a.argument.is_write]
    bases = [_view_base(op, r) for r in op.schema.returns]
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


def emit_inplace_or_view(catalog: Catalog) -> str:
    out = [
        banner("emit_autograd.py", "yaml/native_functions.yaml", "Versions of written tensors, and what views view."),
        HEAD,
    ]
    rows = []
    for op in catalog:
        text = _inplace_or_view_kernel(op) if op.kernels and not op.is_implicit and op.tensor_arguments else None
        if text is not None:
            out.append(text)
            rows.append((op, f"inplace_or_view_{op.c}"))
    out.append(_registration("tp_register_ADInplaceOrViewType", "TP_KEY_ADInplaceOrView", rows, "versions and views"))
    return "".join(out)


# ---------------------------------------------------------------------------------------------------------------------
# Checks
# ---------------------------------------------------------------------------------------------------------------------


def emit_derivative_checks(catalog: Catalog, errors: ErrorCollector | None = None) -> None:
    """Every tensor argument of an operator with an entry has a formula or is said to have none."""
    collector = ErrorCollector() if errors is None else errors
    entries = {id(op.derivative): op.derivative for op in catalog if op.derivative is not None}
    for entry in entries.values():
        schema = entry.function.func
        if not entry.formulas and entry.output_differentiability is not None:
            continue
        given = {name for f in entry.formulas for name in f.names}
        for a in schema.arguments:
            if is_tensor_like(a.type) and a.name not in given:
                collector.add(
                    entry.location,
                    f"{schema.name} has no formula for '{a.type} {a.name}'",
                    f"write '{a.name}: formula', or '{a.name}: non_differentiable'",
                )
    if errors is None:
        collector.raise_if_any()
