"""Graphs as pictures: Graphviz's text, and an SVG of our own for notebooks without Graphviz."""

from __future__ import annotations

from html import escape

from tensorpy.fx.graph import Graph
from tensorpy.fx.node import Node, OpOverload, target_name

_COLOURS = {"placeholder": "#cfe8cf", "get_attr": "#e3dcf2", "output": "#f5d9b8", "call_function": "#d6e4f5"}
LETTER, HEIGHT, GAP_X, GAP_Y = 7.0, 24, 16, 34


def label(node: Node) -> str:
    """What a box says: the name, what is called, and the constants among its arguments."""
    if node.op in ("placeholder", "output"):
        return node.name
    called = node.target.__name__ if isinstance(node.target, OpOverload) else target_name(node.target)
    constants = [repr(a) for a in node.args if not isinstance(a, (Node, list, tuple, dict))]
    return f"{node.name} = {called}" + (f"({', '.join(constants)})" if constants else "")


def dot(graph: Graph) -> str:
    lines = ["digraph {", '    node [shape=box, style="filled,rounded", fontname="monospace", fontsize=10];']
    for node in graph.nodes:
        text = label(node).replace("\\", "\\\\").replace('"', '\\"')
        colour = _COLOURS.get(node.op, _COLOURS["call_function"])
        lines.append(f'    "{node.name}" [label="{text}", fillcolor="{colour}"];')
        lines += [f'    "{given.name}" -> "{node.name}";' for given in node.all_input_nodes]
    return "\n".join([*lines, "}"]) + "\n"


def _layers(graph: Graph) -> list[list[Node]]:
    """Each node one layer below the last of those that it takes; inputs stand above their first user."""
    depth: dict[Node, int] = {}
    for node in graph.nodes:
        depth[node] = max((depth[given] + 1 for given in node.all_input_nodes), default=0)
    for node in graph.nodes:
        if node.op in ("placeholder", "get_attr") and node.users:
            depth[node] = min(depth[user] for user in node.users) - 1
    rows: list[list[Node]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for node, at in depth.items():
        rows[at].append(node)
    return [row for row in rows if row]


def _placed(graph: Graph) -> tuple[dict[Node, tuple[float, int, float]], float, int]:
    """(x, y, width) of each box, and the picture's size. A row is ordered by where its inputs are."""
    places: dict[Node, tuple[float, int, float]] = {}
    widest, y = 0.0, 8

    def middle(node: Node) -> float:
        given = [places[n][0] + places[n][2] / 2 for n in node.all_input_nodes if n in places]
        return sum(given) / len(given) if given else widest

    for row in _layers(graph):
        x = 8.0
        for node in sorted(row, key=middle):
            width = len(label(node)) * LETTER + 14
            x = max(x, middle(node) - width / 2) if node.all_input_nodes else x
            places[node] = (x, y, width)
            x += width + GAP_X
        widest = max(widest, x)
        y += HEIGHT + GAP_Y
    return places, widest, y - GAP_Y + 8


def svg(graph: Graph) -> str:
    """A self-contained SVG."""
    places, width, height = _placed(graph)
    lines = []
    for node, (x, y, w) in places.items():
        for given in node.all_input_nodes:
            gx, gy, gw = places[given]
            x1, y1, x2, y2 = gx + gw / 2, gy + HEIGHT, x + w / 2, y - 3
            half = (y1 + y2) / 2
            curve = f"M{x1:.1f},{y1} C{x1:.1f},{half:.1f} {x2:.1f},{half:.1f} {x2:.1f},{y2}"
            lines.append(f'<path d="{curve}" fill="none" stroke="#888" marker-end="url(#arrow)"/>')
    for node, (x, y, w) in places.items():
        colour = _COLOURS.get(node.op, _COLOURS["call_function"])
        box = f'<rect x="{x:.1f}" y="{y}" width="{w:.1f}" height="{HEIGHT}" rx="5" fill="{colour}" stroke="#999"/>'
        text = f'<text x="{x + 7:.1f}" y="{y + 16}">{escape(label(node))}</text>'
        lines.append(f"<g><title>{escape(node.format_node())}</title>{box}{text}</g>")
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}"'
    tip = '<marker id="arrow" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="6" markerHeight="6" orient="auto">'
    defs = f'<defs>{tip}<path d="M0,0 L6,3 L0,6 z" fill="#888"/></marker></defs>'
    return f'{head} font-family="monospace" font-size="11">{defs}{"".join(lines)}</svg>'
