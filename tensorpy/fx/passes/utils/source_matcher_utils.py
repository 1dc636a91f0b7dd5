"""Nodes by what they come from in the program: the module or the function, as `meta` has noted it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tensorpy.fx.graph import Graph
from tensorpy.fx.node import Node

__all__ = ["SourcePartition", "check_subgraphs_connected", "get_source_partitions"]


@dataclass
class SourcePartition:
    """The nodes of one call of a module or function, and what goes in and out."""

    nodes: list[Node]
    source: Any
    input_nodes: list[Node] = field(default_factory=list)
    output_nodes: list[Node] = field(default_factory=list)
    params: list[Node] = field(default_factory=list)


def _source_of(node: Node) -> tuple[str, Any] | None:
    """The name and the class or function that a node comes from: `source_fn_stack`, else `torch_fn`."""
    stack = node.meta.get("source_fn_stack")
    if stack:
        return str(stack[-1][0]), stack[-1][1]
    if (named := node.meta.get("torch_fn")) is not None:
        name, kind = named
        return str(name), str(kind).rpartition(".")[2]
    return None


def get_source_partitions(
    graph: Graph, wanted_sources: list[Any], filter_fn: Callable[[Node], bool] | None = None
) -> dict[Any, list[SourcePartition]]:
    """For each wanted source the partitions that come from it, without those with a node that the filter refuses."""
    found: dict[Any, dict[str, list[Node]]] = {}
    for node in graph.nodes:
        source = _source_of(node)
        if source is not None and source[1] in wanted_sources:
            found.setdefault(source[1], {}).setdefault(source[0], []).append(node)
    made: dict[Any, list[SourcePartition]] = {}
    for kind, groups in found.items():
        kept = [nodes for nodes in groups.values() if filter_fn is None or all(map(filter_fn, nodes))]
        if kept:
            made[kind] = [_partition(nodes, kind) for nodes in kept]
    return made


def _partition(nodes: list[Node], source: Any) -> SourcePartition:
    inside = set(nodes)
    given = list(dict.fromkeys(n for node in nodes for n in node.all_input_nodes if n not in inside))
    results = [node for node in nodes if any(user not in inside for user in node.users)]
    params = [node for node in (*nodes, *given) if node.op == "get_attr"]
    return SourcePartition(nodes, source, [n for n in given if n.op != "get_attr"], results, params)


def check_subgraphs_connected(subgraph1: SourcePartition, subgraph2: SourcePartition) -> bool:
    """Whether the second takes something that the first gives."""
    return any(given in subgraph1.nodes for node in subgraph2.nodes for given in node.all_input_nodes)
