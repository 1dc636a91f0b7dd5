"""Pipes of lists of samples, and of what lists hold."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from tensorpy.utils.data.datapipes.datapipe import DataChunk, IterDataPipe, functional_datapipe
from tensorpy.utils.data.datapipes.iter import sharding
from tensorpy.utils.data.datapipes.iter._of_one import known_length
from tensorpy.utils.data.datapipes.utils.common import _check_unpickable_fn

__all__ = ["Batcher", "Grouper", "UnBatcher"]


@functional_datapipe("batch")
class Batcher(IterDataPipe[Any]):
    """batch_size samples at once, as `wrapper_class`; the last ones may be fewer, or are dropped."""

    def __init__(self, datapipe: Any, batch_size: int, drop_last: bool = False, wrapper_class: Any = DataChunk) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe, self.batch_size, self.drop_last = datapipe, batch_size, drop_last
        self.wrapper_class = wrapper_class

    def __iter__(self) -> Iterator[Any]:
        source = iter(self.datapipe)
        while batch := list(itertools.islice(source, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield self.wrapper_class(batch)

    def __len__(self) -> int:
        whole, rest = divmod(known_length(self, self.datapipe), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)


def _flat(sample: Any, level: int) -> Iterator[Any]:
    """What a sample holds, that many lists down; -1: all the way."""
    if level == 0 or (level == -1 and not isinstance(sample, (list, DataChunk))):
        yield sample
    elif not isinstance(sample, (list, DataChunk)):
        raise IndexError(f"unbatch_level {level} exceeds the depth of the DataPipe")
    else:
        for one in sample:
            yield from _flat(one, max(level - 1, -1) if level > 0 else -1)


@functional_datapipe("unbatch")
class UnBatcher(IterDataPipe[Any]):
    """The samples of batches, unbatch_level lists down; -1: all the way."""

    def __init__(self, datapipe: Any, unbatch_level: int = 1) -> None:
        if unbatch_level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        self.datapipe, self.unbatch_level = datapipe, unbatch_level

    def __iter__(self) -> Iterator[Any]:
        for batch in self.datapipe:
            yield from _flat(batch, self.unbatch_level)


@functional_datapipe("groupby")
class Grouper(IterDataPipe[Any]):
    """Samples of one key, which group_key_fn says, as a list, or as (key, list) with keep_key. A group is given when it
    has group_size samples, or all have been read. Where buffer_size samples wait the largest group is given before more
    are read: it has guaranteed_group_size samples (None: group_size), or drop_remaining drops it, or it is an error.
    """

    wrapper_class: Any = DataChunk

    def __init__(
        self,
        datapipe: Any,
        group_key_fn: Callable[[Any], Any],
        *,
        keep_key: bool = False,
        buffer_size: int = 10000,
        group_size: int | None = None,
        guaranteed_group_size: int | None = None,
        drop_remaining: bool = False,
    ) -> None:
        _check_unpickable_fn(group_key_fn)
        if group_size is not None and not 0 < group_size <= buffer_size:
            raise AssertionError("group_size must be > 0 and <= buffer_size")
        if guaranteed_group_size is not None and not 0 < guaranteed_group_size <= (group_size or 0):
            raise AssertionError("guaranteed_group_size must be > 0 and <= group_size and group_size must be set")
        self.datapipe, self.group_key_fn, self.keep_key = datapipe, group_key_fn, keep_key
        self.max_buffer_size, self.group_size, self.drop_remaining = buffer_size, group_size, drop_remaining
        self.guaranteed_group_size = group_size if guaranteed_group_size is None else guaranteed_group_size

    def _largest(self, waiting: dict[Any, list[Any]]) -> list[Any]:
        """Takes the largest group out: its key and samples; nothing where it is dropped."""
        key = max(waiting, key=lambda key: len(waiting[key]))
        samples = waiting.pop(key)
        if len(samples) >= (self.guaranteed_group_size or 0):
            return [(key, samples)]
        if not self.drop_remaining:
            raise RuntimeError("Failed to group items", str(samples))
        return []

    def _groups(self) -> Iterator[tuple[Any, list[Any]]]:
        waiting: dict[Any, list[Any]] = {}
        count = 0
        for sample in self.datapipe:
            key = self.group_key_fn(sample)
            waiting.setdefault(key, []).append(sample)
            count += 1
            if len(waiting[key]) == self.group_size:
                whole = waiting.pop(key)
                count -= len(whole)
                yield key, whole
            if count == self.max_buffer_size:
                yield from self._largest(waiting)
                count = sum(map(len, waiting.values()))
        yield from waiting.items()

    def __iter__(self) -> Iterator[Any]:
        for key, samples in self._groups():
            chunk = self.wrapper_class(samples)
            yield (key, chunk) if self.keep_key else chunk


def __getattr__(name: str) -> Any:
    if name == "SHARDING_PRIORITIES":
        warnings.warn(
            "`SHARDING_PRIORITIES` has moved. Please use `SHARDING_PRIORITIES` from the "
            "`torch.utils.data.datapipes.iter.sharding`",
            FutureWarning,
            stacklevel=2,
        )
        return sharding.SHARDING_PRIORITIES
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
