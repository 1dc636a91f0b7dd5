"""Where the time goes: what is called when, for how long, with what shapes and how much memory.

    with tensorpy.profiler.profile(record_shapes=True) as p:
        model(x).sum().backward()
    print(p.key_averages().table(sort_by="self_cpu_time_total", row_limit=10))
    p.export_chrome_trace("trace.json")

The recorder is in C, under the dispatch key Profiler (csrc/dispatch/profiler.h): without a profile a call pays nothing.
"""

from __future__ import annotations

from tensorpy._package import parts as _parts
from tensorpy.profiler._event import FunctionEvent, Interval, Kernel
from tensorpy.profiler._events import EventList, FunctionEventAvg
from tensorpy.profiler._execution_trace import ExecutionTraceObserver
from tensorpy.profiler._profile import (
    ProfilerAction,
    ProfilerActivity,
    profile,
    record_function,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)


def kineto_available() -> bool:
    """Whether there is PyTorch's library of traces: there is not, nor is it needed.

    Returns: bool.

    Example:
        >>> isinstance(tp.profiler.kineto_available(), bool)
        True
    """
    return False


__all__ = [
    "EventList",
    "ExecutionTraceObserver",
    "FunctionEvent",
    "FunctionEventAvg",
    "Interval",
    "Kernel",
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]

TYPE_CHECKING = False
if TYPE_CHECKING:  # what __getattr__ gives at first use
    from tensorpy.profiler import itt as itt
else:
    __getattr__ = _parts(__name__, ("itt",))
