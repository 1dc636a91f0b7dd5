"""Where a graph does what a pattern does."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tensorpy.fx.graph import Graph
from tensorpy.fx.node import Node
from tensorpy.fx.subgraph_rewriter import _Matcher

__all__ = ["InternalMatch", "SubgraphMatcher"]


@dataclass
class InternalMatch:
    """One place: the nodes that give the pattern's results, which node each of the pattern's is, its inputs."""

    anchors: list[Node]
    nodes_map: dict[Node, Node] = field(default_factory=dict)
    placeholder_nodes: list[Node] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)


class SubgraphMatcher:
    """`SubgraphMatcher(pattern).match(graph)` gives the places where the graph does what the pattern does.

    With `match_output` the results have to be the graph's, with `match_placeholder` the inputs its inputs;
    `ignore_literals` lets constants differ.
    """

    match_output: bool
    match_placeholder: bool
    remove_overlapping_matches: bool
    ignore_literals: bool
    pattern_placeholder_nodes: list[Node]
    pattern_returning_nodes: list[Node]
    pattern_anchors: list[Node]

    def __init__(
        self,
        pattern: Graph,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        self.pattern = pattern
        self.match_output, self.match_placeholder = match_output, match_placeholder
        self.remove_overlapping_matches, self.ignore_literals = remove_overlapping_matches, ignore_literals
        if len(pattern.nodes) == 0:
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        for node in pattern.nodes:
            if node.op != "output" and not node.users:
                raise AssertionError("SubgraphMatcher cannot be initialized with an pattern with dead code")
        self.pattern_placeholder_nodes = [n for n in pattern.nodes if n.op == "placeholder"]
        output = pattern.output_node()
        self.pattern_returning_nodes = output.all_input_nodes
        self.pattern_anchors = [output] if match_output else [
            n for n in output.all_input_nodes if len(n.users) == 1
        ]  # fmt: skip

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """The places, in the graph's order."""
        matcher = _Matcher(self.pattern, graph, self.ignore_literals)
        found: list[InternalMatch] = []
        for places in matcher.find(overlapping=not self.remove_overlapping_matches):
            if not self._fits(places, graph, node_name_match):
                continue
            if self.match_output:
                places[self.pattern.output_node()] = graph.output_node()
            given = [places[p] for p in self.pattern_placeholder_nodes if p in places]
            results = [places[p] for p in self.pattern_returning_nodes]
            anchors = [places.get(p, graph.output_node()) for p in self.pattern_anchors]
            found.append(InternalMatch(anchors, places, given, results))
        return found

    def _fits(self, places: dict[Node, Node], graph: Graph, name: str) -> bool:
        if name and not any(name in node.name for node in places.values() if isinstance(node, Node)):
            return False
        if self.match_placeholder and any(
            not isinstance(places.get(p), Node) or places[p].op != "placeholder" for p in self.pattern_placeholder_nodes
        ):
            return False
        if self.match_output:
            ours: Any = graph.output_node().all_input_nodes
            return [places[p] for p in self.pattern_returning_nodes] == ours
        return True
