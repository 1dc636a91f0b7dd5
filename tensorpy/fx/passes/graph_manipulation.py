"""Changes what nodes call; counts the bytes of their results."""

from __future__ import annotations

from typing import Any, NamedTuple

from tensorpy.fx.graph import Graph
from tensorpy.fx.graph_module import GraphModule
from tensorpy.fx.node import Node, map_arg
from tensorpy.fx.passes.shape_prop import ShapeProp, TensorMetadata

__all__ = ["get_size_of_all_nodes", "get_size_of_node", "get_tensor_meta", "replace_target_nodes_with", "size_bytes"]


def replace_target_nodes_with(
    fx_module: GraphModule, old_op: str, old_target: Any, new_op: str, new_target: Any
) -> None:
    """Other nodes, with the same arguments, in the place of those of a kind and a target."""
    made = Graph()
    values: dict[Node, Node] = {}
    for node in fx_module.graph.nodes:
        if node.op == old_op and node.target == old_target:
            args, kwargs = map_arg(node.args, values.__getitem__), map_arg(node.kwargs, values.__getitem__)
            values[node] = made.create_node(new_op, new_target, args, kwargs, node.name)
        else:
            values[node] = made.node_copy(node, values.__getitem__)
    fx_module.graph = made


class size_bytes(NamedTuple):
    """Bytes of a node's result, and with its parameters."""

    output_size: int
    total_size: int


def get_size_of_all_nodes(fx_module: GraphModule, args: list[Any] | None = None) -> None:
    """Notes at each node (`size_bytes`) what its result takes; `args` are run to know the shapes."""
    if args is not None:
        ShapeProp(fx_module).propagate(*args)
    node: Any
    for node in fx_module.graph.nodes:
        if node.op == "output":
            break
        node.size_bytes = get_size_of_node(fx_module, node)


def get_tensor_meta(node: Node) -> TensorMetadata:
    """What ShapeProp noted; RuntimeError if it noted nothing."""
    meta = node.meta.get("tensor_meta")
    if not meta:
        raise RuntimeError(
            f"Node {node} has no tensor metadata associated with it! Check that shape propagation has run."
        )
    return meta


def get_size_of_node(fx_module: GraphModule, node: Node) -> size_bytes:
    """The bytes of one node."""
    own = 0
    if node.op == "call_module":
        own = sum(p.nbytes for p in dict(fx_module.named_modules())[node.target].parameters())
    meta = get_tensor_meta(node)
    result = meta.shape.numel() * meta.dtype.itemsize
    return size_bytes(result, own + result)
