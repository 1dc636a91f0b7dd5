"""The profile as a context, what it records when (schedule), and where its results go."""

from __future__ import annotations

import enum
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from html import escape
from pathlib import Path
from typing import Any

from tensorpy import _C
from tensorpy._package import async_events
from tensorpy.profiler import _chrome, _events, _flame
from tensorpy.profiler._events import EventList
from tensorpy.profiler._kineto import Results
from tensorpy.utils._contextlib import ContextDecorator

_profiler: Any = _C._profiler


class ProfilerActivity(enum.Enum):
    """What is recorded: calls of operators, and what an OpenCL device ran. CUDA is a name only: there is no device.

    Example:
        >>> tp.profiler.ProfilerActivity.CPU.name
        'CPU'
    """

    CPU = 0
    CUDA = 1
    OPENCL = 2


class ProfilerAction(enum.Enum):
    """What a step of a program is for.

    Example:
        >>> tp.profiler.ProfilerAction.RECORD.name
        'RECORD'
    """

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set[ProfilerActivity]:
    """What can be recorded here.

    Returns: a set of ProfilerActivity.

    Example:
        >>> tp.profiler.ProfilerActivity.CPU in tp.profiler.supported_activities()
        True
    """
    return {ProfilerActivity.CPU, *([ProfilerActivity.OPENCL] * (_C._opencl.device_count() > 0))}


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """Cycles of `wait` steps without, `warmup` that are thrown away, `active` that are kept; `repeat` of them, or
    without an end. The first `skip_first` steps are in none, and where `skip_first_wait` is set the first cycle
    waits for nothing.

    Returns: a function from a step's number to a ProfilerAction.

    Raises: AssertionError for active below 1, and for negative numbers.

    Example:
        >>> steps = tp.profiler.schedule(wait=1, warmup=1, active=2)
        >>> [steps(i).name for i in range(4)]
        ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE']
    """
    if min(wait, warmup, repeat, skip_first, skip_first_wait) < 0 or active <= 0:
        raise AssertionError("Invalid profiler schedule arguments: active is positive, and nothing else negative")

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise ValueError("schedule(): steps are counted from 0")
        step -= skip_first - (wait if skip_first_wait else 0)
        cycle = wait + warmup + active
        if step < (wait if skip_first_wait else 0) or (repeat and step >= repeat * cycle):
            return ProfilerAction.NONE
        within = step % cycle
        if within < wait:
            return ProfilerAction.NONE
        if within < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if within < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """For on_trace_ready: each cycle becomes a Chrome trace in a folder.

    Arguments:
        dir_name: the folder
        worker_name: the file's name before its number
        use_gzip: whether files are compressed

    Returns: a function of a profile.

    Example:
        >>> handler = tp.profiler.tensorboard_trace_handler("log")
        >>> with tp.profiler.profile(on_trace_ready=handler):
        ...     y = tp.ones(2) + 1
    """

    def handle(p: profile) -> None:
        import socket

        Path(dir_name).mkdir(parents=True, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json" + ".gz" * use_gzip
        p.export_chrome_trace(str(Path(dir_name) / name))

    return handle


class Recording:
    """The recorder in C, from now until `stop`. Threads that start meanwhile are recorded from their first call."""

    def __init__(self, shapes: bool, memory: bool, stack: bool, devices: bool, flops: bool) -> None:
        self._devices, self._flops = devices, flops
        if devices:
            _profiler.start_devices()
        self._profile = _profiler.start(shapes, memory, stack)
        self._shapes, self._messages = shapes, list[async_events.Event]()
        async_events.recording.append(self._messages)
        self._before = threading.getprofile()
        threading.setprofile(self._joined)

    def _joined(self, *event: Any) -> None:
        """The first thing that a fresh thread calls."""
        sys.setprofile(self._before)
        _profiler.join()

    def stop(self) -> EventList:
        now = _profiler.now()
        _profiler.stop(self._profile)
        async_events.recording[:] = [each for each in async_events.recording if each is not self._messages]
        if threading.getprofile() == self._joined:
            threading.setprofile(self._before)
        kernels = _profiler.stop_devices() if self._devices else []
        messages = [_events.of_message(message, self._shapes, now) for message in self._messages]
        return _events.read(_profiler.events(self._profile), kernels, messages, now, self._flops)


class profile:
    """Records what is called in all threads: `with profile() as p: ...`, then `p.key_averages().table()`.

    `schedule` (a function of the step's number, see the function of that name) chooses what is recorded; the program
    calls `step()` between its steps, and `on_trace_ready(p)` is called at the end of each cycle. An exception that ends
    the block leaves what was recorded up to then.

    Arguments:
        activities: what is recorded: a set of ProfilerActivity
        record_shapes: whether shapes are recorded
        profile_memory: whether memory is recorded
        with_stack: whether the callers are recorded
        with_flops: whether the operations of products, convolutions of images, sums are counted, by their shapes
        with_modules: whether modules are recorded
        acc_events: whether the events of all steps are kept
        experimental_config: is taken
        execution_trace_observer: an ExecutionTraceObserver that gets what the profile records
        custom_trace_id_callback: a function that names the trace

    Example:
        >>> with tp.profiler.profile() as p:
        ...     y = tp.ones(2) + 1
        >>> len(p.key_averages()) > 0
        True
    """

    activities: Any
    current_action: Any
    on_trace_ready: Callable[[profile], Any] | None
    profile_memory: bool
    record_shapes: bool
    schedule: Callable[[int], ProfilerAction] | None
    step_num: int
    with_flops: bool
    with_stack: bool

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        acc_events: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
    ) -> None:
        chosen = set(ProfilerActivity) if activities is None else set(activities)
        if not chosen or not all(isinstance(a, ProfilerActivity) for a in chosen):
            raise ValueError("profile(): activities are a list of ProfilerActivity.CPU and its like")
        self.record_shapes, self.profile_memory, self.with_stack = record_shapes, profile_memory, with_stack
        self.with_flops = with_flops
        self.activities, self.schedule, self.on_trace_ready = chosen, schedule, on_trace_ready
        self.acc_events = acc_events
        self.execution_trace_observer = execution_trace_observer
        self.step_num = 0
        self.current_action = ProfilerAction.NONE
        self._recording: Recording | None = None
        self._range: record_function | None = None
        self._found = EventList()
        self._metadata: dict[str, str] = {}
        self._paused = False  # whether what was found belongs to what is being recorded
        self._trace_id = "" if custom_trace_id_callback is None else custom_trace_id_callback()

    # ---- when ----

    def _action(self) -> ProfilerAction:
        return self.schedule(self.step_num) if self.schedule else ProfilerAction.RECORD

    def _record(self) -> None:
        devices = ProfilerActivity.OPENCL in self.activities
        shapes = self.record_shapes or self.with_flops or self.execution_trace_observer is not None
        self._recording = Recording(shapes, self.profile_memory, self.with_stack, devices, self.with_flops)

    def _end(self, keep: bool) -> None:
        recording, self._recording = self._recording, None
        found = recording.stop() if recording else EventList()
        if self.execution_trace_observer is not None:
            self.execution_trace_observer.take(found)
        if keep:
            self._found = EventList([*self._found, *found]) if self.acc_events or self._paused else found
            self._paused = False

    def _enter(self) -> None:
        self.current_action = self._action()
        if self.current_action is not ProfilerAction.NONE:
            self._record()
        if self.schedule:
            self._range = record_function(f"ProfilerStep#{self.step_num}")
            self._range.__enter__()

    def start(self) -> None:
        """Begins the first step."""
        if self._recording:
            raise RuntimeError("profile: it records already")
        self._enter()

    def _leave_range(self) -> None:
        if self._range:
            self._range.__exit__(None, None, None)
            self._range = None

    def step(self) -> None:
        """Ends a step and begins the next one."""
        self._leave_range()
        before = self.current_action
        self.step_num += 1
        after = self._action()
        if before is ProfilerAction.RECORD_AND_SAVE:
            self._end(keep=True)
            if self.on_trace_ready:
                self.on_trace_ready(self)
        elif before is ProfilerAction.WARMUP and after is not ProfilerAction.WARMUP:
            self._end(keep=False)
        elif before is ProfilerAction.RECORD and after in (ProfilerAction.NONE, ProfilerAction.WARMUP):
            self._end(keep=True)
        if self._recording is None:
            self._enter()
            return
        self.current_action = after
        if self.schedule:
            self._range = record_function(f"ProfilerStep#{self.step_num}")
            self._range.__enter__()

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Stops recording for a while, or goes on: what was recorded before stays."""
        if ProfilerActivity.CPU not in set(activities) or self.current_action is ProfilerAction.NONE:
            return
        if enable and self._recording is None:
            self._record()
        elif not enable and self._recording is not None:
            before, self.acc_events = self.acc_events, True
            self._end(keep=True)
            self.acc_events, self._paused = before, True

    def stop(self) -> None:
        """Ends the last step."""
        self._leave_range()
        if self._recording is None:
            return
        recorded = self.current_action is not ProfilerAction.WARMUP
        self._end(keep=recorded)
        self.current_action = ProfilerAction.NONE
        if recorded and self.on_trace_ready:
            self.on_trace_ready(self)

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *unused: object) -> None:
        self.stop()
        if self.execution_trace_observer is not None:
            self.execution_trace_observer.cleanup()

    # ---- what ----

    @property
    def profiler(self) -> Results:
        """The same events as PyTorch's own profiler has them."""
        return Results(self._found)

    def get_trace_id(self) -> str | None:
        """The trace's name, if there is one."""
        return self._trace_id or None

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        """Names the trace by a function."""
        self._trace_id = callback()

    def events(self) -> EventList:
        """Every event of the last cycle, in the order in which they began."""
        return self._found

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> EventList:
        """Sums by operator: see EventList.key_averages."""
        return self._found.key_averages(group_by_input_shape, group_by_stack_n)

    def add_metadata(self, key: str, value: str) -> None:
        """A text that goes into the Chrome trace."""
        self._metadata[key] = value

    def preset_metadata_json(self, key: str, value: str) -> None:
        """The same as add_metadata_json, before the start."""
        self.add_metadata_json(key, value)

    def add_metadata_json(self, key: str, value: str) -> None:
        """The same for a text in JSON."""
        import json

        self._metadata[key] = json.loads(value)

    def export_chrome_trace(self, path: str) -> None:
        """Writes a file for chrome://tracing and Perfetto; compressed if its name ends with ".gz"."""
        _chrome.write(path, self._found, self._metadata)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes lines of "outermost;...;innermost <microseconds>" for flame graph tools: with_stack has been asked."""
        sums: dict[str, float] = {}
        for event in self._found:
            if event.stack:
                line = ";".join([*reversed(event.stack), event.name])
                sums[line] = sums.get(line, 0) + getattr(event, metric)
        Path(path).write_text("".join(f"{line} {int(value)}\n" for line, value in sums.items() if int(value) > 0))

    def _repr_html_(self) -> str:
        table = self.key_averages().table(sort_by="self_cpu_time_total", row_limit=20)
        return f"{_flame.svg(self._found)}<pre>{escape(table)}</pre>"


class record_function(ContextDecorator):
    """Names a range of the program in a profile: a context, or a decorator. Without a profile it does nothing.

    Arguments:
        name: the name
        args: the arguments by position

    Example:
        >>> with tp.autograd.profiler.profile() as p, tp.autograd.profiler.record_function("part"):
        ...     y = tp.ones(2) + 1
        >>> any(event.name == "part" for event in p.function_events)
        True
    """

    args: str | None
    name: str

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args
        self._given: tuple[Any, ...] = () if args is None else (args,)
        self._marks: list[tuple[int, int]] = []

    def clone(self) -> record_function:
        """A context like this one, for another use."""
        return record_function(self.name, self.args)

    def __enter__(self) -> record_function:
        self._marks.append(_profiler.enter(self.name, *self._given))
        return self

    def __exit__(self, *unused: object) -> None:
        _profiler.leave(*self._marks.pop())


class _RecordFunctionFast(record_function):
    """A range that may be entered often; of what is given with it the tensors' shapes are noted."""

    def __init__(self, name: str, input_values: Any = None, keyword_values: Any = None) -> None:
        super().__init__(name)
        self._given = (*(input_values or ()), *(keyword_values or {}).values())


class _ExperimentalConfig:
    """Settings of PyTorch's recorder, which are taken."""

    def __init__(self, *settings: Any, **named: Any) -> None:
        self.settings = settings, named


_profiler._RecordFunctionFast, _profiler._ExperimentalConfig = _RecordFunctionFast, _ExperimentalConfig
