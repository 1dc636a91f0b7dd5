"""Averages among few neighbours often, and among all seldom."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tensorpy.distributed import groups
from tensorpy.distributed.algorithms.model_averaging import averagers, utils
from tensorpy.distributed.distributed_c10d import new_subgroups

__all__ = ["HierarchicalModelAverager"]


class HierarchicalModelAverager(averagers.ModelAverager):
    """Averages parameters in groups of neighbours: of each step's periods the longest one says in which.

    Arguments:
        period_group_size_dict: after how many steps groups of how many processes average, periods rising, and the last
            group has all processes
        warmup_steps: how many steps are before the first mean
        process_group: the processes; None takes all
    """

    def __init__(
        self, period_group_size_dict: dict[int, int] | None = None, warmup_steps: int = 0, process_group: Any = None
    ) -> None:
        super().__init__(process_group)
        if not period_group_size_dict:
            raise ValueError("Arg ``period_group_size_dict`` must not be empty.")
        self._periods = list(period_group_size_dict)
        if self._periods[0] <= 0:
            raise ValueError("The minimum period in arg ``period_group_size_dict`` must be a positive value.")
        if self._periods[-1] == 1:
            averagers.warn_of_period("a longest period")
        size, last = groups.get_world_size(self.process_group), list(period_group_size_dict.values())[-1]
        if last != size:
            raise ValueError(
                f"The last value in arg ``period_group_size_dict`` {last} must be equal to the size of arg "
                f"``process_group`` {size}."
            )
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        self.warmup_steps = warmup_steps
        self.period_process_group_dict: dict[int, Any] = {}
        for period, count in period_group_size_dict.items():
            whole = count == size
            made = self.process_group if whole else new_subgroups(count, self.process_group)[0]
            self.period_process_group_dict[period] = made

    def _find_process_group(self) -> Any:
        """The group of the longest period that ends at this step; None without one."""
        ends = [period for period in self._periods if self.step % period == 0]
        return self.period_process_group_dict[ends[-1]] if ends else None

    def average_parameters(self, params: Iterable[Any]) -> None:
        """Counts a step, and averages parameters in the group whose turn it is.

        Arguments:
            params: parameters, or groups of an optimizer
        """
        group = self._find_process_group() if self.step >= self.warmup_steps else None
        if group is not None:
            utils.average_parameters_or_parameter_groups(params, group)
        self.step += 1
