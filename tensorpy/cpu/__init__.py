"""The CPU under the names that every device has: one device, whose calls are done when they return."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from tensorpy.cpu import amp


def is_available() -> bool:
    """Whether there is a CPU."""
    return True


def is_initialized() -> bool:
    """Whether it is ready."""
    return True


def device_count() -> int:
    """How many there are: one, of all cores."""
    return 1


def current_device() -> str:
    """The current device: "cpu"."""
    return "cpu"


def set_device(device: Any) -> None:
    """Nothing: there is one device."""


def synchronize(device: Any = None) -> None:
    """Nothing: calls are done when they return."""


def stream(stream: Any) -> nullcontext[None]:
    """A context that changes nothing: calls are done in order."""
    return nullcontext()


__all__ = ["amp"]
