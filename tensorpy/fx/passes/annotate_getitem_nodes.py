"""Types of the items of tuples and lists, from the types of these."""

from __future__ import annotations

import operator
import typing
from typing import Any

from tensorpy.fx.graph import Graph

__all__ = ["annotate_getitem_nodes"]


def annotate_getitem_nodes(graph: Graph) -> None:
    """Sets the types of nodes that take an item of what has a type."""
    for node in graph.nodes:
        if node.op == "call_function" and node.target is operator.getitem and node.type is None:
            kind = _item_type(node.args[0].type, node.args[1])
            if kind is not None:
                node.type = kind


def _item_type(kind: Any, place: Any) -> Any:
    if isinstance(place, str) or kind is None:
        return None
    if getattr(kind, "_fields", None) and isinstance(place, int):
        return list(kind.__annotations__.values())[place]
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is list and not isinstance(place, slice):
        return args[0]
    if origin is tuple and args:
        if len(args) == 2 and args[1] is ...:
            return args[0] if isinstance(place, int) else None
        return args[place] if isinstance(place, int) else None
    return None
