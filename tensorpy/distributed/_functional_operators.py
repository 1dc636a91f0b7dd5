"""Collectives as operators: new tensors, groups by name, and wait_tensor, which waits for what an operator began.

The YAML declares them (native_functions/collective.yaml): schemas, shapes on Meta, gradients. This has the kernels. A
message is under way when its operator returns. Memory that it writes is kept with its Work until somebody waits, or the
next collective finds it done.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import tensorpy as tp
from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.distributed import collectives, groups
from tensorpy.distributed.groups import ProcessGroup
from tensorpy.distributed.point_to_point import irecv, isend
from tensorpy.distributed.reduce_op import ReduceOp
from tensorpy.distributed.work import Work

OPERATIONS = {op.name.lower(): op for op in ReduceOp if op is not ReduceOp.PREMUL_SUM}

# ---- what is under way ----

_lock = threading.Lock()
_under_way: dict[int, list[tuple[Tensor, Work]]] = {}  # by where the memory is, which the tensor beside the Work keeps


def _note(tensor: Tensor, work: Work | None) -> None:
    with _lock:
        for place in [p for p, several in _under_way.items() if all(w.is_success() for _, w in several)]:
            del _under_way[place]
        if work is not None and not work.is_success():
            _under_way.setdefault(tensor.untyped_storage().data_ptr(), []).append((tensor, work))


def _wait(tensor: Tensor) -> None:
    with _lock:
        several = _under_way.pop(tensor.untyped_storage().data_ptr(), []) if _under_way else []
    for _, work in several:
        work.wait(None)


# ---- groups and operations by their names ----


def group_of(name: str) -> ProcessGroup:
    """The group of a name; RuntimeError without one."""
    found = groups.made.get(name)
    if found is None:
        raise RuntimeError(f"Could not resolve the process group registered under the name {name}")
    return found


def _operation(name: str) -> ReduceOp:
    found = OPERATIONS.get(name.lower())
    if found is None:
        raise ValueError(f"reduce_op is one of {', '.join(OPERATIONS)}, not {name!r}")
    return found


def _sized(name: str, group_size: int, group_name: str) -> ProcessGroup:
    found = group_of(group_name)
    if found.size() != group_size:
        raise ValueError(f"{name}: group_size is {group_size}, and the group {group_name} has {found.size()} processes")
    return found


# ---- kernels ----


def _like_meta(name: str, input: Tensor, *rest: Any) -> Tensor:
    """Memory for what the operator gives, by its shape on Meta."""
    return input.new_empty(_C._op_overload(f"_c10d_functional::{name}")(input.to("meta"), *rest).shape)


def _given(tensor: Tensor, found: ProcessGroup) -> Tensor:
    """What goes: a copy, as the caller may write its tensor while a message is under way."""
    return tensor if found._is_one() else tensor.clone(memory_format=tp.contiguous_format)


def _all_reduce(input: Tensor, reduce_op: str, group_name: str) -> Tensor:
    out = input.clone(memory_format=tp.contiguous_format)
    return _all_reduce_(out, reduce_op, group_name)


def _all_reduce_(input: Tensor, reduce_op: str, group_name: str) -> Tensor:
    _note(input, collectives.all_reduce(input, _operation(reduce_op), group_of(group_name), True))
    return input


def _broadcast(input: Tensor, src: int, group_name: str) -> Tensor:
    return _broadcast_(input.clone(memory_format=tp.contiguous_format), src, group_name)


def _broadcast_(input: Tensor, src: int, group_name: str) -> Tensor:
    _note(input, collectives.broadcast(input, group=group_of(group_name), async_op=True, group_src=src))
    return input


def _all_gather(input: Tensor, group_size: int, group_name: str) -> Tensor:
    return _all_gather_out(
        input, group_size, group_name, out=_like_meta("all_gather_into_tensor", input, group_size, group_name)
    )


def _all_gather_out(input: Tensor, group_size: int, group_name: str, *, out: Tensor) -> Tensor:
    found = _sized("all_gather_into_tensor", group_size, group_name)
    _note(out, collectives.all_gather_into_tensor(out, _given(input, found), found, True))
    return out


def _reduce_scatter(input: Tensor, reduce_op: str, group_size: int, group_name: str) -> Tensor:
    return _reduce_scatter_out(
        input,
        reduce_op,
        group_size,
        group_name,
        out=_like_meta("reduce_scatter_tensor", input, reduce_op, group_size, group_name),
    )


def _reduce_scatter_out(input: Tensor, reduce_op: str, group_size: int, group_name: str, *, out: Tensor) -> Tensor:
    found = _sized("reduce_scatter_tensor", group_size, group_name)
    _note(out, collectives.reduce_scatter_tensor(out, _given(input, found), _operation(reduce_op), found, True))
    return out


def _all_to_all(input: Tensor, output_split_sizes: list[int], input_split_sizes: list[int], group_name: str) -> Tensor:
    found = group_of(group_name)
    out = _like_meta("all_to_all_single", input, output_split_sizes, input_split_sizes, group_name)
    if found._is_one() and (len(output_split_sizes), len(input_split_sizes), *out.shape) != (1, 1, *input.shape):
        raise ValueError(f"all_to_all_single: {input_split_sizes} are no sizes of one part of {list(input.shape)}")
    given = _given(input, found)
    _note(out, collectives.all_to_all_single(out, given, output_split_sizes, input_split_sizes, found, True))
    return out


def _resharded(tensor: Tensor, gather_dim: int, shard_dim: int, group_name: str) -> Tensor:
    size, shape = group_of(group_name).size(), list(tensor.shape)
    if shape[shard_dim] % size:
        raise ValueError(f"shard_dim_alltoall: {shape[shard_dim]} of dimension {shard_dim} is no multiple of {size}")
    shape[gather_dim] *= size
    shape[shard_dim] //= size
    return tensor.new_empty(shape)


def _shard_dim_alltoall(input: Tensor, gather_dim: int, shard_dim: int, group_name: str) -> Tensor:
    """A tensor that is cut along gather_dim, cut along shard_dim instead."""
    found, made = group_of(group_name), _resharded(input, gather_dim, shard_dim, group_name)
    sent = tp.cat([part.reshape(1, -1) for part in input.chunk(found.size(), shard_dim)])
    came = tp.empty_like(sent)
    collectives.all_to_all_single(came, sent, group=found)
    part = list(input.shape)
    part[shard_dim] //= found.size()
    return tp.cat([each.view(part) for each in came], gather_dim, out=made)


def _all_reduce_list_(inputs: list[Tensor], reduce_op: str, group_name: str) -> None:
    for tensor in inputs:
        _all_reduce_(tensor, reduce_op, group_name)


# What is sent to one process has no result: a tensor without elements stands for its message, until somebody waits.


def _ticket(tensor: Tensor) -> Tensor:
    return tensor.new_empty(1)[:0]  # it has an address of its own


def _isend(tensor: Tensor, dst: int, tag: int, group_name: str) -> Tensor:
    found, made = group_of(group_name), _ticket(tensor)
    _note(made, isend(_given(tensor, found), group=found, tag=tag, group_dst=dst))
    return made


def _irecv(tensor: Tensor, src: int, tag: int, group_name: str) -> Tensor:
    _note(tensor, irecv(tensor, group=group_of(group_name), tag=tag, group_src=src))
    return tensor.detach()


def _wait_tensor(tensor: Tensor) -> Tensor:
    _wait(tensor)
    return tensor.detach()


def _each(kernel: Callable[..., Tensor]) -> Callable[..., list[Tensor]]:
    """The same of a list's tensors: all of them are under way together."""
    return lambda inputs, *rest: [kernel(tensor, *rest) for tensor in inputs]


# ---- registration ----

_KERNELS: dict[str, Callable[..., Any]] = {
    "all_reduce": _all_reduce,
    "all_reduce_": _all_reduce_,
    "all_reduce_coalesced": _each(_all_reduce),
    "all_reduce_coalesced_": _all_reduce_list_,
    "isend": _isend,
    "irecv": _irecv,
    "broadcast": _broadcast,
    "broadcast_": _broadcast_,
    "all_gather_into_tensor_out": _all_gather_out,
    "reduce_scatter_tensor_out": _reduce_scatter_out,
    "all_gather_into_tensor_coalesced": _each(_all_gather),
    "reduce_scatter_tensor_coalesced": _each(_reduce_scatter),
    "wait_tensor": _wait_tensor,
}
_OF_BOTH: dict[str, Callable[..., Any]] = {
    "all_gather_into_tensor": _all_gather,
    "reduce_scatter_tensor": _reduce_scatter,
    "all_to_all_single": _all_to_all,
}
_OF_DTENSORS: dict[str, Callable[..., Any]] = {"shard_dim_alltoall": _shard_dim_alltoall}


def _register(space: str, kernels: dict[str, Callable[..., Any]], key: str = "CompositeExplicitAutograd") -> None:
    for name, kernel in kernels.items():
        _C._register(f"{space}::{name}", key, kernel, False, __name__, True)


_register("_c10d_functional", {**_KERNELS, **_OF_BOTH})
_register("_c10d_functional_autograd", _OF_BOTH)
_register("_dtensor", _OF_DTENSORS)
_register("_dtensor", {"shard_dim_alltoall": _resharded}, "Meta")
