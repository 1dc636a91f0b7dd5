"""A pipe of one share of the samples."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Any

from tensorpy.utils.data.datapipes.datapipe import functional_datapipe
from tensorpy.utils.data.datapipes.iter._of_one import OfOne, known_length

__all__ = ["SHARDING_PRIORITIES", "ShardingFilter"]


class SHARDING_PRIORITIES(IntEnum):
    """Groups of shares: DISTRIBUTED of the processes of a job, MULTIPROCESSING of the workers of one of them."""

    DEFAULT = 1
    DISTRIBUTED = 2
    MULTIPROCESSING = 3


@functional_datapipe("sharding_filter")
class ShardingFilter(OfOne):
    """Every n-th sample: of n shares, which `apply_sharding` says for groups. With sharding_group_filter it takes those
    of that group only.
    """

    def __init__(self, source_datapipe: Any, sharding_group_filter: Any = None) -> None:
        super().__init__(source_datapipe)
        self.sharding_group_filter = sharding_group_filter
        self.groups: dict[int, tuple[int, int]] = {}
        self.num_of_instances, self.instance_id = 1, 0

    def apply_sharding(
        self, num_of_instances: int, instance_id: int, sharding_group: Any = SHARDING_PRIORITIES.DEFAULT
    ) -> None:
        """A group's share: instance_id of num_of_instances, out of the share of the groups after it."""
        if instance_id >= num_of_instances:
            raise ValueError(f"instance_id({instance_id}) should be smaller than num_of_instances({num_of_instances})")
        if len({group == SHARDING_PRIORITIES.DEFAULT for group in [*self.groups, sharding_group]}) > 1:
            raise RuntimeError("ShardingFilter cannot mix DEFAULT and non DEFAULT groups")
        self.groups[sharding_group] = num_of_instances, instance_id
        wanted = [group for group in sorted(self.groups, reverse=True) if self.sharding_group_filter in (None, group)]
        self.num_of_instances, self.instance_id = 1, 0
        for of, mine in (self.groups[group] for group in wanted):
            self.instance_id += self.num_of_instances * mine
            self.num_of_instances *= of

    def __iter__(self) -> Iterator[Any]:
        for place, sample in enumerate(self.datapipe):
            if place % self.num_of_instances == self.instance_id:
                yield sample

    def __len__(self) -> int:
        left = known_length(self, self.datapipe) - self.instance_id
        return max(0, -(-left // self.num_of_instances))
