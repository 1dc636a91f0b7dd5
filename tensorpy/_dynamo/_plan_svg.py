"""A plan as a picture: from top to bottom what ran, and the bytes that it moved over those of its calls alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from tensorpy._dynamo._plan_units import Flush, Unit, in_words

WIDTH, ROW, BAR, LETTER, MARGIN = 900, 24, 5, 6.6, 10
LEFT, LAST = 90, WIDTH - 80  # where boxes begin, and the last of a row ends
NARROWEST = 1.5  # pixels of the fewest bytes
COLOURS = {"group": "#cfe8cf", "tiles": "#d6e4f5", "call": "#ececec"}  # the L1 cache, the L2 cache, memory
MOVED, SAVED = "#5b8c5b", "#d9d9d9"


def _text(x: float, y: float, words: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}"{more}>{escape(words)}</text>'


def _width(name: str) -> float:
    return LETTER * len(name) + 12


def _operators(names: Sequence[str], kind: str, top: int) -> list[str]:
    """A box for each operator, from left to right, as many as there is room for."""
    boxes: list[str] = []
    x: float = LEFT
    for done, name in enumerate(names):
        left = len(names) - done
        if x + _width(name) > LAST and left > 1:
            return [*boxes, _text(x + 4, top + 16, f"and {left} more")]
        box = f'<rect x="{x:.1f}" y="{top + 2}" width="{_width(name):.1f}" height="20" rx="4" fill="{COLOURS[kind]}"'
        boxes += [f'{box} stroke="#999"/>', _text(x + 6, top + 16, name)]
        x += _width(name) + 4
    return boxes


def _rows(units: Sequence[Unit], cuts: set[int]) -> Iterator[tuple[int, Sequence[Unit]]]:
    """The number of each row's first unit, and its units: calls that follow each other alone share one, up to a cut."""
    first = 0
    while first < len(units):
        end, x = first + 1, LEFT + sum(_width(name) + 4 for name in units[first].operators)
        while end < len(units) and end not in cuts and units[end - 1].kind == units[end].kind == "call":
            x += sum(_width(name) + 4 for name in units[end].operators)
            if x > LAST:
                break
            end += 1
        yield first, units[first:end]
        first = end


def _row(units: Sequence[Unit], number: int, top: int, scale: float) -> list[str]:
    moved = sum(unit.moved for unit in units)
    alone = max(sum(unit.alone for unit in units), moved)
    bars = [
        f'<rect x="{LEFT}" y="{top + ROW}" width="{max(count * scale, NARROWEST):.1f}" height="{BAR}" fill="{colour}"/>'
        for count, colour in ((alone, SAVED), (moved, MOVED))
    ]
    kind, name, words = units[0].kind, f"{units[0].kind} {number}", f"move {in_words(moved)}, one by one"
    if len(units) == 1:
        words = ", ".join(part for part in (units[0].elements, units[0].moves) if part)
    else:
        name = f"calls {number}-{number + len(units) - 1}"
    label = _text(LEFT, top + ROW + BAR + 12, words, ' fill="#555"')
    operators = [name for unit in units for name in unit.operators]
    return [_text(0, top + 16, name), *_operators(operators, kind, top), *bars, label]


def _flush(flush: Flush, top: int) -> list[str]:
    line = f'<line x1="0" y1="{top + 4}" x2="{WIDTH}" y2="{top + 4}" stroke="#c0504d" stroke-dasharray="4 3"/>'
    words, room = f"flush: {flush.asked}, {flush.line}", int((WIDTH - LEFT) / LETTER)
    if len(words) > room:  # the end of a long path says more than its beginning
        words = f"flush: {flush.asked}, ...{str(flush.line)[len(words) - room + 3 :]}"
    return [line, _text(LEFT, top + 17, words, ' fill="#c0504d"')]


def svg(title: str, ran: Sequence[Unit], breaks: Sequence[Flush]) -> str:
    """A self-contained SVG. Green is what a unit moved, grey what its calls would have moved one by one."""
    rows = list(_rows(ran, {flush.after for flush in breaks}))
    most = max((max(sum(u.moved for u in units), sum(u.alone for u in units)) for _, units in rows), default=1)
    scale = (WIDTH - LEFT) / max(most, 1)
    parts, top, shown = [_text(0, 14, title)], 22, 0
    for first, units in [*rows, (len(ran), ())]:
        for flush in breaks[shown:]:
            if flush.after > first:
                break
            parts += _flush(flush, top)
            top += ROW
            shown += 1
        if units:
            parts += _row(units, first + 1, top, scale)
            top += ROW + BAR + 20
    box = f"{-MARGIN} {-MARGIN} {WIDTH + 2 * MARGIN} {top + 2 * MARGIN}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" width="100%"'
    paper = f'<rect x="{-MARGIN}" y="{-MARGIN}" width="100%" height="100%" rx="4" fill="white"/>'
    return f'{head} font-family="monospace" font-size="11">{paper}{"".join(parts)}</svg>'
