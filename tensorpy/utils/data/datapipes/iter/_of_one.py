"""What pipes that are made of one other share."""

from __future__ import annotations

from typing import Any

from tensorpy.utils.data.datapipes.datapipe import IterDataPipe


def known_length(pipe: Any, source: Any) -> int:
    """The length of what a pipe is made of; TypeError where that has none."""
    if not hasattr(source, "__len__"):
        raise TypeError(f"{type(pipe).__name__} instance doesn't have valid length")
    return len(source)


class OfOne(IterDataPipe[Any]):
    """A pipe made of one other, as long as it is."""

    def __init__(self, datapipe: Any) -> None:
        self.datapipe = datapipe

    def __len__(self) -> int:
        return known_length(self, self.datapipe)


def picked(sample: Any, columns: Any) -> tuple[Any, ...]:
    """The arguments that a function gets of a sample: all of it, one column, several."""
    if columns is None:
        return (sample,)
    return tuple(sample[c] for c in columns) if isinstance(columns, (list, tuple)) else (sample[columns],)


def length_of(pipe: Any) -> int:
    """The length that a pipe was told; TypeError where it was told none."""
    if pipe.length == -1:
        raise TypeError(f"{type(pipe).__name__} instance doesn't have valid length")
    return int(pipe.length)
