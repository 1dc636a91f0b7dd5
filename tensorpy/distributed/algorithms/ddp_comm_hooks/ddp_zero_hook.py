"""Hooks that step: as soon as a bucket's gradients are averaged, a ZeroRedundancyOptimizer moves its parameters.

The steps are those of zero.step() behind backward. As in PyTorch, where buckets are laid out anew first, the first two
passes move nothing (three of a static graph): programs give them inputs that do not count.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorpy._C import Tensor
from tensorpy.distributed.buckets import GradBucket
from tensorpy.futures import Future

__all__ = ["hook_with_zero_step", "hook_with_zero_step_interleaved"]

_Hook = Callable[[Any, GradBucket], Future[Any]]


def hook_with_zero_step(hook: _Hook, ddp: Any, zero: Any, shard_buckets: bool = False) -> _Hook:
    """The hook, and behind it the optimizer's step of the bucket's parameters.

    Arguments:
        hook: averages gradients
        ddp: the DistributedDataParallel that the new hook is for
        zero: a ZeroRedundancyOptimizer of its parameters, made with overlap_with_ddp=True
        shard_buckets: is taken: whose a parameter is follows from its size

    Returns: a hook.

    Raises: ValueError for an optimizer that was made without overlap_with_ddp=True.

    Example:
        >>> from tensorpy.distributed.algorithms.ddp_comm_hooks import ddp_zero_hook, default_hooks
        >>> from tensorpy.distributed.optim import ZeroRedundancyOptimizer
        >>> ddp = nn.parallel.DistributedDataParallel(nn.Linear(1, 1))
        >>> zero = ZeroRedundancyOptimizer(ddp.parameters(), tp.optim.SGD, overlap_with_ddp=True, lr=0.1)
        >>> ddp.register_comm_hook(None, ddp_zero_hook.hook_with_zero_step(default_hooks.allreduce_hook, ddp, zero))
        >>> for _ in range(3):
        ...     ddp(tp.ones(1, 1)).sum().backward()  # the third moves parameters
    """
    if not zero._overlap_with_ddp:
        raise ValueError(
            "ZeroRedundancyOptimizer must be constructed with `overlap_with_ddp=True` to use this hook properly"
        )

    def stepping(state: Any, bucket: GradBucket) -> Future[Any]:
        future = hook(state, bucket)
        if ddp.reducer.rounds < (3 if ddp.static_graph else 2):
            return future

        def step(averaged: Future[Any]) -> Tensor:
            found, flat = averaged.value(), bucket.buffer()
            mean: Tensor = found[0] if isinstance(found, (list, tuple)) else found
            if mean is not flat:
                flat.copy_(mean.reshape(-1))
            zero._step_some(bucket.parameters(), bucket.gradients())
            return flat

        return future.then(step)

    return stepping


def hook_with_zero_step_interleaved(hook: _Hook, ddp: Any, zero: Any, shard_buckets: bool = False) -> _Hook:
    """The same as hook_with_zero_step: buckets' steps come one after the other, each behind its message.

    Arguments:
        hook: averages gradients
        ddp: the DistributedDataParallel that the new hook is for
        zero: a ZeroRedundancyOptimizer of its parameters, made with overlap_with_ddp=True
        shard_buckets: is taken: whose a parameter is follows from its size

    Returns: a hook.

    Raises: ValueError for an optimizer that was made without overlap_with_ddp=True.

    Example:
        >>> from tensorpy.distributed.algorithms.ddp_comm_hooks import ddp_zero_hook, default_hooks
        >>> from tensorpy.distributed.optim import ZeroRedundancyOptimizer
        >>> ddp = nn.parallel.DistributedDataParallel(nn.Linear(1, 1))
        >>> zero = ZeroRedundancyOptimizer(ddp.parameters(), tp.optim.SGD, overlap_with_ddp=True, lr=0.1)
        >>> hook = ddp_zero_hook.hook_with_zero_step_interleaved(default_hooks.allreduce_hook, ddp, zero)
        >>> ddp.register_comm_hook(None, hook)
    """
    return hook_with_zero_step(hook, ddp, zero, shard_buckets)
