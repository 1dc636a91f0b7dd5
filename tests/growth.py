"""What is live before and after a call, for tests of leaks."""

from __future__ import annotations

import gc
from collections.abc import Callable

import tensorpy as tp


def live() -> tuple[int, int]:
    stats = tp._C._memory_stats()
    return stats["live_blocks"], stats["live_bytes"]


def check_no_growth(action: Callable[[], None], what: str) -> None:
    """The first calls may fill caches; each further one leaves as much as it found."""
    for _ in range(2):
        action()
    before = live()
    for _ in range(3):
        action()
    if live() != before:  # something may have waited for the collector
        gc.collect()
        action()
        gc.collect()
        before = live()
        for _ in range(3):
            action()
        gc.collect()
    assert live() == before, f"{what}: {live()[0] - before[0]} blocks and {live()[1] - before[1]} bytes more"
