"""Groups of processes, which have one process here: it is rank 0, and what all send to all is what it has.

Programs that are written for many processes run unchanged in one. A group of more cannot be made.
"""

from __future__ import annotations

import os
from enum import Enum
from typing import Any

from tensorpy._C import Tensor
from tensorpy.distributed.errors import DistBackendError as DistBackendError
from tensorpy.distributed.errors import DistError as DistError
from tensorpy.distributed.errors import DistNetworkError as DistNetworkError
from tensorpy.distributed.errors import DistStoreError as DistStoreError


class ReduceOp(Enum):
    """How the processes' values become one; of one process's values, all of them give the value."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8


setattr(ReduceOp, "RedOpType", ReduceOp)  # noqa: B010  (PyTorch's name of the type without a factor)


class Backend(str):
    """The name of what would carry messages between processes."""

    GLOO, NCCL, MPI, UCC, UNDEFINED = "gloo", "nccl", "mpi", "ucc", "undefined"


class ProcessGroup:
    """A group of processes: this one."""

    def __init__(self, backend: str) -> None:
        self._backend = Backend(backend)

    def rank(self) -> int:
        """This process's place."""
        return 0

    def size(self) -> int:
        """How many processes there are."""
        return 1


class Work:
    """A message that was asked for with async_op: it is done."""

    def wait(self, timeout: Any = None) -> bool:
        """Waits for it."""
        return True

    def is_completed(self) -> bool:
        """Whether it is done."""
        return True


class _Group:
    """`group.WORLD`: the group that init_process_group made, None before."""

    WORLD: ProcessGroup | None = None


group = GroupMember = _Group


def is_available() -> bool:
    """Whether there are groups of processes: of one."""
    return True


def is_initialized() -> bool:
    """Whether init_process_group was called."""
    return group.WORLD is not None


def is_nccl_available() -> bool:
    """Whether messages could go over NCCL."""
    return False


def is_gloo_available() -> bool:
    """Whether messages could go over Gloo."""
    return False


def is_mpi_available() -> bool:
    """Whether messages could go over MPI."""
    return False


def is_torchelastic_launched() -> bool:
    """Whether torchrun started this process."""
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def _from_environment(name: str, given: int) -> int:
    if given >= 0:
        return given
    if name not in os.environ:
        raise ValueError(f"init_process_group: {name} is neither given nor a variable of the environment")
    return int(os.environ[name])


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: Any = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Makes the group of this process; rank and world_size come from the variables RANK and WORLD_SIZE if not given."""
    if group.WORLD is not None:
        raise ValueError("trying to initialize the default process group twice!")
    rank, world_size = _from_environment("RANK", rank), _from_environment("WORLD_SIZE", world_size)
    if (rank, world_size) != (0, 1):
        raise NotImplementedError(
            f"init_process_group: rank {rank} of {world_size} processes; a group of tensorpy's is of one process"
        )
    group.WORLD = ProcessGroup((backend or "gloo").lower())


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Forgets the group."""
    if _of(group) is _Group.WORLD:
        _Group.WORLD = None


def new_group(ranks: Any = None, timeout: Any = None, backend: str | None = None, **options: Any) -> ProcessGroup:
    """Another group of this process."""
    world = _of(None)
    if ranks is not None and list(ranks) != [0]:
        raise ValueError(f"new_group: there is rank 0 only, got {list(ranks)}")
    return ProcessGroup(backend or world._backend)


def _of(group: ProcessGroup | None) -> ProcessGroup:
    """The group that is meant: the default one for None."""
    found = _Group.WORLD if group is None else group
    if found is None:
        raise ValueError("the default process group is not initialized: call init_process_group first")
    return found


def _check_rank(name: str, *ranks: int | None) -> None:
    for rank in ranks:
        if rank not in (None, 0):
            raise RuntimeError(f"{name}: there is rank 0 only, got {rank}")


def _done(async_op: bool) -> Work | None:
    return Work() if async_op else None


def get_rank(group: ProcessGroup | None = None) -> int:
    """This process's place in the group: 0."""
    return _of(group).rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """How many processes the group has: 1."""
    return _of(group).size()


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The place in the default group of a group's process: 0."""
    _of(group)
    if group_rank != 0:
        raise ValueError(f"get_global_rank: there is rank 0 only, got {group_rank}")
    return 0


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The place in a group of the default group's process: 0."""
    return get_global_rank(group, global_rank)


def get_process_group_ranks(group: ProcessGroup | None = None) -> list[int]:
    """The group's processes, by their places in the default group."""
    _of(group)
    return [0]


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """This process's place on its machine, which a launcher says."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is None:
        raise RuntimeError("get_node_local_rank: LOCAL_RANK is not in the environment, and no fallback_rank is given")
    return int(fallback_rank)


def is_backend_available(backend: str) -> bool:
    """Whether groups can be made with a backend: one process needs none of them, gloo is a name."""
    return backend.lower() == "gloo"


def new_subgroups(group_size: int | None = None, group: ProcessGroup | None = None, **options: Any) -> Any:
    """This process's group of `group_size` processes, and all of them: one of one process."""
    _of(group)
    if group_size not in (None, 1):
        raise ValueError(f"new_subgroups: a group of 1 process has none of {group_size}")
    made = new_group([0])
    return made, [made]


def get_backend(group: ProcessGroup | None = None) -> Backend:
    """The name that init_process_group was given, "gloo" without one."""
    return _of(group)._backend


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None, timeout: Any = None) -> Work | None:
    """Waits for the others: there are none."""
    _of(group)
    return _done(async_op)


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """Waits for the others: there are none."""
    _of(group)


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """All processes' tensors become one, in each: the tensor stays as it is."""
    _of(group)
    return _done(async_op)


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """All processes' tensors become one, in the process dst: the tensor stays as it is."""
    _of(group)
    _check_rank("reduce", dst, group_dst)
    return _done(async_op)


def broadcast(
    tensor: Tensor, src: int | None = None, group: Any = None, async_op: bool = False, group_src: int | None = None
) -> Work | None:
    """All processes get the tensor of src: it stays as it is."""
    _of(group)
    _check_rank("broadcast", src, group_src)
    return _done(async_op)


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """All processes get the objects of src: they stay as they are."""
    _of(group)
    _check_rank("broadcast_object_list", src, group_src)


def _one(name: str, items: Any) -> Any:
    if len(items) != 1:
        raise ValueError(f"{name}: expected a list of one, for the one process, got {len(items)}")
    return items[0]


def _copy(target: Tensor, source: Tensor) -> None:
    target.detach().copy_(source.detach())


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """The tensors of all processes, in each: a list of one."""
    _of(group)
    _copy(_one("all_gather", tensor_list), tensor)
    return _done(async_op)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """The tensors of all processes after each other, in each: this one's."""
    _of(group)
    _copy(output_tensor, input_tensor.reshape(output_tensor.shape))
    return _done(async_op)


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """The objects of all processes, in each: a list of one."""
    _of(group)
    _one("all_gather_object", object_list)
    object_list[0] = obj


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """The tensors of all processes, in dst: a list of one."""
    _of(group)
    _check_rank("gather", dst, group_dst)
    _copy(_one("gather", gather_list or []), tensor)
    return _done(async_op)


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
) -> None:
    """The objects of all processes, in dst: a list of one."""
    _of(group)
    _check_rank("gather_object", dst, group_dst)
    _one("gather_object", object_gather_list or [])
    if object_gather_list is not None:
        object_gather_list[0] = obj


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Each process gets its tensor of src's list."""
    _of(group)
    _check_rank("scatter", src, group_src)
    _copy(tensor, _one("scatter", scatter_list or []))
    return _done(async_op)


def reduce_scatter(
    output: Tensor, input_list: list[Tensor], op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Each process gets its tensor of the lists, made one."""
    _of(group)
    _copy(output, _one("reduce_scatter", input_list))
    return _done(async_op)


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Each process gets its part of the tensors, made one: the whole."""
    _of(group)
    _copy(output, input.reshape(output.shape))
    return _done(async_op)


def all_to_all(
    output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: Any = None, async_op: bool = False
) -> Work | None:
    """Each process gets its tensor of every process's list."""
    _of(group)
    _copy(_one("all_to_all", output_tensor_list), _one("all_to_all", input_tensor_list))
    return _done(async_op)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Any = None,
    input_split_sizes: Any = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Each process gets its part of every process's tensor: the whole."""
    _of(group)
    _copy(output, input)
    return _done(async_op)


def _send(tensor: Tensor, *args: Any, **options: Any) -> Any:
    """A message to another process: there is none, an error."""
    raise ValueError("there is no other process to send to or receive from")


send = recv = isend = irecv = _send
send_object_list = recv_object_list = _send


class P2POp:
    """A message to or from another process, for batch_isend_irecv."""

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
            raise ValueError("a P2POp's op is distributed.isend or distributed.irecv")
        self.op, self.tensor, self.peer, self.group, self.tag = op, tensor, peer, group, tag


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Sends and receives several messages: there is no process to send to, so a list that is not empty is an error."""
    _of(None)
    for message in p2p_op_list:
        message.op(message.tensor)
    return []


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    """Puts the one object of the input list into the output list."""
    _of(group)
    _check_rank("scatter_object_list", src, group_src)
    scatter_object_output_list[0] = _one("scatter_object_input_list", scatter_object_input_list)


def all_reduce_coalesced(
    tensors: list[Tensor], op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Any:
    """Leaves each tensor as it is."""
    _of(group)
    return _done(async_op)


def all_gather_coalesced(
    output_tensor_lists: list[list[Tensor]], input_tensor_list: list[Tensor], group: Any = None, async_op: bool = False
) -> Any:
    """Copies each tensor to the one of its list."""
    for outputs, tensor in zip(_one("output_tensor_lists", output_tensor_lists), input_tensor_list, strict=True):
        _copy(outputs, tensor)
    return _done(async_op)


class DebugLevel(Enum):
    """How much is checked and told."""

    OFF = 0
    INFO = 1
    DETAIL = 2


_debug_level = DebugLevel.OFF


def get_debug_level() -> DebugLevel:
    """What was set: it changes nothing."""
    return _debug_level


def set_debug_level(level: DebugLevel) -> None:
    """Sets it."""
    global _debug_level
    _debug_level = level


def set_debug_level_from_env() -> None:
    """Sets it to what TORCH_DISTRIBUTED_DEBUG says."""
    name = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if name not in DebugLevel.__members__:
        raise RuntimeError(f"TORCH_DISTRIBUTED_DEBUG is one of {', '.join(DebugLevel.__members__)}, not {name}")
    set_debug_level(DebugLevel[name])


def is_ucc_available() -> bool:
    """Whether there is a backend of this name: there is none."""
    return False


is_xccl_available = is_ucc_available


def get_pg_count() -> int:
    """How many groups there are."""
    return int(is_initialized())


def get_backend_config(group: ProcessGroup | None = None) -> str:
    """Which backend each device type has."""
    return f"cpu:{get_backend(group)}"


def get_default_backend_for_device(device: Any) -> str:
    """The backend that PyTorch takes for a device type."""
    return "nccl" if str(device).startswith("cuda") else "gloo"


def supports_complex(reduceOp: ReduceOp) -> bool:
    """Whether an operation is one of complex numbers."""
    return reduceOp not in (ReduceOp.MAX, ReduceOp.MIN, ReduceOp.PRODUCT, ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)


reduce_op = ReduceOp
