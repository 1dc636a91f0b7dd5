"""Events as a picture for a notebook: time from left to right, who calls whom from top to bottom, each thread apart."""

from __future__ import annotations

import colorsys
import zlib
from collections.abc import Iterable
from html import escape

from tensorpy.profiler._event import BACKWARD, RANGE, FunctionEvent
from tensorpy.profiler._table import time

WIDTH, ROW = 1000, 17
NARROWEST = 0.4  # pixels; what is narrower would not be seen
LETTER = 6.5


def _colour(name: str, kind: int) -> str:
    """One hue for an operator's name; backward nodes in blue, named ranges in grey."""
    shade = zlib.crc32(name.encode())
    if kind == RANGE:
        return "#d1d1d1"
    hue, light, strength = (205 if kind == BACKWARD else 20) + shade % 35, 68 + shade // 64 % 12, 60 + shade % 25
    red, green, blue = colorsys.hls_to_rgb(hue / 360, light / 100, strength / 100)
    return f"#{round(255 * red):02x}{round(255 * green):02x}{round(255 * blue):02x}"  # which every viewer knows


def _box(event: FunctionEvent, x: float, y: int, width: float) -> str:
    title = f"{event.name}: {time(event.cpu_time_total)}, of it self {time(event.self_cpu_time_total)}"
    shapes = f", {event.input_shapes}" if event.input_shapes else ""
    room = int((width - 4) / LETTER)
    label = event.name.removeprefix("aten::")[:room] if room > 1 else ""
    text = f'<text x="{x + 2:.2f}" y="{y + 12}">{escape(label)}</text>' if label else ""
    fill = _colour(event.name, event.kind)
    box = f'<rect x="{x:.2f}" y="{y}" width="{max(width, NARROWEST):.2f}" height="{ROW - 1}" fill="{fill}"/>'
    return f"<g><title>{escape(title + shapes)}</title>{box}{text}</g>"


def svg(events: Iterable[FunctionEvent]) -> str:
    """A self-contained SVG; the boxes' tooltips have the times."""
    found = list(events)
    if not found:
        return "<svg xmlns='http://www.w3.org/2000/svg' width='0' height='0'></svg>"
    first = min(e.time_range.start for e in found)
    scale = WIDTH / max(max(e.time_range.end for e in found) - first, 1e-9)
    boxes, top = [], 0
    for thread in sorted({e.thread for e in found}):
        boxes.append(f'<text x="0" y="{top + 12}">{f"thread {thread}" if thread else "messages"}</text>')
        rows = 0
        for event in (e for e in found if e.thread == thread):
            depth = 1 + sum(1 for _ in event.ancestors)
            width = event.cpu_time_total * scale
            if width < NARROWEST and event.cpu_parent is not None:
                continue
            rows = max(rows, depth)
            boxes.append(_box(event, (event.time_range.start - first) * scale, top + depth * ROW, width))
        top += (rows + 1) * ROW + 6
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" width="100%"'
    return f'{head} font-family="monospace" font-size="11">{"".join(boxes)}</svg>'
