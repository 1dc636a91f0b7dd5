"""The methods of a ProcessGroup that send: what collectives.py has, with PyTorch's options and lists of one tensor.

They give a Work at once. Ranks are those of the group.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

from tensorpy._C import Tensor
from tensorpy.distributed import collectives, point_to_point
from tensorpy.distributed.groups import ProcessGroup, place
from tensorpy.distributed.own_groups import AS_METHODS, has
from tensorpy.distributed.reduce_op import ReduceOp
from tensorpy.distributed.work import Work, seconds_of


@dataclass
class _Options:
    timeout: timedelta | None = None
    asyncOp: bool = True


@dataclass
class _Rooted(_Options):
    rootRank: int = 0
    rootTensor: int = 0


@dataclass
class AllreduceOptions(_Options):
    """What ProcessGroup.allreduce takes.

    Arguments:
        timeout: a timedelta, after which the message is late; None takes the group's
        asyncOp: is taken
        reduceOp: how values become one

    Example:
        >>> tp.distributed.distributed_c10d.AllreduceOptions().reduceOp.name
        'SUM'
    """

    reduceOp: Any = ReduceOp.SUM


class AllreduceCoalescedOptions(AllreduceOptions):
    """What ProcessGroup.allreduce_coalesced takes.

    Arguments:
        timeout: a timedelta, after which the message is late; None takes the group's
        asyncOp: is taken
        reduceOp: how values become one

    Example:
        >>> tp.distributed.distributed_c10d.AllreduceCoalescedOptions().reduceOp.name
        'SUM'
    """


class ReduceScatterOptions(AllreduceOptions):
    """What ProcessGroup.reduce_scatter takes.

    Arguments:
        timeout: a timedelta, after which the message is late; None takes the group's
        asyncOp: is taken
        reduceOp: how values become one

    Example:
        >>> tp.distributed.distributed_c10d.ReduceScatterOptions().reduceOp.name
        'SUM'
    """


class BroadcastOptions(_Rooted):
    """What ProcessGroup.broadcast takes.

    Arguments:
        timeout: a timedelta, after which the message is late; None takes the group's
        asyncOp: is taken
        rootRank: from which process, or to which, by its rank in the group
        rootTensor: is taken

    Example:
        >>> tp.distributed.distributed_c10d.BroadcastOptions().rootRank
        0
    """


@dataclass
class ReduceOptions(_Rooted):
    """What ProcessGroup.reduce takes.

    Arguments:
        timeout: a timedelta, after which the message is late; None takes the group's
        asyncOp: is taken
        rootRank: from which process, or to which, by its rank in the group
        rootTensor: is taken
        reduceOp: how values become one

    Example:
        >>> tp.distributed.distributed_c10d.ReduceOptions().rootRank
        0
    """

    reduceOp: Any = ReduceOp.SUM


class GatherOptions(_Rooted):
    """What ProcessGroup.gather takes.

    Arguments:
        timeout: a timedelta, after which the message is late; None takes the group's
        asyncOp: is taken
        rootRank: from which process, or to which, by its rank in the group
        rootTensor: is taken

    Example:
        >>> tp.distributed.distributed_c10d.GatherOptions().rootRank
        0
    """


class ScatterOptions(_Rooted):
    """What ProcessGroup.scatter takes.

    Arguments:
        timeout: a timedelta, after which the message is late; None takes the group's
        asyncOp: is taken
        rootRank: from which process, or to which, by its rank in the group
        rootTensor: is taken

    Example:
        >>> tp.distributed.distributed_c10d.ScatterOptions().rootRank
        0
    """


class AllgatherOptions(_Options):
    """What ProcessGroup.allgather takes."""


class AllToAllOptions(_Options):
    """What ProcessGroup.alltoall takes.

    Arguments:
        timeout: a timedelta, after which the message is late; None takes the group's
        asyncOp: is taken

    Example:
        >>> tp.distributed.distributed_c10d.AllToAllOptions().asyncOp
        True
    """


@dataclass
class BarrierOptions(_Options):
    """What ProcessGroup.barrier takes.

    Arguments:
        timeout: a timedelta, after which the message is late; None takes the group's
        asyncOp: is taken
        device_ids: is taken
        device: is taken

    Example:
        >>> tp.distributed.distributed_c10d.BarrierOptions().device_ids
        []
    """

    device_ids: list[int] = field(default_factory=list)
    device: Any = None


_Kind = TypeVar("_Kind", bound=_Options)


def _options(kind: type[_Kind], opts: Any, timeout: Any = None, **said: Any) -> Any:
    """The options: given, also in the place of the first value, or made of values."""
    for given in (opts, timeout, *said.values()):
        if isinstance(given, _Options):
            return given
    return kind(timeout=timeout, **{name: value for name, value in said.items() if value is not None})


def _sole(name: str, tensors: Any) -> Tensor:
    """A tensor, or the one of a list."""
    if isinstance(tensors, Tensor):
        return tensors
    if len(tensors) != 1:
        raise RuntimeError(f"ProcessGroup.{name}: requires a single-element tensor list, not one of {len(tensors)}")
    only: Tensor = tensors[0]
    return only


def _root(name: str, said: Any, found: ProcessGroup) -> int:
    """The rank from which tensors come, or where they go."""
    if not 0 <= said.rootRank < found.size():
        raise RuntimeError(f"ProcessGroup.{name}: invalid root rank: {said.rootRank} of {found.size()}")
    if said.rootTensor != 0:
        raise RuntimeError(f"ProcessGroup.{name}: invalid root tensor: {said.rootTensor} of 1")
    return int(said.rootRank)


def _row(name: str, lists: Any, beside: Any) -> Any:
    """A list of tensors, or the one list of a list; beside it stands a tensor, or a list of one."""
    if isinstance(beside, Tensor):
        return lists
    if len(lists) > 1:
        raise ValueError(f"ProcessGroup.{name}: a list has one list of tensors, not {len(lists)}")
    return lists[0] if lists else None


class _Methods:
    def allreduce(self: Any, tensors: Any, op: Any = None, timeout: Any = None, *, opts: Any = None) -> Work:
        """all_reduce of a tensor, or of a list of one."""
        said = _options(AllreduceOptions, opts, timeout, reduceOp=op)
        return self._begun(said, collectives.all_reduce(_sole("allreduce", tensors), said.reduceOp, self, True))

    def allreduce_coalesced(self: Any, tensors: Any, opts: Any = None) -> Work:
        """all_reduce of each tensor of a list."""
        said = _options(AllreduceCoalescedOptions, opts)
        return self._begun(said, collectives.all_reduce_coalesced(tensors, said.reduceOp, self, True))

    def broadcast(self: Any, tensors: Any, root: Any = None, timeout: Any = None, *, opts: Any = None) -> Work:
        """broadcast of a tensor, or of a list of one."""
        said = _options(BroadcastOptions, opts, timeout, rootRank=root)
        tensor = _sole("broadcast", tensors)
        return self._begun(said, collectives.broadcast(tensor, None, self, True, _root("broadcast", said, self)))

    def reduce(
        self: Any, tensors: Any, root: Any = None, op: Any = None, timeout: Any = None, *, opts: Any = None
    ) -> Work:
        """reduce of a tensor, or of a list of one."""
        said = _options(ReduceOptions, opts, timeout, rootRank=root, reduceOp=op)
        tensor = _sole("reduce", tensors)
        return self._begun(
            said, collectives.reduce(tensor, None, said.reduceOp, self, True, _root("reduce", said, self))
        )

    def allgather(self: Any, output_tensors: Any, input_tensors: Any, timeout: Any = None, *, opts: Any = None) -> Work:
        """all_gather of a tensor, or of a list of one into a list of one list."""
        said = _options(AllgatherOptions, opts, timeout)
        row, tensor = _row("allgather", output_tensors, input_tensors), _sole("allgather", input_tensors)
        return self._begun(said, collectives.all_gather(row or [], tensor, self, True))

    def _allgather_base(self: Any, output: Tensor, input: Tensor, opts: Any = None) -> Work:
        said = _options(AllgatherOptions, opts)
        return self._begun(said, collectives.all_gather_into_tensor(output, input, self, True))

    def allgather_coalesced(self: Any, output_lists: Any, input_list: Any, opts: Any = None) -> Work:
        """all_gather of each tensor of a list."""
        said = _options(AllgatherOptions, opts)
        return self._begun(said, collectives.all_gather_coalesced(output_lists, input_list, self, True))

    def allgather_into_tensor_coalesced(self: Any, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        """all_gather_into_tensor of each tensor of a list."""
        pairs = zip(outputs, inputs, strict=True)
        return collectives.together([self._allgather_base(output, input, opts) for output, input in pairs])

    def gather(
        self: Any, output_tensors: Any, input_tensors: Any, root: Any = None, timeout: Any = None, *, opts: Any = None
    ) -> Work:
        """gather of a tensor, or of a list of one into a list of one list."""
        said = _options(GatherOptions, opts, timeout, rootRank=root)
        row, tensor = _row("gather", output_tensors, input_tensors), _sole("gather", input_tensors)
        return self._begun(said, collectives.gather(tensor, row, None, self, True, _root("gather", said, self)))

    def scatter(
        self: Any, output_tensors: Any, input_tensors: Any, root: Any = None, timeout: Any = None, *, opts: Any = None
    ) -> Work:
        """scatter into a tensor, or of a list of one list into a list of one."""
        said = _options(ScatterOptions, opts, timeout, rootRank=root)
        row, tensor = _row("scatter", input_tensors, output_tensors), _sole("scatter", output_tensors)
        return self._begun(said, collectives.scatter(tensor, row, None, self, True, _root("scatter", said, self)))

    def reduce_scatter(
        self: Any, output_tensors: Any, input_tensors: Any, op: Any = None, timeout: Any = None, *, opts: Any = None
    ) -> Work:
        """reduce_scatter into a tensor, or of a list of one list into a list of one."""
        said = _options(ReduceScatterOptions, opts, timeout, reduceOp=op)
        row, tensor = _row("reduce_scatter", input_tensors, output_tensors), _sole("reduce_scatter", output_tensors)
        return self._begun(said, collectives.reduce_scatter(tensor, row or [], said.reduceOp, self, True))

    def _reduce_scatter_base(self: Any, output: Tensor, input: Tensor, opts: Any = None) -> Work:
        said = _options(ReduceScatterOptions, opts)
        return self._begun(said, collectives.reduce_scatter_tensor(output, input, said.reduceOp, self, True))

    def reduce_scatter_tensor_coalesced(self: Any, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        """reduce_scatter_tensor of each tensor of a list."""
        pairs = zip(outputs, inputs, strict=True)
        return collectives.together([self._reduce_scatter_base(output, input, opts) for output, input in pairs])

    def alltoall_base(
        self: Any, output: Tensor, input: Tensor, output_split_sizes: Any, input_split_sizes: Any,
        timeout: Any = None, *, opts: Any = None,
    ) -> Work:  # fmt: skip
        """all_to_all_single."""
        said, sizes = _options(AllToAllOptions, opts, timeout), (output_split_sizes, input_split_sizes)
        return self._begun(said, collectives.all_to_all_single(output, input, *sizes, self, True))

    def alltoall(self: Any, output_tensors: Any, input_tensors: Any, opts: Any = None) -> Work:
        """all_to_all."""
        said = _options(AllToAllOptions, opts)
        return self._begun(said, collectives.all_to_all(output_tensors, input_tensors, self, True))

    def barrier(self: Any, timeout: Any = None, *, opts: Any = None) -> Work:
        """The end of all processes' wait for each other."""
        said = _options(BarrierOptions, opts, timeout)
        return self._begun(said, collectives.barrier(self, True))

    def monitored_barrier(self: Any, timeout: Any = None, wait_all_ranks: bool = False) -> None:
        """Waits for the others, and says who did not come."""
        collectives.monitored_barrier(self, timeout, wait_all_ranks)

    def send(self: Any, tensors: Any, dstRank: int, tag: int = 0) -> Work:
        """Sends a tensor, or that of a list of one."""
        work: Any = point_to_point.isend(_sole("send", tensors), None, self, tag, dstRank)
        return work

    def recv(self: Any, tensors: Any, srcRank: int, tag: int = 0) -> Work:
        """Receives a tensor, or that of a list of one."""
        work: Any = point_to_point.irecv(_sole("recv", tensors), None, self, tag, srcRank)
        return work

    def recv_anysource(self: Any, tensors: Any, tag: int = 0) -> Work:
        """Receives from whoever sends first."""
        work: Any = point_to_point.irecv(_sole("recv", tensors), None, self, tag)
        return work

    def _begun(self: Any, said: _Options, work: Work | None) -> Work:
        assert work is not None
        work._seconds = seconds_of(said.timeout, self._seconds)
        return work


# ---- what functions ask of groups of Python's own ----


def _place(found: ProcessGroup, name: str, rank: Any, group_rank: Any) -> int:
    return place(name, found, rank, group_rank, 0 if found.size() == 1 else None)


def _single(found: ProcessGroup, newer: str, older: str) -> str:
    """PyTorch named methods of one tensor anew."""
    return newer if has(found, newer) else older


AS_METHODS.update(
    all_reduce=lambda g, t, op=ReduceOp.SUM, group=None, async_op=False: (
        "allreduce", ([t],), AllreduceOptions(reduceOp=op), async_op
    ),
    all_reduce_coalesced=lambda g, ts, op=ReduceOp.SUM, group=None, async_op=False: (
        "allreduce_coalesced", (ts,), AllreduceCoalescedOptions(reduceOp=op), async_op
    ),
    broadcast=lambda g, t, src=None, group=None, async_op=False, group_src=None: (
        "broadcast", ([t],), BroadcastOptions(rootRank=_place(g, "broadcast", src, group_src)), async_op
    ),
    reduce=lambda g, t, dst=None, op=ReduceOp.SUM, group=None, async_op=False, group_dst=None: (
        "reduce", ([t],), ReduceOptions(rootRank=_place(g, "reduce", dst, group_dst), reduceOp=op), async_op
    ),
    all_gather=lambda g, ts, t, group=None, async_op=False: ("allgather", ([ts], [t]), AllgatherOptions(), async_op),
    all_gather_into_tensor=lambda g, out, t, group=None, async_op=False: (
        _single(g, "all_gather_single", "_allgather_base"), (out, t), AllgatherOptions(), async_op
    ),
    gather=lambda g, t, ts=None, dst=None, group=None, async_op=False, group_dst=None: (
        "gather", ([ts] if ts else [], [t]), GatherOptions(rootRank=_place(g, "gather", dst, group_dst)), async_op
    ),
    scatter=lambda g, t, ts=None, src=None, group=None, async_op=False, group_src=None: (
        "scatter", ([t], [ts] if ts else []), ScatterOptions(rootRank=_place(g, "scatter", src, group_src)), async_op
    ),
    reduce_scatter=lambda g, t, ts, op=ReduceOp.SUM, group=None, async_op=False: (
        "reduce_scatter", ([t], [ts]), ReduceScatterOptions(reduceOp=op), async_op
    ),
    reduce_scatter_tensor=lambda g, out, t, op=ReduceOp.SUM, group=None, async_op=False: (
        _single(g, "reduce_scatter_single", "_reduce_scatter_base"), (out, t), ReduceScatterOptions(reduceOp=op),
        async_op,
    ),
    all_to_all=lambda g, outs, ts, group=None, async_op=False: ("alltoall", (outs, ts), AllToAllOptions(), async_op),
    all_to_all_single=lambda g, out, t, outs=None, ins=None, group=None, async_op=False: (
        "alltoall_base", (out, t, outs or [], ins or []), AllToAllOptions(), async_op
    ),
    barrier=lambda g, group=None, async_op=False, device_ids=None, timeout=None: (
        "barrier", (), BarrierOptions(), async_op
    ),
    isend=lambda g, t, dst=None, group=None, tag=0, group_dst=None: (
        "send", ([t], _place(g, "isend", dst, group_dst), tag), None, True
    ),
    send=lambda g, t, dst=None, group=None, tag=0, group_dst=None: (
        "send", ([t], _place(g, "send", dst, group_dst), tag), None, False
    ),
    irecv=lambda g, t, src=None, group=None, tag=0, group_src=None: (
        "recv", ([t], _place(g, "irecv", src, group_src), tag), None, True
    ),
    recv=lambda g, t, src=None, group=None, tag=0, group_src=None: (
        "recv", ([t], _place(g, "recv", src, group_src), tag), None, False
    ),
)  # fmt: skip

for _name, _method in vars(_Methods).items():
    if not _name.startswith("__"):
        setattr(ProcessGroup, _name, _method)

__all__: list[str] = []
