"""Collectives as operators: new tensors, groups by name, and wait_tensor, which waits for what an operator began.

Each is declared by PyTorch's schema in the namespace `_c10d_functional`, so that traces, profiles and Meta know it. A
message is under way when its operator returns. Memory that it writes is kept with its Work until somebody waits, or the
next collective finds it done.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import tensorpy as tp
from tensorpy._C import Tensor
from tensorpy.distributed import collectives, groups
from tensorpy.distributed.groups import ProcessGroup
from tensorpy.distributed.point_to_point import irecv, isend
from tensorpy.distributed.reduce_op import ReduceOp
from tensorpy.distributed.work import Work
from tensorpy.library import Library, register_autograd, register_fake

_library = Library("_c10d_functional", "DEF")
_older = Library("_c10d_functional_autograd", "DEF")
_of_dtensors = Library("_dtensor", "DEF")
ops: Any = tp.ops._c10d_functional

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
        work.wait()


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


# ---- shapes ----


def _gathered(tensor: Tensor, group_size: int) -> Tensor:
    shape = (tensor.shape[0] * group_size, *tensor.shape[1:]) if tensor.ndim else (group_size,)
    return tensor.new_empty(shape)


def _scattered(tensor: Tensor, group_size: int) -> Tensor:
    if group_size < 1 or not tensor.ndim or tensor.shape[0] % group_size:
        raise ValueError(f"reduce_scatter_tensor: {list(tensor.shape)} is not {group_size} parts of one size")
    return tensor.new_empty((tensor.shape[0] // group_size, *tensor.shape[1:]))


def _exchanged(tensor: Tensor, output_split_sizes: Sequence[int]) -> Tensor:
    if any(n < 0 for n in output_split_sizes) or not tensor.ndim:
        raise ValueError(f"all_to_all_single: {list(output_split_sizes)} are no sizes of parts")
    return tensor.new_empty((sum(output_split_sizes), *tensor.shape[1:]))


def _alike(tensor: Tensor, *_: Any) -> Tensor:
    return tp.empty_like(tensor, memory_format=tp.contiguous_format)


# ---- kernels ----


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
    return _all_gather_out(input, group_size, group_name, out=_gathered(input, group_size))


def _all_gather_out(input: Tensor, group_size: int, group_name: str, *, out: Tensor) -> Tensor:
    found = _sized("all_gather_into_tensor", group_size, group_name)
    _note(out, collectives.all_gather_into_tensor(out, _given(input, found), found, True))
    return out


def _reduce_scatter(input: Tensor, reduce_op: str, group_size: int, group_name: str) -> Tensor:
    return _reduce_scatter_out(input, reduce_op, group_size, group_name, out=_scattered(input, group_size))


def _reduce_scatter_out(input: Tensor, reduce_op: str, group_size: int, group_name: str, *, out: Tensor) -> Tensor:
    found = _sized("reduce_scatter_tensor", group_size, group_name)
    _note(out, collectives.reduce_scatter_tensor(out, _given(input, found), _operation(reduce_op), found, True))
    return out


def _all_to_all(input: Tensor, output_split_sizes: list[int], input_split_sizes: list[int], group_name: str) -> Tensor:
    found, out = group_of(group_name), _exchanged(input, output_split_sizes)
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


# ---- gradients ----


def _sums_alone(name: str, op: str) -> None:
    if op.lower() != "sum":
        raise RuntimeError(f"{name} backward only supports 'sum' reduction, got '{op.lower()}'")


def _all_reduce_grad(rest: Any, grad: Tensor) -> Tensor:
    _sums_alone("all_reduce", rest[0])
    return ops.all_reduce(grad.contiguous(), *rest)


def _all_gather_grad(rest: Any, grad: Tensor) -> Tensor:
    return ops.reduce_scatter_tensor(grad.contiguous(), "sum", *rest)


def _reduce_scatter_grad(rest: Any, grad: Tensor) -> Tensor:
    _sums_alone("reduce_scatter_tensor", rest[0])
    return ops.all_gather_into_tensor(grad.contiguous(), *rest[1:])


def _all_to_all_grad(rest: Any, grad: Tensor) -> Tensor:
    outputs, inputs, group_name = rest
    return ops.all_to_all_single(grad.contiguous(), inputs, outputs, group_name)


def _shard_dim_alltoall_grad(rest: Any, grad: Tensor) -> Tensor:
    gather_dim, shard_dim, group_name = rest
    return tp.ops._dtensor.shard_dim_alltoall(grad, shard_dim, gather_dim, group_name)


def _backward(grad_of: Callable[[Any, Tensor], Tensor]) -> Callable[..., Any]:
    def backward(ctx: Any, *grads: Any) -> Any:
        given = grads[0] if ctx.is_list else grads  # of a list of results, a list
        begun = [grad_of(ctx.rest, grad) for grad in given]
        ended = [ops.wait_tensor(tensor) for tensor in begun]
        return (ended if ctx.is_list else ended[0], *[None] * len(ctx.rest))

    return backward


def _keep_list(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.rest, ctx.is_list = inputs[1:], isinstance(inputs[0], (list, tuple))


# ---- declarations ----


def _declare(
    schema: str,
    kernel: Callable[..., Any],
    meta: Callable[..., Any],
    gradient: Callable[[Any, Tensor], Tensor] | None = None,
    *tags: str,
    library: Library = _library,
) -> None:
    name = f"{library.ns}::{schema.partition('(')[0]}"
    library.define(schema, tags=("pt2_compliant_tag", *tags))
    library.impl(name, kernel, "CompositeExplicitAutograd")
    register_fake(name, meta, lib=library)
    if gradient is not None:
        register_autograd(name, _backward(gradient), setup_context=_keep_list, lib=library)


_PLAIN = "needs_contiguous_strides"
_GATHER = "all_gather_into_tensor(Tensor input, int group_size, str group_name) -> Tensor"
_SCATTER = "reduce_scatter_tensor(Tensor input, str reduce_op, int group_size, str group_name) -> Tensor"
_EXCHANGE = (
    "all_to_all_single(Tensor input, SymInt[] output_split_sizes, SymInt[] input_split_sizes, str group_name) -> Tensor"
)


def _declare_all() -> None:
    _declare("all_reduce(Tensor input, str reduce_op, str group_name) -> Tensor", _all_reduce, _alike, _all_reduce_grad)
    _declare(
        "all_reduce_(Tensor(a!) input, str reduce_op, str group_name) -> Tensor(a!)", _all_reduce_, lambda t, *_: t
    )
    _declare(
        "all_reduce_coalesced(Tensor[] inputs, str reduce_op, str group_name) -> Tensor[]",
        _each(_all_reduce),
        lambda ts, *_: [_alike(t) for t in ts],
        _all_reduce_grad,
    )
    _declare(
        "all_reduce_coalesced_(Tensor[](a!) inputs, str reduce_op, str group_name) -> Tensor[](a!)",
        _all_reduce_list_, lambda *_: None,
    )  # fmt: skip
    _declare("isend(Tensor tensor, int dst, int tag, str group_name) -> Tensor", _isend, lambda t, *_: _ticket(t))
    _declare("irecv(Tensor tensor, int src, int tag, str group_name) -> Tensor", _irecv, _alike)
    _declare("broadcast(Tensor input, int src, str group_name) -> Tensor", _broadcast, _alike)
    _declare("broadcast_(Tensor(a!) input, int src, str group_name) -> Tensor(a!)", _broadcast_, lambda t, *_: t)
    for library in (_library, _older):
        _declare(
            _GATHER, _all_gather, lambda t, n, _: _gathered(t, n), _all_gather_grad, _PLAIN, library=library
        )  # fmt: skip
        _declare(
            _SCATTER, _reduce_scatter, lambda t, _, n, __: _scattered(t, n), _reduce_scatter_grad, _PLAIN,
            library=library,
        )  # fmt: skip
        _declare(
            _EXCHANGE, _all_to_all, lambda t, sizes, *_: _exchanged(t, sizes), _all_to_all_grad, _PLAIN,
            library=library,
        )  # fmt: skip
    _declare(
        "all_gather_into_tensor_out(Tensor input, int group_size, str group_name, *, Tensor(a!) out) -> Tensor(a!)",
        _all_gather_out, lambda t, n, _, *, out: out, None, _PLAIN, "out",
    )  # fmt: skip
    _declare(
        "reduce_scatter_tensor_out(Tensor input, str reduce_op, int group_size, str group_name, *, Tensor(a!) out)"
        " -> Tensor(a!)",
        _reduce_scatter_out, lambda t, _, n, __, *, out: out, None, _PLAIN, "out",
    )  # fmt: skip
    _declare(
        "all_gather_into_tensor_coalesced(Tensor[] inputs, int group_size, str group_name) -> Tensor[]",
        _each(_all_gather), lambda ts, n, _: [_gathered(t, n) for t in ts], _all_gather_grad, _PLAIN,
    )  # fmt: skip
    _declare(
        "reduce_scatter_tensor_coalesced(Tensor[] inputs, str reduce_op, int group_size, str group_name) -> Tensor[]",
        _each(_reduce_scatter), lambda ts, _, n, __: [_scattered(t, n) for t in ts], _reduce_scatter_grad, _PLAIN,
    )  # fmt: skip
    _declare(
        "shard_dim_alltoall(Tensor input, int gather_dim, int shard_dim, str group_name) -> Tensor",
        _shard_dim_alltoall, _resharded, _shard_dim_alltoall_grad, library=_of_dtensors,
    )  # fmt: skip
    _declare("wait_tensor(Tensor tensor) -> Tensor", _wait_tensor, _alike, lambda rest, grad: grad)


_declare_all()
