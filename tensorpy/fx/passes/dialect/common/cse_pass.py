"""What a graph computes twice it computes once."""

from __future__ import annotations

from typing import Any

from tensorpy import _C
from tensorpy.fx.graph import Graph
from tensorpy.fx.graph_module import GraphModule
from tensorpy.fx.node import Node, _is_random, map_aggregate
from tensorpy.fx.passes.infra.pass_base import PassBase, PassResult
from tensorpy.utils._pytree import tree_flatten

__all__ = ["CSEPass", "get_CSE_banned_ops"]


def get_CSE_banned_ops() -> set[Any]:
    """Operators of which two calls are never one: none but those that draw random numbers or write, which are known by
    their schemas."""
    return set()


class CSEPass(PassBase):
    """`CSEPass()(module)` gives a PassResult. Of equal calls (the same function and arguments) the first stays.

    Calls of `banned_ops`, of operators that draw random numbers, of methods and modules all stay, and so does a graph
    that writes what it has computed.
    """

    banned_ops: set[Any]

    def __init__(self, banned_ops: set[Any] | None = None) -> None:
        self.banned_ops = banned_ops or set()

    def call(self, graph_module: Any) -> PassResult:
        made = self.merged(graph_module.graph)
        if made is None:
            return PassResult(graph_module, False)
        made._nested_as(graph_module.graph)
        modified = len(made.nodes) < len(graph_module.graph.nodes)
        return PassResult(GraphModule(graph_module, made), modified)

    def merged(self, graph: Graph) -> Graph | None:
        """A graph with one call for equal ones; None for one that writes: equal calls may be given different values."""
        if any(_writes(node) for node in graph.nodes):
            return None
        made = Graph()
        values: dict[Node, Node] = {}
        known: dict[Any, Node] = {}
        for node in graph.nodes:
            key = self._key(node, values)
            if key is not None and key in known:
                values[node] = known[key]
                continue
            values[node] = made.node_copy(node, values.__getitem__)
            if key is not None:
                known[key] = values[node]
        return made

    def _key(self, node: Node, values: dict[Node, Node]) -> Any:
        """What calls have in common that give the same; None for a call that stays."""
        if node.op == "get_attr":
            return ("get_attr", node.target)
        if node.op != "call_function" or node.target in self.banned_ops or _is_random(node.target) or node.is_impure():
            return None
        if getattr(node.target, "overloadpacket", None) in self.banned_ops:
            return None
        leaves, spec = tree_flatten(map_aggregate((node.args, dict(node.kwargs)), lambda a: _leaf(a, values)))
        try:
            hash(key := (node.target, tuple(leaves), repr(spec)))
        except TypeError:
            return None
        return key


def _writes(node: Node) -> bool:
    if node.op == "call_method":
        return node.target.endswith("_") or node.target == "__setitem__"
    return node.op == "call_function" and node.is_impure()


def _leaf(value: Any, values: dict[Node, Node]) -> Any:
    """A constant with its type, since 1, 1.0 and True are equal and not the same."""
    if isinstance(value, Node):
        return id(values[value])
    return (type(value), value) if not isinstance(value, _C.Tensor) else id(value)
