"""What a profile recorded, as objects: events, their sums by operator, and tables of these. Times are microseconds."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

from tensorpy._package.async_events import Event as Message
from tensorpy.profiler._chrome import write as _write_chrome
from tensorpy.profiler._event import BACKWARD, MESSAGE, OPERATOR, RANGE, FunctionEvent, Interval, Kernel, as_text
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

    def __init__(self, key: str | None = None) -> None:
        self.key = key
        self.count = self.flops = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.device_time_total = self.self_device_time_total = 0.0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.device_memory_usage = self.self_device_memory_usage = 0
        self.input_shapes: list[Any] = []
        self.stack: list[str] = []

    def add(self, event: Any) -> FunctionEventAvg:
        """Counts an event, or the sum of others. Times and memory of a call within another of its key are in the outer
        one's already. The first one's key, shapes and stack are the sum's.

        Returns: itself.

        Raises: AssertionError for what is no event.
        """
        if not isinstance(event, (FunctionEvent, FunctionEventAvg)):
            raise AssertionError(f"FunctionEventAvg.add: an event, not {type(event).__name__}")
        if self.key is None:
            self.key, self.input_shapes, self.stack = event.key, event.input_shapes, event.stack
        self.count += event.count
        self.flops += event.flops
        self.self_cpu_time_total += event.self_cpu_time_total
        self.self_device_time_total += event.self_device_time_total
        self.self_cpu_memory_usage += event.self_cpu_memory_usage
        self.self_device_memory_usage += event.self_device_memory_usage
        if isinstance(event, FunctionEvent) and any(outer.name == event.name for outer in event.ancestors):
            return self
        self.cpu_time_total += event.cpu_time_total
        self.device_time_total += event.device_time_total
        self.cpu_memory_usage += event.cpu_memory_usage
        self.device_memory_usage += event.device_memory_usage
        return self

    __iadd__ = add

    @property
    def cpu_time(self) -> float:
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        return self.device_time_total / self.count if self.count else 0.0

    def __getattr__(self, name: str) -> str:
        return as_text(self, name)

    def __repr__(self) -> str:
        return f"<FunctionEventAvg {self.key} calls={self.count} self={self.self_cpu_time_total:.3f}us>"


_SPACES = str.maketrans(" ;\t\n", "____")


def nest(events: Iterable[FunctionEvent]) -> None:
    """Finds in which event of its thread each one ran. Of two that overlap in part, none is in the other."""
    stacks: dict[tuple[Any, Any], list[FunctionEvent]] = {}
    for event in sorted(events, key=lambda e: (e.time_range.start, -e.time_range.end)):
        open_events = stacks.setdefault((event.thread, event.node_id), [])
        when = event.time_range
        while open_events and (
            when.start >= open_events[-1].time_range.end or when.end > open_events[-1].time_range.end
        ):
            open_events.pop()
        if open_events:
            open_events[-1].append_cpu_child(event)
            event.set_cpu_parent(open_events[-1])
        open_events.append(event)


def _repeats_its_parent(event: FunctionEvent) -> bool:
    parent = event.cpu_parent
    return parent is not None and parent.name == event.name and len(parent.cpu_children) == 1


class EventList(list[Any]):
    """Events, or their sums; prints as a table.

    Arguments:
        iterable: the events
        use_device: the type of device whose times are asked for
        profile_memory: whether memory was recorded; a table shows what there is
        with_flops: whether operations were counted; a table shows what there is

    Example:
        >>> with tp.autograd.profiler.profile() as p:
        ...     y = tp.ones(2) + 1
        >>> type(p.function_events).__name__
        'EventList'
    """

    def __init__(
        self,
        iterable: Iterable[Any] = (),
        /,
        *,
        use_device: str | None = None,
        profile_memory: bool = False,
        with_flops: bool = False,
    ) -> None:
        super().__init__(iterable)
        self._use_device, self._profile_memory, self._with_flops = use_device, profile_memory, with_flops
        self._tree_built = False

    def _build_tree(self) -> None:
        """Puts events that were made by hand into those in whose time, thread and process they are. An event that is
        all that one of its name has in it is taken out."""
        nest([e for e in self if not e.is_async])
        while doubled := [e for e in self if _repeats_its_parent(e)]:
            event = doubled[0]
            parent = event.cpu_parent
            parent.cpu_children, parent.kernels = event.cpu_children, event.kernels
            for child in event.cpu_children:
                child.cpu_parent = parent
            self[:] = [e for e in self if e is not event]
        self._tree_built = True

    def supported_export_stacks_metrics(self) -> list[str]:
        """The metrics that export_stacks knows.

        Returns: their names.
        """
        return [f"self_{kind}_time_total" for kind in ("cpu", "cuda", "xpu", "privateuse1")]

    def export_stacks(self, path: str, metric: str) -> None:
        """Writes a line for each event that has a stack: its places, the outermost first, and its time in microseconds.

        Raises: ValueError for another metric than supported_export_stacks_metrics() has.
        """
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError(f"export_stacks: the metric is one of {self.supported_export_stacks_metrics()}")
        field = "self_cpu_time_total" if metric == "self_cpu_time_total" else "self_device_time_total"
        with open(path, "w", encoding="utf-8") as file:
            for event in self:
                if event.stack and int(getattr(event, field)) > 0:
                    places = ";".join(place.translate(_SPACES) for place in reversed(event.stack))
                    file.write(f"{places} {int(getattr(event, field))}\n")

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


_SCOPES = {BACKWARD: 1, RANGE: 7}  # PyTorch's numbers


def _event(number: int, row: tuple[Any, ...], now: int, counted: bool) -> FunctionEvent:
    """The event of one row, without its place among others."""
    raw, kind, begin, end, _, sequence, memory, device_memory, arguments, stack, backend, failed = row
    name, overload = _named(raw, kind)
    event = FunctionEvent(
        0,
        name,
        number,
        begin / 1e3,
        (end or now) / 1e3,
        overload,
        input_shapes=[_shapes(a) for a in arguments or ()],
        input_dtypes=[_dtypes(a) for a in arguments or ()],
        stack=_lines(stack),
        scope=_SCOPES.get(kind, 0),
        cpu_memory_usage=memory,
        device_memory_usage=device_memory,
        sequence_nr=sequence,
        is_user_annotation=kind == RANGE,
        flops=flops(name, arguments) if counted else 0,
    )
    event.kind, event.backend, event.failed = kind, backend, bool(failed)
    return event


def _add_kernel(row: tuple[Any, ...], placed: dict[tuple[int, int], FunctionEvent]) -> FunctionEvent | None:
    """Gives a kernel to the call that launched it; an event of its own where that is not known."""
    name, device, stream, begin, end, thread, at = row
    kernel = Kernel(name, f"opencl:{device}", stream, Interval(begin / 1e3, end / 1e3))
    launcher, made = placed.get((thread, at)), None
    if launcher is None:
        launcher = made = FunctionEvent(0, "(outside)", 0, begin / 1e3, end / 1e3, scope=7, is_user_annotation=True)
    launcher.kernels.append(kernel)
    return made


def of_message(message: Message, shapes: bool, now: int) -> FunctionEvent:
    """The event of a message; it is no part of the call that began it."""
    event = FunctionEvent(0, message.name, 0, message.begin / 1e3, (message.end or now) / 1e3, is_async=True)
    event.kind = MESSAGE
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
