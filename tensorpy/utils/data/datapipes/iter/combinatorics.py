"""Pipes of the samples in another order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tensorpy.utils.data.datapipes.datapipe import functional_datapipe
from tensorpy.utils.data.datapipes.iter._of_one import Drawing, OfOne
from tensorpy.utils.data.datapipes.iter.grouping import UnBatcher
from tensorpy.utils.data.sampler import SequentialSampler

__all__ = ["Sampler", "Shuffler"]


@functional_datapipe("shuffle")
class Shuffler(Drawing):
    """The samples in a random order, as far as a buffer of buffer_size of them reaches."""

    def __init__(self, datapipe: Any, *, buffer_size: int = 10000, unbatch_level: int = 0) -> None:
        if buffer_size <= 0:
            raise AssertionError("buffer_size should be larger than 0")
        super().__init__(datapipe if unbatch_level == 0 else UnBatcher(datapipe, unbatch_level))
        self.buffer_size = buffer_size
        self._buffer: list[Any] = []

    def reset(self) -> None:
        """Empties the buffer."""
        super().reset()
        self._buffer = []

    def __iter__(self) -> Iterator[Any]:
        if not self._enabled:
            yield from self.datapipe
            return
        drawn, buffer = self._rng, self._buffer
        for sample in self.datapipe:
            if len(buffer) < self.buffer_size:
                buffer.append(sample)
                continue
            at = drawn.randint(0, len(buffer) - 1)
            out, buffer[at] = buffer[at], sample
            yield out
        while buffer:
            yield buffer.pop(drawn.randint(0, len(buffer) - 1))


class Sampler(OfOne):
    """What a sampler of the source gives."""

    sampler: Any

    def __init__(
        self, datapipe: Any, sampler: Any = SequentialSampler, sampler_args: Any = None, sampler_kwargs: Any = None
    ) -> None:
        super().__init__(datapipe)
        if not hasattr(datapipe, "__len__"):
            raise AssertionError("Sampler class requires input datapipe implemented `__len__`")
        self.sampler = sampler(*(sampler_args or ()), **{"data_source": datapipe, **(sampler_kwargs or {})})

    def __iter__(self) -> Iterator[Any]:
        return iter(self.sampler)

    def __len__(self) -> int:
        return len(self.sampler)
