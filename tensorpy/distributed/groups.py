"""Groups of processes: who is in them, and which rank in one is which in another.

A group of one process is this process: nothing is sent, and no library is opened. `group.WORLD` is the group that
init_process_group made.
"""

from __future__ import annotations

import warnings
from typing import Any

DEFAULT_SECONDS = 1800.0


class Backend(str):
    """The name of what would carry messages between processes.

    Example:
        >>> tp.distributed.Backend("MPI")
        'mpi'
    """

    GLOO, NCCL, MPI, UCC, UNDEFINED = "gloo", "nccl", "mpi", "ucc", "undefined"

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError(f"Backend name must be a string, but got: {name!r}")
        return super().__new__(cls, name.lower())


class ProcessGroup:
    """A group of processes: their ranks in the world, and this one's rank among them.

    Arguments:
        backend: the name that it was made with
        ranks: its processes, by their ranks in the world
        rank: this process's rank in it
        number: its number in the engine
        name: its name
        seconds: after how long a message is late
        store: what its processes share

    Example:
        >>> group = tp.distributed.new_group([0])  # what makes them
        >>> group.rank(), group.size()
        (0, 1)
    """

    group_name: str
    group_desc: str = "default_pg"
    bound_device_id: Any = None

    def __init__(
        self,
        backend: str,
        ranks: tuple[int, ...] = (0,),
        rank: int = 0,
        number: int = -1,
        name: str = "0",
        seconds: float = DEFAULT_SECONDS,
        store: Any = None,
    ) -> None:
        self._backend = Backend(backend)
        self._ranks, self._rank, self._number = ranks, rank, number
        self.group_name, self._seconds, self._store = name, seconds, store
        self._barriers = self._checks = 0

    def rank(self) -> int:
        """This process's place."""
        return self._rank

    def size(self) -> int:
        """How many processes there are."""
        return len(self._ranks)

    def name(self) -> str:
        """The name of what carries messages."""
        return str(self._backend)

    def _is_one(self) -> bool:
        return len(self._ranks) == 1


class _NonMember:
    """What new_group gives a process that is not in the group."""

    def __repr__(self) -> str:
        return "GroupMember.NON_GROUP_MEMBER"


class _Group:
    """`group.WORLD`: the group that init_process_group made, None before.

    Example:
        >>> tp.distributed.GroupMember.WORLD.size()  # in a world of one process
        1
    """

    WORLD: ProcessGroup | None = None
    NON_GROUP_MEMBER: Any = _NonMember()


group = GroupMember = _Group

made: dict[str, ProcessGroup] = {}  # the groups of this process by their names, the world's too


def of(given: Any) -> ProcessGroup:
    """The group that is meant: the default one for None."""
    found = _Group.WORLD if given is None else given
    if found is None:
        raise ValueError("Default process group has not been initialized: call init_process_group first")
    if found is _Group.NON_GROUP_MEMBER:
        raise ValueError("Invalid process group specified: this process is not in it")
    if not isinstance(found, ProcessGroup):
        raise TypeError(f"expected a ProcessGroup, not {type(found).__name__}")
    return found


def is_outside(name: str, given: Any) -> bool:
    """Whether this process is not in the group, which it hears of: what others do in a group is not for it."""
    if given is not _Group.NON_GROUP_MEMBER:
        return False
    where = _Group.WORLD.rank() if _Group.WORLD else -1
    warnings.warn(f"Running {name} on global rank {where} which does not belong to the given group.", stacklevel=3)
    return True


def place(name: str, found: ProcessGroup, rank: int | None, group_rank: int | None, default: int | None = None) -> int:
    """The place in the group of a rank of the world, or of one of the group."""
    if rank is not None and group_rank is not None:
        raise ValueError(f"{name}: can't specify both group_rank and global_rank")
    if rank is None and group_rank is None:
        if default is None:
            raise ValueError(f"{name}: must specify global_rank or group_rank")
        return default
    if rank is not None:
        if rank not in found._ranks:
            raise ValueError(f"{name}: global rank {rank} is not part of group {found.group_name}: {found._ranks}")
        return found._ranks.index(rank)
    assert group_rank is not None
    if not 0 <= group_rank < found.size():
        raise ValueError(f"{name}: group rank {group_rank} of a group of {found.size()}")
    return group_rank


def get_rank(group: ProcessGroup | None = None) -> int:
    """This process's place in the group; -1 outside of it.

    Arguments:
        group: the processes; None takes all

    Example:
        >>> tp.distributed.get_rank()
        0
    """
    return -1 if group is _Group.NON_GROUP_MEMBER else of(group).rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """How many processes the group has; -1 outside of it.

    Arguments:
        group: the processes; None takes all

    Example:
        >>> tp.distributed.get_world_size()
        1
    """
    return -1 if group is _Group.NON_GROUP_MEMBER else of(group).size()


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The place in the default group of a group's process.

    Arguments:
        group: the group
        group_rank: the place in it

    Example:
        >>> tp.distributed.get_global_rank(tp.distributed.new_group([0]), 0)
        0
    """
    found = of(group)
    if not 0 <= group_rank < found.size():
        raise ValueError(f"get_global_rank: there is no rank {group_rank} in a group of {found.size()}")
    return found._ranks[group_rank]


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The place in a group of the default group's process.

    Arguments:
        group: the group
        global_rank: the place in the default group

    Example:
        >>> tp.distributed.get_group_rank(tp.distributed.new_group([0]), 0)
        0
    """
    found = of(group)
    if global_rank not in found._ranks:
        raise ValueError(f"get_group_rank: global rank {global_rank} is not part of group {found.group_name}")
    return found._ranks.index(global_rank)


def get_process_group_ranks(group: ProcessGroup | None = None) -> list[int]:
    """The group's processes, by their places in the default group.

    Arguments:
        group: the processes; None takes all

    Example:
        >>> tp.distributed.get_process_group_ranks()
        [0]
    """
    return list(of(group)._ranks)


def get_backend(group: ProcessGroup | None = None) -> Backend:
    """The name that init_process_group was given, "gloo" without one.

    Arguments:
        group: the processes; None takes all

    Example:
        >>> tp.distributed.get_backend()
        'gloo'
    """
    return of(group)._backend


def get_backend_config(group: ProcessGroup | None = None) -> str:
    """Which backend each device type has.

    Arguments:
        group: the processes; None takes all

    Example:
        >>> tp.distributed.get_backend_config()
        'cpu:gloo...'
    """
    return f"cpu:{get_backend(group)}"


def get_pg_count() -> int:
    """How many groups there are.

    Example:
        >>> tp.distributed.get_pg_count() > 0
        True
    """
    return len(made)
