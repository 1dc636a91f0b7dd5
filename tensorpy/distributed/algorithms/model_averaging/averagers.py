"""When the parameters of processes are averaged: every so many steps."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from tensorpy.distributed import groups
from tensorpy.distributed.algorithms.model_averaging import utils

__all__ = ["ModelAverager", "PeriodicModelAverager"]


class ModelAverager(ABC):
    """What averages parameters, and counts the steps.

    Arguments:
        process_group: the processes; None takes all

    Example:
        >>> from tensorpy.distributed.algorithms.model_averaging.averagers import ModelAverager
        >>> class Always(ModelAverager):
        ...     def average_parameters(self, params):
        ...         for p in params:
        ...             tp.distributed.all_reduce(p.data, tp.distributed.ReduceOp.AVG)
        >>> Always().average_parameters(nn.Linear(1, 1).parameters())
    """

    process_group: Any

    def __init__(self, process_group: Any = None) -> None:
        self.process_group = groups.of(None) if process_group is None else process_group
        self.step = 0

    @abstractmethod
    def average_parameters(self, params: Iterable[Any]) -> None:
        """Called once in a step.

        Arguments:
            params: parameters, or groups of an optimizer
        """


def warn_of_period(name: str) -> None:
    """A mean of parameters in each step costs what one of gradients does."""
    warnings.warn(
        f"{name} of 1 averages parameters in every step: DistributedDataParallel, which averages gradients, costs no "
        "more",
        stacklevel=3,
    )


class PeriodicModelAverager(ModelAverager):
    """Averages parameters every `period` steps, from step `warmup_steps` on.

    Arguments:
        period: how many steps are between two means
        warmup_steps: how many steps are before the first one
        process_group: the processes; None takes all

    Raises: ValueError for negative warmup_steps, or a period that is not positive.

    Example:
        >>> from tensorpy.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
        >>> averager = PeriodicModelAverager(period=4, warmup_steps=100)
        >>> averager.average_parameters(nn.Linear(1, 1).parameters())  # after each step: it counts them
        >>> averager.step
        1
    """

    warmup_steps: int
    period: int

    def __init__(self, period: int, warmup_steps: int = 0, process_group: Any = None) -> None:
        super().__init__(process_group)
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        if period < 1:
            raise ValueError("Arg ``period`` must be a positive value.")
        if period == 1:
            warn_of_period("a period")
        self.warmup_steps, self.period = warmup_steps, period

    def average_parameters(self, params: Iterable[Any]) -> None:
        """Counts a step, and averages parameters if it is one for that.

        Arguments:
            params: parameters, or groups of an optimizer
        """
        if self.step >= self.warmup_steps and (self.step - self.warmup_steps) % self.period == 0:
            utils.average_parameters_or_parameter_groups(params, self.process_group)
        self.step += 1
