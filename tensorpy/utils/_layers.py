"""Boxes in layers, with arrows from each to those below that take it, as an SVG of our own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise

LETTER, HEIGHT, GAP_X, GAP_Y, EDGE = 7.0, 24, 16, 34, 8
SWEEPS = 12  # over the rows, up and down in turn, until they stand well
INPUT, CONSTANT, CALL, OUTPUT = "#cfe8cf", "#e3dcf2", "#d6e4f5", "#f5d9b8"  # the colours


@dataclass(frozen=True)
class Box:
    """What a box says, and the numbers of the boxes that it takes, all of which come before it."""

    text: str
    title: str  # shown by the pointer
    colour: str
    takes: Sequence[int]

    @property
    def width(self) -> float:
        return len(self.text) * LETTER + 14


@dataclass
class _Place:
    """Where a box stands, or where an arrow passes through a layer between its ends (width 0)."""

    layer: int
    width: float
    middle: float = 0.0
    above: list[int] = field(default_factory=list)  # places that arrows come from, and those that they go to
    below: list[int] = field(default_factory=list)

    @property
    def left(self) -> float:
        return self.middle - self.width / 2


def _layers(boxes: Sequence[Box]) -> list[int]:
    """Each box one layer above the first of those that take it; what nothing takes stands at the bottom."""
    height = [0] * len(boxes)  # of a box over the bottom
    for i in range(len(boxes) - 1, -1, -1):
        for taken in boxes[i].takes:
            height[taken] = max(height[taken], height[i] + 1)
    top = max(height, default=0)
    return [top - h for h in height]


def _with_arrows(boxes: Sequence[Box]) -> tuple[list[_Place], list[list[int]]]:
    """The boxes' places, followed by those that long arrows need; each arrow as the places that it leads through."""
    places = [_Place(layer, box.width) for layer, box in zip(_layers(boxes), boxes, strict=True)]
    arrows = []
    for i, box in enumerate(boxes):
        for taken in dict.fromkeys(box.takes):
            between = range(places[taken].layer + 1, places[i].layer)
            arrow = [taken, *range(len(places), len(places) + len(between)), i]
            places += [_Place(layer, 0.0) for layer in between]
            for one, following in pairwise(arrow):
                places[one].below.append(following)
                places[following].above.append(one)
            arrows.append(arrow)
    return places, arrows


def _settle(row: list[_Place], wanted: list[float]) -> None:
    """Moves a row's places near to where they are wanted, in that order, none over another.

    Those that would overlap become one block, which stands where its places want it on the mean.
    """
    blocks: list[tuple[float, int, float, list[_Place]]] = []  # sum of wanted left edges, places, width, which
    for middle, _, place in sorted(zip(wanted, range(len(row)), row, strict=True), key=lambda item: item[:2]):
        block = (middle - place.width / 2, 1, place.width + GAP_X, [place])
        while blocks and blocks[-1][0] / blocks[-1][1] + blocks[-1][2] > block[0] / block[1]:
            total, count, width, which = blocks.pop()
            block = (total + block[0] - width * block[1], count + block[1], width + block[2], which + block[3])
        blocks.append(block)
    for total, count, _, which in blocks:
        x = total / count
        for place in which:
            place.middle = x + place.width / 2
            x += place.width + GAP_X


def _arrange(places: list[_Place]) -> None:
    """Sets the middles: rows go by what is above them, then by what is below, a few times over."""
    rows: list[list[_Place]] = [[] for _ in range(max((place.layer for place in places), default=-1) + 1)]
    for place in places:
        place.middle = len(rows[place.layer]) * GAP_X
        rows[place.layer].append(place)
    for sweep in range(SWEEPS):
        for row in rows[::-1] if sweep % 2 == 0 else rows:
            wanted = []
            for place in row:
                near = place.below if sweep % 2 == 0 else place.above
                wanted.append(sum(places[k].middle for k in near) / len(near) if near else place.middle)
            _settle(row, wanted)
    edge = min((place.left for place in places), default=0.0) - EDGE
    for place in places:
        place.middle -= edge


def _top(place: _Place) -> int:
    return EDGE + place.layer * (HEIGHT + GAP_Y)


def _path(places: list[_Place]) -> str:
    """An arrow: curves between layers, straight where it passes one."""
    first, *rest = places
    line = f"M{first.middle:.1f},{_top(first) + HEIGHT}"
    for one, following in pairwise(places):
        y1, y2 = _top(one) + HEIGHT, _top(following) - (3 if following is rest[-1] else 0)
        half = (y1 + y2) / 2
        line += f" C{one.middle:.1f},{half:.1f} {following.middle:.1f},{half:.1f} {following.middle:.1f},{y2}"
        if following is not rest[-1]:
            line += f" V{y2 + HEIGHT}"
    return f'<path d="{line}" fill="none" stroke="#888" marker-end="url(#arrow)"/>'


def _drawn(box: Box, place: _Place) -> str:
    x, y = place.left, _top(place)
    size = f'width="{box.width:.1f}" height="{HEIGHT}" rx="5"'
    shape = f'<rect x="{x:.1f}" y="{y}" {size} fill="{box.colour}" stroke="#999"/>'
    text = f'<text x="{x + 7:.1f}" y="{y + 16}">{escape(box.text)}</text>'
    return f"<g><title>{escape(box.title)}</title>{shape}{text}</g>"


def svg(boxes: Sequence[Box]) -> str:
    """A self-contained SVG."""
    places, arrows = _with_arrows(boxes)
    _arrange(places)
    lines = [_path([places[k] for k in arrow]) for arrow in arrows]
    lines += [_drawn(box, place) for box, place in zip(boxes, places, strict=False)]
    width = max((place.left + place.width for place in places), default=0.0) + EDGE
    height = max((_top(place) + HEIGHT for place in places), default=0) + EDGE
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}"'
    tip = '<marker id="arrow" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="6" markerHeight="6" orient="auto">'
    defs = f'<defs>{tip}<path d="M0,0 L6,3 L0,6 z" fill="#888"/></marker></defs>'
    return f'{head} font-family="monospace" font-size="11">{defs}{"".join(lines)}</svg>'
