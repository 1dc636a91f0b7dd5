"""Groups of processes and what is sent in them, under PyTorch's names: how they are made and ended.

init_process_group makes the world. One process needs nothing; several need a store to meet in, or mpirun, and a library
of MPI (world.py). What is sent stands in collectives.py, point_to_point.py and objects.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from tensorpy import _C
from tensorpy.distributed import groups
from tensorpy.distributed.buckets import BuiltinCommHookType as BuiltinCommHookType
from tensorpy.distributed.buckets import GradBucket as GradBucket
from tensorpy.distributed.coalesced import _coalescing_manager as _coalescing_manager
from tensorpy.distributed.coalesced import _CoalescingManager as _CoalescingManager
from tensorpy.distributed.coalesced import broadcast_coalesced as _broadcast_coalesced  # noqa: F401
from tensorpy.distributed.collectives import _all_gather_base as _all_gather_base
from tensorpy.distributed.collectives import _reduce_scatter_base as _reduce_scatter_base
from tensorpy.distributed.collectives import absent
from tensorpy.distributed.collectives import all_gather as all_gather
from tensorpy.distributed.collectives import all_gather_coalesced as all_gather_coalesced
from tensorpy.distributed.collectives import all_gather_into_tensor as all_gather_into_tensor
from tensorpy.distributed.collectives import all_gather_single as all_gather_single
from tensorpy.distributed.collectives import all_reduce as all_reduce
from tensorpy.distributed.collectives import all_reduce_coalesced as all_reduce_coalesced
from tensorpy.distributed.collectives import all_to_all as all_to_all
from tensorpy.distributed.collectives import all_to_all_single as all_to_all_single
from tensorpy.distributed.collectives import barrier as barrier
from tensorpy.distributed.collectives import broadcast as broadcast
from tensorpy.distributed.collectives import gather as gather
from tensorpy.distributed.collectives import monitored_barrier as monitored_barrier
from tensorpy.distributed.collectives import reduce as reduce
from tensorpy.distributed.collectives import reduce_scatter as reduce_scatter
from tensorpy.distributed.collectives import reduce_scatter_single as reduce_scatter_single
from tensorpy.distributed.collectives import reduce_scatter_tensor as reduce_scatter_tensor
from tensorpy.distributed.collectives import scatter as scatter
from tensorpy.distributed.debugging import breakpoint as breakpoint
from tensorpy.distributed.debugging import record_comm as record_comm
from tensorpy.distributed.detail import DebugLevel as DebugLevel
from tensorpy.distributed.detail import get_debug_level as get_debug_level
from tensorpy.distributed.detail import set_debug_level as set_debug_level
from tensorpy.distributed.detail import set_debug_level_from_env as set_debug_level_from_env
from tensorpy.distributed.errors import DistBackendError as DistBackendError
from tensorpy.distributed.errors import DistError as DistError
from tensorpy.distributed.errors import DistNetworkError as DistNetworkError
from tensorpy.distributed.errors import DistStoreError as DistStoreError
from tensorpy.distributed.errors import QueueEmptyError as QueueEmptyError
from tensorpy.distributed.groups import Backend as Backend
from tensorpy.distributed.groups import BackendConfig as BackendConfig
from tensorpy.distributed.groups import GroupMember as GroupMember
from tensorpy.distributed.groups import GroupName as GroupName
from tensorpy.distributed.groups import ProcessGroup as ProcessGroup
from tensorpy.distributed.groups import get_backend as get_backend
from tensorpy.distributed.groups import get_backend_config as get_backend_config
from tensorpy.distributed.groups import get_global_rank as get_global_rank
from tensorpy.distributed.groups import get_group_rank as get_group_rank
from tensorpy.distributed.groups import get_pg_count as get_pg_count
from tensorpy.distributed.groups import get_process_group_ranks as get_process_group_ranks
from tensorpy.distributed.groups import get_rank as get_rank
from tensorpy.distributed.groups import get_world_size as get_world_size
from tensorpy.distributed.groups import group as group
from tensorpy.distributed.messages import message
from tensorpy.distributed.objects import all_gather_object as all_gather_object
from tensorpy.distributed.objects import broadcast_object_list as broadcast_object_list
from tensorpy.distributed.objects import gather_object as gather_object
from tensorpy.distributed.objects import recv_object_list as recv_object_list
from tensorpy.distributed.objects import scatter_object_list as scatter_object_list
from tensorpy.distributed.objects import send_object_list as send_object_list
from tensorpy.distributed.point_to_point import P2POp as P2POp
from tensorpy.distributed.point_to_point import batch_isend_irecv as batch_isend_irecv
from tensorpy.distributed.point_to_point import irecv as irecv
from tensorpy.distributed.point_to_point import isend as isend
from tensorpy.distributed.point_to_point import recv as recv
from tensorpy.distributed.point_to_point import send as send
from tensorpy.distributed.process_group import AllreduceCoalescedOptions as AllreduceCoalescedOptions
from tensorpy.distributed.process_group import AllreduceOptions as AllreduceOptions
from tensorpy.distributed.process_group import AllToAllOptions as AllToAllOptions
from tensorpy.distributed.process_group import BarrierOptions as BarrierOptions
from tensorpy.distributed.process_group import BroadcastOptions as BroadcastOptions
from tensorpy.distributed.process_group import GatherOptions as GatherOptions
from tensorpy.distributed.process_group import ReduceOptions as ReduceOptions
from tensorpy.distributed.process_group import ReduceScatterOptions as ReduceScatterOptions
from tensorpy.distributed.process_group import ScatterOptions as ScatterOptions
from tensorpy.distributed.reduce_op import ReduceOp as ReduceOp
from tensorpy.distributed.reduce_op import _make_nccl_premul_sum as _make_nccl_premul_sum
from tensorpy.distributed.reduce_op import reduce_op as reduce_op
from tensorpy.distributed.reduce_op import supports_complex as supports_complex
from tensorpy.distributed.work import FutureWork, seconds_of
from tensorpy.distributed.work import Work as Work

_Work = Work
default_pg_timeout: timedelta = timedelta(seconds=groups.DEFAULT_SECONDS)

# What names of backends stand for: all of these are the engine that there is.
_NAMES = ("gloo", "mpi")
_LEAVING_SECONDS = 30.0


# ---- questions ----


def is_available() -> bool:
    """Whether there are groups of processes.

    Returns: bool.

    Example:
        >>> tp.distributed.is_available()
        True
    """
    return True


def is_initialized() -> bool:
    """Whether init_process_group was called.

    Returns: bool.

    Example:
        >>> tp.distributed.is_initialized()  # in a world
        True
    """
    return group.WORLD is not None


def is_nccl_available() -> bool:
    """Whether messages could go over NCCL.

    Returns: bool.

    Example:
        >>> tp.distributed.is_nccl_available()
        False
    """
    return False


def is_mpi_available() -> bool:
    """Whether messages could go over MPI: whether its library is here.

    Returns: bool.

    Example:
        >>> isinstance(tp.distributed.is_mpi_available(), bool)
        True
    """
    from tensorpy.distributed import world

    try:
        return world.is_here()
    except DistBackendError:
        return False


def is_gloo_available() -> bool:
    """Whether groups under the name gloo could be of several processes; messages go over MPI.

    Returns: bool.

    Example:
        >>> isinstance(tp.distributed.is_gloo_available(), bool)
        True
    """
    return is_mpi_available()


def is_ucc_available() -> bool:
    """Whether there is a backend of this name: there is none.

    Returns: bool.

    Example:
        >>> tp.distributed.is_ucc_available()
        False
    """
    return False


is_xccl_available = is_ucc_available


def is_torchelastic_launched() -> bool:
    """Whether torchrun started this process.

    Returns: bool.

    Example:
        >>> tp.distributed.is_torchelastic_launched()
        False
    """
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def is_backend_available(backend: str) -> bool:
    """Whether groups can be made with a backend: gloo and mpi are names of the one that there is.

    Arguments:
        backend: the name

    Returns: bool.

    Example:
        >>> tp.distributed.is_backend_available("nccl")
        False
    """
    return backend.lower() in (*_NAMES, *Backend._plugins)


def get_default_backend_for_device(device: Any) -> str:
    """The backend that PyTorch takes for a device type.

    Arguments:
        device: a device, or its type

    Returns: str.

    Example:
        >>> tp.distributed.get_default_backend_for_device("cpu")
        'gloo'
    """
    return "nccl" if str(device).startswith("cuda") else "gloo"


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """This process's place on its machine, which a launcher says.

    Arguments:
        fallback_rank: what it is where no launcher says it

    Returns: int.

    Raises: RuntimeError where no launcher has said it and there is no fallback_rank.

    Example:
        >>> tp.distributed.get_node_local_rank(0)
        0
    """
    for variable in ("LOCAL_RANK", "MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"):
        if variable in os.environ:
            return int(os.environ[variable])
    if fallback_rank is None:
        raise RuntimeError("get_node_local_rank: LOCAL_RANK is not in the environment, and no fallback_rank is given")
    return int(fallback_rank)


# ---- the world ----

_worlds = ""  # which one this process is in: the number of it at where its processes met
_begun: dict[str, int] = {}  # how many worlds this process began at an address, which may serve several


def _backend_of(name: str | None) -> str:
    """The name that get_backend() gives; ValueError for one that nothing here stands for."""
    asked = (name or "gloo").lower()
    for part in asked.split(","):
        kind = part.rpartition(":")[2]
        if kind not in _NAMES and kind not in Backend._plugins:
            raise RuntimeError(
                f"Distributed package doesn't have {kind.upper()} built in: backends are {', '.join(_NAMES)}"
            )
    return asked.rpartition(":")[2] if asked.startswith("cpu:") and "," not in asked else asked


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
    """Makes this process one of a world; all of its processes call this.

    Arguments:
        backend: gloo or mpi, two names of the one that there is
        init_method: where they meet: env:// (also for None), tcp://host:port, file:///path
        timeout: a timedelta, after which a message is late: an error; 30 minutes if nothing is said
        world_size: how many there are; the variable WORLD_SIZE, or a launcher's, if nothing is said
        rank: which one this is; the variable RANK, or a launcher's, if nothing is said
        store: where they meet, instead of init_method
        group_name: is taken
        pg_options: is taken
        device_id: is taken

    Example:
        >>> store = tp.distributed.HashStore()  # a world of one process, without a launcher
        >>> tp.distributed.init_process_group(store=store, rank=0, world_size=1)
        >>> tp.distributed.get_world_size()
        1
        >>> tp.distributed.destroy_process_group()
    """
    if group.WORLD is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise ValueError("init_process_group: either a store or an init_method, not both")
    name, seconds = _backend_of(backend), _patience(timeout, groups.DEFAULT_SECONDS)
    if "TORCH_DISTRIBUTED_DEBUG" in os.environ:
        set_debug_level_from_env()
    if name in Backend._plugins:
        made = _by_plugin(name, init_method or "env://", rank, world_size, store, seconds, pg_options)
    elif store is None and init_method in (None, "env://") and rank < 0 and _launched():
        made = _join_launched(name, seconds)
    else:
        made = _join(name, init_method or "env://", rank, world_size, store, seconds)
    group.WORLD = made
    groups.made[made.group_name] = made


class _BackendOptions:
    """What a function takes that was registered with extended_api."""

    def __init__(self, store: Any, rank: int, ranks: tuple[int, ...], timeout: timedelta, name: str) -> None:
        self.store, self.group_rank, self.group_size, self.timeout = store, rank, len(ranks), timeout
        self.global_ranks_in_group, self.group_id = list(ranks), name


def _plugged(
    name: str, store: Any, rank: int, ranks: tuple[int, ...], seconds: float, title: str, options: Any
) -> ProcessGroup:
    """A group that a registered function makes."""
    from tensorpy.distributed.stores import PrefixStore

    func, extended, _ = Backend._plugins[name]
    inside, patience = PrefixStore(f"{title}/", store), timedelta(seconds=seconds)
    if extended:
        made = func(_BackendOptions(inside, rank, ranks, patience, title), options)
    else:
        made = func(inside, rank, len(ranks), patience)
    if not isinstance(made, ProcessGroup):
        raise TypeError(f"the backend {name} gave {type(made).__name__}, not a ProcessGroup")
    made._backend, made._ranks, made._seconds, made._store = Backend(name), ranks, seconds, inside
    made._set_group_name(title)
    return made


def _by_plugin(name: str, method: str, rank: int, size: int, store: Any, seconds: float, options: Any) -> ProcessGroup:
    from tensorpy.distributed import meeting

    if store is None:
        store, rank, size = next(meeting.rendezvous(method, rank, size, timeout=timedelta(seconds=seconds)))
    return _plugged(name, store, rank, tuple(range(size)), seconds, "0", options)


def _register_process_group(group_name: str, group: ProcessGroup) -> None:
    """Operators find a group by a name.

    Arguments:
        group_name: the name
        group: the group
    """
    groups.made[group_name] = group


def _unregister_process_group(group_name: str) -> None:
    """Operators find it no more.

    Arguments:
        group_name: the name
    """
    groups.made.pop(group_name, None)


def _create_work_from_future(future: Any) -> Work:
    """A Work that is done when a future is, with what it has.

    Arguments:
        future: the future
    """
    return FutureWork(future)


def _patience(timeout: Any, otherwise: float) -> float:
    if timeout is not None and not isinstance(timeout, timedelta):
        raise TypeError(f"timeout is a datetime.timedelta, not {timeout!r}")
    return seconds_of(timeout, otherwise)


def _launched() -> bool:
    if not any(n in os.environ for n in ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")):
        return False
    from tensorpy.distributed import world

    return world.launched()


def _counts(method: str, store: Any) -> tuple[dict[str, int], str]:
    """Where worlds of an address, or of a store that is given, are counted, and the name of it there.

    Not by process: another process may have been in other worlds before, or have failed to begin one.
    """
    if store is None:
        variables = (os.environ.get(v, "") for v in ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT"))
        return _begun, f"{method} {' '.join(variables)}" if method.startswith("env:") else method.partition("?")[0]
    prefixes = []
    while hasattr(store, "underlying_store"):
        prefixes.append(str(store.prefix))
        store = store.underlying_store
    return vars(store).setdefault("_begun", {}), "/".join(prefixes)


def _join(name: str, method: str, rank: int, size: int, store: Any, seconds: float) -> ProcessGroup:
    global _worlds
    counts, where = _counts(method, store)
    if store is None:
        from tensorpy.distributed import meeting

        if meeting.is_registered(method):
            store, rank, size = next(meeting.rendezvous(method, rank, size, timeout=timedelta(seconds=seconds)))
        else:
            rank, size = meeting.rank_and_size(method, rank, size)
        if size > 1 and store is None:
            store = meeting.store_of(method, rank, size, seconds)
    elif size < 1 or not 0 <= rank < size:
        raise ValueError(f"init_process_group: a store comes with rank and world_size, not {rank} and {size}")
    if size == 1 or store is None:  # without a store there is one process
        return ProcessGroup._made(name, seconds=seconds, store=store)
    from tensorpy.distributed import world
    from tensorpy.distributed.stores import PrefixStore

    number = counts.get(where, 0) + 1
    _worlds = str(number)
    store.set_timeout(timedelta(seconds=seconds))
    inside = PrefixStore(f"world/{number}", store)
    try:
        world.begin(inside, rank, size, seconds)
        counts[where] = number
        return _everyone(name, rank, size, seconds, inside)
    except BaseException:
        world.give_up()
        raise


def _everyone(name: str, rank: int, size: int, seconds: float, store: Any) -> ProcessGroup:
    from tensorpy.distributed import world

    ranks = tuple(range(size))
    number = _C._distributed.new_group(f"tensorpy/{_worlds}/0", ranks, seconds)
    made = ProcessGroup._made(name, ranks, rank, number, "0", seconds, store)
    message(made, "barrier", name="init_process_group")
    world.hide_shared_memory()
    return made


def _join_launched(name: str, seconds: float) -> ProcessGroup:
    global _worlds
    from tensorpy.distributed import world

    if world.launched_size() == 1:
        return ProcessGroup._made(name, seconds=seconds)
    rank, size = world.begin_launched()
    if size == 1:
        world.end(0)
        return ProcessGroup._made(name, seconds=seconds)
    from tensorpy.distributed.stores import TCPStore

    _begun["launcher"] = _begun.get("launcher", 0) + 1
    _worlds = f"launched {_begun['launcher']}"
    made = _everyone(name, rank, size, seconds, None)
    world.watch_launched(made._number, rank, size)
    patience = timedelta(seconds=seconds)
    keeper = TCPStore(world._own_address(), 0, None, True, patience) if rank == 0 else None
    said = world.share(made._number, rank, f"{keeper.host} {keeper.port}" if keeper else "")
    host, port = said.split()
    made._store = keeper or TCPStore(host, int(port), None, False, patience)
    return made


_by_store: ProcessGroup | None = None  # the world that a ProcessGroupGloo began


class ProcessGroupGloo(ProcessGroup):
    """A group of those who make one with the same store, beside init_process_group's or without it.

    The first in a process of no world begins one, which ends with the process; later ones have processes of that world.

    Arguments:
        store: where they meet
        rank: which one this is
        size: how many there are
        timeout: a timedelta, after which a message is late; 30 minutes if nothing is said

    Example:
        >>> group = tp.distributed.ProcessGroupGloo(tp.distributed.HashStore(), 0, 1)
        >>> x = tp.ones(2)
        >>> work = group.allreduce([x])
        >>> work.wait(), x
        (True, tensor([1., 1.]))
    """

    def __init__(self, store: Any, rank: int, size: int, timeout: Any = None) -> None:
        global _by_store
        seconds = _patience(timeout, groups.DEFAULT_SECONDS)
        if size < 1 or not 0 <= rank < size:
            raise ValueError(f"ProcessGroupGloo: rank {rank} of {size}")
        world = _by_store or groups.group.WORLD
        if size == 1 or world is None or world._is_one():
            made = _join("gloo", "", rank, size, store, seconds)
            _by_store = _by_store if size == 1 else made
        else:
            made = _among(world, store, rank, size, seconds)
        self.__dict__.update(made.__dict__)


ProcessGroupGloo._asks = False


def _among(world: ProcessGroup, store: Any, rank: int, size: int, seconds: float) -> ProcessGroup:
    """A group of processes of a world, each of which says in a store which one it is."""
    store.set(f"rank/{rank}", str(world.rank()))
    late = absent(store, [f"rank/{r}" for r in range(size)], seconds)
    if late:
        raise DistNetworkError(f"ProcessGroupGloo: ranks {late} of {size} did not come in {seconds:g} s")
    chosen = tuple(int(store.get(f"rank/{r}")) for r in range(size))
    _names[chosen] = _names.get(chosen, 0) + 1
    return _some(world, "gloo", chosen, rank, f"store-{'-'.join(map(str, chosen))}#{_names[chosen]}", seconds)


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Ends a group; the world, with all others, for None. Waits a while for the others to end it, too.

    Arguments:
        group: the group; None takes all

    Example:
        >>> store = tp.distributed.HashStore()
        >>> tp.distributed.init_process_group(store=store, rank=0, world_size=1)
        >>> tp.distributed.destroy_process_group()
        >>> tp.distributed.is_initialized()
        False
    """
    if group is groups.group.NON_GROUP_MEMBER:
        return
    found = groups.of(group)
    if found is not groups.group.WORLD:
        groups.made.pop(found.group_name, None)
        if found._number >= 0:
            _C._distributed.free_group(found._number)
            found._number = -1
        return
    groups.group.WORLD = None
    groups.made.clear()
    _names.clear()  # another process of the next world may have been in none
    if not found._is_one():
        from tensorpy.distributed import world

        try:
            world.end(min(found._seconds, _LEAVING_SECONDS))
        finally:
            found._store = None


# ---- groups of some ----

_names: dict[tuple[int, ...], int] = {}


def _ranks_of(given: Any, world: ProcessGroup, sort: bool) -> tuple[int, ...]:
    ranks = tuple(range(world.size())) if given is None else tuple(int(r) for r in given)
    if len(set(ranks)) != len(ranks):
        raise ValueError(f"new_group: a rank stands in {list(ranks)} twice")
    for rank in ranks:
        if not 0 <= rank < world.size():
            raise ValueError(f"Rank {rank} is out of range: new_group has ranks 0 to {world.size() - 1}")
    return tuple(sorted(ranks)) if sort else ranks


def new_group(
    ranks: Iterable[int] | None = None,
    timeout: Any = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> Any:
    """A group of some of the world's processes; all of the world call this, in one order.

    Arguments:
        ranks: their ranks in the world; None takes all
        timeout: a timedelta; the world's if nothing is said
        backend: gloo or mpi; the world's if nothing is said
        pg_options: is taken
        use_local_synchronization: only those who are in the group call this
        group_desc: what the group is for, `group_desc` of it
        device_id: is taken
        sort_ranks: ranks in the group go by those in the world; else by the order in which they are given

    Returns: a group; outside of it GroupMember.NON_GROUP_MEMBER.

    Example:
        >>> group = tp.distributed.new_group([0])
        >>> tp.distributed.all_reduce(tp.ones(2), group=group)
    """
    world = groups.of(None)
    chosen = _ranks_of(ranks, world, sort_ranks)
    seconds = _patience(timeout, world._seconds)
    name = _backend_of(backend) if backend else world._backend
    key = chosen if use_local_synchronization else ()
    _names[key] = _names.get(key, 0) + 1
    title = f"{'-'.join(map(str, key))}#{_names[key]}" if key else str(_names[key])
    if world.rank() not in chosen:
        return groups.group.NON_GROUP_MEMBER
    place = chosen.index(world.rank())
    if name in Backend._plugins:
        made = _plugged(name, world._store, place, chosen, seconds, title, pg_options)
    elif len(chosen) == 1:
        made = ProcessGroup._made(name, chosen, 0, -1, title, seconds)
    else:
        made = _some(world, name, chosen, place, title, seconds)
    made.group_desc = group_desc or "undefined"
    groups.made[title] = made
    return made


def shrink_group(
    ranks_to_exclude: list[int], group: ProcessGroup | None = None, shrink_flags: int = 0, pg_options: Any = None
) -> Any:
    """A group of those who are left of a group without some; those who stay call this.

    Arguments:
        ranks_to_exclude: ranks in the group
        group: the group; None takes all
        shrink_flags: is taken
        pg_options: is taken

    Returns: a group.

    Raises: ValueError for ranks that the group does not have, RuntimeError in a process that leaves.

    Example:
        >>> tp.distributed.shrink_group([]).size()
        1
    """
    found = groups.of(group)
    gone = set(ranks_to_exclude)
    if not gone <= set(range(found.size())):
        raise ValueError(f"shrink_group: ranks {sorted(gone)} are not all in a group of {found.size()}")
    if found.rank() in gone:
        raise RuntimeError("shrink_group: those who stay call this, and this process does not")
    left = [rank for place, rank in enumerate(found._ranks) if place not in gone]
    return new_group(left, backend=found._backend, pg_options=pg_options, use_local_synchronization=True)


def _some(
    world: ProcessGroup, name: str, chosen: tuple[int, ...], place: int, title: str, seconds: float
) -> ProcessGroup:
    """The members meet in the store first, as MPI's own wait for them has no end."""
    from tensorpy.distributed.stores import PrefixStore

    store = PrefixStore(f"group/{title}", world._store)
    store.set(f"here/{place}", "")
    late = absent(store, [f"here/{i}" for i in range(len(chosen))], seconds, chosen)
    if late:
        fault = _C._distributed.fault()
        which = ", ".join(str(chosen[i]) for i in late)
        raise DistBackendError(
            f"new_group: {fault}" if fault else f"new_group: rank{'s' * (len(late) > 1)} {which} did not come in "
            f"{seconds:g} s"
        )  # fmt: skip
    number = _C._distributed.new_group(f"tensorpy/{_worlds}/{title}", chosen, seconds)
    return ProcessGroup._made(name, chosen, place, number, title, seconds, store)


def _rank_not_in_group(group: Any) -> bool:
    return group is groups.group.NON_GROUP_MEMBER


def _get_process_group_name(pg: ProcessGroup) -> str:
    return pg.group_name


def _get_default_group() -> ProcessGroup:
    return groups.of(None)


def _get_default_store() -> Any:
    world = groups.of(None)
    if world._store is None:  # one process, which met nobody
        from tensorpy.distributed.stores import HashStore

        world._store = HashStore()
        world._store.set_timeout(timedelta(seconds=world._seconds))
    return world._store


def new_subgroups(
    group_size: int | None = None,
    group: ProcessGroup | None = None,
    timeout: Any = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> Any:
    """This process's group of `group_size` processes with neighbouring ranks, and all such groups.

    Arguments:
        group_size: how many processes each has; as many as this machine has, by LOCAL_WORLD_SIZE, if nothing is said
        group: which processes; None takes all
        timeout: a timedelta; the world's if nothing is said
        backend: gloo or mpi; the world's if nothing is said
        pg_options: is taken
        group_desc: what the group is for, `group_desc` of it

    Returns: a group, and a list of all.

    Raises: ValueError for a size that does not divide the world.

    Example:
        >>> mine, all_groups = tp.distributed.new_subgroups(1)
        >>> len(all_groups)
        1
    """
    ranks = get_process_group_ranks(group)
    size = group_size or int(os.environ.get("LOCAL_WORLD_SIZE", len(ranks)))
    if size < 1 or len(ranks) % size:
        why = "must not exceed how many there are" if size > len(ranks) else "must divide their number"
        raise ValueError(f"new_subgroups: {len(ranks)} process(es) are no groups of {size}: the size {why}")
    parts = [ranks[i : i + size] for i in range(0, len(ranks), size)]
    return new_subgroups_by_enumeration(parts, timeout, backend, group_desc=group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: list[list[int]],
    timeout: Any = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> Any:
    """This process's group of the ones that are listed, and all of them.

    Arguments:
        ranks_per_subgroup_list: the ranks in the world of each group's processes
        timeout: a timedelta; the world's if nothing is said
        backend: gloo or mpi; the world's if nothing is said
        pg_options: is taken
        group_desc: what the group is for, `group_desc` of it

    Returns: a group, and a list of all.

    Raises: ValueError for a rank in two groups, or no groups.

    Example:
        >>> mine, all_groups = tp.distributed.new_subgroups_by_enumeration([[0]])
        >>> mine.size()
        1
    """
    flat = [rank for part in ranks_per_subgroup_list for rank in part]
    if not flat or len(set(flat)) != len(flat):
        raise ValueError("new_subgroups_by_enumeration: every rank stands in one group at most, and there is one")
    made = [new_group(part, timeout, backend, group_desc=group_desc) for part in ranks_per_subgroup_list]
    mine = next((g for g in made if g is not groups.group.NON_GROUP_MEMBER), groups.group.NON_GROUP_MEMBER)
    return mine, made


def split_group(
    parent_pg: ProcessGroup | None = None,
    split_ranks: list[list[int]] | None = None,
    timeout: Any = None,
    pg_options: Any = None,
    group_desc: str | None = None,
    backend: str | None = None,
) -> Any:
    """This process's group of those that a group is split into; None in none of them.

    Arguments:
        parent_pg: the group; None takes all
        split_ranks: the ranks in it of each part's processes
        timeout: a timedelta; the world's if nothing is said
        pg_options: is taken
        group_desc: what the group is for, `group_desc` of it
        backend: gloo or mpi; the world's if nothing is said

    Returns: a group, or None.

    Raises: ValueError without split_ranks.

    Example:
        >>> tp.distributed.split_group(split_ranks=[[0]]).size()
        1
    """
    if not split_ranks:
        raise ValueError("split_group: split_ranks says who is together")
    ranks = get_process_group_ranks(parent_pg)
    parts = [[ranks[r] for r in part] for part in split_ranks]
    made = None
    for part in parts:
        if groups.get_rank() in part:
            made = new_group(part, timeout, backend, use_local_synchronization=True, group_desc=group_desc)
    return made


def __getattr__(name: str) -> Any:
    if name in ("Store", "PrefixStore"):  # imported at first use: they need sockets and threads
        from tensorpy.distributed import stores

        return getattr(stores, name)
    if name.endswith("_AVAILABLE"):  # of PyTorch's module, which programs look into; the library is looked for
        backend = name.removeprefix("_").removesuffix("_AVAILABLE").lower()
        if backend in (*_NAMES, "nccl", "ucc", "xccl", "torchcomm"):
            return backend in _NAMES and is_mpi_available()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
