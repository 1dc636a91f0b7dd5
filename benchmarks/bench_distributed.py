"""Messages between processes of one machine, beside torch's gloo: in one world, in turns, the median of rounds.

    make bench-distributed ARGS="--ranks 2 4 --rounds 5"
    make bench-distributed ARGS=--hosts

Each row is an all_reduce of float32 through the Python functions of both. The rows behind it: what is left to wait for
after computing beside a message, what a process that waits costs, how long a world takes to begin, and how soon a
killed process is named.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import tensorpy as tp
from tensorpy import distributed as ours
from tensorpy import multiprocessing as mp

from .hosts import two_hosts

SIZES = [4, 64 << 10, 1 << 20, 25 << 20, 64 << 20, 256 << 20]
BARS_OF_HOSTS = {4: 0.5, 64 << 10: 0.5, 1 << 20: 1.2, 25 << 20: 1.5, 64 << 20: 1.5, 256 << 20: 1.5}
NAMES = {4: "4 B", 64 << 10: "64 KiB", 1 << 20: "1 MiB", 25 << 20: "25 MiB", 64 << 20: "64 MiB", 256 << 20: "256 MiB"}
BARS = {4: 0.3, 64 << 10: 0.3, 1 << 20: 0.6, 25 << 20: 0.8, 64 << 20: 1.0, 256 << 20: 1.0}


def repeats(nbytes: int) -> int:
    return 200 if nbytes <= 4 else 50 if nbytes <= 65536 else 20 if nbytes <= 1 << 20 else 3


def timed(dist: Any, t: Any, count: int, fence: Any) -> float:
    """Seconds for each: all begin together."""
    dist.all_reduce(t)
    fence()
    began = time.perf_counter()
    for _ in range(count):
        dist.all_reduce(t)
    return (time.perf_counter() - began) / count


def reductions(theirs: Any, torch: Any, rounds: int, say: Any, bars: dict[int, float] = BARS) -> None:
    for nbytes in SIZES:
        mine = tp.zeros(nbytes // 4)
        yours = torch.zeros(nbytes // 4) if theirs else None
        times: tuple[list[float], list[float]] = ([], [])
        for _ in range(rounds):
            times[0].append(timed(ours, mine, repeats(nbytes), ours.barrier))
            if theirs:
                times[1].append(timed(theirs, yours, repeats(nbytes), ours.barrier))
        here = statistics.median(times[0])
        text = f"all_reduce {NAMES[nbytes]:>7}  {here * 1e6:10.0f} us"
        if theirs:
            there = statistics.median(times[1])
            text += f"  gloo {there * 1e6:10.0f} us  ratio {here / there:.2f} (bar {bars[nbytes]}; "
            text += f"best times {min(times[0]) / min(times[1]):.2f})"
        say(text)


def compute(seconds: float) -> None:
    a = tp.ones(64, 64)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        a @ a


def overlap(rank: int, size: int, rounds: int, say: Any) -> None:
    t, whole, left = tp.zeros(25 << 18), [], []
    for _ in range(rounds):
        ours.barrier()
        began = time.perf_counter()
        ours.all_reduce(t)
        whole.append(time.perf_counter() - began)
        ours.barrier()
        work = ours.all_reduce(t, async_op=True)
        compute(0.15)
        began = time.perf_counter()
        assert work is not None and work.wait()
        left.append(time.perf_counter() - began)
    a, b = statistics.median(whole), statistics.median(left)
    say(f"25 MiB beside 150 ms of computing: {b * 1e3:.2f} ms left to wait, of {a * 1e3:.1f} ms ({b / a:.0%}, bar 5%)")


def network(lib: Any, width: int, layers: int) -> Any:
    lib.manual_seed(0)
    made = [m for _ in range(layers) for m in (lib.nn.Linear(width, width), lib.nn.ReLU())]
    return lib.nn.Sequential(*made, lib.nn.Linear(width, 10))


def stepper(lib: Any, model: Any, width: int, rows: int) -> Any:
    optimizer = lib.optim.SGD(model.parameters(), lr=0.01)
    x, y = lib.ones(rows, width), lib.zeros(rows, dtype=lib.int64)

    def step() -> None:
        optimizer.zero_grad()
        lib.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step


def steps(run: Any, count: int) -> float:
    run()
    ours.barrier()
    began = time.perf_counter()
    for _ in range(count):
        run()
    return (time.perf_counter() - began) / count


def training(rank: int, size: int, theirs: Any, torch: Any, rounds: int, say: Any) -> None:
    """A step of DistributedDataParallel beside torch's, and beside one without messages."""
    for width, layers, rows, count in ((64, 4, 32, 50), (512, 10, 64, 10), (1024, 8, 64, 5)):
        for view in (False, True):
            options: dict[str, Any] = {"gradient_as_bucket_view": view}
            made = [tp.nn.parallel.DistributedDataParallel(network(tp, width, layers), **options)]
            runs = [stepper(tp, network(tp, width, layers), width, rows), stepper(tp, made[0], width, rows)]
            if theirs:
                yours = torch.nn.parallel.DistributedDataParallel(network(torch, width, layers), **options)
                runs += [stepper(torch, network(torch, width, layers), width, rows), stepper(torch, yours, width, rows)]
            times: list[list[float]] = [[] for _ in runs]
            for _ in range(rounds):
                for each, run in zip(times, runs, strict=True):
                    each.append(steps(run, count))
            half = [statistics.median(each) * 1e3 for each in times]
            nbytes = sum(p.nbytes for p in made[0].parameters()) / (1 << 20)
            text = f"step of {nbytes:5.1f} MiB{', views' if view else '':7}: {half[1]:7.2f} ms ({half[0]:.2f} alone)"
            if theirs:
                text += f"  gloo {half[3]:7.2f} ms ({half[2]:.2f})  ratio {half[1] / half[3]:.2f} (bar 1.0)"
            say(text)


def wrapper(rounds: int) -> None:
    """What DistributedDataParallel adds to a step in a world of one process."""
    ours.init_process_group(rank=0, world_size=1, store=ours.HashStore())
    for width, layers, rows, count in ((64, 4, 32, 200), (512, 10, 64, 20)):
        alone = stepper(tp, network(tp, width, layers), width, rows)
        model = tp.nn.parallel.DistributedDataParallel(network(tp, width, layers))
        both = [alone, stepper(tp, model, width, rows)]
        times: list[list[float]] = [[], []]
        for _ in range(max(rounds, 7)):
            for each, run in zip(times, both, strict=True):
                each.append(steps(run, count))
        a, b = (statistics.median(each) * 1e3 for each in times)
        print(f"  one process: a step of {a:.3f} ms takes {b - a:+.3f} ms more (bar {0.03 * a + 0.3:.2f})", flush=True)
    ours.destroy_process_group()


def idle(rank: int, size: int, say: Any) -> None:
    """Every process but rank 0 waits three seconds."""
    ours.barrier()
    if rank == 0:
        time.sleep(3.2)
        ours.barrier()
        return
    work = ours.barrier(async_op=True)
    time.sleep(1.2)
    before = time.process_time()
    time.sleep(1.5)
    used = (time.process_time() - before) / 1.5
    assert work is not None
    work.wait()
    if rank == 1:
        print(f"  a process that waits for longer than a second: {used:.1%} of a core (bar 5%)", flush=True)


def work(rank: int, size: int, folder: str, rounds: int) -> None:
    began = time.perf_counter()
    ours.init_process_group(
        init_method=f"file://{folder}/ours", rank=rank, world_size=size, timeout=timedelta(seconds=120)
    )
    start = time.perf_counter() - began

    def say(text: str) -> None:
        if rank == 0:
            print("  " + text, flush=True)

    try:
        import torch
        import torch.distributed as theirs

        torch.set_num_threads(1)
        theirs.init_process_group("gloo", init_method=f"file://{folder}/theirs", rank=rank, world_size=size)
    except ImportError:
        torch = theirs = None
    reductions(theirs, torch, rounds, say)
    overlap(rank, size, rounds, say)
    training(rank, size, theirs, torch, rounds, say)
    idle(rank, size, say)
    say(f"a world begins in {start:.2f} s beyond imports, the wait for all processes included (bar 1 s)")
    if theirs:
        theirs.destroy_process_group()
    ours.destroy_process_group()


def apart(rank: int, address: str, rounds: int) -> None:
    """One of two processes on two hosts."""
    ours.init_process_group(init_method=f"tcp://{address}:29621", rank=rank, world_size=2)
    try:
        import torch
        import torch.distributed as theirs

        torch.set_num_threads(1)
        theirs.init_process_group("gloo", init_method=f"tcp://{address}:29622", rank=rank, world_size=2)
    except ImportError:
        torch = theirs = None
    say = (lambda text: print("  " + text, flush=True)) if rank == 0 else (lambda text: None)
    reductions(theirs, torch, rounds, say, BARS_OF_HOSTS)
    if theirs:
        theirs.destroy_process_group()
    ours.destroy_process_group()


def between_hosts(rounds: int) -> None:
    """The same messages between two hosts, which are network namespaces of this machine."""
    with two_hosts() as hosts:
        print(f"2 processes on two hosts, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", flush=True)
        program = "import sys; from benchmarks.bench_distributed import apart; apart(int(sys.argv[1]), sys.argv[2], {})"
        started = []
        for rank, host in enumerate(hosts):
            words = [sys.executable, "-c", program.format(rounds), str(rank), hosts[0].address]
            started.append(subprocess.Popen(host.command("env", f"GLOO_SOCKET_IFNAME={host.card}", *words)))
        try:
            failed = [process.wait(600) for process in started]
        finally:
            for process in started:
                process.kill()
        if any(failed):
            raise SystemExit("a process on one of two hosts failed")


def lose(rank: int, size: int, folder: str, answers: str) -> None:
    ours.init_process_group(init_method=f"file://{folder}/lose", rank=rank, world_size=size)
    t = tp.zeros(1 << 20)
    ours.all_reduce(t)
    ours.barrier()
    if rank == size - 1:
        time.sleep(0.2)
        Path(answers, "killed").write_text(repr(time.time()))
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        ours.all_reduce(t)
    except ours.DistBackendError as error:
        assert f"rank {size - 1} " in str(error)
        Path(answers, str(rank)).write_text(repr(time.time()))


def killed(size: int, times: int) -> None:
    late = []
    for _ in range(times):
        with tempfile.TemporaryDirectory() as folder:
            started = mp.spawn(lose, (size, folder, folder), size, join=False)
            for process in started.processes:
                process.join(60)
            when = float(Path(folder, "killed").read_text())
            late += [float(Path(folder, str(r)).read_text()) - when for r in range(size - 1)]
    most, half = max(late) * 1e3, statistics.median(late) * 1e3
    print(
        f"  a killed process is named on all {size - 1} others after {most:.0f} ms at most, "
        f"{half:.0f} ms in the median, {times} of {times} kills (bar 1 s)",
        flush=True,
    )


def cases(device: str) -> list[Any]:
    """Nothing for `make bench`, which is of one process."""
    return []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--hosts", action="store_true", help="between two network namespaces instead, which takes root")
    given = parser.parse_args()
    if given.hosts:
        between_hosts(given.rounds)
        return
    wrapper(given.rounds)
    for size in given.ranks:
        print(f"{size} processes, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            mp.spawn(work, (size, folder, given.rounds), size)
        killed(size, given.kills)


if __name__ == "__main__":
    main()
