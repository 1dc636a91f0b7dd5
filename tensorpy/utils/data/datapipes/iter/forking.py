"""Several pipes made of one, which each read a part of it, or all."""

from __future__ import annotations

import copy
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from tensorpy.utils.data.datapipes.datapipe import IterDataPipe, functional_datapipe
from tensorpy.utils.data.datapipes.iter._of_one import known_length
from tensorpy.utils.data.datapipes.utils.common import _check_unpickable_fn

__all__ = ["Demultiplexer", "Forker"]

COPIES: dict[str | None, Callable[[Any], Any] | None] = {None: None, "shallow": copy.copy, "deep": copy.deepcopy}
_END = object()


class _ChildDataPipe(IterDataPipe[Any]):
    """One of several pipes that share a reader. They are read in rounds: a pipe that was read in this round, and is
    asked for an iterator again, begins a new one, which ends the iterators of all.
    """

    _is_child_datapipe = True

    def __init__(self, main_datapipe: Any, instance_id: int) -> None:
        self.main_datapipe, self.instance_id = main_datapipe, instance_id

    def __iter__(self) -> Iterator[Any]:
        samples: Iterator[Any] = self.main_datapipe.get_generator_by_instance(self.instance_id)
        return samples

    def __len__(self) -> int:
        length: int = self.main_datapipe.get_length_by_instance(self.instance_id)
        return length

    def _begin(self) -> int:
        main = self.main_datapipe
        if main._valid_iterator_id is None:
            main._valid_iterator_id = 0
        elif main._valid_iterator_id == self._valid_iterator_id:
            if not main.is_every_instance_exhausted():
                warnings.warn(
                    "Some child DataPipes are not exhausted when __iter__ is called. All of them are read from the "
                    "start again.",
                    stacklevel=5,
                )
            main._valid_iterator_id += 1
            main.reset()
        number: int = main._valid_iterator_id
        self._valid_iterator_id = number
        self._restart()
        return number

    def _is_read_by(self, number: int) -> bool:
        return super()._is_read_by(number) and self.main_datapipe._valid_iterator_id == number


class _Shared(IterDataPipe[Any]):
    """What reads a pipe for several children, and keeps what some of them have yet to read."""

    _transient = (*IterDataPipe._transient, "_source", "_buffers", "_ended")
    _name: str  # of the class whose children they are

    def __init__(self, datapipe: Any, num_instances: int, buffer_size: int) -> None:
        self.main_datapipe, self.num_instances, self.buffer_size = datapipe, num_instances, buffer_size
        if buffer_size < 0:
            warnings.warn(
                "Unlimited buffer size is set: the memory may not do for what one of the pipes has yet to read.",
                stacklevel=4,
            )
        self.reset()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.reset()

    def reset(self) -> None:
        """Begins with the first sample for all children."""
        self._source: Any = None
        self._buffers: list[deque[Any]] = [deque() for _ in range(self.num_instances)]
        self._ended = False

    def _next(self) -> Any:
        """The source's next sample, or `_END`."""
        if self._source is None:
            self._source = iter(self.main_datapipe)
        sample = next(self._source, _END)
        self._ended = sample is _END
        return sample

    def _overflows(self, waiting: int) -> None:
        """Raises a BufferError where so many samples are too many."""
        if 0 <= self.buffer_size < waiting:
            raise BufferError(f"{self._name} buffer overflow, buffer size {self.buffer_size} is insufficient.")

    def _get(self, child: int) -> Any:
        """A child's next sample where none waits for it; the others' wait. `_END` at the end."""
        raise NotImplementedError

    def get_generator_by_instance(self, instance_id: int) -> Iterator[Any]:
        """The samples of one child."""
        waiting = self._buffers[instance_id]
        while waiting or not self._ended:
            sample = waiting.popleft() if waiting else self._get(instance_id)
            if sample is _END:
                break
            yield self._given(sample)

    def _given(self, sample: Any) -> Any:
        return sample

    def is_every_instance_exhausted(self) -> bool:
        """Whether all children have read all."""
        return self._ended and not any(self._buffers)

    def get_length_by_instance(self, instance_id: int) -> int:
        """How many samples a child has."""
        raise TypeError(f"{self._name} instance doesn't have valid length")

    def children(self) -> list[Any]:
        """The pipes that share this one."""
        return [_ChildDataPipe(self, number) for number in range(self.num_instances)]


class _ForkerIterDataPipe(_Shared):
    _name = "Forker"

    def __init__(self, datapipe: Any, num_instances: int, buffer_size: int, copy: str | None) -> None:
        super().__init__(datapipe, num_instances, buffer_size)
        self.copy = copy

    def _get(self, child: int) -> Any:
        self._overflows(1 + max(map(len, self._buffers)))
        sample = self._next()
        if sample is not _END:
            for number, buffer in enumerate(self._buffers):
                if number != child:
                    buffer.append(sample)
        return sample

    def _given(self, sample: Any) -> Any:
        copied = COPIES[self.copy]
        return sample if copied is None else copied(sample)

    def get_length_by_instance(self, instance_id: int) -> int:
        return known_length(self, self.main_datapipe)


class _DemultiplexerIterDataPipe(_Shared):
    _name = "Demultiplexer"

    def __init__(
        self, datapipe: Any, num_instances: int, classifier_fn: Callable[[Any], Any], drop_none: bool, buffer_size: int
    ) -> None:
        super().__init__(datapipe, num_instances, buffer_size)
        self.classifier_fn, self.drop_none = classifier_fn, drop_none

    def _get(self, child: int) -> Any:
        while (sample := self._next()) is not _END:
            number = self.classifier_fn(sample)
            if number is None and self.drop_none:
                continue
            if number is None or not 0 <= number < self.num_instances:
                raise ValueError(
                    f"Output of the classification fn should be between 0 and {self.num_instances - 1}. "
                    f"{number} is returned."
                )
            if number == child:
                return sample
            self._overflows(1 + sum(map(len, self._buffers)))
            self._buffers[number].append(sample)
        return sample


def _check_instances(num_instances: int) -> None:
    if num_instances < 1:
        raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")


@functional_datapipe("fork")
class Forker(IterDataPipe[Any]):
    """A list of num_instances pipes, each of all samples, of which buffer_size may wait for one of them (negative: any
    number). They share the samples, or get copies: "shallow" or "deep". One pipe is the given one itself.
    """

    def __new__(cls, datapipe: Any, num_instances: int, buffer_size: int = 1000, copy: str | None = None) -> Any:
        _check_instances(num_instances)
        if copy not in COPIES:
            raise ValueError(f"Unknown copy method `{copy}` requested, choose one of None, `shallow` or `deep`.")
        return (
            datapipe
            if num_instances == 1
            else _ForkerIterDataPipe(datapipe, num_instances, buffer_size, copy).children()
        )


@functional_datapipe("demux")
class Demultiplexer(IterDataPipe[Any]):
    """A list of num_instances pipes: each sample is in that whose number classifier_fn says, or in none where that says
    None and drop_none is set. buffer_size samples may wait (negative: any number).
    """

    def __new__(
        cls,
        datapipe: Any,
        num_instances: int,
        classifier_fn: Callable[[Any], Any],
        drop_none: bool = False,
        buffer_size: int = 1000,
    ) -> Any:
        _check_instances(num_instances)
        _check_unpickable_fn(classifier_fn)
        return _DemultiplexerIterDataPipe(datapipe, num_instances, classifier_fn, drop_none, buffer_size).children()
