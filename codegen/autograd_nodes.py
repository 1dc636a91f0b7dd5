"""Backward nodes: what each entry of derivatives/ keeps for its formulas, and how it is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from .c_types import CArgument, c_arguments
from .catalog import Catalog, Operator
from .errors import ErrorCollector, YamlError
from .formula import Use, kind_of, used
from .model import DerivativeEntry, Formula, FunctionSchema, Return, is_tensor_like

YAML = "yaml/derivatives/"

LIST_COPIES = {"int[]": "ints", "float[]": "floats", "bool[]": "bools"}


@dataclass(frozen=True, slots=True)
class Kept:
    """One value that a node keeps: an argument, or output number `output` of the call.

    `use` is joined over all formulas; `formulas` are the numbers of those that need it, whole where any does. `beside`
    are the parts that other formulas do with, so that a tensor is not kept for its sizes.
    """

    name: str  # in formulas; the first of an output's names
    field: str
    kind: str
    use: Use
    formulas: frozenset[int]
    output: int = -1
    beside: frozenset[str] = frozenset()

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
        return sorted(self.beside if self.use.whole else self.use.parts)

    def sizes_along(self) -> list[tuple[str, str]]:
        """(field, dimension) for each `.sizes(dim)` of a list."""
        return [(f"{self.field}_sizes{i}", dim) for i, dim in enumerate(sorted(self.use.sizes_along))]


def joined(uses: Mapping[str, Use], names: Sequence[str]) -> Use | None:
    """How one formula uses a value under any of its names; None: it does not."""
    found = [uses[name] for name in names if name in uses]
    if not found:
        return None
    use = Use()
    for one in found:
        use.merge(one)
    return use


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

    @property
    def in_order(self) -> list[Formula]:
        """The formulas as a backward computes them: by the names of their arguments, as PyTorch's nodes do.

        Modes and graphs of gradients see the calls in this order.
        """
        return sorted(self.formulas, key=lambda formula: ", ".join(formula.names))

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

    @property
    def shown(self) -> str:
        """What Python sees: PyTorch adds a number as a tensor, so `t + 2` is of the node of `t + t`. The node of a
        view's copy has the view's name.
        """
        name = self.schema.name
        if "view_copy" in self.entry.function.tags:
            return self.name.replace("Copy", "", 1) + "_copy"
        return camel_case(name.base) + "0" if str(name) in NUMBERS_AS_TENSORS else self.name

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
        shows = used(self.entry.shows, self.entry.location) if self.entry.shows else {}
        if unknown := shows.keys() - {a.name for a in c_arguments(self.schema)}:
            what = f"'shows' of {self.schema.name} names no argument: {', '.join(sorted(unknown))}"
            raise YamlError(self.entry.location, what, "name arguments, or parts of them such as self.shape")

        def keep(names: Sequence[str], field: str, kind: str, output: int = -1) -> None:
            own = {i: use for i, uses in enumerate(self.uses) if (use := joined(uses, names)) is not None}
            if (shown := joined(shows, names)) is not None:
                for i in range(len(self.formulas)):
                    own.setdefault(i, Use()).merge(shown)
            if not own:
                return
            use = Use()
            for one in own.values():
                use.merge(one)
            in_parts = {i for i, one in own.items() if use.whole and kind == "Tensor" and one.parts and not one.whole}
            beside = frozenset(part for i in in_parts for part in own[i].parts)
            formulas = frozenset(own) - in_parts
            if kind in ("Generator", "Generator?", "Storage", "Stream"):
                raise YamlError(self.formulas[min(formulas)].location, f"a formula uses {names[0]}", "do without it")
            found.append(Kept(names[0], field, kind, use, formulas, output, beside))

        for a in c_arguments(self.schema):
            keep((a.name,), "base_" if a.name == "base" else a.name_in_c, kind_of(a.type))
        for i, returned in enumerate(self.schema.returns):
            names = self.output_names(i)
            keep(names, names[0], kind_of(returned.type), i)
        return tuple(found)


NUMBERS_AS_TENSORS = frozenset({"add.Scalar", "sub.Scalar", "mul.Scalar", "div.Scalar"})


def camel_case(name: str) -> str:
    """As PyTorch names nodes: `max_pool2d` is MaxPool2D, `nll_loss_forward` is NllLoss."""
    words = "".join(word.title() for word in name.split("_"))
    return f"{words}Backward".replace("ForwardBackward", "Backward")


_nodes_of: tuple[Mapping[str, Operator], dict[int, Node]] | None = None


def all_nodes(catalog: Catalog) -> dict[int, Node]:
    """By the identity of the entry, in the order of derivatives/; of all families."""
    global _nodes_of
    if _nodes_of is not None and _nodes_of[0] is catalog.by_name:
        return _nodes_of[1]
    entries = {id(entry): entry for op in catalog.by_name.values() for entry in entries_of(op)}
    counts: dict[str, int] = {}
    nodes: dict[int, Node] = {}
    for entry in sorted(entries.values(), key=lambda e: e.location):
        if all(f.non_differentiable for f in entry.formulas):
            continue
        prefix = camel_case(entry.function.name.base) + (entry.key if entry.key != "Default" else "")
        nodes[id(entry)] = Node(f"{prefix}{counts.setdefault(prefix, 0)}", entry)
        counts[prefix] += 1
    _nodes_of = (catalog.by_name, nodes)
    return nodes


def entries_of(op: Operator) -> list[DerivativeEntry]:
    """For every autograd key, then for single ones."""
    return [*([op.derivative] if op.derivative is not None else []), *(entry for _, entry in op.keyed)]


def refused_of(op: Operator) -> tuple[CArgument, ...]:
    """The arguments that may not require grad, of an operator that may have no formula at all."""
    formulas = op.derivative.formulas if op.derivative is not None else ()
    names = {name for f in formulas if f.refused for name in f.names}
    return tuple(a for a in c_arguments(op.schema) if a.name in names)


def by_key(op: Operator) -> list[tuple[str, Operator]]:
    """The operator as an autograd key sees it that has formulas of its own."""
    return [(key, replace(op, derivative=entry, keyed=())) for key, entry in op.keyed]


def nodes_of(catalog: Catalog) -> list[Node]:
    """Those that operators of the catalogue record."""
    wanted = {id(entry) for op in catalog for entry in entries_of(op)}
    return [node for key, node in all_nodes(catalog).items() if key in wanted]


def node_of(op: Operator, catalog: Catalog) -> Node | None:
    return None if op.derivative is None else all_nodes(catalog).get(id(op.derivative))


def wants(node: Node, name: str, base: str = "base", count_of: str = "node->{}_count") -> str:
    a = next(e for e in node.edges if e.name == name)
    edge = node.edge(name, count_of)
    if kind_of(a.type) == "Tensor[]":
        return f"tp_node_wants_any({base}, {edge}, {count_of.format(a.name_in_c)})"
    return f"tp_node_wants({base}, {edge})"


def _computes_floats(op: Operator) -> bool:
    """Whether a pointwise description makes floats of floats, which a gradient may be asked of."""
    described = op.pointwise
    if described is None or op.kind != "functional" or op.keyed or described.promotion == "always_bool":
        return False
    return any(kind in described.expressions for kind in ("float", "complex"))


def check_gradients_given(catalog: Catalog, errors: ErrorCollector | None = None) -> None:
    """Every tensor argument of an operator with an entry has a formula or is said to have none."""
    collector = ErrorCollector() if errors is None else errors
    entries = {id(entry): entry for op in catalog for entry in entries_of(op)}
    recorded = {id(entry) for op in catalog if not op.is_implicit for entry in entries_of(op)}
    for key, entry in entries.items():
        schema = entry.function.func
        if key not in recorded:
            what = f"a derivative of {schema.name}, which is made of other operators: their derivatives hold"
            fix = "take it out, or give the operator a kernel below autograd, as by 'CompositeExplicitAutograd:'"
            collector.add(entry.location, what, fix)
        if not entry.formulas and entry.output_differentiability is not None:
            continue
        given = {name for f in entry.formulas for name in f.names}
        for a in schema.arguments:
            if is_tensor_like(a.type) and a.name not in given:
                collector.add(
                    entry.location,
                    f"{schema.name} has no formula for '{a.type} {a.name}'",
                    f"write '{a.name}: formula', '{a.name}: non_differentiable', or '{a.name}: refused'",
                )
    for op in catalog:
        function = op.function
        if function.no_gradient is not None and (op.derivative is not None or op.is_implicit):
            why = "is made of operators that have gradients" if op.is_implicit else "has a derivative"
            collector.add(function.at("no_gradient"), f"{op.schema.name} {why}, and says 'no_gradient'", "take one out")
        if _computes_floats(op) and op.derivative is None and not op.is_implicit and function.no_gradient is None:
            collector.add(
                function.at("pointwise"),
                f"{op.schema.name} computes floats and has neither a derivative nor 'no_gradient'",
                "write its derivative in derivatives/, or say why it has none: 'no_gradient: steps'",
            )
    if errors is None:
        collector.raise_if_any()
