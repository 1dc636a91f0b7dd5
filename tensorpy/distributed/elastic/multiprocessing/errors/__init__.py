"""Errors of processes that torchrun started: `record` writes them where it looks, and it prints them with the rank."""

from __future__ import annotations

import json
import os
import signal
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, TypeVar

__all__ = ["ChildFailedError", "ErrorHandler", "ProcessFailure", "get_error_handler", "record"]

T = TypeVar("T")

VARIABLE = "TORCHELASTIC_ERROR_FILE"


def write(error: BaseException) -> None:
    """Puts an error into the file that torchrun said; without one nothing is done."""
    path = os.environ.get(VARIABLE)
    if not path:
        return
    about = {
        "message": f"{type(error).__name__}: {error}",
        "extraInfo": {
            "py_callstack": "".join(traceback.format_exception(error)),
            "timestamp": str(int(time.time())),
        },
    }
    with open(path, "w") as file:
        json.dump({"message": about}, file)


def record(fn: Callable[..., T], error_handler: Any = None) -> Callable[..., T | None]:
    """A program's main function whose errors torchrun prints, with the rank of the process.

    Arguments:
        fn: the function
        error_handler: has record_exception(error), in the place of the file
    """

    @wraps(fn)
    def run(*args: Any, **kwargs: Any) -> T | None:
        try:
            return fn(*args, **kwargs)
        except SystemExit as end:
            if end.code not in (None, 0):
                (error_handler.record_exception if error_handler else write)(end)
            raise
        except Exception as error:
            (error_handler.record_exception if error_handler else write)(error)
            raise

    return run


class ErrorHandler:
    """What `record` tells of errors: it writes them where torchrun looks.

    Example:
        >>> from tensorpy.distributed.elastic.multiprocessing.errors import ErrorHandler
        >>> ErrorHandler().record_exception(ValueError("x"))  # not started by torchrun: nothing is done
    """

    def initialize(self) -> None:
        """Is called before a program's main function."""

    def record_exception(self, error: BaseException) -> None:
        """Puts an error into the file that torchrun said.

        Arguments:
            error: the error
        """
        write(error)


def get_error_handler() -> ErrorHandler:
    """The ErrorHandler of this process.

    Example:
        >>> from tensorpy.distributed.elastic.multiprocessing.errors import get_error_handler
        >>> type(get_error_handler()).__name__
        'ErrorHandler'
    """
    return ErrorHandler()


@dataclass
class ProcessFailure:
    """How a process failed.

    Arguments:
        local_rank: which process of its machine
        pid: its number
        exitcode: its exit status; of one that a signal ended, less than 0
        error_file: where `record` wrote its error

    Example:
        >>> from tensorpy.distributed.elastic.multiprocessing.errors import ProcessFailure
        >>> ProcessFailure(0, 871, -9, "").message
        'Signal 9 (SIGKILL) received by PID 871'
    """

    local_rank: int
    pid: int
    exitcode: int
    error_file: str
    error_file_data: Any = field(init=False)
    message: str = field(init=False)
    timestamp: int = field(init=False)

    def __post_init__(self) -> None:
        self.timestamp, self.error_file_data = int(time.time()), {}
        self.message = "it left no error: decorate its main function with `record`"
        if self.exitcode < 0:
            self.message = f"Signal {-self.exitcode} ({self.signal_name()}) received by PID {self.pid}"
        try:
            with open(self.error_file) as file:
                self.error_file_data = said = json.load(file)["message"]
        except (OSError, ValueError, KeyError, TypeError):
            return
        self.message = said if isinstance(said, str) else str(said.get("message"))
        if isinstance(said, dict):
            self.timestamp = int(said.get("extraInfo", {}).get("timestamp", self.timestamp))

    def signal_name(self) -> str:
        """The signal that ended it, or <N/A>."""
        return signal.Signals(-self.exitcode).name if self.exitcode < 0 else "<N/A>"

    def timestamp_isoformat(self) -> str:
        """When it failed."""
        return time.strftime("%Y-%m-%d_%H:%M:%S", time.localtime(self.timestamp))


class ChildFailedError(Exception):
    """Processes that were started failed.

    Arguments:
        name: what they ran
        failures: how, by their ranks

    Example:
        >>> from tensorpy.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
        >>> print(ChildFailedError("train.py", {1: ProcessFailure(1, 871, -9, "")}))
        train.py failed; first rank 1 (local rank 1, pid 871, exit status -9): Signal 9 (SIGKILL) received by PID 871
    """

    name: str
    failures: dict[int, ProcessFailure]

    def __init__(self, name: str, failures: dict[int, ProcessFailure]) -> None:
        self.name, self.failures = name, failures
        super().__init__(self.format_msg())

    def get_first_failure(self) -> tuple[int, ProcessFailure]:
        """The rank of the process that failed first, and how."""
        rank = min(self.failures, key=lambda each: self.failures[each].timestamp)
        return rank, self.failures[rank]

    def format_msg(self) -> str:
        """The error's text: the first failure, then the others."""
        if not self.failures:
            return f"{self.name} failed"
        first, _ = self.get_first_failure()
        ranks = [first, *(rank for rank in self.failures if rank != first)]
        lines = [
            f"rank {rank} (local rank {f.local_rank}, pid {f.pid}, exit status {f.exitcode}): {f.message}"
            for rank, f in ((rank, self.failures[rank]) for rank in ranks)
        ]
        return f"{self.name} failed; first " + "\n".join(lines)
