"""Pipes of samples one after the other. Each reads its source from the beginning whenever it is iterated."""

from __future__ import annotations

import copy
import fnmatch
import itertools
import os
import random
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from tensorpy import _C
from tensorpy.utils.data._utils.collate import default_collate
from tensorpy.utils.data._utils.worker import get_worker_info
from tensorpy.utils.data.datapipes.datapipe import DataChunk, IterDataPipe, functional_datapipe
from tensorpy.utils.data.sampler import SequentialSampler

__all__ = [
    "Batcher",
    "Collator",
    "Concater",
    "FileLister",
    "FileOpener",
    "Filter",
    "IterableWrapper",
    "Mapper",
    "Multiplexer",
    "Sampler",
    "ShardingFilter",
    "Shuffler",
    "StreamReader",
    "UnBatcher",
    "Zipper",
]


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


class _Of(IterDataPipe[Any]):
    """A pipe made of one other, as long as it is."""

    def __init__(self, datapipe: Any) -> None:
        self.datapipe = datapipe

    def __len__(self) -> int:
        return len(self.datapipe)


def _picked(sample: Any, columns: Any) -> tuple[Any, ...]:
    """The arguments that a function gets of a sample: all of it, one column, several."""
    if columns is None:
        return (sample,)
    return tuple(sample[c] for c in columns) if isinstance(columns, (list, tuple)) else (sample[columns],)


@functional_datapipe("map")
class Mapper(_Of):
    """fn of each sample, or of some columns of it; the result takes the column output_col's place (-1: at the end)."""

    def __init__(self, datapipe: Any, fn: Callable[..., Any], input_col: Any = None, output_col: Any = None) -> None:
        super().__init__(datapipe)
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        if isinstance(output_col, (list, tuple)):
            if len(output_col) != 1:
                raise ValueError("`output_col` must be a single-element list or tuple")
            output_col = output_col[0]
        self.fn, self.input_col, self.output_col = fn, input_col, output_col

    def _placed(self, sample: Any, result: Any) -> Any:
        if self.input_col is None:
            return result
        at = self.output_col
        if at is None:
            at = self.input_col[0] if isinstance(self.input_col, (list, tuple)) else self.input_col
        new = list(sample) if isinstance(sample, tuple) else copy.copy(sample)
        if at == -1 and isinstance(new, list) and self.output_col is not None:
            new.append(result)
        else:
            new[at] = result
        if self.output_col is None and isinstance(self.input_col, (list, tuple)):
            for other in sorted(self.input_col[1:], reverse=True):
                del new[other]
        return tuple(new) if isinstance(sample, tuple) else new

    def __iter__(self) -> Iterator[Any]:
        for sample in self.datapipe:
            yield self._placed(sample, self.fn(*_picked(sample, self.input_col)))


@functional_datapipe("collate")
class Collator(Mapper):
    """Each batch as one sample, by collate_fn."""

    def __init__(self, datapipe: Any, conversion: Any = default_collate, collate_fn: Any = None) -> None:
        super().__init__(datapipe, conversion if collate_fn is None else collate_fn)


@functional_datapipe("filter")
class Filter(IterDataPipe[Any]):
    """The samples that filter_fn is true of."""

    def __init__(self, datapipe: Any, filter_fn: Callable[..., Any], input_col: Any = None) -> None:
        self.datapipe, self.filter_fn, self.input_col = datapipe, filter_fn, input_col

    def __iter__(self) -> Iterator[Any]:
        return (sample for sample in self.datapipe if self.filter_fn(*_picked(sample, self.input_col)))


def _known_length(pipe: Any, source: Any) -> int:
    """The length of what a pipe is made of; TypeError where that has none."""
    if not hasattr(source, "__len__"):
        raise TypeError(f"{type(pipe).__name__} instance doesn't have valid length")
    return len(source)


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
        whole, rest = divmod(_known_length(self, self.datapipe), self.batch_size)
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


@functional_datapipe("shuffle")
class Shuffler(_Of):
    """The samples in a random order, as far as a buffer of buffer_size of them reaches."""

    def __init__(self, datapipe: Any, *, buffer_size: int = 10000, unbatch_level: int = 0) -> None:
        if buffer_size <= 0:
            raise ValueError("buffer_size should be larger than 0")
        super().__init__(datapipe if unbatch_level == 0 else UnBatcher(datapipe, unbatch_level))
        self.buffer_size = buffer_size
        self._enabled = True
        self._seed: int | None = None

    def set_shuffle(self, shuffle: bool = True) -> Shuffler:
        """Whether it shuffles."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> Shuffler:
        """The seed of the next iteration, which is drawn otherwise."""
        self._seed = seed
        return self

    def __iter__(self) -> Iterator[Any]:
        if not self._enabled:
            yield from self.datapipe
            return
        seed = int(_C.empty((), dtype=_C.int64).random_()) if self._seed is None else self._seed
        self._seed = None
        drawn = random.Random(seed)
        buffer: list[Any] = []
        for sample in self.datapipe:
            if len(buffer) < self.buffer_size:
                buffer.append(sample)
                continue
            at = drawn.randint(0, len(buffer) - 1)
            out, buffer[at] = buffer[at], sample
            yield out
        while buffer:
            yield buffer.pop(drawn.randint(0, len(buffer) - 1))


class Sampler(_Of):
    """What a sampler of the source gives."""

    sampler: Any

    def __init__(
        self, datapipe: Any, sampler: Any = SequentialSampler, sampler_args: Any = None, sampler_kwargs: Any = None
    ) -> None:
        super().__init__(datapipe)
        self.sampler = sampler(*(sampler_args or ()), **{"data_source": datapipe, **(sampler_kwargs or {})})

    def __iter__(self) -> Iterator[Any]:
        return iter(self.sampler)

    def __len__(self) -> int:
        return len(self.sampler)


@functional_datapipe("sharding_filter")
class ShardingFilter(_Of):
    """Every n-th sample: of n shares, by default a worker's of all workers."""

    def __init__(self, source_datapipe: Any, sharding_group_filter: Any = None) -> None:
        super().__init__(source_datapipe)
        self.shares: tuple[int, int] | None = None

    def apply_sharding(self, num_of_instances: int, instance_id: int, sharding_group: Any = None) -> None:
        """This one's share of num_of_instances."""
        if instance_id >= num_of_instances:
            raise ValueError(f"instance_id({instance_id}) should be smaller than num_of_instances({num_of_instances})")
        self.shares = num_of_instances, instance_id

    def _share(self) -> tuple[int, int]:
        worker = get_worker_info()
        return self.shares or ((1, 0) if worker is None else (worker.num_workers, worker.id))

    def __iter__(self) -> Iterator[Any]:
        of, mine = self._share()
        return itertools.islice(self.datapipe, mine, None, of)

    def __len__(self) -> int:
        of, mine = self._share()
        return (len(self.datapipe) - mine + of - 1) // of


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
        return [_known_length(self, pipe) for pipe in self.datapipes]


@functional_datapipe("concat")
class Concater(_OfMany):
    """All samples of one pipe, then of the next."""

    def __init__(self, *datapipes: Any) -> None:
        super().__init__(*datapipes)
        self._check("Expected all inputs to be `IterDataPipe`")

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(self.datapipes)

    def __len__(self) -> int:
        return sum(self._lengths())


@functional_datapipe("zip")
class Zipper(_OfMany):
    """Tuples of a sample of each pipe, to the end of the shortest."""

    def __init__(self, *datapipes: Any) -> None:
        super().__init__(*datapipes)
        self._check("All inputs are required to be `IterDataPipe` for `ZipIterDataPipe`.")

    def __iter__(self) -> Iterator[Any]:
        return zip(*self.datapipes, strict=False)

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


# ---- files ----


def _length_of(pipe: Any) -> int:
    if pipe.length == -1:
        raise TypeError(f"{type(pipe).__name__} instance doesn't have valid length")
    return int(pipe.length)


@functional_datapipe("list_files")
class FileLister(IterDataPipe[Any]):
    """The paths of the files in one folder or several, below them with `recursive`, whose names fit one of `masks`."""

    def __init__(
        self,
        root: str | Sequence[str] | IterDataPipe[Any] = ".",
        masks: str | list[str] = "",
        *,
        recursive: bool = False,
        abspath: bool = False,
        non_deterministic: bool = False,
        length: int = -1,
    ) -> None:
        roots: Any = [root] if isinstance(root, str) else root
        self.datapipe = roots if isinstance(roots, IterDataPipe) else IterableWrapper(roots)
        self.masks, self.recursive, self.abspath = masks, recursive, abspath
        self.non_deterministic, self.length = non_deterministic, length

    def _fits(self, name: str) -> bool:
        masks = [self.masks] if isinstance(self.masks, str) else self.masks
        return not self.masks or any(fnmatch.fnmatch(name, mask) for mask in masks)

    def __iter__(self) -> Iterator[str]:
        for root in self.datapipe:
            top = os.path.abspath(root) if self.abspath else root
            if os.path.isfile(top):
                if self._fits(os.path.basename(top)):
                    yield top
                continue
            for folder, folders, files in os.walk(top, onerror=_warn_of_folder):
                if not self.non_deterministic:
                    files.sort()
                    folders.sort()
                if not self.recursive:
                    folders.clear()
                yield from (os.path.join(folder, name) for name in files if self._fits(name))

    def __len__(self) -> int:
        return _length_of(self)


def _warn_of_folder(error: OSError) -> None:
    warnings.warn(f"FileLister: {error.filename}: {error.strerror}", stacklevel=2)
    raise error


@functional_datapipe("open_files")
class FileOpener(IterDataPipe[Any]):
    """(path, open file) of each path."""

    def __init__(self, datapipe: Iterable[str], mode: str = "r", encoding: str | None = None, length: int = -1) -> None:
        if mode not in ("b", "t", "rb", "rt", "r"):
            raise ValueError(f"Invalid mode {mode}: FileOpener takes 'b', 't', 'rb', 'rt' or 'r'")
        if "b" in mode and encoding is not None:
            raise ValueError("binary mode doesn't take an encoding argument")
        self.datapipe, self.encoding, self.length = datapipe, encoding, length
        self.mode = mode if "r" in mode else f"r{mode}"

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        for path in self.datapipe:
            if not isinstance(path, str):
                raise TypeError(f"Expected string type for pathname, but got {type(path)}")
            yield path, open(path, self.mode, encoding=self.encoding)  # who reads it closes it

    def __len__(self) -> int:
        return _length_of(self)


@functional_datapipe("read_from_stream")
class StreamReader(IterDataPipe[Any]):
    """(label, bytes) of each open file, in pieces of `chunk`; None: in one."""

    def __init__(self, datapipe: Any, chunk: int | None = None) -> None:
        self.datapipe, self.chunk = datapipe, chunk

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        for label, stream in self.datapipe:
            while piece := stream.read(-1 if self.chunk is None else self.chunk):
                yield label, piece
                if self.chunk is None:
                    break
            stream.close()
