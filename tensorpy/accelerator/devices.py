"""Which devices beside the CPU there are, the one to take first in front, and what a program means by one."""

from __future__ import annotations

from typing import Any

from tensorpy import _C

chosen: list[str] = []  # the type that set_device_index was last given by name


def types() -> list[str]:
    """The types that are there, the one to take first."""
    found = [name for name in _C._outside_devices() if _C._device_count(name) > 0]
    name = _C.device("opencl").type
    if (name == "cuda" or _C._package() != "torch") and _C._opencl.device_count() > 0:
        found.append(name)
    return [name for name in chosen if name in found] + [name for name in found if name not in chosen]


def type_name() -> str:
    there = types()
    if not there:
        why = _C._opencl.why_not() or "tensorpy.run --device opencl gives a program one"
        raise RuntimeError(f"Cannot access accelerator device when none is available: {why}")
    return there[0]


def resolve(device: Any) -> _C.device:
    """A device given as None (the current one), a number, a name or a tensorpy.device."""
    if device is None:
        return _C.device(type_name())
    if isinstance(device, int):
        return _C.device(type_name(), device)
    found = _C.device(device)
    if found.type not in types():
        raise ValueError(f"{found} is no accelerator that is there: {', '.join(types()) or 'none is'}")
    return found
