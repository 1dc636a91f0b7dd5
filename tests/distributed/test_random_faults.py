"""Random faults: a process of a world that trains is killed or stopped somewhere; the others end, in time, and say who.

A run takes a seed that stays; `make faults` does 200 of them, and
`python tests/distributed/test_random_faults.py SEED COUNT` others.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import re
import signal
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from ranks import join, needs_mpi
from test_faults import nothing_shared

import tensorpy as tp
from tensorpy import distributed as dist
from tensorpy import nn
from tensorpy.distributed import checkpoint
from tensorpy.nn.parallel import DistributedDataParallel as DDP

PHASES = ["start", "forward", "backward", "checkpoint", "exit"]
STEPS = 60  # more than a process makes while it is about to be struck
SECONDS = 4.0  # after which a message is late
SPARE = 6.0  # for a machine with other work, and for processes to end


class Fault(NamedTuple):
    ranks: int
    phase: str
    step: int
    victim: int
    frozen: bool
    delay: float  # seconds into the phase


def draw(numbers: random.Random) -> Fault:
    ranks = numbers.randint(2, 4)
    return Fault(
        ranks, numbers.choice(PHASES), numbers.randrange(3), numbers.randrange(ranks), numbers.random() < 0.3,
        numbers.choice([0.0, numbers.random() * 0.003, numbers.random() * 0.05]),
    )  # fmt: skip


def model_of() -> nn.Sequential:
    return nn.Sequential(nn.Linear(64, 256), nn.BatchNorm1d(256), nn.Linear(256, 8))


def train(rank: int, ranks: int, folder: str, said: Connection, all_there: Any) -> None:
    """Some steps; tells which phase begins."""
    all_there.wait(60)  # a machine with other work imports slowly, which is no fault
    said.send(("start", 0))
    join(f"file://{folder}/store", rank, ranks, SECONDS)
    model = DDP(model_of(), bucket_cap_mb=0.02)
    optimizer = tp.optim.SGD(model.parameters(), lr=0.01)
    for step in range(STEPS):
        said.send(("forward", step))
        loss = model(tp.ones(16, 64)).square().sum()
        said.send(("backward", step))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        said.send(("checkpoint", step))
        checkpoint.save({"model": model.module, "step": step}, checkpoint_id=Path(folder, "checkpoint"))
    said.send(("exit", 0))
    dist.destroy_process_group()


def member(rank: int, ranks: int, folder: str, said: Connection, all_there: Any) -> None:
    try:
        train(rank, ranks, folder, said, all_there)
        said.send(("done", ""))
    except Exception as error:
        said.send(("error", f"{type(error).__name__}: {error}"))


def strike(fault: Fault, process: Any, said: Connection) -> float:
    """Kills or stops the victim once it is where the fault says; when that was."""
    wanted = (fault.phase, 0 if fault.phase in ("start", "exit") else fault.step)
    while (came := said.recv()) != wanted:
        assert came[0] not in ("done", "error"), f"rank {fault.victim} ended before {fault}: {came}"
    time.sleep(fault.delay)
    os.kill(process.pid, signal.SIGSTOP if fault.frozen else signal.SIGKILL)
    return time.monotonic()


def last_word(said: Connection, end: float) -> tuple[str, str]:
    """How a process ended: done, error and its text, late."""
    while said.poll(max(end - time.monotonic(), 0)):
        try:
            kind, text = said.recv()
        except EOFError:
            return "gone", ""
        if kind in ("done", "error"):
            return kind, text
    return "late", ""


def expected(fault: Fault, kind: str, text: str) -> bool:
    """Whether a survivor ended as it should."""
    who = rf"rank {fault.victim}\b"
    if fault.phase == "exit":  # it had done all that the others wait for, or it had not
        return kind == "done" or bool(re.search(who, text))
    if fault.phase == "start":
        return kind == "error" and bool(re.search(who, text))
    return kind == "error" and bool(re.search(rf"DistBackendError: \w+ #\d+ of group \d+: .*{who}", text, re.S))


def is_whole(folder: str, fault: Fault) -> bool:
    """Whether the checkpoint that was left, if any was made, is one of one step."""
    place = Path(folder, "checkpoint")
    if not (place / ".metadata").exists():
        return fault.phase == "start" or fault.step == 0
    state = {"model": model_of(), "step": -1}
    checkpoint.load(state, checkpoint_id=place, no_dist=True)
    return state["step"] == int(state["model"][1].num_batches_tracked) - 1 >= 0  # type: ignore[index]


def suffer(fault: Fault) -> list[str]:
    """What was wrong with the world that has this fault: nothing, if all is well."""
    ranks = fault.ranks
    context = multiprocessing.get_context("spawn")
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        ends = [context.Pipe(duplex=False) for _ in range(ranks)]
        all_there = context.Barrier(ranks)
        arguments = [(r, ranks, folder, ends[r][1], all_there) for r in range(ranks)]
        processes = [context.Process(target=member, args=given) for given in arguments]
        for process in processes:
            process.start()
        for _, mine in ends:
            mine.close()
        try:
            struck = strike(fault, processes[fault.victim], ends[fault.victim][0])
            for rank in set(range(ranks)) - {fault.victim}:
                kind, text = last_word(ends[rank][0], struck + SECONDS + SPARE)
                if not expected(fault, kind, text):
                    wrong.append(f"rank {rank} of {fault}: {kind} {text}")
            for rank in set(range(ranks)) - {fault.victim}:
                processes[rank].join(SPARE)
                if processes[rank].exitcode != 0:
                    wrong.append(f"rank {rank} of {fault} ended with {processes[rank].exitcode}")
        finally:
            for process in processes:
                process.kill()
                process.join()
        if not is_whole(folder, fault):
            wrong.append(f"the checkpoint is not whole after {fault}")
        if not nothing_shared():
            wrong.append(f"shared memory was left by {fault}")
    return wrong


def run(seed: int, count: int, *, say: bool = False) -> list[str]:
    numbers = random.Random(seed)
    wrong: list[str] = []
    for number in range(count):
        fault = draw(numbers)
        began, found = time.monotonic(), suffer(fault)
        wrong += found
        if say:
            print(number, fault, f"{time.monotonic() - began:.1f} s", *found, sep="  ", flush=True)
    return wrong


@needs_mpi
def test_random_faults() -> None:
    assert run(seed=2, count=8) == []


if __name__ == "__main__":
    seed, count = (int(a) for a in sys.argv[1:])
    found = run(seed, count, say=True)
    print(f"{count} worlds, {len(found)} mistakes")
    sys.exit(bool(found))
