"""Events of profiles that begin in one place and end in another: messages under way.

A profile that records has a list here, to which whoever begins such an event adds it; the innermost profile gets it.
Without one nothing is noted.
"""

from __future__ import annotations

from typing import Any

from tensorpy import _C

recording: list[list[Event]] = []


class Event:
    """From when to when something was under way, and with which tensors; nanoseconds, and an end of 0 is open."""

    __slots__ = ("begin", "dtypes", "end", "name", "shapes")
    name: str
    begin: int
    end: int
    shapes: list[list[int]]
    dtypes: list[str]

    def __init__(self, name: str, tensors: tuple[Any, ...]) -> None:
        self.name, self.end = name, 0
        self.shapes = [[*t.shape, *([2] if t.is_complex() else [])] for t in tensors]  # complex numbers go as pairs
        self.dtypes = [str(t.dtype).rpartition(".")[2] for t in tensors]
        self.begin = _C._profiler.now()


def begin(name: str, *tensors: Any) -> Event | None:
    """Notes that something begins; None where nothing records."""
    if not recording:
        return None
    event = Event(name, tensors)
    recording[-1].append(event)
    return event


def end(event: Event | None) -> None:
    """Notes its end."""
    if event is not None and not event.end:
        event.end = _C._profiler.now()
