"""Counts that a program keeps of itself (Stat), and events that it sends to who listens (log_event)."""

from __future__ import annotations

import enum
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeAlias

data_value_t: TypeAlias = "int | float | bool | str"  # what an event holds


class Aggregation(enum.Enum):
    """What a Stat keeps of the numbers that it is given.

    Example:
        >>> tp.monitor.Aggregation.SUM.name
        'SUM'
    """

    VALUE = 0
    MEAN = 2
    COUNT = 3
    SUM = 4
    MAX = 5
    MIN = 6


VALUE, MEAN, COUNT, SUM, MAX, MIN = Aggregation

_OF: dict[Aggregation, Callable[[list[float]], float]] = {
    VALUE: lambda values: values[-1],
    MEAN: lambda values: sum(values) / len(values),
    COUNT: len,
    SUM: sum,
    MAX: max,
    MIN: min,
}


@dataclass
class Event:
    """Something that happened.

    Arguments:
        name: what it is
        timestamp: when it was
        data: numbers and texts by name

    Example:
        >>> from datetime import datetime
        >>> tp.monitor.Event("saved", datetime(2026, 1, 1), {"bytes": 12}).data
        {'bytes': 12}
    """

    name: str
    timestamp: datetime
    data: dict[str, data_value_t] = field(default_factory=dict)


class EventHandlerHandle:
    """A handler that was registered, to be taken out by unregister_event_handler.

    Example:
        >>> handle = tp.monitor.register_event_handler(print)
        >>> type(handle).__name__
        'EventHandlerHandle'
    """

    def __init__(self, handler: Callable[[Event], None]) -> None:
        self.handler = handler


_handlers: list[EventHandlerHandle] = []


def register_event_handler(callback: Callable[[Event], None]) -> EventHandlerHandle:
    """Calls a function with each event that is logged.

    Arguments:
        callback: the function

    Returns: a handle for unregister_event_handler.

    Example:
        >>> handle = tp.monitor.register_event_handler(print)
        >>> tp.monitor.unregister_event_handler(handle)
    """
    _handlers.append(EventHandlerHandle(callback))
    return _handlers[-1]


def unregister_event_handler(handler: EventHandlerHandle) -> None:
    """Takes out what register_event_handler gave.

    Arguments:
        handler: the handle

    Example:
        >>> handle = tp.monitor.register_event_handler(print)
        >>> tp.monitor.unregister_event_handler(handle)
    """
    _handlers[:] = [each for each in _handlers if each is not handler]


def log_event(event: Event) -> None:
    """Hands an event to all who listen.

    Arguments:
        event: the event

    Example:
        >>> from datetime import datetime
        >>> tp.monitor.log_event(tp.monitor.Event("saved", datetime.now()))
    """
    for each in list(_handlers):
        each.handler(event)


class Stat:
    """Aggregates numbers, and logs an event "torch.monitor.Stat" of each window of time, or of max_samples numbers.

    Arguments:
        name: its name, and the beginning of those of its event's data
        aggregations: what is kept: values of Aggregation
        window_size: a timedelta: how long numbers are gathered
        max_samples: after how many numbers the window ends

    Example:
        >>> from datetime import timedelta
        >>> stat = tp.monitor.Stat("loss", [tp.monitor.SUM], timedelta(days=1000), max_samples=2)
        >>> stat.add(2.0)
        >>> stat.count, stat.get()
        (1, {<Aggregation.SUM: 4>: 0.0})
        >>> stat.add(3.0)
        >>> stat.count, stat.get()
        (0, {<Aggregation.SUM: 4>: 5.0})
    """

    name: str

    def __init__(self, name: str, aggregations: Any, window_size: timedelta, max_samples: int | None = None) -> None:
        self.name, self._aggregations, self._max = name, tuple(aggregations), max_samples
        self._window, self._lock = window_size.total_seconds(), threading.Lock()
        self._values: list[float] = []
        self._begun = self._full = -1.0  # the windows of the numbers, and the one that had as many as it takes
        self._last = dict.fromkeys(self._aggregations, 0.0)

    def _now(self) -> float:
        """Which window it is."""
        return time.monotonic() // self._window if self._window else time.monotonic()

    @property
    def count(self) -> int:
        """How many numbers the window has."""
        return len(self._values)

    def add(self, v: float) -> None:
        """A number; where the window is over its event is logged first. One that has max_samples takes no more."""
        with self._lock:
            now, done = self._now(), None
            if self._values and now != self._begun:
                done = self._taken()
            if now != self._full:
                self._values.append(v)
                self._begun = now
            if self._max is not None and len(self._values) >= self._max:
                done, self._full = self._taken(), now
        if done:
            log_event(Event("torch.monitor.Stat", datetime.now(), done))

    def get(self) -> dict[Aggregation, float]:
        """What the last window had that is over: zeros before the first."""
        return dict(self._last)

    def _taken(self) -> dict[str, data_value_t]:
        """What the window had; a new one begins."""
        self._last = {kind: float(_OF[kind](self._values)) for kind in self._aggregations}
        self._values = []
        return {f"{self.name}.{kind.name.lower()}": value for kind, value in self._last.items()}


class TensorboardEventHandler:
    """A handler that writes numbers of Stats to a SummaryWriter.

    Arguments:
        writer: the SummaryWriter

    Example:
        >>> handler = tp.monitor.TensorboardEventHandler(writer)  # doctest: +SKIP
    """

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def __call__(self, event: Event) -> None:
        if event.name == "torch.monitor.Stat":
            for name, value in event.data.items():
                if not isinstance(value, (int, float)):
                    raise TypeError(f"log_event(): {name} of a Stat is a number, not {type(value).__name__}")
                self._writer.add_scalar(name, value, walltime=event.timestamp.timestamp())


class _WaitCounterTracker:
    """What _WaitCounter.guard gives: a context."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *unused: object) -> None:
        pass


class _WaitCounter:
    """Times of waiting under a name, which nobody collects here."""

    def __init__(self, key: str) -> None:
        self.key = key

    def guard(self) -> _WaitCounterTracker:
        """A context around what waits."""
        return _WaitCounterTracker()


__all__ = [
    "Aggregation", "Event", "EventHandlerHandle", "Stat", "TensorboardEventHandler", "data_value_t", "log_event",
    "register_event_handler", "unregister_event_handler",
]  # fmt: skip
