"""One graph of a function and its gradient as two: what the outputs need, and what comes of the outputs' gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorpy.fx.graph import Graph
from tensorpy.fx.graph_module import GraphModule
from tensorpy.fx.node import Node
from tensorpy.fx.passes.graph_drawer import FxGraphDrawer


def _is_tangent(node: Node) -> bool:
    return node.op == "placeholder" and "tangents" in str(node.target)


def _part(joint: GraphModule, inputs: Sequence[Node], body: Sequence[Node], outputs: Sequence[Any]) -> GraphModule:
    """The graph of some nodes; `inputs` become its parameters."""
    graph = Graph()
    of: dict[Node, Node] = {}
    for node in inputs:
        of[node] = graph.placeholder(node.name)
        of[node].meta = dict(node.meta)
    for node in body:
        if node not in of:
            of[node] = graph.node_copy(node, of.__getitem__)
    graph.output([of[out] if isinstance(out, Node) else out for out in outputs])
    return GraphModule(joint, graph)


def _needed(nodes: list[Node], outputs: Sequence[Any]) -> list[Node]:
    """Those that the outputs come of, and those that write."""
    wanted = {out for out in outputs if isinstance(out, Node)}
    for node in reversed(nodes):
        if node in wanted or node.is_impure():
            wanted.add(node)
            wanted.update(node.all_input_nodes)
    return [node for node in nodes if node in wanted]


def default_partition(
    joint_module: GraphModule,
    _joint_inputs: Any,
    *,
    num_fwd_outputs: int,
    static_lifetime_input_indices: Any = None,
    static_lifetime_input_nodes: Any = None,
) -> tuple[GraphModule, GraphModule]:
    """The forward graph, which gives the outputs and what the other keeps, and the backward graph: of what is kept and
    the outputs' gradients it makes those of the inputs. All that no gradient of an output goes into is forward's.

    Arguments:
        joint_module: the graph of both, of parameters named primals and tangents
        num_fwd_outputs: how many of its outputs are the function's

    Example:
        >>> from tensorpy.fx.experimental.proxy_tensor import make_fx
        >>> joint = make_fx(lambda primals, tangents: [primals[0].sin(), tangents[0] * primals[0].cos()])(
        ...     [tp.ones(2)], [tp.ones(2)]
        ... )
        >>> forward, backward = tp._functorch.partitioners.default_partition(joint, (), num_fwd_outputs=1)
        >>> len(forward(tp.zeros(2)))
        2
    """
    nodes = list(joint_module.graph.nodes)
    (result,) = (node for node in nodes if node.op == "output")
    outputs = list(result.args[0])
    first, last = outputs[:num_fwd_outputs], outputs[num_fwd_outputs:]
    tangents = [node for node in nodes if _is_tangent(node)]
    behind = set(tangents)  # what comes of the outputs' gradients
    for node in nodes:
        if not behind.isdisjoint(node.all_input_nodes):
            behind.add(node)
    behind.discard(result)
    ahead = [node for node in nodes if node not in behind and node is not result]
    needs = [node for node in nodes if node in behind and not _is_tangent(node)]
    inner = [node for node in _needed(needs, last) if node in behind]
    used = {arg for node in inner for arg in node.all_input_nodes} | {out for out in last if isinstance(out, Node)}
    kept = [node for node in ahead if node in used and node.op != "get_attr"]
    constants = [node for node in ahead if node in used and node.op == "get_attr"]
    primals = [node for node in ahead if node.op == "placeholder"]
    forward = _part(joint_module, primals, _needed(ahead, [*first, *kept]), [*first, *kept])
    return forward, _part(joint_module, [*kept, *tangents], [*constants, *inner], last)


def min_cut_rematerialization_partition(
    joint_module: GraphModule, _joint_inputs: Any, compiler: str = "inductor", **words: Any
) -> tuple[GraphModule, GraphModule]:
    """The same as default_partition: nothing is computed twice to keep less.

    Arguments:
        joint_module: the graph of both
        compiler: is taken
        words: as default_partition's

    Example:
        >>> tp._functorch.partitioners.min_cut_rematerialization_partition.__name__
        'min_cut_rematerialization_partition'
    """
    return default_partition(joint_module, _joint_inputs, **words)


def draw_graph(
    traced: GraphModule, fname: str, figname: str = "fx_graph", clear_meta: bool = True, **unused: Any
) -> None:
    """Writes a picture of a graph: a file whose name ends with .svg, or as FxGraphDrawer's text.

    Arguments:
        traced: the graph
        fname: the file
        figname: the picture's name
        clear_meta: whether what nodes know is left out
    """
    name, _, ending = fname.rpartition(".")
    drawn = FxGraphDrawer(traced, figname).get_dot_graph()
    getattr(drawn, f"write_{ending or 'svg'}")(f"{name or fname}.{ending or 'svg'}")


__all__ = ["default_partition", "draw_graph", "min_cut_rematerialization_partition"]
