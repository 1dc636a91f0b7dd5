"""The same for patterns that give names to their nodes: the last result is a dictionary of them."""

from __future__ import annotations

from typing import Any

from tensorpy.fx._symbolic_trace import symbolic_trace
from tensorpy.fx.graph import Graph
from tensorpy.fx.node import Node
from tensorpy.fx.passes.utils.matcher_utils import InternalMatch, SubgraphMatcher
from tensorpy.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["SubgraphMatcherWithNameNodeMap"]


def _split_to_graph_and_name_node_map(gm: Any) -> tuple[Any, dict[str, Node]]:
    output = gm.graph.output_node()
    results = output.args[0]
    if gm.graph.out_spec is not None:
        results = tree_unflatten(results, gm.graph.out_spec)
    if not isinstance(results, (list, tuple)) or not isinstance(results[-1], dict):
        raise AssertionError("Expecting the pattern graph to return the outputs and a dictionary of names")
    names = dict(results[-1])
    rest = tuple(results[:-1])
    if gm.graph.out_spec is not None:
        leaves, gm.graph.out_spec = tree_flatten(rest)
        output.args = (tuple(leaves),)
    else:
        output.args = (rest[0] if len(rest) == 1 else rest,)
    gm.recompile()
    return gm, names


class SubgraphMatcherWithNameNodeMap(SubgraphMatcher):
    """`match` gives the nodes of these names in `name_node_map`."""

    name_node_map: dict[str, Any]

    def __init__(
        self,
        pattern_gm: Any,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        gm = pattern_gm if isinstance(getattr(pattern_gm, "graph", None), Graph) else symbolic_trace(pattern_gm)
        gm, self.name_node_map = _split_to_graph_and_name_node_map(gm)
        self.pattern_gm = gm
        super().__init__(gm.graph, match_output, match_placeholder, remove_overlapping_matches, ignore_literals)

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """The places, in the graph's order."""
        found = super().match(graph, node_name_match)
        for each in found:
            each.name_node_map = {name: each.nodes_map[node] for name, node in self.name_node_map.items()}
        return found
