"""cuDNN's switches: kept for the programs that set them, and without effect, as there is no cuDNN."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensorpy.backends import _switches

enabled = True
benchmark = False
benchmark_limit: int | None = None
deterministic = False
allow_tf32 = True
fp32_precision = "none"
_SWITCHES = frozenset({"enabled", "benchmark", "deterministic", "allow_tf32", "fp32_precision"})
_switches.freezable(__name__)


def is_available() -> bool:
    """Whether there is cuDNN: there is not."""
    return False


def version() -> int | None:
    """The version of cuDNN: None, since there is none."""
    return None


def is_acceptable(tensor: Any) -> bool:
    """Whether it could compute on a tensor: it could not."""
    return False


@contextmanager
def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int | None = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
) -> Iterator[None]:
    """A context in which the switches are set."""
    inside = {
        "enabled": enabled,
        "benchmark": benchmark,
        "benchmark_limit": benchmark_limit,
        "deterministic": deterministic,
        "allow_tf32": allow_tf32,
        "fp32_precision": fp32_precision,
    }
    switches = globals()
    before = {name: switches[name] for name in inside}
    switches.update(inside)
    try:
        yield
    finally:
        switches.update(before)
