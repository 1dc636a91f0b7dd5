"""What programs that compile ahead do with graphs."""

from __future__ import annotations

import copy
import operator
from typing import Any

from tensorpy import _C, ops
from tensorpy._C import Tensor
from tensorpy.fx.graph import Graph
from tensorpy.fx.graph_module import GraphModule
from tensorpy.fx.node import Node
from tensorpy.fx.passes.dialect.common.cse_pass import CSEPass
from tensorpy.utils._pytree import tree_leaves

__all__ = ["fx_graph_cse", "get_aten_target", "get_outputs", "get_placeholders", "raise_getitems", "strip_overloads"]


def _memory(node: Node) -> int | None:
    value = node.meta.get("val")
    return value.untyped_storage()._cdata if isinstance(value, Tensor) and value.layout is _C.strided else None


class _Merge(CSEPass):
    """Calls that give what the graph returns stay as many as they are: results that were apart stay apart."""

    def __init__(self, graph: Graph) -> None:
        super().__init__({ops.aten.empty})
        self.returned = {_memory(node) for node in get_outputs(graph) if isinstance(node, Node)} - {None}

    def _key(self, node: Node, values: dict[Node, Node]) -> Any:
        if node.op == "get_attr" or _memory(node) in self.returned:
            return None
        return super()._key(node, values)


def fx_graph_cse(fx_g: Graph) -> Graph:
    """A copy of a graph that computes once what the graph computes twice, but for what it returns.

    Arguments:
        fx_g: the graph; one that writes is copied as it is

    Returns: the copy.

    Example:
        >>> from tensorpy._functorch.compile_utils import fx_graph_cse
        >>> graph = tp.fx.symbolic_trace(lambda x: tp.sin(x) * tp.sin(x)).graph
        >>> len(graph.nodes), len(fx_graph_cse(graph).nodes)
        (5, 4)
    """
    return _Merge(fx_g).merged(fx_g) or copy.deepcopy(fx_g)


def get_aten_target(node: Node) -> Any:
    """What a node calls, of an operator's overload the operator.

    Arguments:
        node: the node

    Returns: the packet of overloads, or the target as it is.
    """
    return getattr(node.target, "overloadpacket", node.target)


def raise_getitems(gm: GraphModule) -> GraphModule:
    """Puts the nodes that take an item of a result right behind the node of the result.

    Arguments:
        gm: the module, which is changed

    Returns: the module.
    """
    for node in reversed([n for n in gm.graph.nodes if n.target is operator.getitem]):
        node.args[0].append(node)
    gm.recompile()
    return gm


def strip_overloads(gm: GraphModule) -> None:
    """Makes calls of overloads calls of the operators.

    Arguments:
        gm: the module, which is changed
    """
    for node in gm.graph.nodes:
        node.target = get_aten_target(node)
    gm.recompile()


def get_placeholders(graph: Graph) -> list[Node]:
    """The nodes of a graph's arguments.

    Arguments:
        graph: the graph

    Returns: a list of nodes.
    """
    return [node for node in graph.nodes if node.op == "placeholder"]


def get_outputs(graph: Graph) -> list[Any]:
    """What a graph returns, as a list.

    Arguments:
        graph: the graph

    Returns: a list of nodes and constants.
    """
    (output,) = (node for node in graph.nodes if node.op == "output")
    return tree_leaves(output.args[0])
