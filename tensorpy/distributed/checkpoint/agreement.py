"""Steps that all ranks of a group make together: what one fails at, all hear of.

Without a group it is one process, which asks nobody.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, TypeVar

from tensorpy import distributed as dist
from tensorpy.distributed.checkpoint.api import CheckpointException, wrap

T = TypeVar("T")
R = TypeVar("R")


class _Failed:
    """In the place of a rank's result: its error."""

    def __init__(self, error: Exception) -> None:
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            error = RuntimeError(f"{type(error).__name__}: {error}").with_traceback(error.__traceback__)
        self.error = wrap(error)


def _tried(step: Callable[..., Any], *args: Any) -> Any:
    try:
        return step(*args)
    except Exception as error:
        return _Failed(error)


class Ranks:
    """The ranks of a group, one of which (the coordinator) makes their results fit."""

    group: Any
    use_dist: bool
    coordinator_rank: int
    rank: int
    size: int
    is_coordinator: bool

    def __init__(self, group: Any, use_dist: bool, coordinator_rank: int = 0) -> None:
        self.group, self.use_dist, self.coordinator_rank = group, use_dist, coordinator_rank
        self.rank = dist.get_rank(group) if use_dist else 0
        self.size = dist.get_world_size(group) if use_dist else 1
        if use_dist and self.rank < 0:
            raise ValueError("this process is not in the group that saves or loads")
        self.is_coordinator = not use_dist or self.rank == coordinator_rank

    def _gather(self, value: Any) -> list[Any] | None:
        if not self.use_dist:
            return [value]
        came: list[Any] | None = [None] * self.size if self.is_coordinator else None
        dist.gather_object(value, came, group=self.group, group_dst=self.coordinator_rank)
        return came

    def _together(self, step: str, values: list[Any], reduce: Callable[[list[Any]], Any]) -> Any:
        """The coordinator's result, or the error of all who failed."""
        failures = {rank: value.error for rank, value in enumerate(values) if isinstance(value, _Failed)}
        if not failures:
            made = _tried(reduce, values)
            if not isinstance(made, _Failed):
                return made
            failures = {self.rank: made.error}
        return CheckpointException(step, failures)

    @staticmethod
    def _result(value: Any) -> Any:
        if isinstance(value, CheckpointException):
            raise value
        return value

    def reduce_scatter(self, step: str, map_fun: Callable[[], T], reduce_fun: Callable[[list[T]], list[R]]) -> R:
        """Each rank's part of what the coordinator makes of all results."""
        came = self._gather(_tried(map_fun))
        parts: list[Any] | None = None
        if came is not None:
            made = self._together(step, came, reduce_fun)
            parts = [made] * self.size if isinstance(made, CheckpointException) else list(made)
        if not self.use_dist:
            return self._result((parts or [None])[0])
        mine: list[Any] = [None]
        dist.scatter_object_list(mine, parts, group=self.group, group_src=self.coordinator_rank)
        return self._result(mine[0])

    def all_reduce(self, step: str, map_fun: Callable[[], T], reduce_fun: Callable[[list[T]], R]) -> R:
        """What the coordinator makes of all results."""
        came = self._gather(_tried(map_fun))
        made = [None if came is None else self._together(step, came, reduce_fun)]
        if self.use_dist:
            dist.broadcast_object_list(made, group=self.group, group_src=self.coordinator_rank)
        return self._result(made[0])

    def all_gather(self, step: str, map_fun: Callable[[], T]) -> list[T]:
        """All results, on all ranks."""
        value = _tried(map_fun)
        came: list[Any] = [value]
        if self.use_dist:
            came = [None] * self.size
            dist.all_gather_object(came, value, self.group)
        return self._result(self._together(step, came, lambda values: values))
