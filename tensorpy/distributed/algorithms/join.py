"""Join: processes that have unlike numbers of batches end a loop together.

A process that has no more batches takes part in what the others still send, by its hooks, until all are through.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import tensorpy as tp
from tensorpy.distributed.collectives import all_reduce
from tensorpy.distributed.groups import get_rank

__all__ = ["Join", "JoinHook", "Joinable"]

MANY = 1000  # batches that a process may have more than another before it is told so


class JoinHook:
    """What a process does that has no more batches.

    Example:
        >>> from tensorpy.distributed.algorithms.join import JoinHook
        >>> class Shadow(JoinHook):
        ...     def main_hook(self):
        ...         tp.distributed.all_reduce(tp.zeros(1))  # what the others still sum
        >>> Shadow().main_hook()
    """

    def main_hook(self) -> None:
        """Takes part in what the others send for one batch."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Called once all have no more batches.

        Arguments:
            is_last_joiner: whether this process is one of those that had the most
        """


class _JoinConfig(NamedTuple):
    enable: bool
    throw_on_early_termination: bool
    is_first_joinable: bool

    @staticmethod
    def construct_disabled_join_config() -> _JoinConfig:
        """That of a loop without Join."""
        return _JoinConfig(enable=False, throw_on_early_termination=False, is_first_joinable=False)


class Joinable(ABC):
    """What sends for each batch, and can do without batches of its own.

    Example:
        >>> from tensorpy.distributed.algorithms.join import Joinable
        >>> from tensorpy.nn.parallel import DistributedDataParallel
        >>> isinstance(DistributedDataParallel(nn.Linear(1, 1)), Joinable)
        True
    """

    @abstractmethod
    def __init__(self) -> None:
        super().__init__()
        self._join_config = _JoinConfig.construct_disabled_join_config()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What it does without batches.

        Arguments:
            kwargs: what Join was given beside its own arguments
        """

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """The device that Join's own messages lie on."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The processes that send."""


class Join:
    """A context around a loop over batches, of which processes may have unlike numbers.

    Arguments:
        joinables: what sends in the loop, in the order in which it does
        enable: False: the context does nothing
        throw_on_early_termination: all processes raise as soon as one has no more batches
        kwargs: go to the hooks of all

    Raises: ValueError for no joinables, or ones of several groups.

    Example:
        >>> from tensorpy.distributed.algorithms.join import Join
        >>> from tensorpy.nn.parallel import DistributedDataParallel
        >>> net = DistributedDataParallel(nn.Linear(1, 1))
        >>> with Join([net]):  # each process may have another number of batches
        ...     for batch in [tp.ones(2, 1), tp.ones(2, 1)]:
        ...         net(batch).sum().backward()
    """

    def __init__(
        self,
        joinables: list[Joinable],
        enable: bool = True,
        throw_on_early_termination: bool = False,
        **kwargs: Any,
    ) -> None:
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        self._joinables, self._enable, self._throws = joinables, enable, throw_on_early_termination
        self._hooks = [joinable.join_hook(**kwargs) for joinable in joinables]
        for place, joinable in enumerate(joinables):
            joinable._join_config = _JoinConfig(enable, throw_on_early_termination, place == 0)
        self._group, self._device = joinables[0].join_process_group, joinables[0].join_device
        if any(joinable.join_process_group != self._group for joinable in joinables):
            raise ValueError("Using join context manager with multiple process groups")

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if not self._enable or kind is not None:
            return
        is_last, batches = True, 0
        while self._count_of_others():
            if self._throws:
                all_reduce(tp.ones(1, device=self._device), group=self._group)
                raise RuntimeError(f"Rank {get_rank(self._group)} exhausted all inputs.")
            for hook in self._hooks:
                hook.main_hook()
            is_last, batches = False, batches + 1
            if batches == MANY:
                warnings.warn(
                    f"rank {get_rank(self._group)} has at least {MANY} batches less than others: it waits for them",
                    stacklevel=2,
                )
        for hook in self._hooks:
            hook.post_hook(is_last)

    def _count_of_others(self) -> int:
        """How many processes have a batch: each of them adds one in notify_join_context."""
        count = tp.zeros(1, device=self._device)
        all_reduce(count, group=self._group)
        return int(count.item())

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Any:
        """Says that this process has another batch: a Work whose result is how many have, None outside of Join.

        Arguments:
            joinable: what is about to send

        Returns: a Work, or None.
        """
        if not hasattr(joinable, "_join_config"):
            raise AssertionError(f"{type(joinable)}.__init__ does not call Joinable.__init__")
        config, device, group = joinable._join_config, joinable.join_device, joinable.join_process_group
        if not config.enable or not config.is_first_joinable:
            return None
        work = all_reduce(tp.ones(1, device=device), group=group, async_op=True)
        if config.throw_on_early_termination:
            early = tp.zeros(1, device=device)
            all_reduce(early, group=group)
            if early.item():
                raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
        return work
