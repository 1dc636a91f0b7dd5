"""Whether there are Apple's devices: tensorpy drives none."""

from __future__ import annotations


def is_available() -> bool:
    """Whether there is such a device: there is none."""
    return False


def is_built() -> bool:
    """Whether tensorpy is built for them: it is not."""
    return False


def is_macos_or_newer(major: int, minor: int) -> bool:
    """Whether the system is new enough for them: not asked."""
    return False
