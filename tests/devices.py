"""What the devices of the tree declare to the tests of the table."""

from __future__ import annotations

import functools

import tensorpy as tp
from tensorpy.testing.device import Device
from tensorpy.testing.samples.table import ALL_DTYPES


def _no_opencl() -> str | None:
    reason = tp.opencl.why_not_available()
    return f"no OpenCL device: {reason}" if reason else None


def _allow_the_fallback() -> None:
    tp.opencl.fallback = "allow"  # what has no kernel is tested as a user meets it; test_opencl.py keeps the list


@functools.cache
def declared(name: str, dtypes: str = "") -> Device:
    """The declaration of "cpu", "opencl", "opencl:1"; with fewer dtypes for a quicker run."""
    chosen = tuple(dtypes.split(",")) if dtypes else ALL_DTYPES
    if name.startswith("opencl"):
        return Device(name, chosen, set_up=_allow_the_fallback, missing=_no_opencl)
    return Device(name, chosen)
