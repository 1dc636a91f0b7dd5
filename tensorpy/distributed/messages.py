"""How tensors become messages: memory of the host that is contiguous, and back.

A tensor that is contiguous on the host goes as it is. Another one is packed: a buffer goes or comes, and is copied when
the message is done.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import tensorpy as tp
from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._package import async_events
from tensorpy.distributed.groups import ProcessGroup
from tensorpy.distributed.work import Work

KINDS: dict[str, int] = _C._distributed.KINDS


def check(name: str, *tensors: Any) -> None:
    """Tensors of the strided layout, and nothing else, are sent."""
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name}: Invalid function argument: expected a tensor, not {type(tensor).__name__}")
        if tensor.layout is not tp.strided:
            raise NotImplementedError(f"{name}: a tensor of layout {tensor.layout} is not sent; to_dense() can be")
        if tensor.device.type == "meta":
            raise RuntimeError(f"{name}: a tensor on meta has no values to send")


def is_plain(tensor: Tensor) -> bool:
    """Whether its memory is what goes or comes."""
    return bool(tensor.device.type == "cpu" and tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg())


def packed(tensor: Tensor) -> Tensor:
    """Its values in memory that can go."""
    if is_plain(tensor):
        return tensor
    return tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()


def room_for(tensor: Tensor) -> Tensor:
    """Memory for what comes for a tensor: its own, where that will do."""
    return tensor if is_plain(tensor) else tp.empty(tensor.shape, dtype=tensor.dtype)


def copy(target: Tensor, source: Tensor) -> None:
    """Writes values into a tensor, which records nothing of it."""
    target.detach().copy_(source.detach())


def flat_of(tensors: Sequence[Tensor]) -> Tensor:
    """Their values after each other."""
    return tp.cat([packed(t).detach().reshape(-1) for t in tensors])


def spread(flat: Tensor, tensors: Sequence[Tensor]) -> None:
    """Values after each other, each to its tensor."""
    begin = 0
    for tensor in tensors:
        copy(tensor, flat[begin : begin + tensor.numel()].reshape(tensor.shape))
        begin += tensor.numel()


def after(*steps: Callable[[], None] | None) -> Callable[[], None] | None:
    """Steps in their order; None without any."""
    left = [step for step in steps if step is not None]
    if len(left) < 2:
        return left[0] if left else None

    def run() -> None:
        for step in left:
            step()

    return run


class _Titles(threading.local):
    title = ""


titles = _Titles()  # what record_comm says, of each thread


def begin_event(found: ProcessGroup, kind: str, tensors: Sequence[Tensor], peer: int = 0) -> async_events.Event | None:
    """What a profile that records has of a message."""
    if not async_events.recording:
        return None
    if titles.title:
        return async_events.begin(titles.title, *tensors)
    return async_events.begin(f"{found._backend}:{'recvAnySource' if kind == 'recv' and peer < 0 else kind}", *tensors)


def message(
    found: ProcessGroup,
    kind: str,
    send: Tensor | None = None,
    recv: Tensor | None = None,
    *,
    name: str = "",
    count: int = 0,
    op: int = 0,
    peer: int = 0,
    tag: int = 0,
    counts: Any = None,
    async_op: bool = False,
    finish: Callable[[], None] | None = None,
    outputs: Sequence[Tensor] = (),
    arrived: Callable[[tuple[int, int]], None] | None = None,
    seconds: float | None = None,
    profiled: bool = True,
) -> Work | None:
    """Begins a message; waits for it, or gives it as a Work. One that is not profiled is a part of another event."""
    seconds = found._seconds if seconds is None else seconds
    given = (found._number, KINDS[kind], name or kind, send, recv, count, op, peer, tag, counts)
    event = begin_event(found, kind, [t for t in (send, recv) if t is not None][:1], peer) if profiled else None
    if async_op:
        return Work(_C._distributed.begin(*given), seconds, finish, outputs, found._ranks, arrived, event)
    came = _C._distributed.run(*given, seconds)
    async_events.end(event)
    if arrived is not None:
        arrived(came)
    if finish is not None:
        finish()
    return None
