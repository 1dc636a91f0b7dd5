"""A hook that averages gradients over all processes at first, and over neighbours later.

Parameters then drift apart between neighbourhoods: something has to average them after each few steps, such as
model_averaging.averagers.PeriodicModelAverager.
"""

from __future__ import annotations

from typing import Any

from tensorpy._C import Tensor
from tensorpy.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from tensorpy.distributed.buckets import GradBucket
from tensorpy.distributed.distributed_c10d import new_subgroups
from tensorpy.futures import Future

__all__ = ["PostLocalSGDState", "post_localSGD_hook"]


class PostLocalSGDState:
    """What the hook has to know, and the count of steps.

    Arguments:
        process_group: the processes of the first steps; None takes all
        subgroup: those of later steps; None takes the processes of this machine
        start_localSGD_iter: how many steps are the first ones
        post_local_gradient_allreduce: whether later gradients are averaged at all
    """

    process_group: Any
    subgroup: Any
    iter: int

    def __init__(
        self,
        process_group: Any,
        subgroup: Any,
        start_localSGD_iter: int,
        post_local_gradient_allreduce: bool = True,
    ) -> None:
        self.process_group, self.subgroup = process_group, subgroup
        self.start_localSGD_iter = start_localSGD_iter
        self.post_local_gradient_allreduce = post_local_gradient_allreduce
        self.iter = 0

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Counts a step with its last bucket.

        Arguments:
            bucket: the gradients
        """
        self.iter += bucket.is_last()


def post_localSGD_hook(state: PostLocalSGDState, bucket: GradBucket) -> Future[Tensor]:
    """The mean of gradients over all processes in the first steps, and over the subgroup's in later ones.

    Arguments:
        state: a PostLocalSGDState
        bucket: the gradients
    """
    if state.iter < state.start_localSGD_iter:
        state.maybe_increase_iter(bucket)
        return allreduce_hook(state.process_group, bucket)
    if not state.post_local_gradient_allreduce:
        done: Future[Tensor] = Future()
        done.set_result(bucket.buffer())
        return done
    if state.subgroup is None:
        state.subgroup, _ = new_subgroups()
    return allreduce_hook(state.subgroup, bucket)
