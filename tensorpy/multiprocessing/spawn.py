"""`spawn`, which starts a program's processes and waits for them."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import wait
from typing import Any

__all__ = [
    "ENV_VAR_PARALLEL_START", "ProcessContext", "ProcessException", "ProcessExitedException", "ProcessRaisedException",
    "spawn", "start_processes",
]  # fmt: skip

ENV_VAR_PARALLEL_START = "TORCH_MP_PARALLEL_START"
_SECONDS_TO_END = 30  # that a process has after SIGTERM
_log = logging.getLogger(__name__)


class ProcessException(Exception):
    """A process that spawn started did not end well."""

    error_index: int
    error_pid: int | None
    msg: str
    pid: int | None

    def __init__(self, msg: str, error_index: int, pid: int | None) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid, self.pid = msg, error_index, pid, pid

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """A process whose function raised an error."""


class ProcessExitedException(ProcessException):
    """It ended with a code, or by a signal."""

    exit_code: int | None
    signal_name: str | None

    def __init__(
        self, msg: str, error_index: int, error_pid: int | None, exit_code: int | None, signal_name: str | None = None
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


def _run(fn: Callable[..., Any], index: int, args: tuple[Any, ...], errors: Any) -> None:
    try:
        fn(index, *args)
    except Exception:
        import traceback

        errors.put(traceback.format_exc()[-30_000:])  # what a pipe holds: nobody reads before this process has ended
        raise SystemExit(1) from None


class ProcessContext:
    """Processes that were started together."""

    errors: list[Any]
    processes: list[Any]
    running: dict[Any, Any]

    def __init__(self, processes: list[Any], errors: list[Any]) -> None:
        self.processes, self.errors = processes, errors
        self.running = dict(enumerate(processes))

    def pids(self) -> list[int]:
        """The numbers that the system gave them."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Waits for one of them to end; True when all have. If one failed the others are ended, and it raises.

        Arguments:
            timeout: for how many seconds it waits; None: without an end
            grace_period: how many seconds the others have to end by themselves; None: none
        """
        ended = wait([process.sentinel for process in self.running.values()], timeout)
        for index, process in list(self.running.items()):
            if process.sentinel not in ended:
                continue
            process.join()  # its sentinel tells of the end before the system has its exit code
            del self.running[index]
            if process.exitcode != 0:
                self._fail(index, process, grace_period)
        return not self.running

    def _end_others(self, grace_period: float | None) -> None:
        until = time.monotonic() + (grace_period or 0)
        for process in self.running.values():
            process.join(max(until - time.monotonic(), 0))
        for process in self.running.values():
            if process.is_alive():
                _log.warning("Terminating process %s via signal %s", process.pid, signal.SIGTERM.name)
                process.terminate()
        for process in self.running.values():
            process.join(_SECONDS_TO_END)
            if process.is_alive():
                _log.warning("Process %s does not end by SIGTERM: it is killed", process.pid)
                process.kill()
                process.join()

    def _fail(self, index: int, process: Any, grace_period: float | None) -> None:
        self._end_others(grace_period)
        if not self.errors[index].empty():
            text = f"\n\n-- Process {index} raised:\n{self.errors[index].get()}"
            raise ProcessRaisedException(text, index, process.pid)
        code = process.exitcode
        name = signal.Signals(-code).name if -code in set(signal.Signals) else None
        text = f"process {index} terminated with " + (f"signal {name}" if name else f"exit code {code}")
        raise ProcessExitedException(text, index, process.pid, code, name)


def _start_at_once(processes: list[Any]) -> None:
    """Starts processes in a thread each: what they are sent is pickled meanwhile."""
    failures: list[BaseException] = []

    def start(process: Any) -> None:
        try:
            process.start()
        except BaseException as error:
            failures.append(error)

    starters = [threading.Thread(target=start, args=(process,)) for process in processes]
    for starter in starters:
        starter.start()
    for starter in starters:
        starter.join()
    if failures:
        raise failures[0]


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Runs fn(i, *args) in nprocs processes, i from 0, and waits for them; without join gives them as a context.

    By the method "forkserver" they are started at once, where the environment variable TORCH_MP_PARALLEL_START is 1.
    """
    context: Any = multiprocessing.get_context(start_method)
    errors = [context.SimpleQueue() for _ in range(nprocs)]
    processes = [context.Process(target=_run, args=(fn, i, args, errors[i]), daemon=daemon) for i in range(nprocs)]
    at_once = start_method == "forkserver" and os.environ.get(ENV_VAR_PARALLEL_START) == "1"
    if at_once:
        _start_at_once(processes)
    else:
        for process in processes:
            process.start()
    started = ProcessContext(processes, errors)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """start_processes by the method "spawn"."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)
