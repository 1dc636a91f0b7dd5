"""Graphs as pictures: Graphviz's text, and an SVG of our own for notebooks without Graphviz."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorpy.fx.node import Node, OpOverload, target_name
from tensorpy.utils import _layers

if TYPE_CHECKING:
    from tensorpy.fx.graph import Graph

_COLOURS = {"placeholder": _layers.INPUT, "get_attr": _layers.CONSTANT, "output": _layers.OUTPUT}


def _colour(node: Node) -> str:
    return _COLOURS.get(node.op, _layers.CALL)


def label(node: Node) -> str:
    """What a box says: the name, what is called, and the constants among its arguments."""
    if node.op in ("placeholder", "output"):
        return node.name
    called = node.target._own_name if isinstance(node.target, OpOverload) else target_name(node.target)
    constants = [repr(a) for a in node.args if not isinstance(a, (Node, list, tuple, dict))]
    return f"{node.name} = {called}" + (f"({', '.join(constants)})" if constants else "")


def dot(graph: Graph) -> str:
    lines = ["digraph {", '    node [shape=box, style="filled,rounded", fontname="monospace", fontsize=10];']
    for node in graph.nodes:
        text = label(node).replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'    "{node.name}" [label="{text}", fillcolor="{_colour(node)}"];')
        lines += [f'    "{given.name}" -> "{node.name}";' for given in node.all_input_nodes]
    return "\n".join([*lines, "}"]) + "\n"


def svg(graph: Graph) -> str:
    """A self-contained SVG."""
    number = {node: i for i, node in enumerate(graph.nodes)}
    boxes = []
    for node in graph.nodes:
        takes = [number[given] for given in node.all_input_nodes]
        boxes.append(_layers.Box(label(node), str(node.format_node()), _colour(node), takes))
    return _layers.svg(boxes)
