"""Two hosts with a network between them: namespaces of one machine, where root can make such (benchmarks/hosts.py)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from ranks import needs_mpi

from benchmarks.hosts import Host, two_hosts

ROOT = Path(__file__).resolve().parents[2]
BEGIN = """
import os, signal, sys, time
import tensorpy as tp
from tensorpy import distributed as dist
rank = int(os.environ["RANK"])
dist.init_process_group()
"""
TRAIN = """
for dtype in (tp.float32, tp.bfloat16, tp.int64):
    for n in (1, 1000, 300_000):
        t = (tp.arange(n) % 7 + rank).to(dtype)
        dist.all_reduce(t)
        assert tp.equal(t, (tp.arange(n) % 7 * 2 + 1).to(dtype))
tp.manual_seed(0)
model = tp.nn.parallel.DistributedDataParallel(tp.nn.Linear(30, 5))
optimizer = tp.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    optimizer.zero_grad()
    model(tp.randn(8, 30, generator=tp.Generator().manual_seed(2 * step + rank))).square().mean().backward()
    optimizer.step()
everyone = [None, None]
dist.all_gather_object(everyone, [p.tolist() for p in model.parameters()])
assert everyone[0] == everyone[1]
print("trained", flush=True)
sys.stdin.readline()  # the test looks at the host meanwhile
dist.destroy_process_group()
"""
LOSE = """
t = tp.ones(300_000)
dist.all_reduce(t)
dist.barrier()
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
began = time.monotonic()
try:
    dist.all_reduce(t)
    dist.all_reduce(t)
except dist.DistBackendError as error:
    print(f"{time.monotonic() - began:.3f}", error)
"""


@pytest.fixture(scope="module")
def hosts() -> Iterator[tuple[Host, Host]]:
    try:
        made = two_hosts()
        pair = made.__enter__()
    except RuntimeError as error:
        pytest.skip(f"no network namespaces here: {error}")
    yield pair
    made.__exit__(None, None, None)


def start(hosts: tuple[Host, Host], port: int, *words: str) -> list[subprocess.Popen[str]]:
    """A process on each host, whose rendezvous is at the first one's address."""
    variables = [f"MASTER_ADDR={hosts[0].address}", f"MASTER_PORT={port}", "WORLD_SIZE=2", f"PYTHONPATH={ROOT}"]
    pipe = subprocess.PIPE
    return [
        subprocess.Popen(
            host.command("env", f"RANK={rank}", *variables, sys.executable, *words),
            stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=ROOT,
        )
        for rank, host in enumerate(hosts)
    ]  # fmt: skip


def ends(processes: list[subprocess.Popen[str]]) -> list[tuple[str, str]]:
    try:
        for process in processes:
            if process.stdin and process.poll() is None:
                process.stdin.write("\n")
                process.stdin.flush()
        return [process.communicate(timeout=60) for process in processes]
    finally:
        for process in processes:
            process.kill()


@needs_mpi
def test_training_and_who_listens(hosts: tuple[Host, Host]) -> None:
    before = hosts[0].sent()
    processes = start(hosts, 29611, "-c", BEGIN + TRAIN)
    first = [process.stdout.readline() for process in processes if process.stdout]
    listening = [host.listeners() for host in hosts]
    said = ends(processes)
    assert first == ["trained\n"] * 2 and [process.returncode for process in processes] == [0, 0], said
    for host, found in zip(hosts, listening, strict=True):
        assert found and all(address.rpartition(":")[0] == host.address for address in found), found
    assert hosts[0].sent() - before > 2_000_000


@needs_mpi
def test_a_killed_process_is_named_on_the_other_host(hosts: tuple[Host, Host]) -> None:
    (said, trouble), _ = ends(start(hosts, 29612, "-c", BEGIN + LOSE))
    took, _, error = said.partition(" ")
    assert f"rank 1 (host {hosts[1].name}, pid" in error and "all_reduce #" in error, said + trouble
    assert float(took) < 1


@needs_mpi
def test_the_check(hosts: tuple[Host, Host]) -> None:
    processes = start(hosts, 29613, "-m", "tensorpy.distributed.check")
    (said, trouble), _ = ends(processes)
    assert [process.returncode for process in processes] == [0, 0], trouble
    assert "2 processes on 2 machine(s)" in said and f"rank 1: {hosts[1].name}" in said and "as it should be" in said
