"""Worlds after each other: of the same processes, of some of them with others, after an attempt that failed."""

from __future__ import annotations

import re
import signal
import time
from datetime import timedelta
from pathlib import Path

import pytest
from ranks import free_port, needs_mpi, where
from test_faults import outcomes

import tensorpy as tp
from tensorpy import distributed as dist

pytestmark = needs_mpi


def meet(method: str, members: list[int], me: int) -> None:
    """A world of some processes, in which a group is made and something sent."""
    if me not in members:
        return
    rank, size = members.index(me), len(members)
    dist.init_process_group(init_method=method, rank=rank, world_size=size, timeout=timedelta(seconds=20))
    t = tp.full((2,), float(me))
    dist.all_reduce(t, group=dist.new_group(range(size)))
    assert t.tolist() == [float(sum(members))] * 2
    dist.destroy_process_group()


def in_turns(me: int, plan: list[tuple[str, list[int]]]) -> None:
    for method, members in plan:
        meet(method, members, me)


def test_processes_of_several_worlds(tmp_path: Path) -> None:
    """Who was in none before, or in more, counts as the others do."""
    again = f"file://{tmp_path}/again"
    members = [[0, 1], [2, 0], [1, 2], [2, 1], [1, 0]]
    plan = [(f"tcp://127.0.0.1:{free_port()}", some) for some in members]
    plan += [(again, [0, 1]), (again, [0, 1])]
    assert [words for _, words, _ in outcomes(in_turns, {0, 1, 2}, 3, plan).values()] == [""] * 3


def try_alone_first(me: int, method: str, tried: Path) -> None:
    if me == 0:
        with pytest.raises(dist.DistNetworkError, match="rank 1 of 2 did not come"):
            dist.init_process_group(init_method=method, rank=0, world_size=2, timeout=timedelta(seconds=0.2))
        tried.touch()
    while not tried.exists():
        time.sleep(0.01)
    meet(method, [0, 1], me)


@pytest.mark.parametrize("store", ["tcp", "file"])
def test_an_attempt_that_failed_is_not_counted(store: str, tmp_path: Path) -> None:
    method = where(store, tmp_path)
    said = outcomes(try_alone_first, {0, 1}, 2, method, tmp_path / "tried")
    assert [words for _, words, _ in said.values()] == [""] * 2


def test_a_world_that_is_larger_than_the_first_is_refused(tmp_path: Path) -> None:
    """MPI keeps memory for as many processes of a machine as there were at first, and would abort."""
    plan = [(f"file://{tmp_path}/first", [0, 1]), (f"file://{tmp_path}/larger", [2, 0, 1])]
    said = outcomes(in_turns, {0, 1, 2}, 3, plan)
    for kind, words, _ in said.values():
        assert kind == "DistBackendError" and re.search(r"rank 1 was in a world of 2 .* into none of 3", words), words


def interrupt_the_end(me: int, method: str) -> None:
    dist.init_process_group(init_method=method, rank=me, world_size=2, timeout=timedelta(seconds=20))
    if me == 1:
        time.sleep(3)
        dist.destroy_process_group()
        return
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        dist.destroy_process_group()
    assert time.monotonic() - began < 2 and not dist.is_initialized()


def test_the_wait_for_others_at_the_end_hears_signals(tmp_path: Path) -> None:
    said = outcomes(interrupt_the_end, {0, 1}, 2, where("file", tmp_path))
    assert [words for _, words, _ in said.values()] == [""] * 2
