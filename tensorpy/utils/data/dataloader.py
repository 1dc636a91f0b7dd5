"""DataLoader: batches of a dataset, read here or in worker processes.

With workers, batch i is the task of worker i modulo their number, and a few tasks for each are always under way. The
batches come out in their order whoever is first, so that the number of workers changes nothing.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import pickle
import signal
import warnings
import weakref
from collections.abc import Iterator, Sequence
from multiprocessing.connection import wait
from multiprocessing.context import BaseContext
from typing import Any, Generic

import tensorpy as tp
from tensorpy._utils import ExceptionWrapper
from tensorpy.storage.shared import forget_of
from tensorpy.utils.data._utils.collate import default_collate, default_convert
from tensorpy.utils.data._utils.worker import Exhausted, Fetcher, Resume, run
from tensorpy.utils.data._utils.worker import get_worker_info as get_worker_info
from tensorpy.utils.data.dataset import Dataset, IterableDataset, T_co
from tensorpy.utils.data.graph import is_pipe
from tensorpy.utils.data.graph_settings import (
    apply_sharding,
    apply_shuffle_settings,
    drawn_for_pipes,
    share_of_process,
)
from tensorpy.utils.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, drawn_seed

__all__ = ["DataLoader", "get_worker_info"]

JOIN_WAIT = 5.0  # seconds that a worker is given to end by itself


class _DatasetKind:
    """Whether a data set is asked by number or walked along, as `DataLoader._dataset_kind` says it."""

    Map = 0
    Iterable = 1


class _Endless(Sampler[Any]):
    """The sampler of an iterable dataset, which has no indices."""

    def __iter__(self) -> Iterator[Any]:
        return itertools.repeat(None)


class DataLoader(Generic[T_co]):
    """Batches of a dataset.

    batch_size: samples in a batch, None for single samples; shuffle: in a random order; sampler, batch_sampler: in an
    order of yours; num_workers: processes that read ahead, each prefetch_factor batches; collate_fn: how samples become
    a batch; drop_last: without a smaller last batch; timeout: seconds to wait for a worker; worker_init_fn: called in
    each worker with its number; generator: draws the order and the workers' seeds; persistent_workers: workers stay for
    the next epoch; in_order=False: batches as they come.

    Arguments:
        dataset: the dataset
        batch_size: how many items a batch has
        shuffle: whether the order is drawn
        sampler: the sampler
        batch_sampler: gives lists of indices; instead of batch_size, shuffle, sampler and drop_last
        num_workers: how many processes load; 0 loads here
        collate_fn: makes a batch of items; None takes default_collate
        pin_memory: whether the CPU's memory is pinned for copies to a device
        drop_last: whether a last batch that is too small is left out
        timeout: seconds that a batch may take; 0 for no limit
        worker_init_fn: runs in each worker first, with its number
        multiprocessing_context: how workers are started: a context or its name
        generator: where the random numbers come from; None takes the default generator
        prefetch_factor: how many batches each worker has ahead
        persistent_workers: whether workers stay between epochs
        pin_memory_device: is taken, and changes nothing here
        in_order: whether batches come in order

    Raises: ValueError for options that do not go together: a sampler with shuffle, a batch_sampler with batch_size,
        what needs num_workers without them.

    Example:
        >>> from tensorpy.utils.data import DataLoader, TensorDataset
        >>> data = TensorDataset(tp.arange(5), tp.arange(5) * 10)
        >>> for x, y in DataLoader(data, batch_size=2):
        ...     print(x, y)
        tensor([0, 1]) tensor([ 0, 10])
        tensor([2, 3]) tensor([20, 30])
        tensor([4]) tensor([40])
    """

    batch_sampler: Any
    batch_size: int | None
    dataset: Any
    drop_last: bool
    generator: Any
    in_order: bool
    num_workers: int
    pin_memory: bool
    pin_memory_device: str
    prefetch_factor: Any
    sampler: Any
    timeout: float
    worker_init_fn: Any

    __initialized = False  # libraries that change a loader set it under the name that Python makes of it

    def __init__(
        self,
        dataset: Dataset[T_co] | Sequence[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Any = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Any = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        if num_workers < 0:
            raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError(
                "prefetch_factor option could only be specified in multiprocessing: it needs num_workers > 0"
            )
        if prefetch_factor is not None and prefetch_factor < 0:
            raise ValueError("prefetch_factor option should be non-negative")
        if persistent_workers and num_workers == 0:
            raise ValueError("persistent_workers option needs num_workers > 0")
        self.dataset, self.num_workers, self.timeout = dataset, num_workers, timeout
        self.prefetch_factor = 2 if num_workers > 0 and prefetch_factor is None else prefetch_factor
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self.worker_init_fn, self.generator, self.in_order = worker_init_fn, generator, in_order
        self.persistent_workers = persistent_workers
        self.multiprocessing_context = multiprocessing_context
        given: Any = dataset
        self._iterable = isinstance(given, IterableDataset)
        self._dataset_kind = _DatasetKind.Iterable if self._iterable else _DatasetKind.Map
        if self._iterable and is_pipe(given):
            self.dataset = given = apply_shuffle_settings(given, shuffle)
            shuffle = None
        if self._iterable:
            for name, value in (("shuffle", shuffle), ("sampler", sampler), ("batch_sampler", batch_sampler)):
                if value:
                    raise ValueError(
                        f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
                    )
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size, drop_last = None, False
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            sampler = _Endless() if self._iterable else SequentialSampler(given)
            if shuffle:
                sampler = RandomSampler(given, generator=generator)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size, self.drop_last = batch_size, drop_last
        self.sampler, self.batch_sampler = sampler, batch_sampler
        if collate_fn is None:
            collate_fn = default_convert if batch_sampler is None else default_collate
        self.collate_fn = collate_fn
        self._iterator: _WorkersIter | None = None
        self._length: int | None = None  # what `len` has said of an iterable dataset
        self._warn_of_many_workers()
        self.__initialized = True

    @property
    def multiprocessing_context(self) -> Any:
        """How workers are started: None for the system's way, a name ("fork", "spawn", ...) or a context."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None:
            if self.num_workers == 0:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
                    f"num_workers={self.num_workers}"
                )
            if isinstance(context, str):
                ways = multiprocessing.get_all_start_methods()
                if context not in ways:
                    raise ValueError(
                        f"multiprocessing_context option should specify a valid start method in {ways!r}, but got "
                        f"multiprocessing_context={context!r}"
                    )
                context = multiprocessing.get_context(context)
            elif not isinstance(context, BaseContext):
                raise TypeError(
                    "multiprocessing_context option should be a valid context object or a string specifying the start "
                    f"method, but got multiprocessing_context={context}"
                )
        self._context = context

    def __setattr__(self, name: str, value: Any) -> None:
        fixed = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")
        if self.__initialized and name in fixed:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    def _warn_of_many_workers(self) -> None:
        most = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        if most is not None and self.num_workers > most:
            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested max number "
                f"of worker in current system is {most}: more of them slow each other down.",
                stacklevel=3,
            )

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self.batch_sampler is not None else self.sampler

    def _fetcher_arguments(self) -> tuple[Any, ...]:
        return self.dataset, self._iterable, self._auto_collation, self.collate_fn, self.drop_last

    def __iter__(self) -> Iterator[Any]:
        if self.num_workers == 0:
            return _HereIter(self)
        if not self.persistent_workers:
            return _WorkersIter(self)
        if self._iterator is None:
            self._iterator = _WorkersIter(self)
        else:
            self._iterator.begin(self)
        return self._iterator

    def __len__(self) -> int:
        if not self._iterable:
            return len(self._index_sampler)
        length = len(self.dataset)
        if self.batch_size is not None:
            length = length // self.batch_size if self.drop_last else -(-length // self.batch_size)
        self._length = length
        return length


class _BaseDataLoaderIter:
    """What an epoch of any kind is."""

    shared_seed: int | None  # what pipes that draw draw their seeds by

    def _expect(self, loader: DataLoader[Any]) -> None:
        """Notes what `len` had said of an iterable dataset when the epoch began."""
        if loader.pin_memory and not tp.accelerator.is_available():
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, then nothing is pinned.",
                stacklevel=4,
            )
        self.shared_seed = drawn_for_pipes(loader.dataset, loader.generator)
        self.length, self.dataset, self.fetched = loader._length, loader.dataset, 0

    def _count_one(self) -> None:
        self.fetched += 1
        if self.length is not None and self.fetched > self.length:
            warnings.warn(
                f"Length of IterableDataset {self.dataset} was reported to be {self.length}(when accessing "
                f"len(dataloader)), but {self.fetched} samples have been fetched. "
                "For multiprocessing data-loading, this may come of workers that read the same samples: each has to "
                "read a part of its own, see get_worker_info().",
                stacklevel=3,
            )


class _HereIter(_BaseDataLoaderIter):
    """One epoch, read in this process."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._expect(loader)
        processes, rank = share_of_process()
        if processes > 1 and is_pipe(loader.dataset):
            apply_sharding(loader.dataset, processes, rank)
        self.indices = iter(loader._index_sampler)
        drawn_seed(loader.generator)  # as with workers, so that what is drawn next is the same
        self.fetcher = Fetcher(*loader._fetcher_arguments())

    def __iter__(self) -> _HereIter:
        return self

    def __next__(self) -> Any:
        batch = self.fetcher.fetch(next(self.indices))
        self._count_one()
        return batch


# ---- workers ----


def _shut_down(workers: list[Any], task_queues: list[Any], results: Any, owner: int) -> None:
    """Ends the workers, those that do not end by themselves too. A child process that inherited them does nothing."""
    if os.getpid() != owner:
        return
    for tasks in task_queues:
        tasks.put(None)
    for worker in workers:
        worker.join(JOIN_WAIT if worker.is_alive() else 0)
        if worker.is_alive():
            worker.terminate()
            worker.join()
    for each in (*task_queues, results):
        each.cancel_join_thread()
        each.close()
    for worker in workers:
        forget_of(worker.pid)  # batches that nobody has taken


class _WorkersIter(_BaseDataLoaderIter):
    """One epoch, or with persistent workers several, read by worker processes."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        context = loader.multiprocessing_context or multiprocessing.get_context()
        self.results = context.Queue()
        self.count, self.timeout, self.in_order = loader.num_workers, loader.timeout, loader.in_order
        self.ahead = (loader.prefetch_factor or 1) * self.count
        self.persistent = loader.persistent_workers
        self._expect(loader)
        self._workers: list[Any] = []
        self._index_queues: list[Any] = []
        ending = (self._workers, self._index_queues, self.results, os.getpid())
        self._finalizer = weakref.finalize(self, _shut_down, *ending)
        self.indices: Any = iter(loader._index_sampler)
        seed = drawn_seed(loader.generator)
        for number in range(self.count):
            tasks = context.Queue()
            tasks.cancel_join_thread()
            arguments = (
                loader._fetcher_arguments(),
                number,
                self.count,
                seed,
                loader.worker_init_fn,
                tasks,
                self.results,
                os.getpid(),
                share_of_process(),
            )
            worker = context.Process(target=run, args=arguments, daemon=True)
            worker.start()
            self._workers.append(worker)
            self._index_queues.append(tasks)
        self._fresh()

    def _fresh(self) -> None:
        self.sent = self.next_place = 0
        self.turn = 0
        self.under_way: dict[int, int] = {}  # a task's place -> its worker
        self.ready: dict[int, Any] = {}
        self.active = [True] * self.count
        for _ in range(self.ahead):
            self._send()

    def begin(self, loader: DataLoader[Any]) -> None:
        """Another epoch with the same workers: what was under way is waited for and dropped."""
        self._expect(loader)
        self.indices = iter(loader._index_sampler)
        seed = drawn_seed(loader.generator)
        for tasks in self._index_queues:
            tasks.put(Resume(seed, self.shared_seed))
        waiting = self.count
        while waiting:
            place, _ = self._received()
            waiting -= isinstance(place, Resume)
        self._fresh()

    def _send(self) -> None:
        """The next task to the next worker that has not come to its end."""
        if not any(self.active):
            return
        try:
            index = next(self.indices)
        except StopIteration:
            return
        while not self.active[self.turn % self.count]:
            self.turn += 1
        number = self.turn % self.count
        self.turn += 1
        self.under_way[self.sent] = number
        self._index_queues[number].put((self.sent, index))
        self.sent += 1

    def _received(self) -> tuple[Any, Any]:
        """The next answer, from whichever worker; RuntimeError as soon as a worker has ended, or after the timeout."""
        reader: Any = getattr(self.results, "_reader")  # noqa: B009
        ready = wait([reader, *(w.sentinel for w in self._workers)], self.timeout or None)
        if reader in ready or reader.poll():  # what a worker sent before its end
            return self.results.get()
        self._finalizer()
        if ready:
            dead = ", ".join(str(w.pid) for w in self._workers if w.exitcode not in (None, 0) or w.sentinel in ready)
            raise RuntimeError(f"DataLoader worker (pid(s) {dead}) exited unexpectedly") from self._killed()
        raise RuntimeError(f"DataLoader timed out after {self.timeout} seconds")

    def _killed(self) -> RuntimeError | None:
        """What a signal did to a worker."""
        for worker in self._workers:
            code = worker.exitcode or 0
            if code < 0 and -code != signal.SIGTERM:
                what = signal.strsignal(-code)
                return RuntimeError(f"DataLoader worker (pid {worker.pid}) is killed by signal: {what}. ")
        return None

    def _shutdown_workers(self) -> None:
        """Ends the workers now."""
        self._finalizer()

    def __iter__(self) -> _WorkersIter:
        return self

    def __next__(self) -> Any:
        while self.under_way or self.ready:
            if self.in_order and self.next_place not in self.ready and self.next_place not in self.under_way:
                self.next_place += 1  # of a worker that had come to its end
                continue
            place = self.next_place if self.in_order else next(iter(self.ready), None)
            if place not in self.ready:
                self._take(*self._received())
                continue
            self.next_place += self.in_order
            batch = self.ready.pop(place)
            self._send()
            self._count_one()
            if isinstance(batch, ExceptionWrapper):
                batch.reraise()
            return batch
        if not self.persistent:
            self._finalizer()
        raise StopIteration

    def _take(self, place: int, answer: bytes) -> None:
        self.under_way.pop(place)
        batch = pickle.loads(answer)
        if isinstance(batch, Exhausted):
            self.active[batch.worker] = False
            self._send()
        else:
            self.ready[place] = batch


_SingleProcessDataLoaderIter, _MultiProcessingDataLoaderIter = _HereIter, _WorkersIter  # as programs name them
