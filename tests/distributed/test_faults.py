"""What becomes of a world when a process is killed, stands still, goes, or never comes: the others say who, in time."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from ranks import free_port, join, needs_mpi, where, world

import tensorpy as tp
from tensorpy import distributed as dist

ROOT = Path(__file__).resolve().parents[2]


def named(fn: Callable[..., Any], rank: int, answers: Any, *args: Any) -> None:
    """Runs it as one process; tells the error's kind and text, and how long it took."""
    began = time.monotonic()
    try:
        fn(rank, *args)
        said = ("", "")
    except BaseException as error:
        said = (type(error).__name__, str(error))
    answers.put((rank, *said, time.monotonic() - began))


def outcomes(fn: Callable[..., Any], wanted: set[int], size: int, *args: Any) -> dict[int, tuple[str, str, float]]:
    """What those that are wanted of the processes 0, 1, ... of a world of `size` said; the others are killed then."""
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    processes = [context.Process(target=named, args=(fn, r, answers, *args)) for r in range(size)]
    for process in processes:
        process.start()
    came: dict[int, tuple[str, str, float]] = {}
    while not wanted <= came.keys():
        rank, *said = answers.get(timeout=60)
        came[rank] = (said[0], said[1], said[2])
    for rank, process in enumerate(processes):
        if rank not in wanted:
            process.kill()
    for process in processes:
        process.join(10)
    assert [processes[r].exitcode for r in wanted] == [0] * len(wanted)
    return came


def nothing_shared() -> bool:
    """No name of shared memory is left of the last seconds; another program's may come and go."""
    young = [p for p in Path("/dev/shm").glob("mpich_shm_*") if p.stat().st_mtime > time.time() - 30]
    time.sleep(0.5 if young else 0)
    return not [p for p in young if p.exists()]


VICTIM = 2


def lose_one(rank: int, how: str, method: str, seconds: float) -> None:
    join(method, rank, 3, seconds)
    t = tp.ones(300_000)
    dist.all_reduce(t)
    dist.barrier()
    if rank == VICTIM:
        time.sleep(0.1)
        if how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "frozen":
            os.kill(os.getpid(), signal.SIGSTOP)
        if how == "gone":
            sys.exit(0)
        time.sleep(60)
    begun = [dist.all_reduce(t, async_op=True) for _ in range(3)]
    try:
        began = time.monotonic()
        begun[2].wait()
    except dist.DistBackendError as error:
        took = time.monotonic() - began
        assert not begun[1].is_success() and isinstance(begun[1].exception(), dist.DistBackendError)
        with pytest.raises(dist.DistBackendError, match=r"barrier #\d+ of group 0: "):
            dist.barrier()
        with pytest.raises(dist.DistBackendError):
            dist.new_group([0, 1])
        dist.destroy_process_group()
        with pytest.raises(dist.DistBackendError, match="another world needs another process"):
            join(method + "2", rank, 3, seconds)
        raise dist.DistBackendError(f"{took:.2f} {error}") from None


@needs_mpi
@pytest.mark.parametrize(
    ("how", "seconds", "within", "text"),
    [
        ("killed", 30, 1.0, r"all_reduce #\d+ of group 0: rank 2 \(host \S+, pid \d+\) ended"),
        ("gone", 30, 2.0, r"all_reduce #\d+ of group 0: rank 2 \(host \S+, pid \d+\) ended"),
        ("frozen", 1, 3.0, r"all_reduce #\d+ of group 0: Timed out after 1 s; rank 2 does not answer"),
        ("late", 1, 3.0, r"Timed out after 1 s;.* rank 2 has not entered it, its last was barrier #\d+"),
    ],
)
def test_a_process_that_is_lost_is_named(how: str, seconds: float, within: float, text: str, tmp_path: Path) -> None:
    said = outcomes(lose_one, {0, 1}, 3, how, where("file", tmp_path), seconds)
    for rank in (0, 1):
        kind, words, _ = said[rank]
        took, _, rest = words.partition(" ")
        assert kind == "DistBackendError", words
        assert re.search(text, rest), words
        assert float(took) < within
    assert nothing_shared()


def send_something_else(rank: int, method: str) -> None:
    join(method, rank, 3, 1.0)
    t = tp.ones(8, 300_000)
    try:
        dist.barrier() if rank == VICTIM else dist.broadcast(t, VICTIM)
    finally:
        time.sleep(2)  # the others ask this process, too


@needs_mpi
def test_a_process_that_sends_something_else_is_named(tmp_path: Path) -> None:
    said = outcomes(send_something_else, {0, 1, 2}, 3, where("file", tmp_path))
    for rank in (0, 1):
        assert "Timed out after 1 s; rank 2 has barrier in its place" in said[rank][1], said[rank]
    assert "rank 0 has broadcast in its place; rank 1 has broadcast in its place" in said[2][1], said[2]


def look_at_memory(rank: int, method: str) -> None:
    from tensorpy.distributed import world as worlds

    hide, seen = worlds.hide_shared_memory, list[str]()

    def look() -> None:
        seen.extend(line for line in Path("/proc/self/maps").read_text().splitlines() if "mpich_shm_" in line)
        hide()

    worlds.hide_shared_memory = look
    join(method, rank, 2, 20)
    assert seen and all(worlds.name_of_memory() in line for line in seen), seen
    dist.destroy_process_group()


@needs_mpi
def test_names_of_shared_memory_are_known(tmp_path: Path) -> None:
    """So that what a process made that was killed has no name left, though no other has opened it."""
    said = outcomes(look_at_memory, {0, 1}, 2, where("file", tmp_path))
    assert [said[rank][:2] for rank in (0, 1)] == [("", "")] * 2


def die_at_the_start(rank: int, method: str) -> None:
    if rank == 1:
        from tensorpy.distributed import world as worlds

        worlds._note_exit = lambda: os.kill(os.getpid(), signal.SIGKILL)
    join(method, rank, 3, 20)


@needs_mpi
def test_a_process_that_is_killed_at_the_start(tmp_path: Path) -> None:
    said = outcomes(die_at_the_start, {0, 2}, 3, where("file", tmp_path))
    for kind, words, took in (said[0], said[2]):
        assert kind == "DistBackendError" and "rank 1" in words and "ended" in words and took < 15, words
    assert nothing_shared()


def go_before_a_group(rank: int, method: str) -> None:
    join(method, rank, 2)
    if rank == 0:
        sys.exit(0)
    dist.new_group([0, 1])


@needs_mpi
def test_a_process_that_goes_where_others_make_a_group(tmp_path: Path) -> None:
    kind, words, took = outcomes(go_before_a_group, {0, 1}, 2, where("file", tmp_path))[1]
    assert kind == "DistBackendError" and re.search(r"new_group: rank 0 \(host .*\) ended", words), words
    assert took < 20
    assert nothing_shared()


def stay_away(rank: int, method: str) -> None:
    if rank == 2:
        time.sleep(60)
    join(method, rank, 3, 1)


@needs_mpi
@pytest.mark.parametrize("store", ["file", "tcp"])
def test_a_process_that_never_comes(store: str, tmp_path: Path) -> None:
    said = outcomes(stay_away, {0, 1}, 3, where(store, tmp_path))
    for rank in (0, 1):
        assert said[rank][0] == "DistNetworkError" and "rank 2 of 3 did not come in 1 s" in said[rank][1]


def late_at_the_barrier(rank: int, size: int) -> str:
    if rank >= 1:
        time.sleep(0.9 * rank)
    try:
        dist.monitored_barrier(timeout=timedelta(seconds=0.5), wait_all_ranks=True)
    except RuntimeError as error:
        return str(error)
    return ""


@needs_mpi
def test_a_monitored_barrier_names_who_is_late(tmp_path: Path) -> None:
    said = world(late_at_the_barrier, 3, where("file", tmp_path))
    words = "Ranks 1, 2 failed to pass monitoredBarrier in 500 ms"
    assert said[0] == f"[Rank 0]: {words}"
    for r in (1, 2):
        assert said[r].startswith(f"[Rank {r}]: Rank {r} successfully reached monitoredBarrier, but")
        assert said[r].endswith(f"from rank 0: {words}")


def again(rank: int, size: int, folder: str) -> None:
    """Worlds after each other in the same processes, whose ranks change."""
    dist.destroy_process_group()
    for turn in range(3):
        place = (rank + turn) % size
        join(f"file://{folder}/{turn}", place, size)
        t = tp.tensor([float(place)])
        dist.broadcast(t, 1)
        assert t.item() == 1 and dist.get_rank() == place
        if turn < 2:
            dist.destroy_process_group()


def forked(rank: int, size: int) -> None:
    """A child that was forked computes and may not send; its end is not taken for its parent's."""
    child = os.fork()
    if child == 0:
        try:
            assert tp.ones(3).sum().item() == 3
            with pytest.raises(dist.DistBackendError, match="forked after init_process_group"):
                dist.barrier()
            os._exit(0)
        except BaseException:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    t = tp.ones(1)
    dist.all_reduce(t)
    assert t.item() == size


def interrupted(rank: int, size: int) -> None:
    """Ctrl-C ends a wait, and not the world."""
    if rank == 0:
        signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        began, t = time.monotonic(), tp.zeros(1)
        with pytest.raises(KeyboardInterrupt):
            dist.recv(t, 1)
        assert time.monotonic() - began < 1
        dist.barrier()
    else:
        time.sleep(0.6)
        dist.send(tp.ones(1), 0)
        dist.barrier()


def idle(rank: int, size: int) -> float:
    """How much of a core a process takes that waits: after the first second."""
    if rank == 0:
        time.sleep(3.0)
        dist.barrier()
        return 0.0
    work = dist.barrier(async_op=True)
    time.sleep(1.2)
    before = time.process_time()
    time.sleep(1.5)
    used = (time.process_time() - before) / 1.5
    work.wait()
    return used


def several(rank: int, size: int, folder: str) -> float:
    forked(rank, size)
    interrupted(rank, size)
    used = idle(rank, size)
    again(rank, size, folder)
    return used


@needs_mpi
def test_forks_signals_idle_waits_and_worlds_after_each_other(tmp_path: Path) -> None:
    used = world(several, 2, where("file", tmp_path), str(tmp_path))
    assert used[1] < 0.1, used  # 0.05 on a machine of its own


def run(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")}
    return subprocess.run(
        [sys.executable, "-c", "import tensorpy as tp\nfrom tensorpy import distributed as dist\n" + program],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
        env={**variables, **environment},
    )


def test_no_library_says_how_to_get_one() -> None:
    program = (
        "dist.init_process_group('gloo', rank=0, world_size=1, store=dist.HashStore())\n"
        "dist.destroy_process_group()\n"
        "assert not dist.is_mpi_available()\n"
        "dist.init_process_group('gloo', rank=0, world_size=2, store=dist.HashStore())\n"
    )
    done = run(program, TENSORPY_MPI_LIBRARY="/nowhere/libmpi_abi.so.1")
    assert "DistBackendError" in done.stderr and "`pip install mpich` brings one" in done.stderr


def test_a_world_of_one_opens_no_library() -> None:
    program = (
        "dist.init_process_group('gloo', rank=0, world_size=1, store=dist.HashStore())\n"
        "t = tp.ones(2); dist.all_reduce(t); dist.barrier()\n"
        "print(tp._C._distributed.library() or 'none', 'libmpi' in open('/proc/self/maps').read())\n"
    )
    assert run(program).stdout == "none False\n"


@pytest.mark.parametrize(
    ("program", "text"),
    [
        ("dist.init_process_group('nccl', rank=0, world_size=2, store=dist.HashStore())", "doesn't have NCCL built in"),
        ("dist.init_process_group('gloo', rank=2, world_size=2, init_method='file:///tmp/x')", "no rank 2 in a world"),
        ("dist.init_process_group('gloo', rank=0, world_size=2)", "MASTER_ADDR and MASTER_PORT"),
        ("dist.init_process_group('gloo', rank=0, world_size=2, init_method='what://x')", "No rendezvous handler"),
        ("dist.init_process_group('gloo', init_method='env://', store=dist.HashStore())", "not both"),
        ("dist.init_process_group('gloo', init_method='tcp://127.0.0.1:1?rank=0')", "WORLD_SIZE"),
    ],
)
def test_what_cannot_begin(program: str, text: str) -> None:
    assert text in run(program).stderr


def test_a_port_in_use() -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        method = f"tcp://127.0.0.1:{taken.getsockname()[1]}?rank=0&world_size=2"
        done = run(f"dist.init_process_group('gloo', init_method='{method}')")
    assert "in use" in done.stderr


def by_environment(rank: int, port: int) -> None:
    os.environ.update(RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="localhost", MASTER_PORT=str(port))
    dist.init_process_group()
    t = tp.ones(1)
    dist.all_reduce(t)
    assert t.item() == 2 and dist.get_backend() == "gloo"
    dist.destroy_process_group()


@needs_mpi
def test_the_environment_says_where() -> None:
    said = outcomes(by_environment, {0, 1}, 2, free_port())
    assert [said[r][:2] for r in (0, 1)] == [("", "")] * 2


MPIRUN = Path(sys.prefix) / "bin" / "mpiexec"
LAUNCHED = """
dist.init_process_group("mpi")
t = tp.tensor([float(dist.get_rank() + 1)])
dist.all_reduce(t)
g = dist.new_group([0, 1])
dist.monitored_barrier()
objects = [None] * dist.get_world_size()
dist.all_gather_object(objects, dist.get_rank())
assert objects == [0, 1] and dist.get_node_local_rank() == dist.get_rank()
print(f'{t.item()} {dist.get_backend()}\\n', end='', flush=True)
dist.destroy_process_group()
"""


@needs_mpi
@pytest.mark.skipif(not MPIRUN.exists(), reason="no mpiexec beside this Python")
def test_mpiexec_starts_a_world(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import tensorpy as tp\nfrom tensorpy import distributed as dist\n" + LAUNCHED)
    variables = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")}
    done = subprocess.run(
        [str(MPIRUN), "-n", "2", sys.executable, str(program)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**variables, "PYTHONPATH": str(ROOT)},
    )
    assert done.stdout == "3.0 mpi\n" * 2, done.stderr
