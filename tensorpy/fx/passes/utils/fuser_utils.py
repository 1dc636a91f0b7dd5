"""Nodes of a graph that become a module of their own."""

from __future__ import annotations

import operator
from copy import copy
from typing import Any

from tensorpy.fx.graph import Graph
from tensorpy.fx.graph_module import GraphModule
from tensorpy.fx.node import Node
from tensorpy.fx.passes.tools_common import _sorted, stable_topological_sort

__all__ = [
    "erase_nodes",
    "fuse_as_graphmodule",
    "fuse_by_partitions",
    "insert_subgm",
    "topo_sort",
    "validate_partition",
]


def topo_sort(nodes: list[Node]) -> list[Node]:
    """The nodes with each after what it takes of the others."""
    try:
        return _sorted(nodes)
    except RuntimeError:
        raise AssertionError("topological sorted nodes doesn't have same length as input nodes") from None


def validate_partition(partition: list[Node]) -> bool:
    """Whether no way from one of the nodes to another leads through nodes outside."""
    inside = set(partition)
    waiting = [user for node in partition for user in node.users if user not in inside]
    seen: set[Node] = set()
    while waiting:
        node = waiting.pop()
        if node in inside:
            return False
        if node not in seen:
            seen.add(node)
            waiting += node.users
    return True


def fuse_as_graphmodule(
    gm: Any,
    nodes: list[Node],
    module_name: str,
    partition_lookup_table: dict[Node, int | None] | None = None,
    *,
    always_return_tuple: bool = False,
) -> tuple[GraphModule, tuple[Node, ...], tuple[Node, ...]]:
    """A module of copies of the nodes, the nodes that it is given, and those of which it gives the values."""
    for node in nodes:
        if node.graph.owning_module is not gm:
            raise AssertionError(f"{node} doesn't belong to passed in graph module {gm._get_name()}")
        if node._erased:
            raise AssertionError(f"{node} has been removed from owning graph")
    if not validate_partition(nodes):
        raise AssertionError("Invalid partition, found dependency cycles")
    inside = set(nodes)
    graph = Graph()
    given: dict[Node, Node] = {}
    values: dict[Node, Node] = {}
    for node in nodes:
        for source in node.all_input_nodes:
            if source not in inside and source not in given:
                given[source] = graph.placeholder(source.name, type_expr=source.type)
                given[source].meta = copy(source.meta)
    for node in nodes:
        values[node] = graph.node_copy(node, lambda n: values[n] if n in inside else given[n])
    used = [node for node in nodes if any(user not in inside for user in node.users)]
    results = tuple(values[node] for node in used)
    graph.output(results[0] if len(results) == 1 and not always_return_tuple else results)
    graph.lint()
    return GraphModule(gm, graph, module_name), tuple(given), tuple(used)


def insert_subgm(
    gm: Any,
    sub_gm: GraphModule,
    orig_inputs: tuple[Node, ...],
    orig_outputs: tuple[Node, ...],
    insertion_point: Node | None = None,
) -> Any:
    """Calls a module of `fuse_as_graphmodule` in the place of the nodes that it was made of."""
    name = type(sub_gm).__name__
    gm.add_submodule(name, sub_gm)
    place = insertion_point or next((n for n in reversed(gm.graph.nodes) if n in orig_outputs), None)
    if place is None:
        raise AssertionError("there is no output behind which the call could stand: give the insertion_point")
    with gm.graph.inserting_after(place):
        call = gm.graph.call_module(name, args=orig_inputs)
    results = sub_gm.graph.output_node().args[0]
    with gm.graph.inserting_before(call.next):
        for i, old in enumerate(orig_outputs):
            whole = not isinstance(results, tuple)
            new = call if whole else gm.graph.call_function(operator.getitem, (call, i))
            old.replace_all_uses_with(new, propagate_meta=True)
    return gm


def erase_nodes(gm: Any, nodes: list[Node]) -> None:
    """Takes nodes that stand in their order away, the last first."""
    for node in reversed(nodes):
        gm.graph.erase_node(node)


def fuse_by_partitions(
    gm: Any, partitions: list[dict[Node, int | None]], prefix: str = "fused_", always_return_tuple: bool = False
) -> Any:
    """Calls a module in the place of the nodes of each partition."""
    for i, partition in enumerate(partitions):
        nodes = topo_sort(list(partition))
        made, given, used = fuse_as_graphmodule(gm, nodes, f"{prefix}{i}", always_return_tuple=always_return_tuple)
        insert_subgm(gm, made, given, used, nodes[-1])
        erase_nodes(gm, nodes)
    stable_topological_sort(gm)
    gm.graph.lint()
    gm.recompile()
    return gm
