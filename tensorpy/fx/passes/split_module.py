"""Divides a graph module into modules of it, by a number for each node."""

from __future__ import annotations

import operator
from collections.abc import Callable
from copy import copy
from typing import Any

from tensorpy.fx._lazy_graph_module import _make_graph_module
from tensorpy.fx.graph import Graph, attribute_of
from tensorpy.fx.graph_module import GraphModule
from tensorpy.fx.node import Node, map_arg
from tensorpy.nn import Module

__all__ = ["Partition", "split_module"]


class Partition:
    """One part: its name, its nodes, and what goes in and out."""

    name: str
    submod_name: str
    graph: Graph

    def __init__(self, name: str, submod_name: str) -> None:
        self.name, self.submod_name = name, submod_name
        self.nodes: list[Node] = []
        self.inputs: dict[Node, None] = {}
        self.outputs: dict[Node, None] = {}
        self.depends_on: dict[Partition, None] = {}
        self.graph = Graph()
        self.targets: dict[str, Any] = {}
        self.values: dict[Node, Node] = {}


def split_module(
    m: GraphModule,
    root_m: Any,
    split_callback: Callable[[Node], Any],
    qualname_map: dict[str, str] | None = None,
    keep_original_order: bool | None = False,
    keep_original_node_name: bool | None = False,
    keep_original_input_name: bool = True,
    *,
    partition_affix: str | None = None,
    tuple_return: bool = False,
) -> GraphModule:
    """A graph module that calls `submod_<number>` for the nodes of each number that `split_callback` gives.

    `qualname_map` is filled with the new paths of modules and their old ones. With `keep_original_order` the parts are
    called as they come in the graph, else as they depend on each other.
    """
    parts = _parts_of(m, split_callback, partition_affix)
    of = {node: part for part in parts for node in part.nodes}
    _note_uses(m, of)
    order = parts if keep_original_order else _in_order(parts)
    for part in order:
        _fill(m, part, keep_original_node_name, keep_original_input_name, tuple_return, qualname_map)
    return _base(m, order, tuple_return)


def _parts_of(m: GraphModule, split_callback: Callable[[Node], Any], affix: str | None) -> list[Partition]:
    parts: dict[str, Partition] = {}
    for node in m.graph.nodes:
        if node.op not in ("placeholder", "get_attr", "output"):
            name = f"{split_callback(node)}" if affix is None else f"{affix}_{split_callback(node)}"
            parts.setdefault(name, Partition(name, f"submod_{name}")).nodes.append(node)
    return list(parts.values())


def _note_uses(m: GraphModule, of: dict[Node, Partition]) -> None:
    for node in m.graph.nodes:
        here = of.get(node)
        for given in node.all_input_nodes:
            there = of.get(given)
            if here is there:
                continue
            if there is not None:
                there.outputs[given] = None
            if here is not None:
                here.inputs[given] = None
                if there is not None:
                    here.depends_on[there] = None


def _in_order(parts: list[Partition]) -> list[Partition]:
    """Each part behind those that it depends on."""
    waiting, done = {part: len(part.depends_on) for part in parts}, []
    ready = [part for part in parts if not part.depends_on]
    while ready:
        part = ready.pop(0)
        done.append(part)
        for other in parts:
            if part in other.depends_on:
                waiting[other] -= 1
                if not waiting[other]:
                    ready.append(other)
    if len(done) < len(parts):
        raise RuntimeError("cycle exists between partitions!")
    return done


def _fill(m: GraphModule, part: Partition, keep_names: Any, keep_inputs: bool, tuple_return: bool, names: Any) -> None:
    """The graph of a part. What is a module among its inputs it has itself."""
    given = sorted(part.inputs, key=lambda node: node.op == "get_attr")
    part.inputs = {}
    for source in given:
        if source.op == "get_attr" and isinstance(attribute_of(m, source.target), Module):
            part.targets[source.target] = attribute_of(m, source.target)
            part.values[source] = part.graph.get_attr(source.target)
        else:
            name = source.name if keep_inputs else f"arg_{len(part.inputs)}"
            part.inputs[source] = None
            part.values[source] = part.graph.placeholder(name, type_expr=source.type)
        part.values[source].meta = copy(source.meta)
    for node in part.nodes:
        target = node.target
        if node.op == "call_module":
            target = node.target.replace(".", "_")
            part.targets[target] = attribute_of(m, node.target)
            if names is not None:
                names[f"{part.submod_name}.{target}"] = node.target
        args, kwargs = map_arg(node.args, part.values.__getitem__), map_arg(node.kwargs, part.values.__getitem__)
        made = part.graph.create_node(node.op, target, args, kwargs, node.name if keep_names else None, node.type)
        made.meta = copy(node.meta)
        part.values[node] = made
    results = tuple(part.values[node] for node in part.outputs)
    part.graph.output(results[0] if len(results) == 1 and not tuple_return else results)


def _base(m: GraphModule, order: list[Partition], tuple_return: bool) -> GraphModule:
    """The graph that calls the parts."""
    graph, values, attributes = Graph(), {}, {}
    for node in m.graph.nodes:
        if node.op in ("placeholder", "get_attr"):
            values[node] = graph.node_copy(node)
            if node.op == "get_attr":
                attributes[node.target] = attribute_of(m, node.target)
    for part in order:
        attributes[part.submod_name] = _make_graph_module(part.targets, part.graph)
        call = graph.call_module(part.submod_name, tuple(values[node] for node in part.inputs))
        several = len(part.outputs) > 1 or tuple_return
        for i, node in enumerate(part.outputs):
            values[node] = graph.call_function(operator.getitem, (call, i)) if several else call
    output = m.graph.output_node()
    graph.output(map_arg(output.args[0], values.__getitem__), output.type)
    graph._codegen = m.graph._codegen
    graph._nested_as(m.graph)
    made = _make_graph_module(attributes, graph)
    made.meta["partition_names"] = {part.submod_name for part in order}
    return made
