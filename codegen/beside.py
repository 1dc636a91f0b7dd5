"""A task in a process of its own, while this one does something else: the generator's halves on two cores."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def can_fork() -> bool:
    """Whether a second process would help, and can have what this one has loaded."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores > 1 and "fork" in multiprocessing.get_all_start_methods()


def begin(task: Callable[[], T]) -> Callable[[], T]:
    """Runs the task in a forked process; the function that is returned waits for its result, or raises what it raised.

    The result and the exception are pickled; the task itself and what it refers to are not. RuntimeError: the process
    ended before it had a result (it was killed, say).
    """
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)

    def run() -> None:
        try:
            answer: tuple[bool, object] = True, task()
        except Exception as error:
            answer = False, error
        theirs.send(answer)

    process = context.Process(target=run, daemon=True)
    process.start()
    theirs.close()

    def result() -> T:
        try:
            succeeded, value = ours.recv()
        except EOFError:
            process.join()
            raise RuntimeError(f"the generator's second process ended with exit code {process.exitcode}") from None
        process.join()
        if not succeeded:
            raise value
        return value  # type: ignore[no-any-return]

    return result
