"""How a world of several processes begins and ends: a store or a launcher says who is who, then MPI starts.

Without a launcher rank 0 runs a server (csrc/distributed/server.h), whose address goes through the store; every process
joins its watch and starts MPI by it. Under mpirun, mpiexec or srun MPI starts by the launcher, and the server's address
goes by MPI. The library is looked for in this order: TENSORPY_MPI_LIBRARY, where `pip install mpich` puts it, the
loader's path; first those with the standard's binary interface, then older MPICH and Open MPI, which is the first
under its own mpirun: nobody else can start it.
"""

from __future__ import annotations

import atexit
import glob
import os
import re
import secrets
import site
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import tensorpy as tp
from tensorpy import _C
from tensorpy.distributed.collectives import absent
from tensorpy.distributed.errors import DistBackendError, DistNetworkError, DistStoreError
from tensorpy.distributed.messages import KINDS

_engine = _C._distributed
_MAC = sys.platform == "darwin"
_STANDARD = ("libmpi_abi.1.dylib",) if _MAC else ("libmpi_abi.so.1",)
_MPICH = ("libmpi.12.dylib",) if _MAC else ("libmpi.so.12", "libmpich.so.12")
_OPEN_MPI = ("libmpi.40.dylib",) if _MAC else ("libmpi.so.40",)

# How a launcher says which process this is, and of how many: rank, size.
LAUNCHERS = (("PMI_RANK", "PMI_SIZE"), ("PMIX_RANK", "PMIX_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"))


def launched() -> bool:
    """Whether mpirun, mpiexec or srun started this process, and nothing else says its rank."""
    return "RANK" not in os.environ and any(rank in os.environ for rank, _ in LAUNCHERS)


def launched_size() -> int:
    """How many processes the launcher started; -1 where only MPI knows."""
    return next((int(os.environ[size]) for _, size in LAUNCHERS if size in os.environ), -1)


def launched_rank() -> int:
    """Which of them the launcher says that this process is; -1 where it does not."""
    return next((int(os.environ[rank]) for rank, _ in LAUNCHERS if rank in os.environ), -1)


def _launched_by_open_mpi() -> bool:
    return launched() and "OMPI_COMM_WORLD_RANK" in os.environ


def paths() -> list[str]:
    """Where the library may be."""
    given = os.environ.get("TENSORPY_MPI_LIBRARY")
    if given:
        return [given]
    prefixes = dict.fromkeys(p for p in (sys.prefix, sys.base_prefix, site.getuserbase()) if p)
    others = (*_STANDARD, *_MPICH)
    names = (*_OPEN_MPI, *others) if _launched_by_open_mpi() else (*others, *_OPEN_MPI)
    return [path for name in names for path in (*(os.path.join(p, "lib", name) for p in prefixes), name)]


def is_here() -> bool:
    """Whether a library of MPI can be opened; it then is."""
    # UCX, which some libraries come with, would take over signals and calls for memory.
    os.environ.setdefault("UCX_HANDLE_ERRORS", "none")
    os.environ.setdefault("UCX_MEM_EVENTS", "no")
    os.environ.setdefault("MPIR_CVAR_CH4_NETMOD", "ofi")  # faster over TCP than UCX
    os.environ.setdefault("FI_PROVIDER", "^sockets")  # libfabric's older way over TCP, which MPICH may take first
    if _has_much_shared_memory():  # 4 MiB for each process, not 1: messages of 25 MiB among four take half the time
        os.environ.setdefault("MPIR_CVAR_CH4_SHM_POSIX_IQUEUE_NUM_CELLS", "256")
    return bool(_engine.load(tuple(paths())))


def _has_much_shared_memory() -> bool:
    """The same in all processes of a machine, as they share the queues: by its size, not by what is free."""
    try:
        found = os.statvfs("/dev/shm")
    except OSError:
        return False
    return found.f_blocks * found.f_frsize >= 1 << 30


def open_library() -> None:
    """Opens the library; an error says why none can make a world here."""
    if not is_here():
        looked = ", ".join(paths())
        raise DistBackendError(
            "several processes need a library of MPI, and there is none: "
            f"`pip install mpich` brings one (looked for {looked}; TENSORPY_MPI_LIBRARY names another)"
        )
    found, by_open_mpi = _engine.library(), _launched_by_open_mpi()
    if by_open_mpi and not _engine.is_launched():
        raise DistBackendError(
            f"init_process_group: Open MPI's mpirun started this process, and {found} is of another MPI; "
            "TENSORPY_MPI_LIBRARY names Open MPI's library (libmpi.so.40)"
        )
    if _engine.is_launched() and not launched():
        raise DistBackendError(
            f"init_process_group: {found} starts under its own mpirun alone, without RANK in the environment; "
            "`pip install mpich` brings a library that starts from a store, too"
        )
    if (fault := _engine.fault()) is not None:
        raise DistBackendError(f"init_process_group: {fault}; another world needs another process")


# ---- machines ----


def _machine() -> str:
    """What two processes on one machine have in common: its name, this start of it, its network."""
    parts = [socket.gethostname()]
    for path, read in (("/proc/sys/kernel/random/boot_id", _text), ("/proc/self/ns/net", os.readlink)):
        try:
            parts.append(read(path))
        except OSError:
            continue
    return "/".join(parts)


def _text(path: str) -> str:
    with open(path) as file:
        return file.read().strip()


def mapping(machines: list[str]) -> str:
    """Which ranks share a machine, in PMI's words: (first machine, how many, processes on each) after each other."""
    numbers = {machine: n for n, machine in enumerate(dict.fromkeys(machines))}
    blocks: list[list[int]] = []
    for machine in machines:
        if blocks and blocks[-1][0] == numbers[machine]:
            blocks[-1][1] += 1
        else:
            blocks.append([numbers[machine], 1])
    return "(vector," + ",".join(f"({machine},1,{count})" for machine, count in blocks) + ")"


def _address(machines: list[str], store: Any) -> str:
    """An address of this machine that the others reach: that of the rendezvous, where there is one."""
    if len(set(machines)) == 1:
        return "127.0.0.1"
    return _own_end(store) or socket.gethostbyname(socket.gethostname())


def _own_end(store: Any) -> str:
    """This machine's address in its connection to the store; empty where the store is a file or this process's own."""
    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    connection = getattr(store, "_connection", None)
    return "" if connection is None else str(connection.socket.getsockname()[0])


def _card(address: str) -> str | None:
    """The name of the network interface that has an address (IPv4, Linux); None where it is not known."""
    if _MAC or not address or ":" in address:
        return None
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        for _, name in socket.if_nameindex():
            with suppress(OSError):  # SIOCGIFADDR; an interface may have no address
                found = fcntl.ioctl(asker.fileno(), 0x8915, name.encode()[:15].ljust(256, b"\0"))
                if socket.inet_ntoa(found[20:24]) == address:
                    return name
    return None


# ---- the beginning ----


@contextmanager
def _environment(**values: str | None) -> Iterator[None]:
    """Variables for the library, which programs that this one starts must not see."""
    before = {name: os.environ.get(name) for name in values}

    def put(them: dict[str, str | None]) -> None:
        for name, value in them.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    put(values)
    try:
        yield
    finally:
        put(before)


_token = ""  # the name of the world that began last
_room = 0  # how many processes of this machine were in the first one: MPI has memory for as many, and aborts with more


def begin(store: Any, rank: int, size: int, seconds: float) -> None:
    """Makes this process rank `rank` of a world of `size`; every one of them calls this with the same store."""
    open_library()
    try:
        _meet(store, rank, size, seconds)
    except BaseException:
        with suppress(Exception):  # of an attempt that failed the next one finds nothing
            store.delete_key(f"machine/{rank}")
        raise
    _note_exit()


def _meet(store: Any, rank: int, size: int, seconds: float) -> None:
    global _token, _room
    if rank == 0:
        with suppress(DistStoreError, DistNetworkError, NotImplementedError):
            store.delete_key("server")
    store.set(f"machine/{rank}", f"{_machine()}\n{_room}")
    if rank == 0:
        try:
            said = _serve(store, size, seconds)
        except Exception as error:
            _tell_why(store, size, error)
            raise
        store.set("server", said)
    else:
        said = _ask_for_server(store, rank, seconds)
    address, port, token, shared = said.split()
    _token, _room = token, _room or _neighbours(shared, rank)
    start = (address, int(port), token, socket.gethostname(), rank, size, seconds)
    fd = _engine.open_pmi(size, token, shared)
    # Messages over TCP stay on the card of the rendezvous: the library would choose one by its speed, even loopback.
    meeting = _own_end(store) or ("127.0.0.1" if shared.count("(") == 2 else "")
    card = os.environ.get("FI_TCP_IFACE") or _card(meeting)
    none = dict.fromkeys(("PMI_PORT", "PMI_ID", "PMI_SPAWNED", "PMIX_RANK", "PMIX_NAMESPACE"))
    with _environment(PMI_FD=str(fd), PMI_RANK=str(rank), PMI_SIZE=str(size), FI_TCP_IFACE=card, **none):
        _engine.begin_world(*start)


def _serve(store: Any, size: int, seconds: float) -> str:
    late = absent(store, [f"machine/{r}" for r in range(size)], seconds)
    if late:
        which = ", ".join(map(str, late))
        raise DistNetworkError(f"init_process_group: rank{'s' * (len(late) > 1)} {which} of {size} did not come in "
                               f"{seconds:g} s")  # fmt: skip
    machines, rooms = _machines(store, size)
    for rank, (machine, room) in enumerate(zip(machines, rooms, strict=True)):
        if 0 < room < machines.count(machine):
            raise DistBackendError(
                f"init_process_group: rank {rank} was in a world of {room} processes on its machine, and MPI takes it "
                f"into none of {machines.count(machine)}: such a world is for new processes"
            )
    address, token = _address(machines, store), "tensorpy-" + secrets.token_hex(8)
    return f"{address} {_engine.serve(address, size, token)} {token} {mapping(machines)}"


def _machines(store: Any, size: int) -> tuple[list[str], list[int]]:
    """The machine of each rank, and for how many processes of it there is room."""
    said = [text.decode().rpartition("\n") for text in store.multi_get([f"machine/{r}" for r in range(size)])]
    return [machine for machine, _, _ in said], [int(room) for _, _, room in said]


def _neighbours(shared: str, rank: int) -> int:
    """How many processes are on the machine of a rank, by mapping()."""
    of_ranks = [n for n, count in re.findall(r"\((\d+),1,(\d+)\)", shared) for _ in range(int(count))]
    return of_ranks.count(of_ranks[rank])


def _tell_why(store: Any, size: int, error: Exception) -> None:
    """The others hear why there is no world; this process may keep the store, and waits a moment for them."""
    with suppress(DistStoreError, DistNetworkError):
        here = [r for r in range(1, size) if store.check([f"machine/{r}"])]
        kind = DistBackendError if isinstance(error, DistBackendError) else DistNetworkError
        store.set("server", f"!{kind.__name__} {error}")
        absent(store, [f"told/{r}" for r in here], 2.0)


def _ask_for_server(store: Any, rank: int, seconds: float) -> str:
    if absent(store, ["server"], seconds + 5):  # rank 0 names who is missing within the time
        raise DistNetworkError(f"init_process_group: rank 0 did not come to rank {rank} in {seconds:g} s")
    try:
        said = str(store.get("server").decode())
    except DistStoreError as error:
        raise DistNetworkError(f"init_process_group: rank 0 has gone: {error}") from None
    if said.startswith("!"):
        with suppress(DistStoreError, DistNetworkError):
            store.set(f"told/{rank}", "")
        kind, _, why = said[1:].partition(" ")
        raise (DistBackendError if kind == DistBackendError.__name__ else DistNetworkError)(why)
    return said


def begin_launched() -> tuple[int, int]:
    """Makes the world that a launcher started; this process's rank, and how many there are."""
    open_library()
    rank, size = _engine.begin_world("", 0, "", socket.gethostname(), launched_rank(), launched_size(), 300.0)
    _note_exit()
    return int(rank), int(size)


def share(number: int, rank: int, text: str) -> str:
    """Rank 0's text, in all processes of the group with this number: for a launcher's world, which has no store yet."""
    data = tp.zeros(1024, dtype=tp.uint8)
    if rank == 0:
        raw = text.encode()
        data[: len(raw)] = tp.tensor(list(raw), dtype=tp.uint8)
    _engine.run(number, KINDS["broadcast"], "init_process_group", None, data, 1024, 0, 0, 0, None, 300.0)
    return bytes(data.tolist()).rstrip(b"\0").decode()


def watch_launched(number: int, rank: int, size: int) -> None:
    """Joins a watch over the processes that a launcher started."""
    said = ""
    if rank == 0:
        address, token = _own_address(), "tensorpy-" + secrets.token_hex(8)
        said = f"{address} {_engine.serve(address, size, token)} {token}"
    address, port, token = share(number, rank, said).split()
    _engine.watch(address, int(port), token, socket.gethostname(), rank, size, 0.0)


def _own_address() -> str:
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return "127.0.0.1"


def name_of_memory() -> str:
    """How the names begin under which MPICH keeps the memory of this world: with a hash (FNV-1a) of the world's name.

    Numbers follow; empty under a launcher, who names worlds itself.
    """
    number = 0x811C9DC5
    for byte in _token.encode():
        number = (number ^ byte) * 0x01000193 & 0xFFFFFFFF
    return f"/dev/shm/mpich_shm_{number:x}_" if _token else ""


def hide_shared_memory() -> None:
    """Takes away the names of the memory that an MPI library shares on this machine, once all have opened it.

    The memory lives on with its processes; a name would stay for ever if they were killed. A process that was killed
    may have made memory that this one has not opened.
    """
    names = set(glob.glob(name_of_memory() + "*") if _token else ())
    with suppress(OSError), open("/proc/self/maps") as maps:
        for line in maps:
            _, found, name = line.rstrip().partition("/dev/shm/mpich_shm_")
            if found and "(deleted)" not in name:
                names.add(found + name)
    for name in names:
        with suppress(OSError):  # another process of this machine was faster
            os.unlink(name)


# ---- the end ----

_exit_is_noted = False


def _note_exit() -> None:
    """A process that ends says so, that others need not take it for killed."""
    global _exit_is_noted
    if not _exit_is_noted:
        _exit_is_noted = True
        _at_exit(_engine.leave_world)


def _at_exit(do: Callable[[], Any]) -> None:
    """Has something done when this process ends; one that multiprocessing started ends another way."""
    atexit.register(do)
    if "multiprocessing.util" in sys.modules:
        from multiprocessing import util

        util.Finalize(None, do, exitpriority=0)


def give_up() -> None:
    """No world began: what MPI is still doing leaves no names behind."""
    hide_shared_memory()
    _at_exit(hide_shared_memory)


def end(seconds: float) -> None:
    """Ends the world: MPI too where all processes end it within so many seconds, else with the process."""
    try:
        _engine.end_world(seconds)
    finally:
        _engine.serve_end()
