"""Pipes made of several others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tensorpy.utils.data.datapipes.datapipe import IterDataPipe, functional_datapipe
from tensorpy.utils.data.datapipes.iter._of_one import known_length

__all__ = ["Concater", "Multiplexer", "Zipper"]


class _OfMany(IterDataPipe[Any]):
    def __init__(self, *datapipes: Any) -> None:
        if not datapipes:
            raise ValueError(f"Expected at least one DataPipe, but got nothing: {type(self).__name__}")
        self.datapipes = datapipes

    def _check(self, words: str) -> None:
        """TypeError, of words, where one is no pipe that is iterated."""
        if not all(isinstance(pipe, IterDataPipe) for pipe in self.datapipes):
            raise TypeError(words)

    def _lengths(self) -> list[int]:
        return [known_length(self, pipe) for pipe in self.datapipes]


@functional_datapipe("concat")
class Concater(_OfMany):
    """All samples of one pipe, then of the next."""

    def __init__(self, *datapipes: Any) -> None:
        super().__init__(*datapipes)
        self._check("Expected all inputs to be `IterDataPipe`")

    def __iter__(self) -> Iterator[Any]:
        for pipe in self.datapipes:
            yield from pipe

    def __len__(self) -> int:
        return sum(self._lengths())


@functional_datapipe("zip")
class Zipper(_OfMany):
    """Tuples of a sample of each pipe, to the end of the shortest."""

    def __init__(self, *datapipes: Any) -> None:
        super().__init__(*datapipes)
        self._check("All inputs are required to be `IterDataPipe` for `ZipIterDataPipe`.")

    def __iter__(self) -> Iterator[Any]:
        yield from zip(*self.datapipes, strict=False)

    def __len__(self) -> int:
        return min(self._lengths())


@functional_datapipe("mux")
class Multiplexer(_OfMany):
    """A sample of each pipe in turn, to the end of the shortest."""

    def __iter__(self) -> Iterator[Any]:
        for samples in zip(*self.datapipes, strict=False):
            yield from samples

    def __len__(self) -> int:
        return min(self._lengths()) * len(self.datapipes)
