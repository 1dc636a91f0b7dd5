"""Sums of events as a table of text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorpy.profiler._event import time_text as time

# torch's older names of the same fields
_FIELDS = {
    f"{self}{there}_{what}": f"{self}device_{what}"
    for self in ("", "self_")
    for there in ("cuda", "xpu", "opencl")
    for what in ("time", "time_total", "memory_usage")
}


def memory(nbytes: int) -> str:
    """ "512 B", "1.50 KB", "-2.00 MB"."""
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(nbytes) >= size:
            return f"{nbytes / size:.2f} {unit}"
    return f"{nbytes} B"


def _operations(rows: list[Any]) -> tuple[str, Callable[[Any], str]]:
    """The column of operations, in a unit by the largest."""
    largest = max(row.flops for row in rows)
    power = max(n for n in range(6) if n == 0 or largest >= 1000**n)
    title = f"Total {['', 'K', 'M', 'G', 'T', 'P'][power]}FLOPs"
    return title, lambda r: f"{r.flops / 1000**power:.3f}" if r.flops else "--"


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.2f}%" if whole else "--"


def _short(text: str, width: int, keep_end: bool = False) -> str:
    if width < 4 or len(text) <= width:
        return text
    return f"...{text[3 - width :]}" if keep_end else f"{text[: width - 3]}..."


def _columns(rows: list[Any], widths: tuple[int, int, int]) -> list[tuple[str, Callable[[Any], str]]]:
    """What there is to show: a column of zeros is left out."""
    cpu = sum(row.self_cpu_time_total for row in rows)
    device = sum(row.self_device_time_total for row in rows)
    name, shapes, source = widths
    columns: list[tuple[str, Callable[[Any], str]]] = [
        ("Name", lambda r: _short(r.key, name)),
        ("Self CPU %", lambda r: _share(r.self_cpu_time_total, cpu)),
        ("Self CPU", lambda r: time(r.self_cpu_time_total)),
        ("CPU total %", lambda r: _share(r.cpu_time_total, cpu)),
        ("CPU total", lambda r: time(r.cpu_time_total)),
        ("CPU time avg", lambda r: time(r.cpu_time)),
    ]
    if device:
        columns += [
            ("Self device", lambda r: time(r.self_device_time_total)),
            ("Self device %", lambda r: _share(r.self_device_time_total, device)),
            ("Device total", lambda r: time(r.device_time_total)),
        ]
    if any(row.cpu_memory_usage or row.self_cpu_memory_usage for row in rows):
        columns += [
            ("CPU Mem", lambda r: memory(r.cpu_memory_usage)),
            ("Self CPU Mem", lambda r: memory(r.self_cpu_memory_usage)),
        ]
    if any(row.device_memory_usage or row.self_device_memory_usage for row in rows):
        columns += [
            ("Device Mem", lambda r: memory(r.device_memory_usage)),
            ("Self Device Mem", lambda r: memory(r.self_device_memory_usage)),
        ]
    columns.append(("# of Calls", lambda r: str(r.count)))
    if any(row.input_shapes for row in rows):
        columns.append(("Input Shapes", lambda r: _short(str(r.input_shapes), shapes)))
    if any(row.flops for row in rows):
        columns.append(_operations(rows))
    if any(row.stack for row in rows):
        columns.append(("Source Location", lambda r: _short(r.stack[0] if r.stack else "", source, keep_end=True)))
    return columns


def table(
    rows: list[Any], sort_by: str | None, row_limit: int, widths: tuple[int, int, int], header: str | None
) -> str:
    if not rows:
        return ""
    columns = _columns(rows, widths)
    total = sum(row.self_cpu_time_total for row in rows)
    device = sum(row.self_device_time_total for row in rows)
    if sort_by is not None:
        field = _FIELDS.get(sort_by, sort_by)
        if not isinstance(getattr(rows[0], field, None), (int, float)):
            raise ValueError(f"table(): there is no column to sort by called {sort_by!r}")
        rows = sorted(rows, key=lambda row: getattr(row, field), reverse=True)
    if row_limit >= 0:
        rows = rows[:row_limit]
    cells = [[title for title, _ in columns], *([show(row) for _, show in columns] for row in rows)]
    width = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    rule = "  ".join("-" * w for w in width)
    lines = [rule]
    for n, line in enumerate(cells):
        first, rest = line[0].ljust(width[0]), (c.rjust(w) for c, w in zip(line[1:], width[1:], strict=True))
        lines += ["  ".join([first, *rest]).rstrip(), *([rule] if n == 0 else [])]
    lines += [
        rule,
        f"Self CPU time total: {time(total)}",
        *([f"Self device time total: {time(device)}"] * bool(device)),
    ]
    return "\n".join([*([header] if header else []), *lines]) + "\n"
