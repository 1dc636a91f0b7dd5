"""One event of a profile: a call, a backward node, a range or a message, and the kernels that it ran.

Times are microseconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

OPERATOR, BACKWARD, RANGE = range(3)  # tp_profiled_kind
MESSAGE = 3  # of distributed


def time_text(time_us: float) -> str:
    """ "1.500us", "2.000ms", "3.000s"."""
    if time_us >= 1e6:
        return f"{time_us / 1e6:.3f}s"
    return f"{time_us / 1e3:.3f}ms" if time_us >= 1e3 else f"{time_us:.3f}us"


def as_text(event: Any, name: str) -> str:
    """A time of an event as text, which is asked for as `cpu_time_total_str`."""
    field = name.removesuffix("_str")
    if field == name or name.startswith("__") or "time" not in field:
        raise AttributeError(f"{type(event).__name__!r} object has no attribute {name!r}")
    return time_text(getattr(event, field))


@dataclass(frozen=True)
class Interval:
    """From when to when.

    Arguments:
        start: the beginning
        end: the end

    Example:
        >>> tp.profiler.Interval(1.0, 3.0).elapsed_us()
        2.0
    """

    start: float
    end: float

    def elapsed_us(self) -> float:
        """How long it is, in microseconds."""
        return self.end - self.start


@dataclass(frozen=True)
class Kernel:
    """One run of a kernel on a device.

    Arguments:
        name: the name
        device: where the elements are: a device or its name; None takes the default
        stream: the stream
        time_range: when it ran

    Example:
        >>> tp.profiler.Kernel.__name__
        'Kernel'
    """

    name: str
    device: str
    stream: int
    time_range: Interval

    @property
    def duration(self) -> float:
        return self.time_range.elapsed_us()


class FunctionEvent:
    """One call of an operator, one backward node, one range that record_function named, or one message.

    A profile makes them; a program that reads times from elsewhere may too, and puts them into an EventList.

    Arguments:
        id: the number of the event
        name: the name
        thread: the thread that it ran in
        start_us: when it began
        end_us: when it ended
        overload_name: the overload's name
        fwd_thread: of a backward node the thread that its call ran in
        input_shapes: the shapes of its arguments
        stack: where it was called
        scope: 0 a call, 1 a backward node, 7 a range
        use_device: the type of device whose times are asked for
        cpu_memory_usage: the bytes that the CPU got
        device_memory_usage: the bytes that the device got
        is_async: whether it ends elsewhere than it began, as messages do: it is in no other event
        is_remote: whether it ran in another process
        sequence_nr: the number that forward and backward share
        node_id: the process that it ran in
        device_type: the type of device that it ran on
        device_index: the number of the device
        device_resource_id: the stream, or the thread
        flops: the floating-point operations, where they are counted
        is_user_annotation: whether the program named it
        input_dtypes: the dtypes of its arguments
        others: what else PyTorch's events have; each is an attribute

    Example:
        >>> outer, inner = tp.profiler.FunctionEvent(0, "f", 0, 0, 10), tp.profiler.FunctionEvent(1, "g", 0, 2, 6)
        >>> events = tp.profiler.EventList([outer, inner])
        >>> events._build_tree()
        >>> outer.cpu_children == [inner], outer.self_cpu_time_total
        (True, 6)
    """

    backend: str = ""  # the device's key
    failed: bool = False  # whether it raised

    def __init__(
        self,
        id: int,
        name: str,
        thread: int,
        start_us: float,
        end_us: float,
        overload_name: str | None = None,
        fwd_thread: int | None = None,
        input_shapes: list[Any] | None = None,
        stack: list[str] | None = None,
        scope: int = 0,
        use_device: str | None = None,
        cpu_memory_usage: int = 0,
        device_memory_usage: int = 0,
        is_async: bool = False,
        is_remote: bool = False,
        sequence_nr: int = -1,
        node_id: int = -1,
        device_type: Any = "cpu",
        device_index: int = 0,
        device_resource_id: int | None = None,
        *,
        flops: int | None = None,
        is_user_annotation: bool = False,
        input_dtypes: list[Any] | None = None,
        **others: Any,
    ) -> None:
        self.id, self.name, self.thread, self.fwd_thread = id, name, thread, fwd_thread
        self.time_range = Interval(start_us, end_us)
        self.overload_name = overload_name or ""
        self.kind = RANGE if is_user_annotation else BACKWARD if scope == 1 else OPERATOR
        self.scope, self.use_device, self.sequence_nr, self.node_id = scope, use_device, sequence_nr, node_id
        self.input_shapes, self.input_dtypes, self.stack = input_shapes or [], input_dtypes or [], stack or []
        self.cpu_memory_usage, self.device_memory_usage = cpu_memory_usage, device_memory_usage
        self.is_async, self.is_remote, self.flops = is_async, is_remote, flops or 0
        self.device_type, self.device_index = device_type, device_index
        self.device_resource_id = thread if device_resource_id is None else device_resource_id
        self.cpu_parent: FunctionEvent | None = None
        self.cpu_children: list[FunctionEvent] = []
        self.kernels: list[Kernel] = []
        self.count = 1
        for field, value in others.items():
            setattr(self, field, value)

    def append_kernel(self, name: str, device: Any, duration: float) -> None:
        """Adds a kernel that it ran, by its name, its device and how long it took."""
        self.kernels.append(Kernel(name, device, 0, Interval(0, duration)))

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Adds an event that ran within this one."""
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        """Says in which event it ran."""
        self.cpu_parent = parent

    @property
    def key(self) -> str:
        """What sums go by: the name, but one for all steps."""
        return "ProfilerStep*" if self.name.startswith("ProfilerStep#") else self.name

    @property
    def is_user_annotation(self) -> bool:
        return self.kind == RANGE

    @property
    def cpu_time_total(self) -> float:
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:
        if self.is_async:  # the CPU does other things meanwhile
            return 0.0
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def cpu_time(self) -> float:
        return self.cpu_time_total

    @property
    def self_device_time_total(self) -> float:
        return sum(kernel.duration for kernel in self.kernels)

    @property
    def device_time_total(self) -> float:
        return self.self_device_time_total + sum(child.device_time_total for child in self.cpu_children)

    @property
    def device_time(self) -> float:
        return self.device_time_total

    @property
    def self_cpu_memory_usage(self) -> int:
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    @property
    def self_device_memory_usage(self) -> int:
        return self.device_memory_usage - sum(child.device_memory_usage for child in self.cpu_children)

    @property
    def ancestors(self) -> Iterable[FunctionEvent]:
        """The events that enclose this one, from the inside outwards."""
        event = self.cpu_parent
        while event is not None:
            yield event
            event = event.cpu_parent

    def __getattr__(self, name: str) -> str:
        return as_text(self, name)

    def __repr__(self) -> str:
        return f"<FunctionEvent {self.name} thread={self.thread} {self.cpu_time_total:.3f}us>"
