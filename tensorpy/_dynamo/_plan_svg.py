"""A plan as a picture: from top to bottom what ran, and the bytes that it moved over those of its calls alone."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensorpy._dynamo.plans import Flush, Plan, Unit

WIDTH, ROW, BAR, LETTER = 900, 24, 5, 6.6
NARROWEST = 1.5  # pixels of the fewest bytes
COLOURS = {"group": "#cfe8cf", "tiles": "#d6e4f5", "call": "#ececec"}  # the L1 cache, the L2 cache, memory
MOVED, SAVED = "#5b8c5b", "#d9d9d9"


def _text(x: float, y: float, words: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}"{more}>{escape(words)}</text>'


def _operators(unit: Unit, top: int) -> list[str]:
    """A box for each operator, from left to right, as many as there is room for."""
    boxes: list[str] = []
    x = 80.0
    for done, name in enumerate(unit.operators):
        width = LETTER * len(name) + 12
        left = len(unit.operators) - done
        if x + width > WIDTH - 80 and left > 1:
            return [*boxes, _text(x + 4, top + 16, f"and {left} more")]
        box = f'<rect x="{x:.1f}" y="{top + 2}" width="{width:.1f}" height="20" rx="4" fill="{COLOURS[unit.kind]}"'
        boxes += [f'{box} stroke="#999"/>', _text(x + 6, top + 16, name)]
        x += width + 4
    return boxes


def _unit(unit: Unit, number: int, top: int, scale: float) -> list[str]:
    alone = max(unit.alone, unit.moved)
    bars = [
        f'<rect x="80" y="{top + ROW}" width="{max(count * scale, NARROWEST):.1f}" height="{BAR}" fill="{colour}"/>'
        for count, colour in ((alone, SAVED), (unit.moved, MOVED))
    ]
    words = ", ".join(part for part in (unit.elements, unit.moves) if part)
    label = _text(80, top + ROW + BAR + 12, words, ' fill="#555"')
    return [_text(0, top + 16, f"{unit.kind} {number}"), *_operators(unit, top), *bars, label]


def _flush(flush: Flush, top: int) -> list[str]:
    line = f'<line x1="0" y1="{top + 4}" x2="{WIDTH}" y2="{top + 4}" stroke="#c0504d" stroke-dasharray="4 3"/>'
    return [line, _text(80, top + 17, f"flush: {flush.asked}, {flush.line}", ' fill="#c0504d"')]


def svg(plan: Plan) -> str:
    """A self-contained SVG. Green is what a unit moved, grey what its calls would have moved one by one."""
    scale = (WIDTH - 80) / max((max(unit.moved, unit.alone) for unit in plan.units), default=1)
    parts, top = [], 22
    breaks = plan.breaks
    parts.append(_text(0, 14, str(plan).partition("\n")[0]))
    for number in range(len(plan.units) + 1):
        for flush in (f for f in breaks if f.after == number):
            parts += _flush(flush, top)
            top += ROW
        if number < len(plan.units):
            parts += _unit(plan.units[number], number + 1, top, scale)
            top += ROW + BAR + 20
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" width="100%"'
    return f'{head} font-family="monospace" font-size="11">{"".join(parts)}</svg>'
