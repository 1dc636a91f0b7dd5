"""replace_pattern: wherever a graph does what a pattern does, it does what a replacement does from then on.

A match goes backward from what the pattern's output takes: operations, targets, constants and the order of arguments
are the same, the pattern's inputs stand for any node (each for another one, the same wherever it occurs) that comes of
nothing inside the match, and what is inside is used by nothing outside of it. Matches do not overlap: the first in the
graph's order goes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from tensorpy._C import Tensor
from tensorpy.fx._symbolic_trace import symbolic_trace
from tensorpy.fx.graph import Graph, attribute_of
from tensorpy.fx.graph_module import GraphModule, _copy_attr
from tensorpy.fx.node import Node, OpOverload, map_arg
from tensorpy.fx.operator_schemas import get_signature_for_torch_op
from tensorpy.fx.passes.utils.fuser_utils import validate_partition
from tensorpy.nn import Module

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


class Match(NamedTuple):
    """One place: the node that gives the pattern's result, and which node of the graph each of the pattern's is."""

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """The same, and the nodes that stand there now."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


def _graph_of(pattern: Any) -> Graph:
    if isinstance(pattern, Graph):
        return pattern
    return pattern.graph if isinstance(pattern, GraphModule) else symbolic_trace(pattern).graph


# ---- matching ----


class _Matcher:
    """One pattern in one graph."""

    def __init__(self, pattern: Graph, graph: Graph, ignore_literals: bool = False) -> None:
        self.pattern, self.graph, self.ignore_literals = pattern, graph, ignore_literals
        self.output = pattern.output_node()
        self.anchors = self.output.all_input_nodes
        if not self.anchors:
            raise ValueError("a pattern gives what it computes: its output takes no node")

    def find(self, overlapping: bool = False) -> list[dict[Node, Node]]:
        """Which node each of the pattern's is, for each place."""
        found: list[dict[Node, Node]] = []
        taken: set[Node] = set()
        for start in self.graph.nodes:
            for places in self._from(0, start, {}):
                inside = [g for p, g in places.items() if p.op != "placeholder"]
                if (overlapping or taken.isdisjoint(inside)) and self._is_closed(places):
                    taken.update(inside)
                    found.append(places)
                    break
        return found

    def _from(self, which: int, start: Node, places: dict[Node, Node]) -> Any:
        """Places with the anchor of a number at a node, and those after it anywhere."""
        trial = dict(places)
        if not self._matches(self.anchors[which], start, trial):
            return
        if which + 1 == len(self.anchors):
            yield trial
            return
        following = self.anchors[which + 1]
        for node in [trial[following]] if following in trial else self.graph.nodes:
            yield from self._from(which + 1, node, trial)

    def _matches(self, pattern: Node, node: Any, places: dict[Node, Node]) -> bool:
        if pattern in places:
            return places[pattern] is node
        if isinstance(node, Node) and node in places.values():
            return False
        if pattern.op == "placeholder":
            places[pattern] = node  # a constant counts too: a pattern's input stands for anything
            return True
        if not isinstance(node, Node) or not self._is_alike(pattern, node):
            return False
        places[pattern] = node
        return self._same_arguments(pattern, node, places)

    def _is_alike(self, pattern: Node, node: Node) -> bool:
        if pattern.op != node.op or node.op in ("placeholder", "output"):
            return False
        if pattern.op in ("call_function", "call_method"):
            return bool(pattern.target == node.target)
        theirs, ours = self.pattern.owning_module, self.graph.owning_module
        if theirs is None or ours is None:
            return bool(pattern.target == node.target)
        left, right = attribute_of(theirs, pattern.target), attribute_of(ours, node.target)
        if pattern.op == "call_module":
            return type(left) is type(right)
        return isinstance(left, Tensor) and isinstance(right, Tensor)

    def _same_arguments(self, pattern: Node, node: Node, places: dict[Node, Node]) -> bool:
        args, kwargs = pattern.args, pattern.kwargs
        given, named = node.args, node.kwargs
        if len(args) != len(given) or kwargs.keys() != named.keys():
            left, right = _bound(pattern), _bound(node)
            if left is None or right is None or left.keys() != right.keys():
                return False
            args, kwargs, given, named = (), left, (), right
        pairs = [*zip(args, given, strict=True), *((kwargs[key], named[key]) for key in kwargs)]
        return all(self._same(a, b, places) for a, b in pairs)

    def _same(self, a: Any, b: Any, places: dict[Node, Node]) -> bool:
        if isinstance(a, Node):
            return self._matches(a, b, places)
        if isinstance(b, Node):
            return False
        if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
            return len(a) == len(b) and all(self._same(x, y, places) for x, y in zip(a, b, strict=True))
        if isinstance(a, dict) and isinstance(b, dict):
            return a.keys() == b.keys() and all(self._same(a[key], b[key], places) for key in a)
        return self.ignore_literals or bool(type(a) is type(b) and a == b)

    def _is_closed(self, places: dict[Node, Node]) -> bool:
        """Whether nothing outside uses what is inside but the results, and nothing inside what comes of these."""
        inside = {g for p, g in places.items() if p.op != "placeholder"}
        results = {places[anchor] for anchor in self.anchors}
        return all(user in inside for g in inside - results for user in g.users) and validate_partition(list(inside))


def _bound(node: Node) -> dict[str, Any] | None:
    """Arguments by the names of the signature of what a node calls, defaults filled in."""
    own = get_signature_for_torch_op(node.target) if isinstance(node.target, OpOverload) else None
    try:
        found = (own[0] if own else inspect.signature(node.target)).bind(*node.args, **node.kwargs)
    except (TypeError, ValueError):
        return None
    found.apply_defaults()
    return dict(found.arguments)


# ---- replacing ----


def replace_pattern(
    gm: GraphModule, pattern: Callable[..., Any] | GraphModule, replacement: Callable[..., Any] | GraphModule
) -> list[Match]:
    """Puts a replacement wherever the graph of a module does what a pattern does; the places. Both are functions or
    graph modules with the same inputs.

    Arguments:
        gm: the module
        replacement: what stands there then

    Returns: a list of Match: where the pattern ended, and the nodes it took.

    Example:
        >>> module = tp.fx.symbolic_trace(lambda x: tp.relu(x) + 1)
        >>> matches = tp.fx.replace_pattern(module, lambda x: tp.relu(x), lambda x: tp.tanh(x))
        >>> len(matches)
        1
    """
    return [Match(found.anchor, found.nodes_map) for found in _replace(gm, pattern, replacement)]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Any,
    replacement: Any = None,
    match_filters: list[Callable[..., bool]] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[..., Any] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    """The same where each filter, called with (match, graph, pattern's graph), agrees. `replacement_callback` gives the
    replacement of a match; with `ignore_literals` constants may differ."""
    return _replace(gm, pattern, replacement, match_filters or [], ignore_literals, replacement_callback)


def _replace(
    gm: GraphModule,
    pattern: Any,
    replacement: Any,
    filters: list[Callable[..., bool]] | None = None,
    ignore_literals: bool = False,
    callback: Callable[..., Any] | None = None,
) -> list[ReplacedPatterns]:
    graph, wanted = gm.graph, _graph_of(pattern)
    matcher = _Matcher(wanted, graph, ignore_literals)
    done: list[ReplacedPatterns] = []
    changed: dict[Node, Node] = {}
    for places in matcher.find():
        match = Match(places[matcher.anchors[0]], places)
        if not all(agrees(match, graph, wanted) for agrees in filters or ()):
            continue
        new = _graph_of(callback(match, graph, wanted) if callback is not None else replacement)
        done.append(_replace_one(matcher, new, match, changed))
    gm.recompile()
    if isinstance(replacement, Module):
        _take_attributes(gm, replacement)
    return done


def _replace_one(matcher: _Matcher, new: Graph, match: Match, changed: dict[Node, Node]) -> ReplacedPatterns:
    graph, places = matcher.graph, match.nodes_map
    theirs = [n for n in matcher.pattern.nodes if n.op == "placeholder"]
    ours = [n for n in new.nodes if n.op == "placeholder"]
    if len(theirs) != len(ours):
        raise ValueError(f"a pattern with {len(theirs)} inputs cannot be replaced by one with {len(ours)}")
    given = [places.get(p) for p in theirs]
    values: dict[Node, Any] = {
        p: changed.get(n, n) if isinstance(n, Node) else n for p, n in zip(ours, given, strict=True)
    }
    results = [places[node] for node in _returned(matcher.output)]
    made: list[Node] = []
    with graph.inserting_before(_first_user(graph, results)):
        for node in new.nodes:
            if node.op not in ("placeholder", "output"):
                values[node] = graph.node_copy(node, values.__getitem__)
                made.append(values[node])
    copied = [values[node] for node in _returned(new.output_node())]
    if len(copied) != len(results):
        raise ValueError(f"a pattern with {len(results)} results cannot be replaced by one with {len(copied)}")
    for old, node in zip(results, copied, strict=True):
        old.replace_all_uses_with(node)
        changed[old] = node
    for node in reversed(matcher.pattern.nodes):
        if node.op not in ("placeholder", "output") and not places[node].users:
            graph.erase_node(places[node])
    return ReplacedPatterns(match.anchor, places, made)


def _returned(output: Node) -> list[Node]:
    """The nodes that a graph gives, in order, as often as it gives them."""
    nodes: list[Node] = []
    map_arg(output.args, nodes.append)
    return nodes


def _first_user(graph: Graph, results: list[Node]) -> Node:
    """Where the replacement stands: in front of what first uses a result."""
    users = {user for result in results for user in result.users} - set(results)
    return next((node for node in graph.nodes if node in users), graph.output_node())


def _take_attributes(gm: GraphModule, replacement: Module) -> None:
    """What the replacement's nodes name comes from its module, where the graph's has nothing."""
    gm.delete_all_unused_submodules()
    for node in gm.graph.nodes:
        if node.op in ("call_module", "get_attr"):
            try:
                attribute_of(gm, node.target)
            except RuntimeError:
                _copy_attr(replacement, gm, node.target)
    gm.graph.lint()
