"""Many tensors in few messages: values of one dtype go one after another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import tensorpy as tp
from tensorpy._C import Tensor
from tensorpy.distributed import groups
from tensorpy.distributed.collectives import broadcast
from tensorpy.distributed.messages import is_plain
from tensorpy.distributed.work import Work

MESSAGE_BYTES = 250 << 20


def parts(tensors: Sequence[Tensor], most: int) -> Iterator[list[Tensor]]:
    """Tensors of one dtype that make at most so many bytes, or one that makes more."""
    alike: dict[Any, list[Tensor]] = {}
    for tensor in tensors:
        alike.setdefault(tensor.dtype, []).append(tensor)
    for several in alike.values():
        part: list[Tensor] = []
        size = 0
        for tensor in several:
            if part and size + tensor.nbytes > most:
                yield part
                part, size = [], 0
            part.append(tensor)
            size += tensor.nbytes
        if part:
            yield part


def broadcast_coalesced(process_group: Any, tensors: Sequence[Tensor], buffer_size: int, src: int = 0) -> None:
    """Tensors get the values of one process's, which records nothing of it.

    Arguments:
        process_group: the processes
        tensors: the tensors, alike in all processes
        buffer_size: how many bytes may go in one message
        src: whose values, by its rank in the group
    """
    found = groups.of(process_group)
    if found._is_one():
        return
    for part in parts(tensors, buffer_size):
        if len(part) == 1 and is_plain(part[0]):
            broadcast(part[0].data, group=found, group_src=src)
            continue
        flat = tp.cat([t.detach().cpu().reshape(-1) for t in part])
        broadcast(flat, group=found, group_src=src)
        if found.rank() != src:
            begin = 0
            for tensor in part:
                tensor.data.copy_(flat[begin : begin + tensor.numel()].reshape(tensor.shape))
                begin += tensor.numel()


__all__ = ["broadcast_coalesced"]


class _CoalescingManager:
    """What _coalescing_manager gives: works that a program adds are waited for together."""

    def __init__(self) -> None:
        self.works: list[Work] = []

    def append(self, work: Work | None) -> None:
        """Adds a work to wait for."""
        if work is not None:
            self.works.append(work)

    def wait(self) -> None:
        """Waits for those that were added."""
        for work in self.works:
            work.wait()
        self.works.clear()


@contextmanager
def _coalescing_manager(group: Any = None, device: Any = None, async_ops: bool = False) -> Iterator[_CoalescingManager]:
    """Messages inside of it may become one in PyTorch; here each goes at once, so that all are done where it ends."""
    manager = _CoalescingManager()
    yield manager
    if not async_ops:
        manager.wait()
