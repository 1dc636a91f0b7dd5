"""What passes ask of a node, and the order of nodes."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import Any

from tensorpy._C import Tensor
from tensorpy.fx.graph import Graph
from tensorpy.fx.node import Node, target_name

__all__ = [
    "CALLABLE_NODE_OPS", "get_acc_ops_name", "get_node_target", "is_node_output_tensor", "legalize_graph",
    "stable_topological_sort",
]  # fmt: skip

CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}


def get_acc_ops_name(k: Any) -> str:
    """How a table names what a node calls: functions of modules named acc_ops by "acc_ops" alone."""
    if isinstance(k, str):
        return k
    module = getattr(k, "__module__", None) or ""
    if "acc_ops" in module:
        return f"acc_ops.{k.__name__}"
    return f"{module.replace('tensorpy._C', 'tensorpy').replace('tensorpy._ops', 'tensorpy.ops')}.{k.__name__}"


def get_node_target(submodules: Mapping[str, Any], node: Node) -> str:
    """What a node calls, as a name: the class of a module, the path of a function, the method's name."""
    if node.op not in CALLABLE_NODE_OPS:
        raise AssertionError(f"Expect op types of {', '.join(sorted(CALLABLE_NODE_OPS))}, but found {node.op}")
    if node.op == "call_module":
        module = submodules[node.target]
        return get_acc_ops_name(getattr(module, "_base_class_origin", type(module)))
    if node.op == "call_function":
        return (
            target_name(node.target)
            if "acc_ops" not in (node.target.__module__ or "")
            else get_acc_ops_name(node.target)
        )
    return str(node.target)


def is_node_output_tensor(node: Node) -> bool:
    """Whether a node gives a tensor, by what ShapeProp noted."""
    kind = node.meta.get("type", None)
    return isinstance(kind, type) and issubclass(kind, Tensor)


def _sorted(nodes: list[Node]) -> list[Node]:
    """Each node after what it takes; otherwise in the order that they have."""
    place = {node: i for i, node in enumerate(nodes)}
    missing = {node: sum(given in place for given in node.all_input_nodes) for node in nodes}
    ready = [place[node] for node in nodes if not missing[node]]
    done: list[Node] = []
    while ready:
        node = nodes[heapq.heappop(ready)]
        done.append(node)
        for user in node.users:
            if user in missing:
                missing[user] -= 1
                if not missing[user]:
                    heapq.heappush(ready, place[user])
    if len(done) < len(nodes):
        raise RuntimeError(f"Input graph has cycles, unable to add {[n.name for n in nodes if missing[n] > 0]}")
    return done


def legalize_graph(gm: Any) -> Any:
    """Puts the nodes of a graph module into an order in which each stands after what it takes."""
    made = Graph(tracer_cls=gm.graph._tracer_cls)
    values: dict[Node, Node] = {}
    for node in _sorted(list(gm.graph.nodes)):
        values[node] = made.node_copy(node, values.__getitem__)
    made._codegen = gm.graph._codegen
    made._nested_as(gm.graph)
    gm.graph = made
    return gm


def stable_topological_sort(gm: Any) -> Any:
    """The same, in place: the nodes stay the ones that they are."""
    root = gm.graph._root
    for node in _sorted(list(gm.graph.nodes)):
        root.prepend(node)
    return gm
