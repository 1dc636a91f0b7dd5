"""Whether there is oneDNN: tensorpy computes with kernels of its own and OpenBLAS."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tensorpy._package import precision as precisions
from tensorpy.backends import _switches


def is_available() -> bool:
    """Whether there is oneDNN: there is not."""
    return False


# Switches without effect.
enabled: bool = True
deterministic: bool = False
allow_tf32: bool = True
conv, rnn, matmul = (precisions.Operator("mkldnn", name) for name in ("conv", "rnn", "matmul"))
_SWITCHES = frozenset({"enabled", "deterministic", "allow_tf32", "fp32_precision"})
_switches.freezable(__name__, fp32_precision=_switches.precision("mkldnn"))


def set_flags(
    _enabled: bool | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
    _fp32_precision: str | None = "none",
) -> tuple[bool, bool, bool, str]:
    """Sets what is not None; gives what it was."""
    global enabled, deterministic, allow_tf32
    before = enabled, deterministic, allow_tf32, precisions.get("mkldnn", "all")
    enabled = enabled if _enabled is None else _enabled
    deterministic = deterministic if _deterministic is None else _deterministic
    allow_tf32 = allow_tf32 if _allow_tf32 is None else _allow_tf32
    if _fp32_precision is not None:
        precisions.put("mkldnn", "all", _fp32_precision)
    return before


@contextmanager
def flags(
    enabled: bool = False, deterministic: bool = False, allow_tf32: bool = True, fp32_precision: str = "none"
) -> Iterator[None]:
    """Settings for a scope."""
    before = set_flags(enabled, deterministic, allow_tf32, fp32_precision)
    try:
        yield
    finally:
        set_flags(*before)
