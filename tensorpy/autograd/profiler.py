"""torch.autograd.profiler's names, for programs that use them: tensorpy.profiler in one step."""

from __future__ import annotations

import warnings
from typing import Any

from tensorpy import profiler as _profiler
from tensorpy._package.absent import absent
from tensorpy.profiler import EventList, FunctionEvent, FunctionEventAvg, record_function

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "emit_nvtx", "profile", "record_function"]

emit_nvtx: Any = absent(__name__, "emit_nvtx")


class profile:
    """`with profile() as p: ...`, then `p.key_averages().table()`; `enabled=False` records nothing.

    Arguments:
        enabled: whether it is on
        use_cuda: is taken: there is no such device
        use_device: the type of device that is timed too
        record_shapes: whether shapes are recorded
        with_flops: whether operations are counted
        profile_memory: whether memory is recorded
        with_stack: whether the callers are recorded
        with_modules: whether modules are recorded
        use_kineto: is taken
        use_cpu: whether calls of operators are recorded
        experimental_config: is taken
        acc_events: whether the events of all uses are kept
        custom_trace_id_callback: is taken

    Example:
        >>> with tp.autograd.profiler.profile() as p:
        ...     y = tp.ones(2) + 1
        >>> [event.name for event in p.function_events]
        ['aten::ones', 'aten::empty', 'aten::fill_', 'aten::add']
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Any = None,
    ) -> None:
        self.enabled = enabled and use_cpu
        self._entered = False
        if use_cuda:
            warnings.warn("profile: there is no CUDA, and nothing of it is timed", stacklevel=2)
        self._inner = _profiler.profile(
            record_shapes=record_shapes,
            with_flops=with_flops,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_modules=with_modules,
            acc_events=acc_events,
        )

    def __enter__(self) -> profile:
        if self._entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self._entered = True
        if self.enabled:
            self._inner.start()
        return self

    def __exit__(self, *unused: object) -> None:
        self._inner.stop()

    def __str__(self) -> str:
        return self.table() if self.enabled and self._entered else repr(self)

    @property
    def function_events(self) -> EventList:
        return self._inner.events()

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> EventList:
        """Sums by operator."""
        return self._inner.key_averages(group_by_input_shape, group_by_stack_n)

    def total_average(self) -> FunctionEventAvg:
        """The sum of all."""
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        return self.function_events.self_cpu_time_total

    def table(self, *args: Any, **kwargs: Any) -> str:
        """Every event as a row."""
        return self.function_events.table(*args, **kwargs)

    def export_chrome_trace(self, path: str) -> None:
        """Writes a file for chrome://tracing and Perfetto."""
        self._inner.export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes lines for flame graph tools."""
        self._inner.export_stacks(path, metric)

    def _repr_html_(self) -> str:
        return self._inner._repr_html_()
