"""Marks for Intel's profilers: there is none to read them, so they go nowhere."""

from __future__ import annotations

from tensorpy.cuda.nvtx import mark, range, range_pop, range_push


def is_available() -> bool:
    """Whether marks reach a profiler: they do not.

    Returns: bool.

    Example:
        >>> tp.profiler.itt.is_available()
        False
    """
    return False


__all__ = ["is_available", "mark", "range", "range_pop", "range_push"]
