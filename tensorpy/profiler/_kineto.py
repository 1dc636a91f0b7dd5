"""Events under the names of PyTorch's recorder: `p.profiler.kineto_results`, its list and its tree."""

from __future__ import annotations

from typing import Any

from tensorpy.profiler._event import FunctionEvent
from tensorpy.profiler._events import EventList


class KinetoEvent:
    """An event whose facts are asked for by calls."""

    def __init__(self, event: FunctionEvent) -> None:
        self._event = event

    def name(self) -> str:
        return self._event.name

    def start_ns(self) -> int:
        return int(self._event.time_range.start * 1000)

    def end_ns(self) -> int:
        return int(self._event.time_range.end * 1000)

    def duration_ns(self) -> int:
        return self.end_ns() - self.start_ns()

    def sequence_nr(self) -> int:
        return self._event.sequence_nr

    def start_thread_id(self) -> int:
        return self._event.thread

    def correlation_id(self) -> int:
        return self._event.id

    def shapes(self) -> list[Any]:
        return self._event.input_shapes

    def stack(self) -> list[str]:
        return self._event.stack

    def is_user_annotation(self) -> bool:
        return self._event.is_user_annotation

    def is_async(self) -> bool:
        return self._event.is_async


class TreeEvent:
    """An event, the one that it ran in, and those that ran in it."""

    def __init__(self, event: FunctionEvent, parent: TreeEvent | None = None) -> None:
        self.name, self.parent, self.id = event.name, parent, event.id
        self.start_time_ns, self.end_time_ns = (int(t * 1000) for t in (event.time_range.start, event.time_range.end))
        self.duration_time_ns, self.start_tid = self.end_time_ns - self.start_time_ns, event.thread
        self.children: list[TreeEvent] = [TreeEvent(child, self) for child in event.cpu_children]


class KinetoResults:
    """All events."""

    def __init__(self, found: EventList) -> None:
        self._found = found

    def events(self) -> list[KinetoEvent]:
        """In the order in which they began."""
        return [KinetoEvent(event) for event in self._found]

    def experimental_event_tree(self) -> list[TreeEvent]:
        """Those that ran in no other."""
        return [TreeEvent(event) for event in self._found if event.cpu_parent is None]

    def trace_start_ns(self) -> int:
        """When the first began."""
        return min((event.start_ns() for event in self.events()), default=0)


class Results:
    """What a profile found."""

    def __init__(self, found: EventList) -> None:
        self.function_events, self.kineto_results = found, KinetoResults(found)

    @property
    def self_cpu_time_total(self) -> float:
        return self.function_events.self_cpu_time_total


__all__ = ["KinetoEvent", "KinetoResults", "Results", "TreeEvent"]
