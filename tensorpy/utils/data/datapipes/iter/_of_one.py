"""What pipes that are made of one other share."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from tensorpy.utils.data.datapipes.datapipe import IterDataPipe
from tensorpy.utils.data.sampler import drawn_seed

if TYPE_CHECKING:
    from typing_extensions import Self


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


class Drawing(OfOne):
    """A pipe whose samples come in a drawn order, unless shuffling is switched off."""

    def __init__(self, datapipe: Any) -> None:
        super().__init__(datapipe)
        self._enabled = True
        self._seed: int | None = None
        self._rng = random.Random()

    def set_shuffle(self, shuffle: bool = True) -> Self:
        """Whether it shuffles."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> Self:
        """The seed of the next iteration, which is drawn otherwise."""
        self._seed = seed
        return self

    def reset(self) -> None:
        """Seeds what the order is drawn by, where it is drawn."""
        if self._enabled:
            self._rng.seed(drawn_seed(None) if self._seed is None else self._seed)
            self._seed = None


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
