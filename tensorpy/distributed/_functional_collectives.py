"""Collectives that give new tensors, under PyTorch's names: what they return waits for its message at its first use.

They record gradients and are operators in graphs (_functional_operators.py). A group is a ProcessGroup, its name, a
mesh of one dimension, or a mesh and a dimension of it.
"""

from __future__ import annotations

from typing import Any

import tensorpy as tp
from tensorpy import _C
from tensorpy._C import Tensor, _tracer
from tensorpy.distributed import groups
from tensorpy.distributed._functional_operators import group_of
from tensorpy.distributed.device_mesh import DeviceMesh
from tensorpy.distributed.groups import ProcessGroup
from tensorpy.ops import _c10d_functional as ops
from tensorpy.utils._python_dispatch import is_in_torch_dispatch_mode
from tensorpy.utils._pytree import tree_map

# ---- groups ----


def _resolve_group(group: Any, tag: str = "") -> ProcessGroup:
    """The group that is meant."""
    if isinstance(group, ProcessGroup):
        return group
    if isinstance(group, str):
        return group_of(group)
    if isinstance(group, DeviceMesh):
        if group.ndim != 1:
            raise AssertionError("Only 1D mesh is supported, pass in (DeviceMesh, int) together if mesh > 1D")
        return group.get_group()
    if isinstance(group, tuple) and len(group) == 2 and isinstance(group[0], DeviceMesh) and isinstance(group[1], int):
        return group[0].get_group(group[1])
    if isinstance(group, list):
        flat = [r for part in group for r in (part if isinstance(part, list) else [part])]
        known = [g for g in groups.made.values() if list(g._ranks) == flat]
        if known:
            return known[0]
        raise ValueError(f"there is no group of the ranks {flat}: new_group() makes one")
    raise ValueError(f"Unsupported group type: {type(group)}, {group}")


def _resolve_group_name(group: Any, tag: str = "") -> str:
    return _resolve_group(group, tag).group_name


# ---- results that wait ----


class AsyncCollectiveTensor(Tensor):
    """A tensor whose elements are under way: its first use waits for them, a view does not.

    Arguments:
        elem: the tensor that a message writes
    """

    elem: Tensor
    completed: bool
    __torch_function__ = _C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, elem: Tensor) -> Any:
        return Tensor._make_wrapper_subclass(
            cls, elem.shape, strides=elem.stride(), storage_offset=elem.storage_offset(), dtype=elem.dtype,
            device=elem.device, requires_grad=elem.requires_grad,
        )  # fmt: skip

    def __init__(self, elem: Tensor) -> None:
        self.elem, self.completed = elem, False

    def __tensor_flatten__(self) -> Any:
        return ["elem"], None

    @staticmethod
    def __tensor_unflatten__(inner: Any, meta: Any, size: Any, stride: Any) -> Any:
        return AsyncCollectiveTensor(inner["elem"])

    def trigger_wait(self) -> Tensor:
        """The tensor, when its elements are there."""
        if not self.completed:
            self.elem = wait_tensor(self.elem)
            self.completed = True
        return self.elem

    wait = trigger_wait

    def tolist(self) -> Any:
        return self.trigger_wait().tolist()

    def numpy(self, *args: Any, **kwargs: Any) -> Any:
        return self.trigger_wait().numpy(*args, **kwargs)

    def item(self) -> Any:
        return self.trigger_wait().item()

    def __repr__(self, *args: Any, **kwargs: Any) -> str:
        return f"AsyncCollectiveTensor({self.trigger_wait()})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        def plain(value: Any) -> Any:
            return value.trigger_wait() if isinstance(value, AsyncCollectiveTensor) else value

        return func(*tree_map(plain, args), **tree_map(plain, kwargs or {}))


def _are_we_tracing() -> bool:
    """Whether calls are recorded, or a mode sees them: then waits are calls of their own."""
    recorder = _tracer.current()
    return recorder is not None or is_in_torch_dispatch_mode()


def _maybe_wrap_tensor(self: Tensor) -> Tensor:
    if _are_we_tracing() or self.requires_grad or self.device.type == "meta":
        return wait_tensor(self)
    return AsyncCollectiveTensor(self)


def _plain(tensor: Tensor) -> Tensor:
    return tensor.trigger_wait() if isinstance(tensor, AsyncCollectiveTensor) else tensor


def wait_tensor(tensor: Tensor) -> Tensor:
    """The tensor, when the message that writes it is done.

    Arguments:
        tensor: what a collective returned
    """
    return tensor.trigger_wait() if isinstance(tensor, AsyncCollectiveTensor) else ops.wait_tensor(tensor)


# ---- collectives ----


def broadcast(self: Tensor, src: int, group: Any, tag: str = "") -> Tensor:
    """The tensor of one process, in all.

    Arguments:
        self: what goes from src; in the others a tensor like it
        src: the process, by its rank in the group
        group: the processes
        tag: is taken
    """
    return _maybe_wrap_tensor(ops.broadcast(_plain(self), src, _resolve_group_name(group, tag)))


def all_reduce(self: Tensor, reduceOp: str, group: Any, tag: str = "") -> Tensor:
    """All processes' tensors as one, in each.

    Arguments:
        self: what this process gives
        reduceOp: sum, avg, product, min, max, band, bor, bxor
        group: the processes
        tag: is taken
    """
    return _maybe_wrap_tensor(ops.all_reduce(_plain(self), reduceOp.lower(), _resolve_group_name(group, tag)))


def all_gather_single(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Tensor:
    """The tensors of all processes after each other in a dimension.

    Arguments:
        self: what this process gives
        gather_dim: the dimension
        group: the processes
        tag: is taken
    """
    found = _resolve_group(group, tag)
    whole = _maybe_wrap_tensor(ops.all_gather_into_tensor(_plain(self), found.size(), found.group_name))
    if gather_dim in (0, -self.ndim):
        return whole
    return tp.cat(_plain(whole).chunk(found.size()), gather_dim)


def reduce_scatter_single(self: Tensor, reduceOp: str, scatter_dim: int, group: Any, tag: str = "") -> Tensor:
    """This process's part, in a dimension, of all processes' tensors as one.

    Arguments:
        self: what this process gives
        reduceOp: sum, avg, product, min, max, band, bor, bxor
        scatter_dim: the dimension
        group: the processes
        tag: is taken
    """
    found, given = _resolve_group(group, tag), _plain(self)
    if given.shape[scatter_dim] % found.size():
        raise AssertionError(f"{given.shape[scatter_dim]} of dimension {scatter_dim} is no multiple of {found.size()}")
    if scatter_dim not in (0, -given.ndim):
        given = tp.cat(given.chunk(found.size(), scatter_dim))
    return _maybe_wrap_tensor(
        ops.reduce_scatter_tensor(given, reduceOp.lower(), found.size(), found.group_name)
    )  # fmt: skip


def all_to_all_single(
    self: Tensor,
    output_split_sizes: list[int] | None,
    input_split_sizes: list[int] | None,
    group: Any,
    tag: str = "",
) -> Tensor:
    """This process's part of every process's tensor, after each other.

    Arguments:
        self: the parts for all processes, after each other
        output_split_sizes: how long the first dimension of each process's part is; None: all alike
        input_split_sizes: the same of what goes
        group: the processes
        tag: is taken
    """
    found, given = _resolve_group(group, tag), _plain(self)
    if (output_split_sizes is None) != (input_split_sizes is None):
        raise AssertionError(
            "output_split_sizes and input_split_sizes must either be specified together or both set to None"
        )
    alike = [given.shape[0] // found.size()] * found.size()
    outputs = alike if output_split_sizes is None else list(output_split_sizes)
    inputs = alike if input_split_sizes is None else list(input_split_sizes)
    return _maybe_wrap_tensor(ops.all_to_all_single(given, outputs, inputs, found.group_name))


def permute_tensor(self: Tensor, src_dst: list[int], group: Any, tag: str = "") -> Tensor:
    """The tensor of the process that sends to this one.

    Arguments:
        self: what this process gives
        src_dst: for each process of the group the one that it sends to
        group: the processes
        tag: is taken
    """
    found = _resolve_group(group, tag)
    if sorted(src_dst) != list(range(found.size())):
        raise ValueError(f"permute_tensor: {src_dst} is no order of {found.size()} processes")
    outputs, inputs = [0] * found.size(), [0] * found.size()
    rows = self.shape[0] if self.ndim else 1
    for src, dst in enumerate(src_dst):
        if src == found.rank():
            inputs[dst] = rows
        if dst == found.rank():
            outputs[src] = rows
    return all_to_all_single(self, outputs, inputs, found, tag)


# ---- several at once ----


def all_reduce_coalesced(self: list[Tensor], reduceOp: str, group: Any, tag: str = "") -> list[Tensor]:
    """all_reduce of each tensor of a list.

    Arguments:
        self: what this process gives
        reduceOp: sum, avg, product, min, max, band, bor, bxor
        group: the processes
        tag: is taken
    """
    name = _resolve_group_name(group, tag)
    made = ops.all_reduce_coalesced([_plain(t) for t in self], reduceOp.lower(), name)
    return [_maybe_wrap_tensor(t) for t in made]


def all_gather_single_coalesced(self: list[Tensor], group: Any, tag: str = "") -> list[Tensor]:
    """all_gather_single of each tensor of a list, in the first dimension.

    Arguments:
        self: what this process gives
        group: the processes
        tag: is taken
    """
    found = _resolve_group(group, tag)
    made = ops.all_gather_into_tensor_coalesced([_plain(t) for t in self], found.size(), found.group_name)
    return [_maybe_wrap_tensor(t) for t in made]


def reduce_scatter_single_coalesced(
    inputs: list[Tensor], reduceOp: str, scatter_dim: list[int], group: Any, tag: str = ""
) -> list[Tensor]:
    """reduce_scatter_single of each tensor of a list.

    Arguments:
        inputs: what this process gives
        reduceOp: sum, avg, product, min, max, band, bor, bxor
        scatter_dim: the dimension of each
        group: the processes
        tag: is taken
    """
    found = _resolve_group(group, tag)
    if len(scatter_dim) != len(inputs):
        raise AssertionError(f"{len(scatter_dim)} dimensions for {len(inputs)} tensors")
    given = []
    for tensor, dim in zip(map(_plain, inputs), scatter_dim, strict=True):
        if tensor.shape[dim] % found.size():
            raise AssertionError(f"{tensor.shape[dim]} of dimension {dim} is no multiple of {found.size()} processes")
        given.append(tensor if dim in (0, -tensor.ndim) else tp.cat(tensor.chunk(found.size(), dim)))
    made = ops.reduce_scatter_tensor_coalesced(given, reduceOp.lower(), found.size(), found.group_name)
    return [_maybe_wrap_tensor(t) for t in made]


# ---- what writes, by what does not ----


def _world(group: Any, async_op: bool) -> Any:
    if async_op:
        raise AssertionError("a message that is waited for later has no functional form")
    return group or groups.of(None)


def all_reduce_inplace(
    tensor: Tensor, op: str = "sum", group: Any = None, async_op: bool = False, tag: str = ""
) -> Tensor:
    """all_reduce into the tensor itself.

    Arguments:
        tensor: what this process gives, and gets
        op: sum, avg, product, min, max, band, bor, bxor
        group: the processes; None takes all
        async_op: has to be False
        tag: is taken
    """
    return tensor.copy_(all_reduce(tensor, op, _world(group, async_op), tag))


def all_gather_tensor_inplace(
    output_tensor: Tensor,
    input_tensor: Tensor,
    group: Any = None,
    async_op: bool = False,
    tag: str = "",
    gather_dim: int = 0,
) -> Tensor:
    """all_gather_single into a tensor.

    Arguments:
        output_tensor: what this process gets
        input_tensor: what this process gives
        group: the processes; None takes all
        async_op: has to be False
        tag: is taken
        gather_dim: along which dimension parts stand after each other
    """
    return output_tensor.copy_(all_gather_single(input_tensor, gather_dim, _world(group, async_op), tag))


def reduce_scatter_tensor_inplace(
    output: Tensor,
    input: Tensor,
    op: str = "sum",
    group: Any = None,
    async_op: bool = False,
    scatter_dim: int = 0,
    tag: str = "",
) -> Tensor:
    """reduce_scatter_single into a tensor.

    Arguments:
        output: what this process gets
        input: what this process gives
        op: sum, avg, product, min, max, band, bor, bxor
        group: the processes; None takes all
        async_op: has to be False
        scatter_dim: along which dimension it is cut
        tag: is taken
    """
    return output.copy_(reduce_scatter_single(input, op, scatter_dim, _world(group, async_op), tag))


def all_to_all_inplace(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: Any = None,
    async_op: bool = False,
    tag: str = "",
) -> Tensor:
    """all_to_all_single into a tensor.

    Arguments:
        output: what this process gets
        input: what this process gives
        output_split_sizes: how many rows come from each process; None cuts it evenly
        input_split_sizes: how many rows go to each process; None cuts it evenly
        group: the processes; None takes all
        async_op: has to be False
        tag: is taken
    """
    found = _world(group, async_op)
    return output.copy_(all_to_all_single(input, output_split_sizes, input_split_sizes, found, tag))


def all_gather_inplace(
    tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False, tag: str = ""
) -> list[Tensor]:
    """all_gather into a list of tensors, which may differ in their first dimension.

    Arguments:
        tensor_list: what this process gets: a tensor of each process
        tensor: what this process gives
        group: the processes; None takes all
        async_op: has to be False
        tag: is taken
    """
    found = _world(group, async_op)
    most = max(len(each) for each in tensor_list) if tensor.ndim else 0
    given = tp.cat([tensor, tensor.new_zeros(most - len(tensor), *tensor.shape[1:])]) if tensor.ndim else tensor[None]
    parts = all_gather_single(given, 0, found, tag).chunk(len(tensor_list))
    for target, part in zip(tensor_list, parts, strict=True):
        target.copy_(part[: len(target)] if tensor.ndim else part[0])
    return tensor_list


# the older names, and those from when only some recorded gradients
all_gather_tensor = all_gather_tensor_autograd = all_gather_single_autograd = all_gather_single
reduce_scatter_tensor = reduce_scatter_tensor_autograd = reduce_scatter_single_autograd = reduce_scatter_single
all_to_all_single_autograd = all_to_all_single
all_gather_into_tensor_coalesced = all_gather_single_coalesced
reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
