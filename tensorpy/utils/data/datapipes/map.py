"""Pipes of samples by index."""

from __future__ import annotations

import bisect
import copy
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Any

from tensorpy.utils.data.datapipes.datapipe import DataChunk, MapDataPipe, functional_datapipe
from tensorpy.utils.data.datapipes.iter._of_one import Drawing
from tensorpy.utils.data.datapipes.utils.common import _check_unpickable_fn

__all__ = ["Batcher", "Concater", "Mapper", "SequenceWrapper", "Shuffler", "Zipper"]


class SequenceWrapper(MapDataPipe[Any]):
    """The samples of a sequence or a mapping, which is copied first unless deepcopy is False."""

    sequence: Any

    def __init__(self, sequence: Any, deepcopy: bool = True) -> None:
        self.sequence = copy.deepcopy(sequence) if deepcopy else sequence

    def __getitem__(self, index: Any) -> Any:
        return self.sequence[index]

    def __len__(self) -> int:
        return len(self.sequence)


def _itself(sample: Any) -> Any:
    return sample


@functional_datapipe("map")
class Mapper(MapDataPipe[Any]):
    """fn of each sample; itself by default."""

    def __init__(self, datapipe: Any, fn: Callable[[Any], Any] = _itself) -> None:
        _check_unpickable_fn(fn)
        self.datapipe, self.fn = datapipe, fn

    def __getitem__(self, index: Any) -> Any:
        return self.fn(self.datapipe[index])

    def __len__(self) -> int:
        return len(self.datapipe)


@functional_datapipe("batch")
class Batcher(MapDataPipe[Any]):
    """batch_size samples at once, as `wrapper_class`; the last ones may be fewer, or are dropped."""

    def __init__(self, datapipe: Any, batch_size: int, drop_last: bool = False, wrapper_class: Any = DataChunk) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe, self.batch_size, self.drop_last = datapipe, batch_size, drop_last
        self.wrapper_class = wrapper_class

    def __getitem__(self, index: int) -> Any:
        if not 0 <= index < len(self):
            raise IndexError(f"Index {index} is out of bound.")
        begin = index * self.batch_size
        end = min(begin + self.batch_size, len(self.datapipe))
        return self.wrapper_class([self.datapipe[i] for i in range(begin, end)])

    def __len__(self) -> int:
        whole, rest = divmod(len(self.datapipe), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)


def _check_pipes(datapipes: tuple[Any, ...]) -> None:
    if not datapipes:
        raise ValueError("Expected at least one DataPipe, but got nothing")
    if not all(isinstance(pipe, MapDataPipe) for pipe in datapipes):
        raise TypeError("Expected all inputs to be `MapDataPipe`")


@functional_datapipe("concat")
class Concater(MapDataPipe[Any]):
    """The samples of one pipe, then of the next."""

    def __init__(self, *datapipes: Any) -> None:
        _check_pipes(datapipes)
        self.datapipes = datapipes

    def __getitem__(self, index: int) -> Any:
        ends = list(accumulate(len(pipe) for pipe in self.datapipes))
        at = bisect.bisect_right(ends, index)
        if at == len(ends):
            raise IndexError(f"Index {index} is out of range.")
        return self.datapipes[at][index - (ends[at - 1] if at else 0)]

    def __len__(self) -> int:
        return sum(len(pipe) for pipe in self.datapipes)


@functional_datapipe("zip")
class Zipper(MapDataPipe[Any]):
    """Tuples of a sample of each pipe."""

    def __init__(self, *datapipes: Any) -> None:
        _check_pipes(datapipes)
        self.datapipes = datapipes

    def __getitem__(self, index: Any) -> Any:
        try:
            return tuple(pipe[index] for pipe in self.datapipes)
        except IndexError:
            raise IndexError(f"Index {index} is out of range for one of the pipes.") from None

    def __len__(self) -> int:
        return min(len(pipe) for pipe in self.datapipes)


class Shuffler(Drawing):
    """The samples of `indices` in a random order; None: those of 0 to the length."""

    indices: list[Any]

    def __init__(self, datapipe: Any, *, indices: list[Any] | None = None) -> None:
        super().__init__(datapipe)
        self.indices = list(range(len(datapipe))) if indices is None else indices
        self._left: list[Any] = self.indices

    def reset(self) -> None:
        """Draws an order."""
        super().reset()
        self._left = self._rng.sample(self.indices, len(self.indices)) if self._enabled else self.indices[::-1]

    def __iter__(self) -> Iterator[Any]:
        while self._left:
            yield self.datapipe[self._left.pop()]


MapDataPipe.register_datapipe_as_function("shuffle", Shuffler)
