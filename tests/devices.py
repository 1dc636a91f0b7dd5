"""What the devices of the tree declare to the tests of the table."""

from __future__ import annotations

import dataclasses
import functools

import tensorpy as tp
from tensorpy.testing.device import Device, Refusal
from tensorpy.testing.samples.table import ALL_DTYPES


def _no_opencl() -> str | None:
    reason = tp.opencl.why_not_available()
    return f"no OpenCL device: {reason}" if reason else None


def _allow_the_fallback() -> None:
    tp.opencl.fallback = "allow"  # what has no kernel is tested as a user meets it; test_opencl.py keeps the list


NO_DOUBLE = Refusal("*", "no double precision", message="has no double precision")


@functools.cache
def dtypes_of(name: str) -> tuple[str, ...]:
    """What the device has; an OpenCL device may be without double precision."""
    if not name.startswith("opencl") or _no_opencl() or tp.opencl.get_device_properties(name).has_fp64:
        return ALL_DTYPES
    return tuple(d for d in ALL_DTYPES if d not in ("float64", "complex128"))


@functools.cache
def declared(name: str, dtypes: str = "") -> Device:
    """The declaration of "cpu", "opencl", "opencl:1"; with fewer dtypes for a quicker run."""
    chosen = tuple(d for d in dtypes_of(name) if not dtypes or d in dtypes.split(","))
    if not name.startswith("opencl"):
        return Device(name, chosen)
    opencl = Device(name, chosen, set_up=_allow_the_fallback, missing=_no_opencl)
    if "float64" in dtypes_of(name):
        return opencl
    tolerances = {
        "cauchy": {"float32": (1e-4, 1e-4)},  # drawn in float
        "special_hermite_polynomial_he": {"float32": (2e-5, 1e-5)},  # a recurrence whose terms cancel, in float
    }
    return dataclasses.replace(opencl, refusals=(NO_DOUBLE,), operator_tolerances=tolerances)
