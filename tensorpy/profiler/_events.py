"""What a profile recorded, as objects: events, their sums by operator, and tables of these. Times are microseconds."""

from __future__ import annotations

from html import escape
from typing import Any

from tensorpy._package.async_events import Event as Message
from tensorpy.profiler._chrome import write as _write_chrome
from tensorpy.profiler._event import MESSAGE, OPERATOR, RANGE, FunctionEvent, Interval, Kernel
from tensorpy.profiler._flame import svg
from tensorpy.profiler._flops import flops
from tensorpy.profiler._table import table as _table


class FunctionEventAvg:
    """The sum of all events of one key.

    Example:
        >>> with tp.autograd.profiler.profile() as p:
        ...     y = tp.ones(2) + 1
        >>> type(p.key_averages()[0]).__name__
        'FunctionEventAvg'
    """

    count: int
    cpu_memory_usage: int
    cpu_time_total: float
    device_memory_usage: int
    device_time_total: float
    flops: int
    self_cpu_memory_usage: int
    self_cpu_time_total: float
    self_device_memory_usage: int
    self_device_time_total: float

    def __init__(self, key: str) -> None:
        self.key = key
        self.count = self.flops = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.device_time_total = self.self_device_time_total = 0.0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.device_memory_usage = self.self_device_memory_usage = 0
        self.input_shapes: list[Any] = []
        self.stack: list[str] = []

    def add(self, event: FunctionEvent) -> None:
        """Counts an event. Times and memory of a call within another of its key are in the outer one's already."""
        self.count += event.count
        self.flops += event.flops
        self.self_cpu_time_total += event.self_cpu_time_total
        self.self_device_time_total += event.self_device_time_total
        self.self_cpu_memory_usage += event.self_cpu_memory_usage
        self.self_device_memory_usage += event.self_device_memory_usage
        if any(outer.name == event.name for outer in event.ancestors):
            return
        self.cpu_time_total += event.cpu_time_total
        self.device_time_total += event.device_time_total
        self.cpu_memory_usage += event.cpu_memory_usage
        self.device_memory_usage += event.device_memory_usage

    @property
    def cpu_time(self) -> float:
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        return self.device_time_total / self.count if self.count else 0.0

    def __repr__(self) -> str:
        return f"<FunctionEventAvg {self.key} calls={self.count} self={self.self_cpu_time_total:.3f}us>"


class EventList(list[Any]):
    """Events, or their sums; prints as a table.

    Arguments:
        iterable: what is gone through

    Example:
        >>> with tp.autograd.profiler.profile() as p:
        ...     y = tp.ones(2) + 1
        >>> type(p.function_events).__name__
        'EventList'
    """

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> EventList:
        """Sums by name; also by the arguments' shapes, and by the innermost `group_by_stack_n` lines of the program."""
        sums: dict[tuple[str, ...], FunctionEventAvg] = {}
        for event in self:
            shapes = str(event.input_shapes) if group_by_input_shape else ""
            key = (event.key, shapes, *event.stack[:group_by_stack_n])
            total = sums.setdefault(key, FunctionEventAvg(event.key))
            total.add(event)
            total.input_shapes = event.input_shapes if group_by_input_shape else []
            total.stack = event.stack[:group_by_stack_n]
        return EventList(sums.values())

    def total_average(self) -> FunctionEventAvg:
        """All events in one sum: the outermost ones' times."""
        total = FunctionEventAvg("Total")
        for event in self:
            total.count += event.count
            total.flops += event.flops
            total.self_cpu_time_total += event.self_cpu_time_total
            total.self_device_time_total += event.self_device_time_total
            total.self_cpu_memory_usage += event.self_cpu_memory_usage
            total.self_device_memory_usage += event.self_device_memory_usage
        total.cpu_time_total, total.device_time_total = total.self_cpu_time_total, total.self_device_time_total
        total.cpu_memory_usage = total.self_cpu_memory_usage
        total.device_memory_usage = total.self_device_memory_usage
        return total

    @property
    def self_cpu_time_total(self) -> float:
        return sum(event.self_cpu_time_total for event in self)

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:
        """Rows of names, times, calls, and what else was recorded; the largest first by a field such as
        "self_cpu_time_total", "cpu_memory_usage" or "count". A limit of -1 shows all."""
        rows = [e for e in self if not (top_level_events_only and getattr(e, "cpu_parent", None))]
        widths = max_name_column_width, max_shapes_column_width, max_src_column_width
        return _table(rows, sort_by, row_limit, widths, header)

    def __str__(self) -> str:
        return self.table()

    def export_chrome_trace(self, path: str) -> None:
        """Writes events for chrome://tracing and Perfetto."""
        _write_chrome(path, self, {})

    def _repr_html_(self) -> str:
        if self and isinstance(self[0], FunctionEvent):
            return svg(self)
        return f"<pre>{escape(self.table())}</pre>"


# ---- from what C recorded ----


def _shapes(argument: Any) -> Any:
    if isinstance(argument, list):
        return [_shapes(a) for a in argument]
    return list(argument[1]) if argument and argument[0] else []


def _dtypes(argument: Any) -> Any:
    if isinstance(argument, list):
        return [_dtypes(a) for a in argument]
    return argument[0] if argument else ""


def _lines(stack: Any) -> list[str]:
    places = [(code, line) for code, line in stack or () if "tensorpy/profiler" not in code.co_filename]
    return [f"{code.co_filename}({line}): {code.co_name}" for code, line in places]


def _named(name: str, kind: int) -> tuple[str, str]:
    """ "aten::add" and "Tensor" of "add.Tensor"."""
    if kind != OPERATOR:
        return name, ""
    stem, _, overload = name.partition(".")
    return stem if "::" in stem else f"aten::{stem}", overload


def _event(number: int, row: tuple[Any, ...], now: int, counted: bool) -> FunctionEvent:
    """The event of one row, without its place among others."""
    raw, kind, begin, end, _, sequence, memory, device_memory, arguments, stack, backend, failed = row
    name, overload = _named(raw, kind)
    when = Interval(begin / 1e3, (end or now) / 1e3)
    event = FunctionEvent(
        0, name, overload, kind, number, when, sequence, backend, bool(failed), memory, device_memory
    )  # fmt: skip
    event.input_shapes = [_shapes(a) for a in arguments or ()]
    event.input_dtypes = [_dtypes(a) for a in arguments or ()]
    event.stack = _lines(stack)
    event.flops = flops(name, arguments) if counted else 0
    return event


def _add_kernel(row: tuple[Any, ...], placed: dict[tuple[int, int], FunctionEvent]) -> FunctionEvent | None:
    """Gives a kernel to the call that launched it; an event of its own where that is not known."""
    name, device, stream, begin, end, thread, at = row
    kernel = Kernel(name, f"opencl:{device}", stream, Interval(begin / 1e3, end / 1e3))
    launcher, made = placed.get((thread, at)), None
    if launcher is None:
        launcher = made = FunctionEvent(0, "(outside)", "", RANGE, 0, kernel.time_range, -1, "", False, 0, 0)
    launcher.kernels.append(kernel)
    return made


def of_message(message: Message, shapes: bool, now: int) -> FunctionEvent:
    """The event of a message; it is no part of the call that began it."""
    when = Interval(message.begin / 1e3, (message.end or now) / 1e3)
    event = FunctionEvent(0, message.name, "", MESSAGE, 0, when, -1, "", False, 0, 0, is_async=True)
    if shapes:
        event.input_shapes, event.input_dtypes = message.shapes, message.dtypes
    return event


def read(
    threads: list[tuple[int, int, list[tuple[Any, ...]]]],
    kernels: list[tuple[Any, ...]],
    messages: list[FunctionEvent],
    now: int,
    counted: bool,
) -> EventList:
    """Events of all threads in the order of their beginnings. What was still open when the profile ended, ends now."""
    placed: dict[tuple[int, int], FunctionEvent] = {}
    for number, _, rows in threads:
        for at, row in enumerate(rows):
            event = placed[number, at] = _event(number, row, now, counted)
            event.cpu_parent = placed.get((number, row[4]))
            if event.cpu_parent is not None:
                event.cpu_parent.cpu_children.append(event)
    outside = [_add_kernel(row, placed) for row in kernels]
    events = sorted([*placed.values(), *(e for e in outside if e), *messages], key=lambda e: e.time_range.start)
    for i, event in enumerate(events):
        event.id = i
    return EventList(events)
