"""OpenCL devices: which there are, their memory, their queue, and what happens to operators without a kernel.

Nothing is opened before it is asked for: `import tensorpy.opencl` loads no driver.
"""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tensorpy import _C

_cl = _C._opencl
_MODES = ("error", "warn", "allow")


def device_count() -> int:
    """How many devices there are, over all platforms; 0 where no driver is installed."""
    return int(_cl.device_count())


def is_available() -> bool:
    """Whether there is a device to compute on."""
    return device_count() > 0


def why_not_available() -> str | None:
    """Why there is no device, and what to do about it; None where there is one."""
    reason = _cl.why_not()
    return None if reason is None else str(reason)


def _index(device: Any) -> int:
    """The index of a device given as None (the current one), a number, a name or a tensorpy.device."""
    if device is None:
        return -1
    if isinstance(device, int):
        return device
    found = _C.device(device)
    if found.type != "opencl":
        raise ValueError(f"expected an OpenCL device, got {found}")
    return -1 if found.index is None else int(found.index)


@dataclass(frozen=True)
class DeviceProperties:
    """What the driver says of a device; sizes in bytes."""

    name: str
    platform: str
    vendor: str
    driver_version: str
    version: str
    total_memory: int
    max_allocation: int
    local_memory: int
    multi_processor_count: int
    max_work_group_size: int
    is_cpu: bool
    has_fp16: bool
    has_fp64: bool
    has_subgroups: bool


def get_device_properties(device: Any = None) -> DeviceProperties:
    """What the driver says of a device (the current one)."""
    return DeviceProperties(**_cl.properties(_index(device)))


def get_device_name(device: Any = None) -> str:
    """The device's name."""
    return get_device_properties(device).name


def current_device() -> int:
    """The index that `opencl` without one stands for in this thread."""
    return int(_cl.current_device())


def set_device(device: Any) -> None:
    """Makes a device the current one of this thread."""
    _cl.set_device(_index(device))


class device:
    """A context in which a device is the current one."""

    def __init__(self, device: Any) -> None:
        self.index = _index(device)
        self.previous: list[int] = []

    def __enter__(self) -> device:
        self.previous.append(current_device())
        if self.index >= 0:
            _cl.set_device(self.index)
        return self

    def __exit__(self, *unused: Any) -> None:
        _cl.set_device(self.previous.pop())


def synchronize(device: Any = None) -> None:
    """Waits until all that was enqueued is done."""
    _cl.synchronize(_index(device))


def manual_seed(seed: int, device: Any = None) -> None:
    """Seeds the generator of one device; tensorpy.manual_seed seeds those of all."""
    _cl.manual_seed(_index(device), seed & (2**64 - 1))


# ---- memory ----


def memory_stats(device: Any = None) -> dict[str, int]:
    """allocated, peak (bytes in tensors), reserved (bytes taken from the driver), limit, blocks, segments, ..."""
    return dict(_cl.memory_stats(_index(device)))


def memory_allocated(device: Any = None) -> int:
    """The bytes that tensors hold."""
    return memory_stats(device)["allocated"]


def max_memory_allocated(device: Any = None) -> int:
    """The most that tensors held at once, since the start or the last reset_peak_memory_stats."""
    return memory_stats(device)["peak"]


def memory_reserved(device: Any = None) -> int:
    """The bytes taken from the driver, for tensors or for later."""
    return memory_stats(device)["reserved"]


def reset_peak_memory_stats(device: Any = None) -> None:
    """Starts max_memory_allocated anew from what is held now."""
    _cl.reset_peak(_index(device))


def empty_cache(device: Any = None) -> None:
    """Gives memory that no tensor uses back to the driver."""
    _cl.empty_cache(_index(device))


def set_memory_limit(nbytes: int, device: Any = None) -> None:
    """The most that is taken from the driver, in bytes; 0 for no limit of our own."""
    _cl.set_limit(_index(device), nbytes)


def memory_summary(device: Any = None) -> str:
    """A table of what is held."""
    stats, properties = memory_stats(device), get_device_properties(device)
    rows = [
        ("in tensors", stats["allocated"]),
        ("in tensors, at most", stats["peak"]),
        ("taken from the driver", stats["reserved"]),
        ("limit", stats["limit"] or properties.total_memory),
        ("on the device", properties.total_memory),
    ]
    lines = [f"memory of {properties.name}"]
    lines += [f"  {name:22} {nbytes / 2**20:12.2f} MB" for name, nbytes in rows]
    lines.append(
        f"  {stats['blocks']} tensors' storages in {stats['segments']} segments; {stats['reused']} served from"
    )
    lines.append(f"  the cache, {stats['retries']} after giving back what was free")
    return "\n".join(lines)


def cache_info() -> dict[str, int]:
    """Counters of the launch plans and of the kernels: hits, misses, what came from disk, what was built."""
    return dict(_cl.cache_stats())


# ---- streams and events ----


class Event:
    """A mark in a stream: `record()` sets it behind all that is enqueued there."""

    def __init__(self, enable_timing: bool = False) -> None:
        self.enable_timing = enable_timing
        self._mark: Any = None

    def record(self, stream: Stream | None = None) -> None:
        """Marks the end of what is enqueued by now on a stream (the current one)."""
        device, number = (-1, -1) if stream is None else (stream.device_index, stream.stream_id)
        self._mark = _cl.event_new(device, number, self.enable_timing)

    def query(self) -> bool:
        """Whether all before the mark is done."""
        return self._mark is None or bool(_cl.event_query(self._mark))

    def synchronize(self) -> None:
        """Waits for all before the mark."""
        if self._mark is not None:
            _cl.event_synchronize(self._mark)

    def wait(self, stream: Stream | None = None) -> None:
        """Makes a stream (the current one) wait for the mark; the host goes on."""
        if self._mark is not None:
            device, number = (-1, -1) if stream is None else (stream.device_index, stream.stream_id)
            _cl.event_hold(self._mark, device, number)

    def elapsed_time(self, end: Event) -> float:
        """The milliseconds between this mark and a later one."""
        if self._mark is None or end._mark is None:
            raise RuntimeError("both events must be recorded before calculating elapsed time")
        return float(_cl.event_elapsed(self._mark, end._mark))


class Stream:
    """A queue of a device, in order, beside its default one. `with stream:` sends there what this thread enqueues.

    Streams do not know of each other: `wait_stream` and events put their work in order, and a tensor that another
    stream than its own uses is named to `Tensor.record_stream`, so that its memory is not given to others too early.
    A device has seven streams beside the default one; from the eighth on they are shared.
    """

    def __init__(self, device: Any = None, priority: int = 0) -> None:
        index = _index(device)
        self.device_index = current_device() if index < 0 else index
        self.stream_id = int(_cl.stream_new(self.device_index))
        self._entered: list[tuple[int, int]] = []

    @classmethod
    def _of(cls, device: int, number: int) -> Stream:
        self = cls.__new__(cls)
        self.device_index, self.stream_id, self._entered = device, number, []
        return self

    @property
    def device(self) -> _C.device:
        """The device whose queue this is."""
        return _C.device("opencl", self.device_index)

    def synchronize(self) -> None:
        """Waits until all that was enqueued here is done."""
        self.record_event().synchronize()

    def query(self) -> bool:
        """Whether all that was enqueued here is done."""
        return self.record_event().query()

    def record_event(self, event: Event | None = None) -> Event:
        """Records an event, a new one by default."""
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """What is enqueued here from now on comes after an event."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """What is enqueued here from now on comes after all that another stream was given so far."""
        self.wait_event(stream.record_event())

    def __enter__(self) -> Stream:
        before = current_device()
        set_device(self.device_index)
        self._entered.append((before, current_stream(self.device_index).stream_id))
        _cl.stream_set(self.device_index, self.stream_id)
        return self

    def __exit__(self, *unused: Any) -> None:
        device, number = self._entered.pop()
        _cl.stream_set(self.device_index, number)
        set_device(device)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and (other.device_index, other.stream_id) == (
            self.device_index,
            self.stream_id,
        )

    def __hash__(self) -> int:
        return hash(("opencl", self.device_index, self.stream_id))

    def __repr__(self) -> str:
        return f"<tensorpy.opencl.Stream device={self.device} stream_id={self.stream_id}>"


def stream(stream: Stream | None) -> Any:
    """A context in which a stream is this thread's current one; None changes nothing."""
    return contextlib.nullcontext() if stream is None else stream


def current_stream(device: Any = None) -> Stream:
    """This thread's current stream of a device."""
    index = _index(device)
    index = current_device() if index < 0 else index
    return Stream._of(index, int(_cl.stream_current(index)))


def default_stream(device: Any = None) -> Stream:
    """The stream of a device that is current until another is chosen."""
    index = _index(device)
    return Stream._of(current_device() if index < 0 else index, 0)


def set_stream(stream: Stream) -> None:
    """Makes a stream the current one of this thread."""
    _cl.stream_set(stream.device_index, stream.stream_id)


# ---- operators without a kernel ----


def fallback_counts() -> dict[str, int]:
    """How often each operator was computed on the CPU for want of an OpenCL kernel."""
    return dict(_C._host_calls("opencl"))


@contextlib.contextmanager
def on_host(*operators: str) -> Iterator[None]:
    """Has the fallback compute operators in spite of their kernels ("sort.stable"): to see whether one is at fault."""
    handles: list[int] = []
    try:
        for name in operators:
            handles.append(_cl.fall_back_for(name))
        yield
    finally:
        for handle in reversed(handles):
            _cl.fall_back_end(handle)


class _Module(types.ModuleType):
    """The settings of the module.

    `tensorpy.opencl.fallback`: "error", "warn" (once per operator) or "allow".
    `tensorpy.opencl.check_indices`: "deferred" (an index out of range is raised where the host waits) or "sync" (in the
    call that is at fault, which waits for it).
    """

    @property
    def fallback(self) -> str:
        return _MODES[_cl.get_fallback()]

    @fallback.setter
    def fallback(self, mode: str) -> None:
        if mode not in _MODES:
            raise ValueError(f"tensorpy.opencl.fallback is one of {', '.join(map(repr, _MODES))}, not {mode!r}")
        _cl.set_fallback(_MODES.index(mode))

    @property
    def check_indices(self) -> str:
        return "sync" if _cl.get_checks_wait() else "deferred"

    @check_indices.setter
    def check_indices(self, mode: str) -> None:
        if mode not in ("deferred", "sync"):
            raise ValueError(f"tensorpy.opencl.check_indices is 'deferred' or 'sync', not {mode!r}")
        _cl.set_checks_wait(mode == "sync")


sys.modules[__name__].__class__ = _Module
fallback: str  # properties of the module
check_indices: str
