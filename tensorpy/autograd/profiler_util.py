"""Events of profiles by PyTorch's path, for programs that make them by hand: `tensorpy.profiler` has them."""

from __future__ import annotations

from tensorpy.profiler._event import FunctionEvent, Interval, Kernel
from tensorpy.profiler._event import time_text as _format_time  # noqa: F401
from tensorpy.profiler._events import EventList, FunctionEventAvg
from tensorpy.profiler._table import memory as _format_memory  # noqa: F401

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "Interval", "Kernel"]


def _format_time_share(time_us: float, total_time_us: float) -> str:
    """ "25.00%" of 5 and 20."""
    return f"{time_us * 100.0 / total_time_us:.2f}%" if total_time_us else "NaN"
