"""Samplers: the order in which samples are read."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

from tensorpy import _C, distributed
from tensorpy._C import Generator

__all__ = [
    "BatchSampler",
    "DistributedSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

T_co = TypeVar("T_co", covariant=True)


class Sampler(Generic[T_co]):
    """Gives the indices of a dataset in an order: a class of one's own has __iter__.

    Example:
        >>> class Backwards(tp.utils.data.Sampler):
        ...     def __iter__(self):
        ...         return iter([2, 1, 0])
        >>> list(Backwards())
        [2, 1, 0]
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """All samples in their order.

    Arguments:
        data_source: the dataset

    Example:
        >>> list(tp.utils.data.SequentialSampler(range(4)))
        [0, 1, 2, 3]
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


def drawn_seed(generator: Generator | None = None) -> int:
    """A number from the generator, to start others with."""
    return int(_C.empty((), dtype=_C.int64).random_(generator=generator))


def _positive(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={value}")


class RandomSampler(Sampler[int]):
    """All samples in a random order, again and again up to num_samples; or drawn with replacement.

    Arguments:
        data_source: the dataset
        replacement: whether one may be drawn again
        num_samples: how many are drawn
        generator: where the random numbers come from; None takes the default generator

    Raises: TypeError for a replacement that is no bool, ValueError for num_samples below 1.

    Example:
        >>> sorted(tp.utils.data.RandomSampler(range(4)))
        [0, 1, 2, 3]
    """

    data_source: Sized
    replacement: bool

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.data_source, self.replacement, self._num_samples = data_source, replacement, num_samples
        self.generator = generator
        _positive("num_samples", self.num_samples)

    @property
    def num_samples(self) -> int:
        """How many are drawn: as many as there are, unless another number was given."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n, left = len(self.data_source), self.num_samples
        generator = self.generator or Generator().manual_seed(drawn_seed())
        most = 32 if self.replacement else n
        for _ in range(left // most + 1):  # the last draw may be one of no samples, and moves the generator
            if self.replacement:
                part = _C.randint(n, (min(32, left),), generator=generator).tolist()
            else:
                part = _C.randperm(n, generator=generator).tolist()[:left]
            yield from part
            left -= most

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Some samples in a random order.

    Arguments:
        indices: the indices
        generator: where the random numbers come from; None takes the default generator

    Example:
        >>> sorted(tp.utils.data.SubsetRandomSampler([1, 3]))
        [1, 3]
    """

    generator: Generator | None
    indices: Sequence[int]

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        for i in _C.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Samples drawn by weights, which need not add up to one.

    Arguments:
        weights: the weights
        num_samples: how many are drawn
        replacement: whether one may be drawn again
        generator: where the random numbers come from; None takes the default generator

    Raises: ValueError for weights that are no vector, num_samples below 1, or a replacement that is no bool.

    Example:
        >>> list(tp.utils.data.WeightedRandomSampler([0.0, 1.0], 3))
        [1, 1, 1]
    """

    generator: Generator | None
    num_samples: int
    replacement: bool
    weights: Any

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        _positive("num_samples", num_samples)
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.weights = _C.as_tensor(weights, dtype=_C.float64)
        if self.weights.dim() != 1:
            raise ValueError(
                f"weights should be a 1d sequence but given weights have shape {tuple(self.weights.shape)}"
            )
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def __iter__(self) -> Iterator[int]:
        drawn = _C.multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator)
        yield from iter(drawn.tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of batch_size of a sampler's indices.

    Arguments:
        sampler: the sampler
        batch_size: how many items a batch has
        drop_last: whether a last batch that is too small is left out

    Raises: ValueError for a batch_size that is no positive int, or a drop_last that is no bool.

    Example:
        >>> from tensorpy.utils.data import BatchSampler, SequentialSampler
        >>> list(BatchSampler(SequentialSampler(range(5)), batch_size=2, drop_last=False))
        [[0, 1], [2, 3], [4]]
    """

    batch_size: int
    drop_last: bool
    sampler: Iterable[int]

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        _positive("batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        rest = iter(self.sampler)
        while batch := list(itertools.islice(rest, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def __len__(self) -> int:
        count: int = len(self.sampler)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


class DistributedSampler(Sampler[int]):
    """The part of one of several processes: every num_replicas-th sample. All have as many, some samples twice if
    need be.

    Arguments:
        dataset: the dataset
        num_replicas: how many processes there are
        rank: the number of this process
        shuffle: whether the order is drawn
        seed: the seed
        drop_last: whether a last batch that is too small is left out

    Raises: ValueError for a rank out of range.

    Example:
        >>> list(tp.utils.data.DistributedSampler(range(4), num_replicas=2, rank=0, shuffle=False))
        [0, 2]
    """

    dataset: Any
    drop_last: bool
    epoch: int
    num_replicas: int | None
    num_samples: Any
    rank: int | None
    seed: int
    shuffle: bool
    total_size: Any

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        num_replicas = distributed.get_world_size() if num_replicas is None else num_replicas
        rank = distributed.get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.shuffle, self.seed, self.drop_last, self.epoch = shuffle, seed, drop_last, 0
        count = len(dataset)
        short = drop_last and count % num_replicas != 0
        self.num_samples = count // num_replicas if short else math.ceil(count / num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        count = len(self.dataset)
        order = list(range(count))
        if self.shuffle:
            order = _C.randperm(count, generator=Generator().manual_seed(self.seed + self.epoch)).tolist()
        filled = list(itertools.islice(itertools.cycle(order), self.total_size))
        return iter(filled[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Says which epoch it is: each has an order of its own."""
        self.epoch = epoch
