"""What torchrun does on a machine: meets the other machines', starts this one's processes, and ends or restarts them.

An agent runs on each machine (a node). One of them keeps the store in which they meet, and in which the processes meet
afterwards: under a prefix for each attempt, so that nobody finds what a former attempt left there. One process that
fails ends the attempt on all nodes; all processes are started again, as often as is allowed.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from tensorpy.distributed.errors import DistError, DistNetworkError
from tensorpy.distributed.logs import Streams, streams_of
from tensorpy.distributed.stores import PrefixStore, TCPStore

_LOOK_AT_OTHERS = 0.5  # seconds


@dataclass
class Job:
    """What the command line says."""

    command: list[str]
    arguments: list[str] = field(default_factory=list)
    count: int = 1  # processes on this node
    least: int = 1  # nodes
    most: int = 1
    node: int | None = None  # this node's number, where the command line says it
    host: str = "127.0.0.1"
    port: int = 0
    run_id: str = "none"
    restarts: int = 0
    interval: float = 0.1
    log_dir: str | None = None
    redirects: str = "0"
    tee: str = "0"
    shown: set[int] | None = None  # local ranks; None: all
    role: str = "default"
    signals: list[str] = field(default_factory=lambda: ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"])
    patience: float = 30.0  # for processes to end
    join_timeout: float = 600.0
    last_call: float = 30.0  # for more nodes than the least
    says_local_rank: bool = False  # as an argument, too


# ---- the nodes ----


class Nodes:
    """The nodes of a job: which one this is, how many processes each has, and the store."""

    keeps: bool
    store: Any
    number: int
    counts: list[int]
    first: int

    def __init__(self, job: Job) -> None:
        self.keeps = job.most == 1 or (job.node == 0 if job.node is not None else False)
        patience = timedelta(seconds=job.join_timeout)
        self.store = self._open(job, patience)
        self._inside = PrefixStore(f"torchrun/{job.run_id}", self.store)
        self.number = int(self._inside.add("nodes", 1)) - 1 if job.node is None else job.node
        self._inside.set(f"node/{self.number}", str(job.count))
        self.counts = self._meet(job)
        self.first = sum(self.counts[: self.number])  # the rank of this node's first process

    def _open(self, job: Job, patience: timedelta) -> Any:
        """The store, which the first keeps who can."""
        if not self.keeps and job.node is None and _is_here(job.host):
            with suppress(OSError, DistNetworkError):
                store = TCPStore(job.host, job.port, None, True, patience, wait_for_workers=False)
                self.keeps = True
                return store
        return TCPStore(job.host, job.port, None, self.keeps, patience, wait_for_workers=False)

    def _meet(self, job: Job) -> list[int]:
        inside, end = self._inside, time.monotonic() + job.join_timeout
        if self.number == 0:
            enough = None
            while True:
                here = [n for n in range(job.most) if inside.check([f"node/{n}"])]
                if len(here) >= job.least and enough is None:
                    enough = time.monotonic()
                if len(here) == job.most or (enough is not None and time.monotonic() - enough > job.last_call):
                    break
                if time.monotonic() > end:
                    raise DistNetworkError(
                        f"torchrun: {len(here)} of {job.least} nodes came in {job.join_timeout:g} s; "
                        f"missing: {', '.join(str(n) for n in range(job.least) if n not in here)}"
                    )
                time.sleep(0.05)
            counts = [int(inside.get(f"node/{n}")) for n in here]
            inside.set("final", json.dumps(counts))
        counts = json.loads(inside.get("final"))
        if self.number >= len(counts):
            raise DistNetworkError(f"torchrun: job {job.run_id} began with {len(counts)} nodes, before this one came")
        return list(counts)

    def fail(self, attempt: int, text: str) -> None:
        """Tells the others that an attempt is over."""
        if len(self.counts) > 1:
            self._inside.set(f"failed/{attempt}", f"node {self.number}: {text}")

    def failure(self, attempt: int) -> str | None:
        """What another node told."""
        if len(self.counts) == 1 or not self._inside.check([f"failed/{attempt}"]):
            return None
        return self._inside.get(f"failed/{attempt}").decode()

    def arrive(self, what: str) -> None:
        """Counts this node among those that have come so far."""
        if len(self.counts) > 1:
            self._inside.add(what, 1)

    def all_arrived(self, what: str) -> bool:
        """Whether all nodes have come so far."""
        return len(self.counts) == 1 or int(self._inside.add(what, 0)) >= len(self.counts)


def _is_here(host: str) -> bool:
    """Whether an address is this machine's."""
    try:
        address = socket.gethostbyname(host)
        with socket.socket() as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True


# ---- the processes of one attempt ----


def _die_with_parent() -> Callable[[], None] | None:
    """What a child runs first: the kernel kills it when the agent ends, however it does."""
    if not sys.platform.startswith("linux"):
        return None
    prctl = ctypes.CDLL(None).prctl
    death, kill = 1, int(signal.SIGKILL)

    def run() -> None:
        prctl(death, kill)

    return run


class Worker:
    """One process, in a group of its own with what it starts."""

    local: int
    rank: int
    error_file: Path
    began: float
    ended: float
    process: subprocess.Popen[bytes]

    def __init__(self, job: Job, nodes: Nodes, local: int, attempt: int, folder: Path, shows: tuple[int, int]) -> None:
        self.local, self.rank = local, nodes.first + local
        mine = folder / f"attempt_{attempt}" / str(local)
        mine.mkdir(parents=True, exist_ok=True)
        self.error_file = mine / "error.json"
        self.error_file.unlink(missing_ok=True)
        shown = job.shown is None or local in job.shown
        self._streams = Streams(mine, *shows, shown, f"[{job.role}{local}]:")
        stdout, stderr = self._streams.targets()
        self.began = time.time()
        self.ended = 0.0
        self.process = subprocess.Popen(
            [*job.command, *([f"--local-rank={local}"] if job.says_local_rank else []), *job.arguments],
            stdout=stdout,
            stderr=stderr,
            env=self._environment(job, nodes, attempt),
            start_new_session=True,
            preexec_fn=_die_with_parent(),
        )
        self._streams.follow(self.process)

    def _environment(self, job: Job, nodes: Nodes, attempt: int) -> dict[str, str]:
        size = sum(nodes.counts)
        said = {
            "RANK": self.rank,
            "WORLD_SIZE": size,
            "LOCAL_RANK": self.local,
            "LOCAL_WORLD_SIZE": job.count,
            "GROUP_RANK": nodes.number,
            "GROUP_WORLD_SIZE": len(nodes.counts),
            "ROLE_NAME": job.role,
            "ROLE_RANK": self.rank,
            "ROLE_WORLD_SIZE": size,
            "MASTER_ADDR": nodes.store.host,
            "MASTER_PORT": nodes.store.port,
            "TORCHELASTIC_USE_AGENT_STORE": "True",
            "TORCHELASTIC_RESTART_COUNT": attempt,
            "TORCHELASTIC_MAX_RESTARTS": job.restarts,
            "TORCHELASTIC_RUN_ID": job.run_id,
            "TORCHELASTIC_ERROR_FILE": self.error_file,
        }
        usual = {"OMP_NUM_THREADS": "1"} if job.count > 1 else {}
        return {**usual, **os.environ, **{name: str(value) for name, value in said.items()}}

    def send(self, number: int) -> None:
        """Sends a signal to it and to what it started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)

    def poll(self) -> int | None:
        """Its exit status, where it has ended."""
        status = self.process.poll()
        if status is not None and not self.ended:
            self.ended = time.time()
        return status

    def close(self) -> None:
        """Ends what it left running, and takes the last of its output."""
        self.send(signal.SIGKILL)
        self.process.wait()
        self._streams.end()

    def report(self) -> str:
        """How it failed, in words."""
        status = self.process.returncode
        how = f"exited with {status}" if status >= 0 else f"was ended by {signal.Signals(-status).name}"
        text = f"rank {self.rank} (local rank {self.local}, pid {self.process.pid}, host {socket.gethostname()}) {how}"
        text += f" after {self.ended - self.began:.1f} s"
        with suppress(OSError, ValueError, KeyError, TypeError):
            said = json.loads(self.error_file.read_text())["message"]
            text += f": {said['message'] if isinstance(said, dict) else said} ({self.error_file})"
        return text


class Attempt:
    """All processes of this node, once."""

    def __init__(self, job: Job, nodes: Nodes, attempt: int, folder: Path) -> None:
        self._job, self._nodes, self._number = job, nodes, attempt
        self.workers: list[Worker] = []
        redirects, tees = (streams_of(text, job.count) for text in (job.redirects, job.tee))
        try:
            for local in range(job.count):
                shows = redirects[local], tees[local]
                self.workers.append(Worker(job, nodes, local, attempt, folder, shows))
        except OSError:
            self.end(signal.SIGKILL)
            raise

    def wait(self, asked: list[int]) -> list[str]:
        """Waits for all processes, of other nodes too; how some failed, or nothing. A signal ends it."""
        looked, told = 0.0, False
        while not asked:
            statuses = [worker.poll() for worker in self.workers]
            failed = [w for w, status in zip(self.workers, statuses, strict=True) if status]
            if failed:
                time.sleep(min(self._job.interval, 0.1))  # others may have failed first
                failed = [w for w in self.workers if w.poll()]
                failed.sort(key=lambda w: w.ended)
                reports = [worker.report() for worker in failed]
                self._nodes.fail(self._number, reports[0])
                return reports
            if not told and all(status == 0 for status in statuses):
                self._nodes.arrive(f"done/{self._number}")
                told = True
            if time.monotonic() - looked > (0.0 if told else _LOOK_AT_OTHERS):
                looked = time.monotonic()
                if (text := self._nodes.failure(self._number)) is not None:
                    return [text]
                if told and self._nodes.all_arrived(f"done/{self._number}"):
                    return []
            time.sleep(self._job.interval)
        return []

    def end(self, number: int) -> None:
        """Ends all that still run: by a signal, and a while later by SIGKILL."""
        for worker in self.workers:
            if worker.poll() is None:
                worker.send(number)
        late = time.monotonic() + self._job.patience
        while any(worker.poll() is None for worker in self.workers) and time.monotonic() < late:
            time.sleep(0.02)
        for worker in self.workers:
            worker.close()


# ---- a job ----


def _folder(job: Job) -> Path:
    if job.log_dir is None:
        return Path(tempfile.mkdtemp(prefix=f"torchrun_{job.run_id}_"))
    Path(job.log_dir).mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=f"{job.run_id}_", dir=job.log_dir))


def _say(text: str) -> None:
    print(f"torchrun: {text}", file=sys.stderr, flush=True)


def _leave(nodes: Nodes) -> None:
    """Who keeps the store stays until all others have looked a last time."""
    with suppress(DistError):
        nodes.arrive("left")
        end = time.monotonic() + 30
        while nodes.keeps and not nodes.all_arrived("left") and time.monotonic() < end:
            time.sleep(0.05)


def run(job: Job) -> int:
    """Runs a job to its end; the exit status of torchrun."""
    asked: list[int] = []
    before = {}
    for name in job.signals:
        number = getattr(signal, name)
        before[number] = signal.signal(number, lambda n, _: asked.append(n))
    try:
        nodes = Nodes(job)
        status = _attempts(job, nodes, asked)
        _leave(nodes)
    except DistError as error:
        _say(str(error))
        status = 1
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return status


def _attempts(job: Job, nodes: Nodes, asked: list[int]) -> int:
    folder, number = _folder(job), 0
    while True:
        attempt = Attempt(job, nodes, number, folder)
        failures: list[str] = []
        try:
            failures = attempt.wait(asked)
        finally:
            attempt.end(asked[0] if asked else signal.SIGTERM)
        if asked:
            _say(f"ended by {signal.Signals(asked[0]).name}, which its processes got, too")
            nodes.fail(number, f"ended by {signal.Signals(asked[0]).name}")
            return 128 + asked[0]
        if not failures:
            _clean(job, folder)
            return 0
        for text in failures:
            _say(text)
        if number == job.restarts:
            return 1
        number += 1
        _say(f"all processes start again: {number} of at most {job.restarts} times")


def _clean(job: Job, folder: Path) -> None:
    """A folder that nobody asked for goes, where nothing is in it to read."""
    if job.log_dir is None and job.redirects == "0" and job.tee == "0":
        shutil.rmtree(folder, ignore_errors=True)
