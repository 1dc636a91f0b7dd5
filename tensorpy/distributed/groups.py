"""Groups of processes: who is in them, and which rank in one is which in another.

A group of one process is this process: nothing is sent, and no library is opened. `group.WORLD` is the group that
init_process_group made.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, ClassVar, NewType

GroupName = NewType("GroupName", str)

DEFAULT_SECONDS = 1800.0


class BackendConfig:
    """Which backend each type of device has, of a text such as "cpu:gloo,opencl:mpi".

    Arguments:
        backend: the text, or one name for all

    Raises: ValueError for a text of another form.

    Example:
        >>> tp.distributed.BackendConfig("gloo").get_device_backend_map()
        {'cpu': 'gloo', 'opencl': 'gloo'}
    """

    device_backend_map: dict[str, Any]

    def __init__(self, backend: str) -> None:
        parts = [part.rpartition(":") for part in backend.lower().split(",")]
        if len(parts) > 1 and any(not device for device, _, _ in parts):
            raise ValueError(f"BackendConfig: {backend!r} is not device:name,device:name")
        one = not parts[0][0]
        named = [(device, parts[0][2]) for device in ("cpu", "opencl")] if one else [(d, n) for d, _, n in parts]
        if len({device for device, _ in named}) < len(named):
            raise ValueError(f"BackendConfig: {backend!r} names a device twice")
        self.device_backend_map = {device: Backend(name) for device, name in named}

    def __repr__(self) -> str:
        return ",".join(f"{device}:{name}" for device, name in self.device_backend_map.items())

    def get_device_backend_map(self) -> dict[str, Any]:
        """The backends by types of devices."""
        return self.device_backend_map


class Backend(str):
    """The name of what would carry messages between processes.

    Example:
        >>> tp.distributed.Backend("MPI")
        'mpi'
    """

    GLOO, NCCL, MPI, UCC, UNDEFINED = "gloo", "nccl", "mpi", "ucc", "undefined"
    backend_list: ClassVar[list[str]] = [UNDEFINED, GLOO, NCCL, UCC, MPI]
    _plugins: ClassVar[dict[str, tuple[Callable[..., Any], bool, list[str]]]] = {}

    @classmethod
    def register_backend(
        cls, name: str, func: Callable[..., Any], extended_api: bool = False, devices: str | list[str] | None = None
    ) -> None:
        """Has init_process_group and new_group make groups of a name by a function.

        Arguments:
            name: the name
            func: takes the store, the rank, how many there are, and a timedelta; gives a ProcessGroup of a class of
                Python's own
            extended_api: whether it takes one object with these as `store`, `group_rank`, `group_size`, `timeout`, and
                the options that init_process_group was given
            devices: the types of devices that it is for; the host if nothing is said
        """
        key = name.lower()
        if hasattr(cls, name.upper()) or key in cls._plugins:
            raise AssertionError(f"{name.upper()} c10d backend already exist: another name is free")
        setattr(cls, name.upper(), key)
        cls.backend_list.append(key)
        cls._plugins[key] = func, extended_api, [devices] if isinstance(devices, str) else list(devices or ["cpu"])

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError(f"Backend name must be a string, but got: {name!r}")
        return super().__new__(cls, name.lower())


class ProcessGroup:
    """A group of processes: their ranks in the world, and this one's rank among them.

    A class of Python's own below it, made of a rank and how many there are, or of a store and these, carries messages
    by its methods: `allreduce(tensors, opts)`, `broadcast`, `allgather` and so on give a Work. They may also say what
    `getRank()`, `getSize()`, `getBackendName()` are.

    Arguments:
        place: the rank and how many there are, or a store and these

    Example:
        >>> group = tp.distributed.new_group([0])  # what makes them
        >>> group.rank(), group.size()
        (0, 1)
    """

    bound_device_id: Any = None
    _asks = False  # of a class of Python's own: its methods send

    def __init__(self, *place: Any) -> None:
        store, rank, size = place if len(place) == 3 else (None, *place)
        self._set("undefined", tuple(range(size)), rank, store=store)

    def __init_subclass__(cls, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        cls._asks = True

    @classmethod
    def _made(cls, *args: Any, **kwargs: Any) -> ProcessGroup:
        """A group that the engine carries."""
        group = cls.__new__(cls)
        group._set(*args, **kwargs)
        return group

    def _set(
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
        self._group_name, self._group_desc, self._seconds, self._store = name, "default_pg", seconds, store
        self._barriers = self._checks = 0

    # what classes of Python's own may say otherwise

    def getRank(self) -> int:
        """The same as rank()."""
        return self._rank

    def getSize(self) -> int:
        """The same as size()."""
        return len(self._ranks)

    def getBackendName(self) -> str:
        """The same as name()."""
        return str(self._backend)

    def getGroupName(self) -> str:
        """The same as group_name."""
        return self._group_name

    def setGroupName(self, name: str) -> None:
        """Gives it another group_name.

        Arguments:
            name: the name
        """
        self._group_name = name

    def getGroupDesc(self) -> str:
        """The same as group_desc."""
        return self._group_desc

    def setGroupDesc(self, group_desc: str) -> None:
        """Gives it another group_desc.

        Arguments:
            group_desc: what it is for
        """
        self._group_desc = group_desc

    def abort(self) -> None:
        """Does nothing: destroy_process_group ends a group."""

    def shutdown(self) -> None:
        """Does nothing: destroy_process_group ends a group."""

    def rank(self) -> int:
        """This process's place."""
        return self.getRank()

    def size(self) -> int:
        """How many processes there are."""
        return self.getSize()

    def name(self) -> str:
        """The name of what carries messages."""
        return self.getBackendName()

    @property
    def group_name(self) -> str:
        """Its name, by which operators know it."""
        return self.getGroupName()

    @group_name.setter
    def group_name(self, name: str) -> None:
        self.setGroupName(name)

    @property
    def group_desc(self) -> str:
        """What it is for."""
        return self.getGroupDesc()

    @group_desc.setter
    def group_desc(self, group_desc: str) -> None:
        self.setGroupDesc(group_desc)

    def _set_group_name(self, name: str) -> None:
        self.setGroupName(name)

    def _set_group_desc(self, group_desc: str) -> None:
        self.setGroupDesc(group_desc)

    def get_group_store(self) -> Any:
        """What its processes share.

        Returns: a Store.
        """
        return self._store

    def _is_one(self) -> bool:
        return len(self._ranks) == 1 and not self._asks


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

    Returns: int.

    Example:
        >>> tp.distributed.get_rank()
        0
    """
    return -1 if group is _Group.NON_GROUP_MEMBER else of(group).rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """How many processes the group has; -1 outside of it.

    Arguments:
        group: the processes; None takes all

    Returns: int.

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

    Returns: int.

    Raises: ValueError for a rank that the group does not have.

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

    Returns: int.

    Raises: ValueError for a process outside of the group.

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

    Returns: a list of ints.

    Example:
        >>> tp.distributed.get_process_group_ranks()
        [0]
    """
    return list(of(group)._ranks)


def get_backend(group: ProcessGroup | None = None) -> Backend:
    """The name that init_process_group was given, "gloo" without one.

    Arguments:
        group: the processes; None takes all

    Returns: str.

    Example:
        >>> tp.distributed.get_backend()
        'gloo'
    """
    return of(group)._backend


def get_backend_config(group: ProcessGroup | None = None) -> str:
    """Which backend each device type has.

    Arguments:
        group: the processes; None takes all

    Returns: str.

    Example:
        >>> tp.distributed.get_backend_config()
        'cpu:gloo...'
    """
    return f"cpu:{get_backend(group)}"


def get_pg_count() -> int:
    """How many groups there are.

    Returns: int.

    Example:
        >>> tp.distributed.get_pg_count() > 0
        True
    """
    return len(made)
