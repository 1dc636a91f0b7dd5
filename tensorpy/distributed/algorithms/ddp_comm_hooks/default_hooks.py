"""Hooks that average gradients, in their own dtype or in one of 16 bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorpy as tp
from tensorpy._C import Tensor
from tensorpy.distributed import groups
from tensorpy.distributed.buckets import GradBucket
from tensorpy.distributed.collectives import all_reduce
from tensorpy.futures import Future

__all__ = [
    "allreduce_hook", "bf16_compress_hook", "bf16_compress_wrapper", "fp16_compress_hook", "fp16_compress_wrapper",
]  # fmt: skip

Hook = Callable[[Any, GradBucket], Future[Tensor]]


def _average(group: Any, tensor: Tensor) -> Future[Tensor]:
    """Divided before it is added, so that sums of 16 bits stay in range."""
    found = groups.of(group)
    work = all_reduce(tensor.div_(found.size()), group=found, async_op=True)
    assert work is not None
    return work.get_future().then(lambda future: future.value()[0])


def allreduce_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """The mean of all processes' gradients: what is done without a hook, too.

    Arguments:
        process_group: the processes; None takes all
        bucket: the gradients

    Returns: a Future of a tensor.

    Example:
        >>> from tensorpy.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
        >>> net = nn.parallel.DistributedDataParallel(nn.Linear(1, 1))
        >>> net.register_comm_hook(None, allreduce_hook)
        >>> net(tp.ones(2, 1)).sum().backward()
        >>> net.module.weight.grad
        tensor([[2.]])
    """
    return _average(process_group, bucket.buffer())


def _compressed(dtype: Any, group: Any, bucket: GradBucket) -> Future[Tensor]:
    buffer = bucket.buffer()

    def widen(future: Future[Tensor]) -> Tensor:
        buffer.copy_(future.value())
        return buffer

    return _average(group, buffer.to(dtype, copy=True)).then(widen)


def compressed_hook(dtype: Any) -> Hook:
    """A hook that gives the mean of gradients that travel in a dtype.

    Arguments:
        dtype: the dtype
    """

    def carry(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
        if bucket.buffer().dtype == dtype:
            return allreduce_hook(process_group, bucket)
        return _compressed(dtype, process_group, bucket)

    return carry


def fp16_compress_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """The mean of gradients that travel as float16, half as many bytes.

    Arguments:
        process_group: the processes; None takes all
        bucket: the gradients

    Returns: a Future of a tensor.

    Example:
        >>> from tensorpy.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
        >>> net = nn.parallel.DistributedDataParallel(nn.Linear(1, 1))
        >>> net.register_comm_hook(None, fp16_compress_hook)
        >>> net(tp.ones(2, 1)).sum().backward()
        >>> net.module.weight.grad
        tensor([[2.]])
    """
    return _compressed(tp.float16, process_group, bucket)


def bf16_compress_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """The mean of gradients that travel as bfloat16, half as many bytes.

    Arguments:
        process_group: the processes; None takes all
        bucket: the gradients

    Returns: a Future of a tensor.

    Example:
        >>> from tensorpy.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook
        >>> net = nn.parallel.DistributedDataParallel(nn.Linear(1, 1))
        >>> net.register_comm_hook(None, bf16_compress_hook)
        >>> net(tp.ones(2, 1)).sum().backward()
        >>> net.module.weight.grad
        tensor([[2.]])
    """
    return _compressed(tp.bfloat16, process_group, bucket)


def _wrapped(dtype: Any, hook: Hook) -> Hook:
    def carry(state: Any, bucket: GradBucket) -> Future[Tensor]:
        wide = bucket.buffer()
        bucket.set_buffer(wide.to(dtype))

        def widen(future: Future[Tensor]) -> Tensor:
            wide.copy_(future.value())
            return wide

        return hook(state, bucket).then(widen)

    return carry


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """A hook that gets its gradients as float16, and whose result is widened again.

    Arguments:
        hook: the hook that carries them

    Returns: a hook.

    Example:
        >>> from tensorpy.distributed.algorithms.ddp_comm_hooks import default_hooks
        >>> net = nn.parallel.DistributedDataParallel(nn.Linear(1, 1))
        >>> net.register_comm_hook(None, default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook))
        >>> net(tp.ones(2, 1)).sum().backward()
        >>> net.module.weight.grad
        tensor([[2.]])
    """
    return _wrapped(tp.float16, hook)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """A hook that gets its gradients as bfloat16, and whose result is widened again.

    Arguments:
        hook: the hook that carries them

    Returns: a hook.

    Example:
        >>> from tensorpy.distributed.algorithms.ddp_comm_hooks import default_hooks
        >>> net = nn.parallel.DistributedDataParallel(nn.Linear(1, 1))
        >>> net.register_comm_hook(None, default_hooks.bf16_compress_wrapper(default_hooks.allreduce_hook))
        >>> net(tp.ones(2, 1)).sum().backward()
        >>> net.module.weight.grad
        tensor([[2.]])
    """
    return _wrapped(tp.bfloat16, hook)
