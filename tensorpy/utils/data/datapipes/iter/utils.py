"""A pipe of what can be iterated."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from tensorpy.utils.data.datapipes.datapipe import IterDataPipe

__all__ = ["IterableWrapper"]


class IterableWrapper(IterDataPipe[Any]):
    """The samples of an iterable, which is copied first unless deepcopy is False."""

    deepcopy: bool
    iterable: Any

    def __init__(self, iterable: Any, deepcopy: bool = True) -> None:
        self.iterable, self.deepcopy = iterable, deepcopy

    def __iter__(self) -> Iterator[Any]:
        yield from copy.deepcopy(self.iterable) if self.deepcopy else self.iterable

    def __len__(self) -> int:
        return len(self.iterable)
