"""`python -m tensorpy.distributed.check`: whether processes can work together here, and how fast.

It prints the library that is found, then joins the world that a launcher or the variables RANK and WORLD_SIZE say, or
starts --ranks processes on this machine, and measures every pair of processes. What is wrong it says in plain words;
the exit code is 1 then.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
import tempfile
from datetime import timedelta
from time import perf_counter
from typing import Any

import tensorpy as tp
from tensorpy import _C, multiprocessing
from tensorpy.distributed import distributed_c10d as dist
from tensorpy.distributed import world

_LARGE = 8 << 20  # bytes
_MANY, _FEW = 200, 5


def _say(text: str) -> None:
    rank = dist.get_rank() if dist.is_initialized() else world.launched_rank() if world.launched() else 0
    if rank <= 0:
        print(text, flush=True)


def _library() -> bool:
    try:
        found = world.is_here()
    except dist.DistBackendError as error:
        _say(f"library: {error}")
        return False
    if not found:
        looked = ", ".join(world.paths())
        _say(f"library: none of MPI. `pip install mpich` brings one (looked for {looked})")
        return False
    _say(f"library: {_C._distributed.library()}")
    return True


def _there_and_back(peer: int, first: bool, nbytes: int, count: int) -> float:
    """Seconds of one way, for one of two processes that send a message to and fro."""
    there, back = tp.zeros(nbytes, dtype=tp.uint8), tp.zeros(nbytes, dtype=tp.uint8)
    began = 0.0
    for turn in range(count + 1):
        if turn == 1:  # the first one opens the way
            began = perf_counter()
        if first:
            dist.send(there, peer)
            dist.recv(back, peer)
        else:
            dist.recv(back, peer)
            dist.send(there, peer)
    return (perf_counter() - began) / (2 * count)


def _pairs(rank: int, size: int) -> None:
    _say("pair      latency      bandwidth")
    for a in range(size):
        for b in range(a + 1, size):
            times = tp.zeros(2, dtype=tp.float64)
            if rank in (a, b):
                peer = b if rank == a else a
                times[0] = _there_and_back(peer, rank == a, 8, _MANY)
                times[1] = _there_and_back(peer, rank == a, _LARGE, _FEW)
            dist.broadcast(times, a)
            _say(f"{a:>3} {b:>3}  {times[0].item() * 1e6:8.1f} us  {_LARGE / times[1].item() / 1e9:8.2f} GB/s")


def _together(size: int) -> None:
    t = tp.ones(_LARGE // 4)
    dist.all_reduce(t)
    began = perf_counter()
    for _ in range(_FEW):
        dist.all_reduce(t, dist.ReduceOp.MAX)
    took = (perf_counter() - began) / _FEW
    right = bool((t == size).all())
    _say(f"all_reduce of {_LARGE >> 20} MiB: {took * 1e3:.2f} ms, {'as it should be' if right else 'WRONG VALUES'}")


def _cores() -> set[int]:
    """The cores that this process may use."""
    mine = getattr(os, "sched_getaffinity", None)
    return set(mine(0)) if mine else set(range(os.cpu_count() or 1))


def _look(rank: int, size: int) -> None:
    """What every process of a world that has begun measures together."""
    who: list[Any] = [None] * size
    dist.all_gather_object(who, (socket.gethostname(), os.getpid(), _cores()))
    hosts = list(dict.fromkeys(host for host, _, _ in who))
    _say(f"world: {size} processes on {len(hosts)} machine(s)")
    for r, (host, pid, cores) in enumerate(who):
        _say(f"  rank {r}: {host}, pid {pid}, {len(cores)} cores")
    for host in hosts:
        here = [cores for h, _, cores in who if h == host]
        if len(here) > len(set().union(*here)):  # launchers may give each process cores of its own
            _say(f"  {host} has fewer cores than processes: they take turns, and messages wait for it")
    _pairs(rank, size)
    _together(size)
    dist.barrier()


def _one(rank: int, size: int, path: str) -> None:
    dist.init_process_group(init_method=f"file://{path}", rank=rank, world_size=size, timeout=timedelta(seconds=60))
    _look(rank, size)
    dist.destroy_process_group()


def main(arguments: list[str] | None = None) -> int:
    """Runs the checks; 1 where something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tensorpy.distributed.check", description=__doc__)
    parser.add_argument("--ranks", type=int, default=2, help="how many processes, where nobody else starts them")
    given = parser.parse_args(arguments)
    if not _library():
        return 1
    try:
        world.open_library()
        if world.launched() or "RANK" in os.environ:
            dist.init_process_group(timeout=timedelta(seconds=60))
            _look(dist.get_rank(), dist.get_world_size())
            dist.destroy_process_group()
        else:
            with tempfile.TemporaryDirectory() as folder:
                multiprocessing.spawn(_one, (given.ranks, f"{folder}/store"), given.ranks)
    except (dist.DistError, ValueError, multiprocessing.ProcessException) as error:
        print(f"wrong: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
