"""The rule that a pipe has one iterator: a new one ends the one before it, and counts the samples that it gives."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

from tensorpy import _C

__all__ = ["of_one_iterator"]

ONE_ITERATOR = (
    "This iterator has been invalidated because another iterator has been created from the same IterDataPipe: {}: a "
    "pipe is read by one iterator at a time, `fork` makes several pipes of one"
)


class _SnapshotState(Enum):
    """Whether a pipe's next iterator begins anew, goes on after a snapshot, or is there."""

    NotStarted = 0
    Restored = 1
    Iterating = 2


class _Iterator:
    """Reads a pipe as long as no other iterator of it is made. A pipe whose `__iter__` is a generator function begins
    with its first sample, others when they are asked for an iterator.
    """

    def __init__(self, pipe: Any, iterate: Callable[[Any], Any]) -> None:
        self.pipe, self.iterate = pipe, iterate
        self.source: Iterator[Any] | None = None
        if not inspect.isgeneratorfunction(iterate):
            self._begin()

    def _begin(self) -> None:
        self.number = self.pipe._begin()
        self.source = self.iterate(self.pipe)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self.source is None:
            self._begin()
        assert self.source is not None
        if not self.pipe._is_read_by(self.number):
            raise RuntimeError(ONE_ITERATOR.format(self.pipe))
        mark = _C._profiler.enter(type(self.pipe).__qualname__)
        try:
            sample = next(self.source)
        finally:
            _C._profiler.leave(*mark)
        self.pipe._number_of_samples_yielded += 1
        return sample

    def __getattr__(self, name: str) -> Any:
        """What the pipe's own iterator has, where the pipe is one."""
        if name == "source" or self.source is None:
            raise AttributeError(name)
        return getattr(self.source, name)


def of_one_iterator(iterate: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A pipe class's `__iter__`, by that rule; `super().__iter__()` of a subclass is what was written."""

    @functools.wraps(iterate)
    def __iter__(pipe: Any) -> Any:
        if getattr(type(pipe).__iter__, "__wrapped__", None) is not iterate:
            return iterate(pipe)
        if pipe._fast_forward_iterator is not None:
            reader, pipe._fast_forward_iterator = pipe._fast_forward_iterator, None
            pipe._snapshot_state = _SnapshotState.Iterating
            return reader
        return _Iterator(pipe, iterate)

    return __iter__
