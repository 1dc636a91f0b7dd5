"""One event of a profile: a call, a backward node, a range or a message, and the kernels that it ran.

Times are microseconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

OPERATOR, BACKWARD, RANGE = range(3)  # tp_profiled_kind
MESSAGE = 3  # of distributed


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


@dataclass(eq=False)
class FunctionEvent:
    """One call of an operator, one backward node, one range that record_function named, or one message.

    Arguments:
        id: the number of the event
        name: the name
        overload_name: the overload's name
        kind: the kind
        thread: the thread that it ran in
        time_range: when it ran
        sequence_nr: the number that forward and backward share
        backend: the device's key
        failed: whether it raised
        cpu_memory_usage: the bytes that the CPU got
        device_memory_usage: the bytes that the device got
        input_shapes: the shapes of its arguments
        input_dtypes: the dtypes of its arguments
        stack: where it was called
        cpu_parent: the event that it ran in
        cpu_children: the events that ran in it
        kernels: the kernels on a device
        count: how many calls it stands for
        flops: the floating-point operations, where they are counted
        is_async: whether it ends elsewhere than it began, as messages do: it is in no other event

    Example:
        >>> with tp.autograd.profiler.profile() as p:
        ...     y = tp.ones(2) + 1
        >>> type(p.function_events[0]).__name__
        'FunctionEvent'
    """

    id: int
    name: str
    overload_name: str
    kind: int
    thread: int
    time_range: Interval
    sequence_nr: int
    backend: str
    failed: bool
    cpu_memory_usage: int
    device_memory_usage: int
    input_shapes: list[Any] = field(default_factory=list)
    input_dtypes: list[Any] = field(default_factory=list)
    stack: list[str] = field(default_factory=list)
    cpu_parent: FunctionEvent | None = None
    cpu_children: list[FunctionEvent] = field(default_factory=list)
    kernels: list[Kernel] = field(default_factory=list)
    count: int = 1
    flops: int = 0
    is_async: bool = False

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

    def __repr__(self) -> str:
        return f"<FunctionEvent {self.name} thread={self.thread} {self.cpu_time_total:.3f}us>"
