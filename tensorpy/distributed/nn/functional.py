"""Collectives that record gradients: what comes back is new, and its gradient goes the other way.

All processes of a group call backward, too, in one order: the gradient of a message is a message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorpy as tp
from tensorpy._C import Tensor
from tensorpy.autograd import Function
from tensorpy.distributed import collectives, groups
from tensorpy.distributed.groups import group as group
from tensorpy.distributed.reduce_op import ReduceOp

__all__ = [
    "all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "reduce", "reduce_scatter",
    "scatter",
]  # fmt: skip


def _copy(tensor: Tensor) -> Tensor:
    return tensor.detach().clone(memory_format=tp.contiguous_format)


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, tensor: Tensor) -> Tensor:
        ctx.given = src, group
        out = _copy(tensor)
        collectives.broadcast(out, src, group)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        src, group = ctx.given
        total = _Reduce.apply(src, ReduceOp.SUM, group, grads[0])
        return None, None, total if groups.get_rank() == src else tp.zeros_like(total)


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, op: Any, group: Any, tensor: Tensor) -> Tensor:
        ctx.given = dst, group
        out = _copy(tensor)
        collectives.reduce(out, dst, op, group)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, None, None, _Broadcast.apply(*ctx.given, grads[0])


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, group: Any, tensor: Tensor) -> tuple[Tensor, ...]:
        ctx.given = dst, group
        outs = [tp.zeros_like(tensor, memory_format=tp.contiguous_format) for _ in range(groups.get_world_size(group))]
        collectives.gather(_copy(tensor), outs if groups.get_rank() == dst else None, dst, group)
        return tuple(outs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, None, _Scatter.apply(*ctx.given, *grads)


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, *tensors: Tensor) -> Tensor:
        ctx.given = src, group
        out = tp.zeros_like(tensors[0], memory_format=tp.contiguous_format)
        collectives.scatter(out, [_copy(t) for t in tensors] if groups.get_rank() == src else None, src, group)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, None, *_Gather.apply(*ctx.given, grads[0])


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, like: Tensor, *tensors: Tensor) -> Tensor:
        ctx.group = group
        out = tp.empty_like(like, memory_format=tp.contiguous_format)
        collectives.reduce_scatter(out, [_copy(t) for t in tensors], op, group)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, None, None, *_AllGather.apply(ctx.group, grads[0])


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, tensor: Tensor) -> tuple[Tensor, ...]:
        ctx.group = group
        outs = [tp.empty_like(tensor, memory_format=tp.contiguous_format) for _ in range(groups.get_world_size(group))]
        collectives.all_gather(outs, _copy(tensor), group)
        return tuple(outs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, _ReduceScatter.apply(ReduceOp.SUM, ctx.group, grads[0], *grads)


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, shapes: Sequence[Any], *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.group, ctx.shapes = group, [t.shape for t in tensors]
        outs = [tensors[0].new_empty(shape) for shape in shapes]
        collectives.all_to_all(outs, [_copy(t) for t in tensors], group)
        return tuple(outs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, None, *_AllToAll.apply(ctx.group, ctx.shapes, *grads)


class _AllToAllSingle(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, shape: Any, outputs: Any, inputs: Any, tensor: Tensor) -> Tensor:
        ctx.given = group, tensor.shape, inputs, outputs
        out = tensor.new_empty(shape)
        collectives.all_to_all_single(out, _copy(tensor), outputs, inputs, group)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, None, None, None, _AllToAllSingle.apply(*ctx.given, grads[0])


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, tensor: Tensor) -> Tensor:
        ctx.given = op, group
        out = _copy(tensor)
        collectives.all_reduce(out, op, group)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, None, _AllReduce.apply(*ctx.given, grads[0])


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """One process's tensor, in each; its gradient is the sum of theirs.

    Arguments:
        tensor: what goes from src; in the others a tensor like it
        src: the process, by its rank in the world
        group: the processes; None takes all

    Example:
        >>> tp.distributed.nn.functional.broadcast(tp.ones(2), 0)  # in a world of one process
        tensor([1., 1.])
    """
    return _Broadcast.apply(src, groups.of(group), tensor)


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """All processes' tensors in one of them, zeros in the others.

    Arguments:
        tensor: what this process gives
        dst: where they come, by its rank in the world
        group: the processes; None takes all

    Example:
        >>> tp.distributed.nn.functional.gather(tp.ones(2))
        (tensor([1., 1.]),)
    """
    return _Gather.apply(dst, groups.of(group), tensor)


def scatter(tensors: Sequence[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """This process's tensor of a list that one process has.

    Arguments:
        tensors: a tensor for each process; in the others tensors like them
        src: whose list it is, by its rank in the world
        group: the processes; None takes all

    Example:
        >>> tp.distributed.nn.functional.scatter([tp.ones(2)])
        tensor([1., 1.])
    """
    return _Scatter.apply(src, groups.of(group), *tensors)


def reduce(tensor: Tensor, dst: int, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """All processes' tensors as one, in one of them; its gradient goes to all.

    Arguments:
        tensor: what this process gives
        dst: where the result comes, by its rank in the world
        op: how they become one
        group: the processes; None takes all

    Example:
        >>> tp.distributed.nn.functional.reduce(tp.ones(2), 0)
        tensor([1., 1.])
    """
    return _Reduce.apply(dst, op, groups.of(group), tensor)


def reduce_scatter(output: Tensor, input_list: Sequence[Tensor], op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """This process's tensor of lists that become one.

    Arguments:
        output: a tensor like the result
        input_list: a tensor for each process
        op: how the processes' lists become one
        group: the processes; None takes all

    Example:
        >>> tp.distributed.nn.functional.reduce_scatter(tp.empty(2), [tp.ones(2)])
        tensor([1., 1.])
    """
    return _ReduceScatter.apply(op, groups.of(group), output, *input_list)


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """All processes' tensors, in each; a tensor's gradient is the sum of all processes'.

    Arguments:
        tensor: what this process gives
        group: the processes; None takes all

    Example:
        >>> tp.distributed.nn.functional.all_gather(tp.ones(2))
        (tensor([1., 1.]),)
    """
    return _AllGather.apply(groups.of(group), tensor)


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None
) -> tuple[Tensor, ...]:
    """Each process's tensor for this one.

    Arguments:
        output_tensor_list: tensors like the results
        input_tensor_list: a tensor for each process
        group: the processes; None takes all

    Example:
        >>> tp.distributed.nn.functional.all_to_all([tp.empty(2)], [tp.ones(2)])
        (tensor([1., 1.]),)
    """
    return _AllToAll.apply(groups.of(group), [t.shape for t in output_tensor_list], *input_tensor_list)


def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: Any = None, input_split_sizes: Any = None, group: Any = None
) -> Tensor:
    """Each process's part for this one, after each other.

    Arguments:
        output: a tensor like the result
        input: the parts for all processes, after each other
        output_split_sizes: how long the first dimension of each process's part is; None: all alike
        input_split_sizes: the same of what goes
        group: the processes; None takes all

    Example:
        >>> tp.distributed.nn.functional.all_to_all_single(tp.empty(2), tp.ones(2))
        tensor([1., 1.])
    """
    return _AllToAllSingle.apply(groups.of(group), output.shape, output_split_sizes, input_split_sizes, input)


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """All processes' tensors as one, in each; so is its gradient.

    Arguments:
        tensor: what this process gives
        op: how they become one
        group: the processes; None takes all

    Example:
        >>> tp.distributed.nn.functional.all_reduce(tp.ones(2))
        tensor([1., 1.])
    """
    return _AllReduce.apply(op, groups.of(group), tensor)
