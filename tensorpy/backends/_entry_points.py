"""Devices of packages that are installed: one is loaded when its name is first used.

A package names its devices as entry points of the group `tensorpy.backends`: the device's name, and a module whose
import loads its library.
"""

from __future__ import annotations

import threading
from typing import Any

from tensorpy import _C

GROUP = "tensorpy.backends"
_asked: set[str] = set()
_of_a_file = threading.local()  # .reading: the name is a file's word, which imports nothing


def device_of_a_file(*description: Any) -> _C.device:
    """The device that a file names, if what brings it has been imported; RuntimeError if not."""
    _of_a_file.reading = True
    try:
        return _C.device(*description)
    finally:
        _of_a_file.reading = False


def find(name: str) -> bool:
    """Whether a device of that name has come: its package, if any, is imported the first time it is asked for."""
    if name in _asked or getattr(_of_a_file, "reading", False):
        return name in _C._outside_devices()
    _asked.add(name)
    from importlib.metadata import entry_points

    points = {point.name: point for point in entry_points(group=GROUP)}
    _C._set_installed_devices(", ".join(sorted(points)))
    if name in points:
        try:
            points[name].load()
        except BaseException:
            _asked.discard(name)  # the next one to ask is told, too
            raise
    return name in _C._outside_devices()
