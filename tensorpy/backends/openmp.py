"""Whether threads are OpenMP's: they are."""

from __future__ import annotations


def is_available() -> bool:
    """Whether tensorpy is built with OpenMP."""
    return True
