"""Datasets: samples by index, or one after the other; and datasets made of others."""

from __future__ import annotations

import bisect
import itertools
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Generic, TypeVar

from tensorpy import _C
from tensorpy._C import Generator, Tensor

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """Samples by index: a subclass has `__getitem__`, and mostly `__len__`. With `__getitems__` it may give several at
    once.

    Example:
        >>> class Squares(tp.utils.data.Dataset):
        ...     def __len__(self):
        ...         return 3
        ...     def __getitem__(self, i):
        ...         return i * i
        >>> [Squares()[i] for i in range(3)]
        [0, 1, 4]
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co]):
    """Samples one after the other: a subclass has `__iter__`.

    Example:
        >>> from tensorpy.utils.data import ChainDataset, IterableDataset
        >>> class Count(IterableDataset):
        ...     def __iter__(self):
        ...         return iter(range(2))
        >>> list(ChainDataset([Count(), Count()]))
        [0, 1, 0, 1]
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError("Subclasses of IterableDataset should implement __iter__.")

    def __add__(self, other: Dataset[Any]) -> Any:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Tensors by their first index, as tuples.

    Raises: AssertionError for tensors of different lengths.

    Example:
        >>> tp.utils.data.TensorDataset(tp.tensor([1, 2]), tp.tensor([3, 4]))[0]
        (tensor(1), tensor(3))
    """

    def __init__(self, *tensors: Tensor) -> None:
        if any(t.shape[0] != tensors[0].shape[0] for t in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].shape[0]


def _several(dataset: Any, indices: list[int]) -> Any:
    """Several samples of one dataset, at once where it can."""
    at_once: Any = getattr(dataset, "__getitems__", None)
    samples: Any = at_once(indices) if callable(at_once) else [dataset[i] for i in indices]
    if len(samples) != len(indices):
        raise ValueError(f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(samples)}")
    return samples


class StackDataset(Dataset[Any]):
    """Several datasets side by side: samples are tuples, or dictionaries if the datasets are named.

    Raises: ValueError for no datasets, or ones of different lengths.

    Example:
        >>> from tensorpy.utils.data import TensorDataset, StackDataset
        >>> a, b = TensorDataset(tp.tensor([1, 2])), TensorDataset(tp.tensor([3, 4]))
        >>> StackDataset(a, b)[0]
        ((tensor(1),), (tensor(3),))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError("Supported either `tuple`- (via `args`) or`dict`- (via `kwargs`) like input/output")
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets: Any = args or kwargs
        parts = list(args or kwargs.values())
        self._length = len(parts[0])
        if any(len(part) != self._length for part in parts):
            raise ValueError("Size mismatch between datasets")

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: part[index] for name, part in self.datasets.items()}
        return tuple(part[index] for part in self.datasets)

    def __getitems__(self, indices: list[int]) -> list[Any]:
        named = isinstance(self.datasets, dict)
        parts = [_several(part, indices) for part in (self.datasets.values() if named else self.datasets)]
        rows = zip(*parts, strict=True)
        return [dict(zip(self.datasets, row, strict=True)) for row in rows] if named else list(rows)

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[Any]):
    """Datasets one after the other.

    Arguments:
        datasets: the datasets

    Raises: AssertionError for no datasets, or an IterableDataset.

    Example:
        >>> from tensorpy.utils.data import TensorDataset, ConcatDataset
        >>> a, b = TensorDataset(tp.tensor([1, 2])), TensorDataset(tp.tensor([3, 4]))
        >>> len(ConcatDataset([a, b]))
        4
    """

    cumulative_sizes: list[Any]
    datasets: list[Any]

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = list(accumulate(len(d) for d in self.datasets))

    @property
    def cummulative_sizes(self) -> list[Any]:
        """cumulative_sizes, by its older name."""
        warnings.warn("cummulative_sizes attribute is renamed to cumulative_sizes", FutureWarning, stacklevel=2)
        return self.cumulative_sizes

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: int) -> Any:
        if idx < 0:
            if -idx > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            idx += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, idx)
        return self.datasets[which][idx - (self.cumulative_sizes[which - 1] if which else 0)]


class ChainDataset(IterableDataset[Any]):
    """Iterable datasets one after the other.

    Example:
        >>> from tensorpy.utils.data import ChainDataset, IterableDataset
        >>> class Count(IterableDataset):
        ...     def __iter__(self):
        ...         return iter(range(2))
        >>> list(ChainDataset([Count(), Count()]))
        [0, 1, 0, 1]
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(map(self._checked, self.datasets))

    def __len__(self) -> int:
        return sum(len(self._checked(d)) for d in self.datasets)

    @staticmethod
    def _checked(dataset: Any) -> Any:
        if not isinstance(dataset, IterableDataset):
            raise AssertionError("ChainDataset only supports IterableDataset")
        return dataset


class Subset(Dataset[T_co]):
    """Some of a dataset's samples.

    Arguments:
        dataset: the dataset
        indices: the indices

    Example:
        >>> list(tp.utils.data.Subset([10, 20, 30], [2, 0]))
        [30, 10]
    """

    dataset: Any
    indices: Sequence[int]

    def __init__(self, dataset: Dataset[T_co] | Sequence[T_co], indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        chosen = [self.indices[i] for i in indices]
        several: Any = getattr(self.dataset, "__getitems__", None)
        return [self.dataset[i] for i in chosen] if several is None else several(chosen)

    def __len__(self) -> int:
        return len(self.indices)


def collated(dataset: Any, indices: Sequence[int]) -> list[Tensor] | None:
    """What default_collate makes of samples of a TensorDataset, or of a part of one, in one piece; None for others."""
    if type(dataset) is Subset:
        return collated(dataset.dataset, [dataset.indices[i] for i in indices])
    if type(dataset) is not TensorDataset or any(t.device.type != "cpu" for t in dataset.tensors):
        return None
    chosen = _C.tensor(indices)
    return [t[chosen] for t in dataset.tensors]


def random_split(
    dataset: Dataset[T] | Sequence[T], lengths: Sequence[float], generator: Generator | None = None
) -> list[Subset[T]]:
    """Parts of a dataset at random, of given lengths, or of given shares that add up to one.

    Arguments:
        dataset: the dataset
        lengths: how many samples each part has, or shares of one
        generator: where the random numbers come from; None takes the default generator

    Returns: a list of Subsets.

    Raises: ValueError for lengths that do not sum to the dataset's, or a share outside [0, 1].

    Example:
        >>> a, b = tp.utils.data.random_split(range(10), [7, 3])
        >>> len(a), len(b)
        (7, 3)
    """
    sized: Any = dataset
    total = len(sized)
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        if any(not 0 <= share <= 1 for share in lengths):
            raise ValueError("a fraction is not between 0 and 1")
        sizes = [math.floor(total * share) for share in lengths]
        for i in range(total - sum(sizes)):  # what is left goes round
            sizes[i % len(sizes)] += 1
        for i, size in enumerate(sizes):
            if size == 0:
                warnings.warn(f"random_split: part {i} is empty, since its length is 0", stacklevel=2)
    else:
        sizes = list(lengths)  # type: ignore[arg-type]
    if sum(sizes) != total:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = _C.randperm(total, generator=generator).tolist()
    return [Subset(dataset, order[end - size : end]) for end, size in zip(accumulate(sizes), sizes, strict=True)]
