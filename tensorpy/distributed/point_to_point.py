"""What one process sends another: send and recv, at once or as a Work, and several of them together."""

from __future__ import annotations

from typing import Any

from tensorpy._C import Tensor
from tensorpy.distributed import groups
from tensorpy.distributed.errors import DistBackendError
from tensorpy.distributed.groups import ProcessGroup
from tensorpy.distributed.messages import check, copy, message, packed, room_for
from tensorpy.distributed.own_groups import asks_group
from tensorpy.distributed.work import Work

_ANY = -1


def _peer(name: str, found: ProcessGroup, rank: int | None, group_rank: int | None) -> int:
    if found._is_one():
        raise ValueError("there is no other process to send to or receive from")
    place = groups.place(name, found, rank, group_rank)
    if place == found.rank():
        raise ValueError(f"{name}: rank {found._ranks[place]} is this process; a message goes to another one")
    return place


@asks_group
def isend(
    tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None
) -> Work | None:
    """Sends a tensor, and does not wait.

    Arguments:
        tensor: what goes; it stays as it is until the Work is done
        dst: the process, by its rank in the world
        group: the processes; None takes all
        tag: a recv with the same tag gets it
        group_dst: the process, by its rank in the group

    Returns: a Work to wait for; None outside of the group.

    Example:
        >>> work = tp.distributed.isend(tp.ones(2), dst=1)  # doctest: +SKIP
    """
    if groups.is_outside("isend", group):
        return None
    found = groups.of(group)
    peer = _peer("isend", found, dst, group_dst)
    check("isend", tensor)
    buffer = packed(tensor)
    return message(found, "send", buffer, None, name="isend", count=buffer.numel(), peer=peer, tag=tag, async_op=True)


@asks_group
def send(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> None:
    """Sends a tensor: returns when it may be changed again.

    Arguments:
        tensor: what goes
        dst: the process, by its rank in the world
        group: the processes; None takes all
        tag: a recv with the same tag gets it
        group_dst: the process, by its rank in the group

    Example:
        >>> tp.distributed.send(tp.ones(2), dst=1)  # doctest: +SKIP
    """
    if groups.is_outside("send", group):
        return
    found = groups.of(group)
    peer = _peer("send", found, dst, group_dst)
    check("send", tensor)
    buffer = packed(tensor)
    message(found, "send", buffer, None, count=buffer.numel(), peer=peer, tag=tag)


def _receive(
    name: str, tensor: Tensor, src: int | None, group: Any, tag: int, group_src: int | None, async_op: bool
) -> tuple[Work | None, list[int]]:
    found = groups.of(group)
    any_source = src is None and group_src is None
    peer = _ANY if any_source and not found._is_one() else _peer(name, found, src, group_src)
    check(name, tensor)
    buffer, came = room_for(tensor), [-1]
    expected = buffer.numel() * buffer.element_size()

    def arrived(found_there: tuple[int, int]) -> None:
        came[0] = found._ranks[found_there[0]]
        if found_there[1] != expected:
            raise DistBackendError(
                f"{name}: {found_there[1]} bytes came from rank {came[0]}, the tensor has {expected} bytes"
            )

    back = None if buffer is tensor else lambda: copy(tensor, buffer)
    work = message(
        found, "recv", None, buffer, name=name, count=buffer.numel(), peer=peer, tag=tag, async_op=async_op,
        finish=back, outputs=(tensor,), arrived=arrived,
    )  # fmt: skip
    return work, came


@asks_group
def irecv(
    tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None
) -> Work | None:
    """Receives a tensor, and does not wait.

    Arguments:
        tensor: where it comes
        src: the process, by its rank in the world; None takes any
        group: the processes; None takes all
        tag: that of the send
        group_src: the process, by its rank in the group

    Returns: a Work to wait for; None outside of the group.

    Example:
        >>> work = tp.distributed.irecv(tp.zeros(2), src=1)  # doctest: +SKIP
    """
    if groups.is_outside("irecv", group):
        return None
    return _receive("irecv", tensor, src, group, tag, group_src, True)[0]


@asks_group
def recv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> int:
    """Receives a tensor; the rank in the world that sent it, -1 outside of the group.

    Arguments:
        tensor: where it comes
        src: the process, by its rank in the world; None takes any
        group: the processes; None takes all
        tag: that of the send
        group_src: the process, by its rank in the group

    Returns: int.

    Example:
        >>> tp.distributed.recv(tp.zeros(2), src=1)  # doctest: +SKIP
        1
    """
    if groups.is_outside("recv", group):
        return -1
    return _receive("recv", tensor, src, group, tag, group_src, False)[1][0]


class P2POp:
    """A message to or from another process, for batch_isend_irecv.

    Arguments:
        op: isend or irecv
        tensor: what goes, or where it comes
        peer: the other process, by its rank in the world
        group: the processes; None takes all
        tag: a receive gets what was sent with its tag
        group_peer: the other process, by its rank in the group

    Raises: ValueError for another op than isend or irecv.

    Example:
        >>> message = tp.distributed.P2POp(tp.distributed.isend, tp.ones(2), 0)
        >>> message.peer
        0
    """

    group: Any
    op: Any
    peer: int | None
    tag: int
    tensor: Tensor

    def __init__(
        self, op: Any, tensor: Tensor, peer: int | None = None, group: Any = None, tag: int = 0,
        group_peer: int | None = None,
    ) -> None:  # fmt: skip
        if op not in (isend, irecv):
            raise ValueError("Invalid ``op``: that of a P2POp is distributed.isend or distributed.irecv")
        self.op, self.tensor, self.peer, self.group, self.tag = op, tensor, peer, group, tag
        self.group_peer = group_peer


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Begins several sends and receives; a Work for each.

    Arguments:
        p2p_op_list: what is sent and received, all in one group

    Returns: a list of Works.

    Raises: ValueError for what is no list of P2POp, or messages of several groups.

    Example:
        >>> x, to = tp.zeros(2), tp.distributed  # in a world of two processes, each with the other's rank
        >>> sent, received = to.P2POp(to.isend, tp.ones(2), rank), to.P2POp(to.irecv, x, rank)  # doctest: +SKIP
        >>> for work in to.batch_isend_irecv([sent, received]):  # doctest: +SKIP
        ...     work.wait()
    """
    groups.of(None)
    if not all(isinstance(message, P2POp) for message in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``: batch_isend_irecv takes a list of P2POp")
    if len({id(message.group) for message in p2p_op_list}) > 1:
        raise ValueError("batch_isend_irecv: all messages are of one group")
    begun = []
    for each in p2p_op_list:
        work = each.op(each.tensor, each.peer, each.group, each.tag, each.group_peer)
        begun += [] if work is None else [work]
    return begun


__all__ = ["P2POp", "batch_isend_irecv", "irecv", "isend", "recv", "send"]
