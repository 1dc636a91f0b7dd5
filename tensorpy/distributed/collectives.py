"""What all processes of a group do together: reductions, copies from one to all and from all to one, exchanges.

Every function takes its group's processes in the order of their calls. In a group of one process nothing is sent: what
all send to all is what it has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from time import monotonic, sleep
from typing import Any

import tensorpy as tp
from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._package import async_events
from tensorpy._package.async_events import Event
from tensorpy.distributed import groups
from tensorpy.distributed.detail import compare
from tensorpy.distributed.groups import ProcessGroup
from tensorpy.distributed.messages import after, begin_event, check, copy, flat_of, message, packed, room_for, spread
from tensorpy.distributed.own_groups import asks_group
from tensorpy.distributed.reduce_op import PremulSum, ReduceOp, number_of
from tensorpy.distributed.sparse import sum_of_all
from tensorpy.distributed.work import Work, Works, seconds_of


def _done(async_op: bool, *outputs: Tensor) -> Work | None:
    return Work(outputs=outputs) if async_op else None


def one(name: str, items: Any) -> Any:
    """The one item of a list, in a group of one."""
    if len(items) != 1:
        raise ValueError(f"{name}: expected a list of one, for the one process, got {len(items)}")
    return items[0]


def _alike(name: str, items: Sequence[Tensor], found: ProcessGroup, like: Tensor) -> None:
    """A list has a tensor for each process, all as large as the one that this process gives or gets."""
    if len(items) != found.size():
        raise ValueError(f"{name}: expected a list of {found.size()} tensors, one for each process, got {len(items)}")
    check(name, *items, like)
    for i, tensor in enumerate(items):
        if tensor.dtype != like.dtype or tensor.numel() != like.numel():
            raise ValueError(
                f"{name}: tensor {i} of the list is {tensor.dtype}{list(tensor.shape)}, "
                f"the other one {like.dtype}{list(like.shape)}"
            )


def _divided(op: Any, size: int, *tensors: Tensor) -> Callable[[], None] | None:
    """What makes an average of a sum."""
    if op is not ReduceOp.AVG:
        return None

    def divide() -> None:
        for tensor in tensors:
            whole = tensor.detach()
            if whole.is_floating_point() or whole.is_complex():
                whole.div_(size)
            else:
                whole.div_(size, rounding_mode="trunc")

    return divide


def _check_average(name: str, op: Any, tensor: Tensor) -> None:
    if op is ReduceOp.AVG and tensor.dtype == tp.bool:
        raise RuntimeError(f"{name}: ReduceOp.AVG is no operation of {tensor.dtype}")


def _weighed(op: Any, tensor: Tensor) -> Tensor:
    """What goes into a sum."""
    return packed(tensor) * op.factor if isinstance(op, PremulSum) else packed(tensor)


# ---- reductions ----


@asks_group
def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """All processes' tensors become one, in each.

    Arguments:
        tensor: what goes in, and where the result comes
        op: how they become one
        group: the processes; None takes all
        async_op: gives a Work at once, whose wait() says when it is done

    Returns: with async_op a Work to wait for, else None.

    Example:
        >>> x = tp.tensor([1.0, 2.0])  # in a world of one process: of two that have the same it is [2., 4.]
        >>> tp.distributed.all_reduce(x)
        >>> x
        tensor([1., 2.])
    """
    if groups.is_outside("all_reduce", group):
        return None
    return _all_reduce("all_reduce", groups.of(group), tensor, op, async_op)


def _all_reduce(
    name: str, found: ProcessGroup, tensor: Tensor, op: Any, async_op: bool, profiled: bool = True
) -> Work | None:
    if found._is_one():
        return _done(async_op, tensor)
    if isinstance(tensor, Tensor) and tensor.layout is tp.sparse_coo:
        _sum_sparse(name, found, tensor, op)
        return _done(async_op, tensor)
    check(name, tensor)
    number = number_of(name, op, tensor)
    _check_average(name, op, tensor)
    compare(found, name, tensor, op)
    buffer = _weighed(op, tensor)
    back = None if buffer is tensor else lambda: copy(tensor, buffer)
    finish = after(_divided(op, found.size(), buffer), back)
    return message(
        found, "all_reduce", None, buffer, count=buffer.numel(), op=number, async_op=async_op, finish=finish,
        outputs=(tensor,), profiled=profiled,
    )  # fmt: skip


def _sum_sparse(name: str, found: ProcessGroup, tensor: Tensor, op: Any) -> None:
    if op is not ReduceOp.SUM:
        raise RuntimeError(f"{name}: of sparse tensors there are sums alone, ReduceOp.SUM")
    event = begin_event(found, "sparse_all_reduce", [tensor])
    tensor.detach().copy_(sum_of_all(found, name, tensor))
    async_events.end(event)


@asks_group
def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """All processes' tensors become one, in the process dst; the others' stay as they are.

    Arguments:
        tensor: what goes in, and in dst where the result comes
        dst: the process, by its rank in the world
        op: how they become one
        group: the processes; None takes all
        async_op: gives a Work at once, whose wait() says when it is done
        group_dst: the process, by its rank in the group

    Returns: with async_op a Work to wait for, else None.

    Example:
        >>> x = tp.ones(2)
        >>> tp.distributed.reduce(x, dst=0)
        >>> x
        tensor([1., 1.])
    """
    if groups.is_outside("reduce", group):
        return None
    found = groups.of(group)
    root = groups.place("reduce", found, dst, group_dst, 0 if found._is_one() else None)
    if found._is_one():
        return _done(async_op, tensor)
    check("reduce", tensor)
    number = number_of("reduce", op, tensor)
    _check_average("reduce", op, tensor)
    compare(found, "reduce", tensor, op, root)
    buffer = _weighed(op, tensor)
    if root != found.rank():
        return message(
            found, "reduce", buffer, None, count=buffer.numel(), op=number, peer=root, async_op=async_op,
            outputs=(tensor,),
        )  # fmt: skip
    back = None if buffer is tensor else lambda: copy(tensor, buffer)
    finish = after(_divided(op, found.size(), buffer), back)
    return message(
        found, "reduce", None, buffer, count=buffer.numel(), op=number, peer=root, async_op=async_op, finish=finish,
        outputs=(tensor,),
    )  # fmt: skip


@asks_group
def reduce_scatter(
    output: Tensor, input_list: list[Tensor], op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Each process gets its tensor of the lists, made one.

    Arguments:
        output: where this process's comes
        input_list: a tensor for each process
        op: how they become one
        group: the processes; None takes all
        async_op: gives a Work at once, whose wait() says when it is done

    Returns: with async_op a Work to wait for, else None.

    Example:
        >>> found = tp.zeros(2)
        >>> tp.distributed.reduce_scatter(found, [tp.ones(2)])
        >>> found
        tensor([1., 1.])
    """
    if groups.is_outside("reduce_scatter", group):
        return None
    found = groups.of(group)
    if found._is_one():
        copy(output, one("reduce_scatter", input_list))
        return _done(async_op, output)
    if len({t.shape for t in input_list}) > 1:
        return _reduce_parts(found, output, input_list, op, async_op)
    _alike("reduce_scatter", input_list, found, output)
    return _reduce_scatter("reduce_scatter", found, output, flat_of(input_list), op, async_op)


def _reduce_parts(found: ProcessGroup, output: Tensor, parts: list[Tensor], op: Any, async_op: bool) -> Work | None:
    """Parts of unlike shapes, each reduced to its process."""
    mine = found.rank()
    if len(parts) != found.size() or parts[mine].shape != output.shape:
        _alike("reduce_scatter", [parts[min(mine, len(parts) - 1)]] * len(parts), found, output)
    copy(output, parts[mine])
    works = []
    for rank, part in enumerate(parts):
        goes = output if rank == mine else part.detach().clone()
        works.append(reduce(goes, op=op, group=found, async_op=True, group_dst=rank))
    begun = Works([work for work in works if work is not None])
    if async_op:
        return begun
    begun.wait()
    return None


@asks_group
def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Each process gets its part of the tensors, made one.

    Arguments:
        output: where this process's part comes
        input: the parts for all processes, after each other
        op: how they become one
        group: the processes; None takes all
        async_op: gives a Work at once, whose wait() says when it is done

    Returns: with async_op a Work to wait for, else None.

    Example:
        >>> found = tp.zeros(2)
        >>> tp.distributed.reduce_scatter_tensor(found, tp.ones(2))
        >>> found
        tensor([1., 1.])
    """
    if groups.is_outside("reduce_scatter_tensor", group):
        return None
    found = groups.of(group)
    if found._is_one():
        copy(output, input.reshape(output.shape))
        return _done(async_op, output)
    check("reduce_scatter_tensor", output, input)
    _whole("reduce_scatter_tensor", found, input, output)
    return _reduce_scatter("reduce_scatter_tensor", found, output, input, op, async_op)


def _whole(name: str, found: ProcessGroup, whole: Tensor, part: Tensor) -> None:
    if whole.dtype != part.dtype:
        raise TypeError(f"{name}: the tensors are of {whole.dtype} and {part.dtype}")
    if whole.numel() != part.numel() * found.size():
        raise ValueError(
            f"{name}: {list(whole.shape)} has not {found.size()} times the elements of {list(part.shape)}, "
            "a part for each process"
        )


def _reduce_scatter(
    name: str, found: ProcessGroup, output: Tensor, whole: Tensor, op: Any, async_op: bool
) -> Work | None:
    number = number_of(name, op, output)
    _check_average(name, op, output)
    compare(found, name, output, op)
    buffer = room_for(output)
    back = None if buffer is output else lambda: copy(output, buffer)
    finish = after(_divided(op, found.size(), buffer), back)
    return message(
        found, "reduce_scatter", _weighed(op, whole), buffer, name=name, count=buffer.numel(), op=number,
        async_op=async_op, finish=finish, outputs=(output,),
    )  # fmt: skip


# ---- from one to all, from all to one ----


@asks_group
def broadcast(
    tensor: Tensor, src: int | None = None, group: Any = None, async_op: bool = False, group_src: int | None = None
) -> Work | None:
    """All processes get the tensor of src.

    Arguments:
        tensor: what goes from src, and where it comes in the others
        src: the process, by its rank in the world
        group: the processes; None takes all
        async_op: gives a Work at once, whose wait() says when it is done
        group_src: the process, by its rank in the group

    Returns: with async_op a Work to wait for, else None.

    Example:
        >>> x = tp.ones(2)
        >>> tp.distributed.broadcast(x, src=0)
        >>> x
        tensor([1., 1.])
    """
    if groups.is_outside("broadcast", group):
        return None
    found = groups.of(group)
    root = groups.place("broadcast", found, src, group_src, 0 if found._is_one() else None)
    if found._is_one():
        return _done(async_op, tensor)
    check("broadcast", tensor)
    compare(found, "broadcast", tensor, None, root)
    buffer = packed(tensor) if root == found.rank() else room_for(tensor)
    back = None if buffer is tensor or root == found.rank() else lambda: copy(tensor, buffer)
    return message(
        found, "broadcast", None, buffer, count=buffer.numel(), peer=root, async_op=async_op, finish=back,
        outputs=(tensor,),
    )  # fmt: skip


@asks_group
def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """The tensors of all processes, in each.

    Arguments:
        tensor_list: where they come, a tensor for each process
        tensor: what this process gives
        group: the processes; None takes all
        async_op: gives a Work at once, whose wait() says when it is done

    Returns: with async_op a Work to wait for, else None.

    Example:
        >>> found = [tp.zeros(2)]  # in a world of one process
        >>> tp.distributed.all_gather(found, tp.ones(2))
        >>> found
        [tensor([1., 1.])]
    """
    if groups.is_outside("all_gather", group):
        return None
    return _all_gather("all_gather", groups.of(group), tensor_list, tensor, async_op)


def _all_gather(
    name: str, found: ProcessGroup, tensor_list: list[Tensor], tensor: Tensor, async_op: bool, profiled: bool = True
) -> Work | None:
    if found._is_one():
        copy(one(name, tensor_list), tensor)
        return _done(async_op, *tensor_list)
    _alike(name, tensor_list, found, tensor)
    compare(found, name, tensor)
    flat = tp.empty(found.size() * tensor.numel(), dtype=tensor.dtype)
    return message(
        found, "all_gather", packed(tensor), flat, name=name, count=tensor.numel(), async_op=async_op,
        finish=lambda: spread(flat, tensor_list), outputs=tensor_list, profiled=profiled,
    )  # fmt: skip


@asks_group
def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """The tensors of all processes after each other, in each.

    Arguments:
        output_tensor: where they come
        input_tensor: what this process gives
        group: the processes; None takes all
        async_op: gives a Work at once, whose wait() says when it is done

    Returns: with async_op a Work to wait for, else None.

    Example:
        >>> found = tp.zeros(2)
        >>> tp.distributed.all_gather_into_tensor(found, tp.ones(2))
        >>> found
        tensor([1., 1.])
    """
    name = "all_gather_into_tensor"
    if groups.is_outside(name, group):
        return None
    found = groups.of(group)
    if found._is_one():
        copy(output_tensor, input_tensor.reshape(output_tensor.shape))
        return _done(async_op, output_tensor)
    check(name, output_tensor, input_tensor)
    _whole(name, found, output_tensor, input_tensor)
    compare(found, name, input_tensor)
    buffer = room_for(output_tensor)
    back = None if buffer is output_tensor else lambda: copy(output_tensor, buffer)
    return message(
        found, "all_gather", packed(input_tensor), buffer, name=name, count=input_tensor.numel(), async_op=async_op,
        finish=back, outputs=(output_tensor,),
    )  # fmt: skip


@asks_group
def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """The tensors of all processes, in dst.

    Arguments:
        tensor: what this process gives
        gather_list: in dst where they come, a tensor for each process
        dst: the process, by its rank in the world; 0 if nothing is said
        group: the processes; None takes all
        async_op: gives a Work at once, whose wait() says when it is done
        group_dst: the process, by its rank in the group

    Returns: with async_op a Work to wait for, else None.

    Raises: ValueError for a gather_list elsewhere than in dst, or none there.

    Example:
        >>> found = [tp.zeros(2)]
        >>> tp.distributed.gather(tp.ones(2), found)
        >>> found
        [tensor([1., 1.])]
    """
    if groups.is_outside("gather", group):
        return None
    found = groups.of(group)
    root = groups.place("gather", found, dst, group_dst, 0)
    if found._is_one():
        copy(one("gather", gather_list or []), tensor)
        return _done(async_op, *(gather_list or []))
    check("gather", tensor)
    if root != found.rank():
        if gather_list:
            raise ValueError("gather: gather_list is for the process dst, and empty or None in the others")
        compare(found, "gather", tensor, None, root)
        return message(found, "gather", packed(tensor), None, count=tensor.numel(), peer=root, async_op=async_op)
    if gather_list is None:
        raise ValueError("gather: the process dst needs a gather_list")
    _alike("gather", gather_list, found, tensor)
    compare(found, "gather", tensor, None, root)
    flat = tp.empty(found.size() * tensor.numel(), dtype=tensor.dtype)
    return message(
        found, "gather", packed(tensor), flat, count=tensor.numel(), peer=root, async_op=async_op,
        finish=lambda: spread(flat, gather_list), outputs=gather_list,
    )  # fmt: skip


@asks_group
def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Each process gets its tensor of src's list.

    Arguments:
        tensor: where this process's comes
        scatter_list: in src a tensor for each process
        src: the process, by its rank in the world; 0 if nothing is said
        group: the processes; None takes all
        async_op: gives a Work at once, whose wait() says when it is done
        group_src: the process, by its rank in the group

    Returns: with async_op a Work to wait for, else None.

    Raises: ValueError for a scatter_list elsewhere than in src, or none there.

    Example:
        >>> found = tp.zeros(2)
        >>> tp.distributed.scatter(found, [tp.ones(2)], src=0)
        >>> found
        tensor([1., 1.])
    """
    if groups.is_outside("scatter", group):
        return None
    found = groups.of(group)
    root = groups.place("scatter", found, src, group_src, 0)
    if found._is_one():
        copy(tensor, one("scatter", scatter_list or []))
        return _done(async_op, tensor)
    check("scatter", tensor)
    flat = None
    if root == found.rank():
        if not scatter_list:
            raise ValueError("scatter: the process src needs a scatter_list")
        _alike("scatter", scatter_list, found, tensor)
        flat = flat_of(scatter_list)
    elif scatter_list:
        raise ValueError("scatter: scatter_list is for the process src, and empty or None in the others")
    compare(found, "scatter", tensor, None, root)
    buffer = room_for(tensor)
    back = None if buffer is tensor else lambda: copy(tensor, buffer)
    return message(
        found, "scatter", flat, buffer, count=buffer.numel(), peer=root, async_op=async_op, finish=back,
        outputs=(tensor,),
    )  # fmt: skip


all_gather_single: Callable[..., Any] = all_gather_into_tensor  # newer names
reduce_scatter_single: Callable[..., Any] = reduce_scatter_tensor
_all_gather_base, _reduce_scatter_base = all_gather_into_tensor, reduce_scatter_tensor  # older ones


# ---- several at once ----


@asks_group
def all_reduce_coalesced(
    tensors: list[Tensor], op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """all_reduce of each tensor of a list, all of them under way together.

    Arguments:
        tensors: what goes in, and where the results come
        op: how they become one
        group: the processes; None takes all
        async_op: gives a Work at once, whose wait() says when all are done

    Returns: with async_op a Work to wait for, else None.

    Example:
        >>> tp.distributed.all_reduce_coalesced([tp.ones(1), tp.ones(2)])
    """
    if groups.is_outside("all_reduce_coalesced", group):
        return None
    found, name = groups.of(group), "all_reduce"
    event = begin_event(found, "all_reduce", tensors)
    return _together([_all_reduce(name, found, tensor, op, True, False) for tensor in tensors], async_op, event)


def all_gather_coalesced(
    output_tensor_lists: list[list[Tensor]], input_tensor_list: list[Tensor], group: Any = None, async_op: bool = False
) -> Work | None:
    """all_gather of each tensor of a list, all of them under way together.

    Arguments:
        output_tensor_lists: where they come: for each process a list as long as that of what goes
        input_tensor_list: what this process gives
        group: the processes; None takes all
        async_op: gives a Work at once, whose wait() says when all are done

    Returns: with async_op a Work to wait for, else None.

    Example:
        >>> found = [[tp.zeros(1), tp.zeros(2)]]
        >>> tp.distributed.all_gather_coalesced(found, [tp.ones(1), tp.ones(2)])
        >>> found
        [[tensor([1.]), tensor([1., 1.])]]
    """
    if groups.is_outside("all_gather_coalesced", group):
        return None
    found, name = groups.of(group), "all_gather"
    event = begin_event(found, "all_gather", input_tensor_list)
    columns = zip(*output_tensor_lists, strict=True)
    pairs = zip(columns, input_tensor_list, strict=True)
    begun = [_all_gather(name, found, list(column), tensor, True, False) for column, tensor in pairs]
    return _together(begun, async_op, event)


def together(begun: list[Work | None], event: Event | None = None) -> Work:
    """Several works as one."""
    return Works([work for work in begun if work is not None], event)


def _together(begun: list[Work | None], async_op: bool, event: Event | None) -> Work | None:
    works = together(begun, event)
    if async_op:
        return works
    works.wait()
    return None


# ---- exchanges ----


@asks_group
def all_to_all(
    output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: Any = None, async_op: bool = False
) -> Work | None:
    """Each process gets its tensor of every process's list.

    Arguments:
        output_tensor_list: where they come, a tensor for each process
        input_tensor_list: a tensor for each process; they may be of several sizes
        group: the processes; None takes all
        async_op: gives a Work at once, whose wait() says when it is done

    Returns: with async_op a Work to wait for, else None.

    Raises: ValueError for other than a tensor for each process, or several dtypes.

    Example:
        >>> found = [tp.zeros(2)]
        >>> tp.distributed.all_to_all(found, [tp.ones(2)])
        >>> found
        [tensor([1., 1.])]
    """
    if groups.is_outside("all_to_all", group):
        return None
    found = groups.of(group)
    if found._is_one():
        copy(one("all_to_all", output_tensor_list), one("all_to_all", input_tensor_list))
        return _done(async_op, *output_tensor_list)
    for items in (output_tensor_list, input_tensor_list):
        if len(items) != found.size():
            raise ValueError(f"all_to_all: expected lists of {found.size()} tensors, got {len(items)}")
        check("all_to_all", *items)
    if len({t.dtype for t in (*output_tensor_list, *input_tensor_list)}) != 1:
        raise ValueError("all_to_all: all tensors are of one dtype")
    given = [t.numel() for t in input_tensor_list]
    gotten = [t.numel() for t in output_tensor_list]
    flat = tp.empty(sum(gotten), dtype=output_tensor_list[0].dtype)
    return _exchange(
        "all_to_all", found, flat_of(input_tensor_list), flat, given, gotten, async_op,
        lambda: spread(flat, output_tensor_list), output_tensor_list,
    )  # fmt: skip


@asks_group
def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Any = None,
    input_split_sizes: Any = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Each process gets its part of every process's tensor.

    Arguments:
        output: where they come, after each other
        input: the parts for all processes, after each other
        output_split_sizes: how long the first dimension of each process's part is; None: all alike
        input_split_sizes: the same of what goes
        group: the processes; None takes all
        async_op: gives a Work at once, whose wait() says when it is done

    Returns: with async_op a Work to wait for, else None.

    Raises: TypeError for two dtypes.

    Example:
        >>> found = tp.zeros(2)
        >>> tp.distributed.all_to_all_single(found, tp.ones(2))
        >>> found
        tensor([1., 1.])
    """
    name = "all_to_all_single"
    if groups.is_outside(name, group):
        return None
    found = groups.of(group)
    if found._is_one():
        copy(output, input)
        return _done(async_op, output)
    check(name, output, input)
    if output.dtype != input.dtype:
        raise TypeError(f"{name}: the tensors are of {output.dtype} and {input.dtype}")
    given = _splits(name, found, input, input_split_sizes)
    gotten = _splits(name, found, output, output_split_sizes)
    buffer = room_for(output)
    back = None if buffer is output else lambda: copy(output, buffer)
    return _exchange(name, found, packed(input), buffer, given, gotten, async_op, back, (output,))


def _splits(name: str, found: ProcessGroup, tensor: Tensor, sizes: Any) -> list[int]:
    """How many elements each process's part has."""
    rows = tensor.shape[0] if tensor.ndim else 1
    if not sizes:
        if rows % found.size():
            raise ValueError(f"{name}: {rows} rows are no {found.size()} parts of one size")
        return [tensor.numel() // found.size()] * found.size()
    split = [int(n) for n in sizes]
    if len(split) != found.size() or sum(split) != rows or min(split) < 0:
        raise ValueError(f"{name}: {split} are no sizes of {found.size()} parts of {rows} rows")
    row = tensor.numel() // rows if rows else 0
    return [n * row for n in split]


def _exchange(
    name: str,
    found: ProcessGroup,
    send: Tensor,
    recv: Tensor,
    given: list[int],
    gotten: list[int],
    async_op: bool,
    finish: Callable[[], None] | None,
    outputs: Sequence[Tensor],
) -> Work | None:
    compare(found, name, None, None, 0, given, gotten)
    begins = [tuple(sum(sizes[:i]) for i in range(len(sizes))) for sizes in (given, gotten)]
    counts = (tuple(given), begins[0], tuple(gotten), begins[1])
    return message(
        found, "all_to_all", send, recv, name=name, counts=counts, async_op=async_op, finish=finish, outputs=outputs
    )


# ---- waits ----


@asks_group
def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None, timeout: Any = None) -> Work | None:
    """Waits for the others of the group.

    Arguments:
        group: the processes; None takes all
        async_op: gives a Work at once, whose wait() says when it is done
        device_ids: is taken
        timeout: a timedelta; None takes the group's

    Returns: with async_op a Work to wait for, else None.

    Example:
        >>> tp.distributed.barrier()
    """
    if groups.is_outside("barrier", group):
        return None
    found = groups.of(group)
    if found._is_one():
        return _done(async_op)
    compare(found, "barrier")
    return message(found, "barrier", async_op=async_op, seconds=seconds_of(timeout, found._seconds))


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """Waits for the others of the group, and says who did not come: RuntimeError in time.

    Arguments:
        group: the processes; None takes all
        timeout: a timedelta; None takes the group's
        wait_all_ranks: names all who did not come, not the first alone

    Example:
        >>> tp.distributed.monitored_barrier()
    """
    if groups.is_outside("monitored_barrier", group):
        return
    found = groups.of(group)
    if found._is_one():
        return
    found._barriers += 1
    prefix, seconds = f"monitored/{found._barriers}", seconds_of(timeout, found._seconds)
    store, size = found._store, found.size()
    if found.rank() != 0:
        store.set(f"{prefix}/{found.rank()}", "")
        # rank 0 answers within the time; who comes first has waited for the same time
        said = store._ask("get", store._key(f"{prefix}/said"), timeout=timedelta(seconds=2 * seconds + 5))[0].decode()
        if said:
            where = f"[Rank {found.rank()}]: Rank {found.rank()} successfully reached monitoredBarrier, but"
            raise RuntimeError(f"{where} received errors while waiting for send/recv from rank 0: {said}")
        return
    if isinstance(timeout, timedelta) and not timeout:
        raise RuntimeError("[Rank 0]: Rank 0 timed out in monitoredBarrier after 0 ms")
    missing = absent(store, [f"{prefix}/{r}" for r in range(1, size)], seconds, found._ranks[1:])
    late = [found._ranks[i + 1] for i in missing]
    if not wait_all_ranks:
        late = late[:1]
    said = ""
    if late:
        which = ", ".join(map(str, late))
        said = f"Rank{'s' * (len(late) > 1)} {which} failed to pass monitoredBarrier in {int(seconds * 1000)} ms"
    store.set(f"{prefix}/said", said)
    if said:
        raise RuntimeError(f"[Rank 0]: {said}")


def absent(store: Any, keys: list[str], seconds: float, ranks: Sequence[int] = ()) -> list[int]:
    """Which of the keys are not there after so many seconds, by their places.

    It waits no longer than all are there who write them, where `ranks` of the world says who.
    """
    end, nap = monotonic() + seconds, 0.001
    left = list(range(len(keys)))
    while left:
        left = [i for i in left if not store.check([keys[i]])]
        if not left or monotonic() > end:
            break
        if _C._distributed.fault(*(ranks[i] for i in left if ranks)) is not None:
            break
        sleep(nap)
        nap = min(nap * 1.5, 0.05)
    return left


__all__ = [
    "all_gather", "all_gather_into_tensor", "all_reduce", "all_to_all", "all_to_all_single", "barrier", "broadcast",
    "gather", "monitored_barrier", "reduce", "reduce_scatter", "reduce_scatter_tensor", "scatter",
]  # fmt: skip
