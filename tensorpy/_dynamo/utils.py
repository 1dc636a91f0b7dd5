"""Counts of what became of functions that have a backend of the program's."""

from __future__ import annotations

from collections import Counter, defaultdict

from tensorpy import _C

# "stats" has unique_graphs, "frames" how many calls were recorded (total) and are graphs (ok), "graph_break" reasons.
counters: defaultdict[str, Counter[str]] = defaultdict(Counter)


def is_compile_supported(device_type: str) -> bool:
    """Whether functions of tensors on a device can be compiled: on each that is there.

    Arguments:
        device_type: the device's name, as "cpu"

    Returns: bool.

    Example:
        >>> tp._dynamo.utils.is_compile_supported("cpu")
        True
    """
    try:
        return bool(_C._device_count(device_type) > 0)
    except (AssertionError, RuntimeError):  # no device has this name
        return False


__all__ = ["counters", "is_compile_supported"]
