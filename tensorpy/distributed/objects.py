"""Python objects between processes: pickled, their lengths before them.

A process that takes objects runs what they name while they are unpickled: the processes of a group trust each other.
"""

from __future__ import annotations

from typing import Any

import tensorpy as tp
from tensorpy._C import Tensor
from tensorpy.distributed import groups
from tensorpy.distributed.collectives import all_gather, broadcast, gather, one, scatter
from tensorpy.distributed.point_to_point import recv, send


def _packed(obj: Any) -> Tensor:
    import pickle

    return tp.frombuffer(bytearray(pickle.dumps(obj)), dtype=tp.uint8)


def _unpacked(data: Tensor, length: int) -> Any:
    import pickle

    whole: Any = data[:length]  # lends its memory
    return pickle.loads(memoryview(whole))


def _lengths(data: list[Tensor]) -> Tensor:
    return tp.tensor([len(d) for d in data], dtype=tp.int64)


def _same_room(data: Tensor, room: int) -> Tensor:
    return tp.cat([data, tp.zeros(room - len(data), dtype=tp.uint8)]) if len(data) < room else data


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """All processes get the objects of src, into a list as long as its.

    Arguments:
        object_list: what goes from src, and where it comes in the others
        src: the process, by its rank in the world; 0 if nothing is said
        group: the processes; None takes all
        device: is taken: objects go over the host's memory
        group_src: the process, by its rank in the group

    Example:
        >>> found = ["a", 1]
        >>> tp.distributed.broadcast_object_list(found, src=0)
        >>> found
        ['a', 1]
    """
    if groups.is_outside("broadcast_object_list", group):
        return
    found = groups.of(group)
    root = groups.place("broadcast_object_list", found, src, group_src, 0)
    if found._is_one():
        return
    mine = found.rank() == root
    data = [_packed(obj) for obj in object_list] if mine else []
    lengths = _lengths(data) if mine else tp.zeros(len(object_list), dtype=tp.int64)
    broadcast(lengths, group=group, group_src=root)
    sizes = lengths.tolist()
    whole = tp.cat(data) if mine else tp.empty(sum(sizes), dtype=tp.uint8)
    broadcast(whole, group=group, group_src=root)
    if not mine:
        begin = 0
        for i, size in enumerate(sizes):
            object_list[i] = _unpacked(whole[begin : begin + size], size)
            begin += size


def _sizes(data: Tensor, group: Any) -> list[int]:
    """How long every process's object is."""
    sizes = [tp.zeros(1, dtype=tp.int64) for _ in range(groups.of(group).size())]
    all_gather(sizes, _lengths([data]), group)
    return [int(size) for size in sizes]


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """The objects of all processes, in each.

    Arguments:
        object_list: where they come, as long as the group is large
        obj: what this process gives
        group: the processes; None takes all

    Example:
        >>> found = [None]  # in a world of one process
        >>> tp.distributed.all_gather_object(found, {"loss": 0.5})
        >>> found
        [{'loss': 0.5}]
    """
    if groups.is_outside("all_gather_object", group):
        return
    found = groups.of(group)
    if found._is_one():
        one("all_gather_object", object_list)
        object_list[0] = obj
        return
    if len(object_list) != found.size():
        raise ValueError(f"all_gather_object: expected a list of {found.size()}, got {len(object_list)}")
    data = _packed(obj)
    sizes = _sizes(data, group)
    parts = [tp.empty(max(sizes), dtype=tp.uint8) for _ in sizes]
    all_gather(parts, _same_room(data, max(sizes)), group)
    object_list[:] = [_unpacked(part, size) for part, size in zip(parts, sizes, strict=True)]


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
) -> None:
    """The objects of all processes, in dst.

    Arguments:
        obj: what this process gives
        object_gather_list: in dst where they come, as long as the group is large
        dst: the process, by its rank in the world; 0 if nothing is said
        group: the processes; None takes all
        group_dst: the process, by its rank in the group

    Example:
        >>> found = [None]
        >>> tp.distributed.gather_object("a", found, dst=0)
        >>> found
        ['a']
    """
    if groups.is_outside("gather_object", group):
        return
    found = groups.of(group)
    root = groups.place("gather_object", found, dst, group_dst, 0)
    if found._is_one():
        one("gather_object", object_gather_list or [])
        if object_gather_list is not None:
            object_gather_list[0] = obj
        return
    mine = found.rank() == root
    if mine and (object_gather_list is None or len(object_gather_list) != found.size()):
        raise ValueError(f"gather_object: the process dst needs a list of {found.size()}")
    data = _packed(obj)
    sizes = _sizes(data, group)
    parts = [tp.empty(max(sizes), dtype=tp.uint8) for _ in sizes] if mine else None
    gather(_same_room(data, max(sizes)), parts, group=group, group_dst=root)
    if mine and parts is not None and object_gather_list is not None:
        object_gather_list[:] = [_unpacked(part, size) for part, size in zip(parts, sizes, strict=True)]


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    """Each process gets its object of src's list, as the first of the output list.

    Arguments:
        scatter_object_output_list: where this process's comes
        scatter_object_input_list: in src an object for each process
        src: the process, by its rank in the world; 0 if nothing is said
        group: the processes; None takes all
        group_src: the process, by its rank in the group

    Example:
        >>> found = [None]
        >>> tp.distributed.scatter_object_list(found, ["a"], src=0)
        >>> found
        ['a']
    """
    if groups.is_outside("scatter_object_list", group):
        return
    found = groups.of(group)
    root = groups.place("scatter_object_list", found, src, group_src, 0)
    if not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    if found._is_one():
        scatter_object_output_list[0] = one("scatter_object_input_list", scatter_object_input_list)
        return
    data, lengths = [], tp.zeros(found.size(), dtype=tp.int64)
    if found.rank() == root:
        if scatter_object_input_list is None or len(scatter_object_input_list) != found.size():
            raise ValueError(f"scatter_object_list: the process src needs a list of {found.size()}")
        data = [_packed(obj) for obj in scatter_object_input_list]
        lengths = _lengths(data)
    broadcast(lengths, group=group, group_src=root)
    sizes = lengths.tolist()
    part = tp.empty(max(sizes), dtype=tp.uint8)
    scatter(part, [_same_room(d, max(sizes)) for d in data] or None, group=group, group_src=root)
    scatter_object_output_list[0] = _unpacked(part, sizes[found.rank()])


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: Any = None,
    device: Any = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Sends objects to another process, which receives as many.

    Arguments:
        object_list: what goes
        dst: the process, by its rank in the world
        group: the processes; None takes all
        device: is taken: objects go over the host's memory
        group_dst: the process, by its rank in the group
        use_batch: is taken

    Example:
        >>> tp.distributed.send_object_list(["a"], dst=1)  # doctest: +SKIP
    """
    data = [_packed(obj) for obj in object_list]
    send(_lengths(data), dst, group, 0, group_dst)
    send(tp.cat(data), dst, group, 0, group_dst)


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Receives objects from another process; its rank in the world.

    Arguments:
        object_list: where they come
        src: the process, by its rank in the world; None takes any
        group: the processes; None takes all
        device: is taken: objects go over the host's memory
        group_src: the process, by its rank in the group
        use_batch: is taken

    Returns: int.

    Example:
        >>> found = [None]
        >>> tp.distributed.recv_object_list(found, src=1)  # doctest: +SKIP
        1
    """
    lengths = tp.zeros(len(object_list), dtype=tp.int64)
    source = recv(lengths, src, group, 0, group_src)
    if source < 0:
        return source
    whole = tp.empty(int(lengths.sum()), dtype=tp.uint8)
    recv(whole, source, group)
    begin = 0
    for i, size in enumerate(lengths.tolist()):
        object_list[i] = _unpacked(whole[begin : begin + size], size)
        begin += size
    return source


__all__ = [
    "all_gather_object", "broadcast_object_list", "gather_object", "recv_object_list", "scatter_object_list",
    "send_object_list",
]  # fmt: skip
