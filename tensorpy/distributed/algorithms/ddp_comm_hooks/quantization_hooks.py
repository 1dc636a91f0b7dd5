"""Hooks whose gradients travel as bytes: each process rounds its own to 256 steps, and all add up what they read."""

from __future__ import annotations

from typing import Any

import tensorpy as tp
from tensorpy._C import Tensor
from tensorpy.distributed import groups
from tensorpy.distributed.buckets import GradBucket
from tensorpy.distributed.collectives import all_gather_into_tensor
from tensorpy.futures import Future

__all__ = ["quantization_perchannel_hook", "quantization_pertensor_hook"]

_STEPS = 255
_LEAST = 2.0**-23  # of a step


def _ranges(rows: Tensor) -> Tensor:
    """The step of each row, and the byte that stands for 0: [rows, 2]."""
    low, high = rows.amin(1).clamp(max=0), rows.amax(1).clamp(min=0)
    step = ((high - low) / _STEPS).clamp(min=_LEAST)
    return tp.stack([step, (-low / step).round()], 1)


def _carry(process_group: Any, bucket: GradBucket, width: int) -> Future[Tensor]:
    """The mean of gradients that travel as bytes, each row of so many elements in its own range."""
    found, buffer = groups.of(process_group), bucket.buffer()
    rows = tp.constant_pad_nd(buffer.float(), (0, -buffer.numel() % width)).view(-1, width)
    own = _ranges(rows)
    ranges = own.new_empty(found.size() * len(own), 2)
    all_gather_into_tensor(ranges, own, group=found)
    sent = (rows / own[:, :1] + own[:, 1:]).round().clamp(0, _STEPS).to(tp.uint8)
    everyone = sent.new_empty(found.size() * len(rows), width)
    work = all_gather_into_tensor(everyone, sent, group=found, async_op=True)
    assert work is not None

    def mean(future: Future[Any]) -> Tensor:
        future.value()
        numbers = ((everyone - ranges[:, 1:]) * ranges[:, :1]).view(found.size(), -1)
        return buffer.copy_(numbers.mean(0)[: buffer.numel()])

    return work.get_future().then(mean)


def quantization_pertensor_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """The mean of gradients that travel as bytes, a bucket in one range: a quarter of float32's bytes.

    Arguments:
        process_group: the processes; None takes all
        bucket: the gradients

    Example:
        >>> from tensorpy.distributed.algorithms.ddp_comm_hooks.quantization_hooks import quantization_pertensor_hook
        >>> net = nn.parallel.DistributedDataParallel(nn.Linear(1, 1))
        >>> net.register_comm_hook(None, quantization_pertensor_hook)
        >>> net(tp.ones(2, 1)).sum().backward()
        >>> net.module.weight.grad
        tensor([[2.]])
    """
    return _carry(process_group, bucket, bucket.buffer().numel())


def quantization_perchannel_hook(process_group: Any, bucket: GradBucket, bucket_size: int = 512) -> Future[Tensor]:
    """The mean of gradients that travel as bytes, each few of them in a range of their own.

    Arguments:
        process_group: the processes; None takes all
        bucket: the gradients
        bucket_size: how many elements have one range

    Example:
        >>> from tensorpy.distributed.algorithms.ddp_comm_hooks.quantization_hooks import quantization_perchannel_hook
        >>> net = nn.parallel.DistributedDataParallel(nn.Linear(1, 1))
        >>> net.register_comm_hook(None, quantization_perchannel_hook)
        >>> net(tp.ones(2, 1)).sum().backward()
        >>> net.module.weight.grad
        tensor([[2.]])
    """
    return _carry(process_group, bucket, bucket_size)
