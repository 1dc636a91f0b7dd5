"""cuDNN's switches: kept for the programs that set them, and without effect, as there is no cuDNN."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensorpy._package import precision as precisions
from tensorpy.backends import _switches

enabled = True
benchmark = False
benchmark_limit: int | None = None
deterministic = False
conv, rnn = precisions.Operator("cuda", "conv"), precisions.Operator("cuda", "rnn")
_SWITCHES = frozenset({"enabled", "benchmark", "deterministic", "allow_tf32", "fp32_precision"})
_switches.freezable(
    __name__,
    fp32_precision=_switches.precision("cuda"),
    allow_tf32=(precisions.get_cudnn_tf32, precisions.put_cudnn_tf32),
)


def is_available() -> bool:
    """Whether there is cuDNN: there is not."""
    return False


def version() -> int | None:
    """The version of cuDNN: None, since there is none."""
    return None


def is_acceptable(tensor: Any) -> bool:
    """Whether it could compute on a tensor: it could not."""
    return False


def set_flags(
    _enabled: bool | None = None,
    _benchmark: bool | None = None,
    _benchmark_limit: int | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
    _fp32_precision: str | None = "none",
) -> tuple[Any, ...]:
    """Sets what is not None; gives what it was."""
    before = (
        enabled,
        benchmark,
        benchmark_limit,
        deterministic,
        precisions.get_cudnn_tf32(),
        precisions.get("cuda", "all"),
    )
    plain = {
        "enabled": _enabled,
        "benchmark": _benchmark,
        "benchmark_limit": _benchmark_limit,
        "deterministic": _deterministic,
    }
    globals().update({name: value for name, value in plain.items() if value is not None})
    if _allow_tf32 is not None:
        precisions.put_cudnn_tf32(_allow_tf32)
    if _fp32_precision is not None:
        precisions.put("cuda", "all", _fp32_precision)
    return before


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
    before = set_flags(enabled, benchmark, benchmark_limit, deterministic, allow_tf32, fp32_precision)
    try:
        yield
    finally:
        set_flags(*before)
