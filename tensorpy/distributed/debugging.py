"""What helps to look into a world: a breakpoint in one of its processes, names of messages in a profile."""

from __future__ import annotations

import pdb
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensorpy.distributed import groups, messages
from tensorpy.distributed.collectives import barrier

_passed: dict[tuple[str, int], int] = {}


def breakpoint(rank: int = 0, skip: int = 0, timeout_s: float | None = 3600) -> None:
    """Stops in the debugger in one process; the others wait until it goes on.

    Arguments:
        rank: which process stops
        skip: how often this line is passed before
        timeout_s: how long messages of all groups may take from now on; None leaves it

    Example:
        >>> tp.distributed.breakpoint(skip=1)  # the first time is passed
    """
    frame: Any = sys._getframe(1)
    line = (frame.f_code.co_filename, frame.f_lineno)
    _passed[line] = _passed.get(line, 0) + 1
    if _passed[line] <= skip:
        return
    world = groups.of(None)
    if timeout_s is not None:
        for each in (world, *groups.made.values()):
            each._seconds = float(timeout_s)
    if world.rank() == rank:
        debugger = pdb.Pdb()
        debugger.message(f"rank {rank} stops here; the others wait. `up` leads to who called breakpoint()")
        debugger.set_trace()
    barrier()


@contextmanager
def record_comm(name: str) -> Iterator[None]:
    """A context whose messages have a name of their own in a profile.

    Arguments:
        name: the events' name

    Returns: a context manager.

    Example:
        >>> with tp.distributed.record_comm("gradients of the first layer"):
        ...     tp.distributed.all_reduce(tp.ones(2))
    """
    before, messages.titles.title = messages.titles.title, name
    try:
        yield
    finally:
        messages.titles.title = before
