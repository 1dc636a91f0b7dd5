"""What runs in a worker process of a DataLoader, and what it sends back.

A worker gets messages through a queue of its own: a task (number, indices), `Resume` before another epoch, or None to
end. It answers through the queue that all share: (task number, pickle of the batch, or of `ExceptionWrapper` or
`Exhausted`).
"""

from __future__ import annotations

import os
import queue
import random
import sys
from dataclasses import dataclass
from multiprocessing.reduction import ForkingPickler
from typing import Any

import tensorpy as tp
from tensorpy import _C
from tensorpy._utils import ExceptionWrapper
from tensorpy.storage.shared import forget_of, send_copies
from tensorpy.utils.data._utils.collate import default_collate
from tensorpy.utils.data.dataset import collated
from tensorpy.utils.data.graph import is_pipe
from tensorpy.utils.data.graph_settings import apply_sharding, reseed

PARENT_CHECK = 5.0  # seconds between looks whether the parent is alive


@dataclass(frozen=True)
class WorkerInfo:
    """What a worker knows of itself: its number, of how many, its seed, its copy of the dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_worker_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """The worker that this process is, or None in the main process.

    Returns: a WorkerInfo, or None.

    Example:
        >>> tp.utils.data.get_worker_info() is None
        True
    """
    return _worker_info


@dataclass
class Exhausted:
    """An iterable dataset of a worker has come to its end."""

    worker: int


@dataclass
class Resume:
    """Another epoch begins."""

    seed: int
    shared_seed: int | None = None  # of pipes that draw


class Fetcher:
    """Reads samples of a dataset and puts them together."""

    batched: bool
    collate: Any
    dataset: Any
    drop_last: bool
    samples: Any

    def __init__(self, dataset: Any, iterable: bool, batched: bool, collate: Any, drop_last: bool) -> None:
        self.dataset, self.batched, self.collate, self.drop_last = dataset, batched, collate, drop_last
        self.samples = iter(dataset) if iterable else None

    def fetch(self, index: Any) -> Any:
        """One batch; StopIteration at the end of an iterable dataset."""
        if self.samples is not None:
            return self._fetch_next(index)
        if not self.batched:
            return self.collate(self.dataset[index])
        if self.collate is default_collate and (batch := collated(self.dataset, index)) is not None:
            return batch
        several: Any = getattr(self.dataset, "__getitems__", None)
        if callable(several):
            return self.collate(several(index))
        return self.collate([self.dataset[i] for i in index])

    def _fetch_next(self, index: Any) -> Any:
        assert self.samples is not None
        if not self.batched:
            return self.collate(next(self.samples))
        batch = []
        for _ in index:
            try:
                batch.append(next(self.samples))
            except StopIteration:
                break
        if not batch or (self.drop_last and len(batch) < len(index)):
            raise StopIteration
        return self.collate(batch)


_WORD = 0xFFFFFFFF


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """Four words for NumPy's generator, well mixed of a seed and a worker's number: O'Neill's seed_seq, as NumPy's
    SeedSequence has it."""
    constant = 0x43B0D7E5

    def hashed(value: int, multiplier: int) -> int:
        nonlocal constant
        value ^= constant
        constant = constant * multiplier & _WORD
        value = value * constant & _WORD
        return value ^ value >> 16

    def mixed(x: int, y: int) -> int:
        value = (0xCA01F9DD * x - 0x4973F715 * y) & _WORD
        return value ^ value >> 16

    pool = [hashed(word, 0x931E8875) for word in (worker_id, base_seed & _WORD, base_seed >> 32 & _WORD, 0)]
    for source in range(4):
        for target in range(4):
            if source != target:
                pool[target] = mixed(pool[target], hashed(pool[source], 0x931E8875))
    constant = 0x8B51F9DD
    return [hashed(word, 0x58F38DED) for word in pool]


def _seed(base: int, worker: int) -> None:
    random.seed(base + worker)
    tp.manual_seed(base + worker)
    if "numpy" in sys.modules:
        numpy: Any = sys.modules["numpy"]  # only where somebody has imported it
        numpy.random.seed(_generate_state(base, worker))


def run(
    make: tuple[Any, ...],
    number: int,
    count: int,
    seed: int,
    init: Any,
    tasks: Any,
    results: Any,
    parent: int,
    process: tuple[int, int],
) -> None:
    """The life of a worker, the number-th of count. `process`: how many processes a job has, and which one's it is."""
    global _worker_info
    dataset = make[0]
    try:
        _C.set_num_threads(1)
        send_copies()  # each batch has one receiver
        _seed(seed, number)
        _worker_info = WorkerInfo(number, count, seed + number, dataset)
        fetcher: Any = None
        problem: ExceptionWrapper | None = None
        try:
            if is_pipe(dataset):
                processes, rank = process
                apply_sharding(dataset, count * processes, number * processes + rank)
            if init is not None:
                init(number)
            fetcher = Fetcher(*make)
        except Exception:
            problem = ExceptionWrapper(where=f"in DataLoader worker process {number}")
        while True:
            try:
                task = tasks.get(timeout=PARENT_CHECK)
            except queue.Empty:
                if os.getppid() != parent:
                    break
                continue
            if task is None:
                break
            if isinstance(task, Resume):
                results.put((task, number))
                _seed(task.seed, number)
                _worker_info = WorkerInfo(number, count, task.seed + number, dataset)
                reseed(dataset, task.shared_seed)
                fetcher = Fetcher(*make)
                continue
            place, index = task
            results.put((place, packed(_answer(fetcher, index, number) if problem is None else problem, number)))
    except KeyboardInterrupt:  # the main process has it too, and tells
        pass
    finally:
        results.cancel_join_thread()  # who asks a worker to end wants no more of its batches
        results.close()
        forget_of(os.getpid())


def packed(answer: Any, number: int) -> bytes:
    """An answer's pickle, made here: in the queue's own thread nobody would learn that there is none."""
    where = f"in DataLoader worker process {number}, whose result cannot be sent"
    try:
        return bytes(ForkingPickler.dumps(answer))
    except Exception:
        failure = answer if isinstance(answer, ExceptionWrapper) else ExceptionWrapper(where=where)
    try:
        return bytes(ForkingPickler.dumps(failure))
    except Exception:  # the class of the error cannot be sent
        failure.exc_type = RuntimeError
        return bytes(ForkingPickler.dumps(failure))


def _answer(fetcher: Fetcher, index: Any, number: int) -> Any:
    try:
        return fetcher.fetch(index)
    except StopIteration:
        return Exhausted(number)
    except Exception:
        return ExceptionWrapper(where=f"in DataLoader worker process {number}")
