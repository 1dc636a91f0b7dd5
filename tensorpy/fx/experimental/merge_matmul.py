"""Products with one right side become one product of their left sides, stacked."""

from __future__ import annotations

import operator
from typing import Any

import tensorpy
from tensorpy.fx._symbolic_trace import symbolic_trace
from tensorpy.fx.node import Node
from tensorpy.fx.passes.tools_common import legalize_graph

__all__ = ["are_nodes_independent", "may_depend_on", "merge_matmul", "split_result_tensors"]


def split_result_tensors(result: Any, inputs: list[Any]) -> tuple[Any, ...]:
    """The rows of a stacked product, as many for each as its left side has."""
    return tuple(tensorpy.split(result, [x.shape[0] for x in inputs]))


def may_depend_on(a: Node, b: Node, search_depth: int = 6) -> bool:
    """Whether the first takes something that comes of the second; true as well where that is too far to see."""
    if a is b:
        return True
    if not a.all_input_nodes:
        return False
    return search_depth == 0 or any(may_depend_on(given, b, search_depth - 1) for given in a.all_input_nodes)


def are_nodes_independent(nodes: list[Node]) -> bool:
    """Whether none takes what comes of another."""
    pairs = [(a, b) for i, a in enumerate(nodes) for b in nodes[i + 1 :]]
    return not any(may_depend_on(a, b) or may_depend_on(b, a) for a, b in pairs)


def merge_matmul(in_mod: Any) -> Any:
    """A graph module with products of one right side, that do not depend on each other, as one."""
    gm = symbolic_trace(in_mod)
    groups: dict[Any, list[Node]] = {}
    for node in gm.graph.nodes:
        if node.op == "call_function" and node.target is tensorpy.matmul and len(node.args) == 2:
            right = node.args[1]
            groups.setdefault(right.target if right.op == "get_attr" else right, []).append(node)
    for nodes in groups.values():
        if len(nodes) > 1 and are_nodes_independent(nodes):
            _merge(gm.graph, nodes)
    legalize_graph(gm)
    gm.recompile()
    gm.graph.lint()
    return gm


def _merge(graph: Any, nodes: list[Node]) -> None:
    lefts = [node.args[0] for node in nodes]
    with graph.inserting_before(nodes[0]):
        stacked = graph.call_function(tensorpy.cat, (lefts,))
        product = graph.call_function(tensorpy.matmul, (stacked, nodes[0].args[1]))
        parts = graph.call_function(split_result_tensors, (product, lefts))
        for i, node in enumerate(nodes):
            node.replace_all_uses_with(graph.call_function(operator.getitem, (parts, i)))
    for node in nodes:
        graph.erase_node(node)
