"""The device that is not the CPU, whichever it is: OpenCL's, where there is one."""

from __future__ import annotations

from typing import Any

from tensorpy import _C, opencl
from tensorpy._C import device as _device


def _needed() -> None:
    if not opencl.is_available():
        raise RuntimeError("there is no accelerator: " + (opencl.why_not_available() or "no OpenCL device"))


def is_available() -> bool:
    """Whether there is an accelerator."""
    return opencl.is_available()


def device_count() -> int:
    """How many there are."""
    return opencl.device_count()


def current_accelerator(check_available: bool = False) -> _device | None:
    """The accelerators' device type, without an index; None where there is none."""
    return _C.device("opencl") if opencl.is_available() else None


def current_device_index() -> int:
    """The index of the current device."""
    _needed()
    return opencl.current_device()


def set_device_index(device: Any, /) -> None:
    """Makes a device the current one."""
    _needed()
    opencl.set_device(device)


def synchronize(device: Any = None, /) -> None:
    """Waits until a device has done what was asked of it."""
    _needed()
    opencl.synchronize(device)


def empty_cache() -> None:
    """Gives back the memory that no tensor holds."""
    if opencl.is_available():
        opencl.empty_cache()


def memory_allocated(device: Any = None, /) -> int:
    """Bytes that tensors hold on a device."""
    _needed()
    return opencl.memory_allocated(device)


def max_memory_allocated(device: Any = None, /) -> int:
    """The most bytes that tensors held at once on a device."""
    _needed()
    return opencl.max_memory_allocated(device)


def memory_reserved(device: Any = None, /) -> int:
    """Bytes taken from a device, those kept for later included."""
    _needed()
    return opencl.memory_reserved(device)


def reset_peak_memory_stats(device: Any = None, /) -> None:
    """Starts the count of the most bytes anew."""
    _needed()
    opencl.reset_peak_memory_stats(device)
