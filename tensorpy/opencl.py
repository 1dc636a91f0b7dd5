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
from tensorpy.accelerator import streams

_cl = _C._opencl
_MODES = ("error", "warn", "allow")


def device_count() -> int:
    """How many devices there are, over all platforms; 0 where no driver is installed.

    Returns: int.

    Example:
        >>> tp.opencl.device_count() >= 0
        True
    """
    return int(_cl.device_count())


def is_available() -> bool:
    """Whether there is a device to compute on.

    Returns: bool.

    Example:
        >>> isinstance(tp.opencl.is_available(), bool)
        True
    """
    return device_count() > 0


def why_not_available() -> str | None:
    """Why there is no device, and what to do about it; None where there is one.

    Returns: a str, or None.

    Example:
        >>> text = tp.opencl.why_not_available()
    """
    reason = _cl.why_not()
    return None if reason is None else str(reason)


def _index(device: Any) -> int:
    """The index of a device given as None (the current one), a number, a name or a tensorpy.device."""
    if device is None:
        return -1
    if isinstance(device, int):
        return device
    found = _C.device(device)
    if found.type != _C.device("opencl").type:
        raise ValueError(f"expected an OpenCL device, got {found}")
    return -1 if found.index is None else int(found.index)


@dataclass(frozen=True)
class DeviceProperties:
    """What the driver says of a device; sizes in bytes.

    Arguments:
        name: the name
        platform: the platform
        vendor: the vendor
        driver_version: the driver's version
        version: the version of OpenCL
        total_memory: bytes of memory
        max_allocation: bytes of the largest buffer
        local_memory: bytes of local memory
        multi_processor_count: how many cores or compute units there are
        max_work_group_size: how many work items a group has at most
        is_cpu: whether it is a CPU
        has_fp16: whether it computes in float16
        has_fp64: whether it has float64
        has_subgroups: whether it has subgroups

    Example:
        >>> if tp.opencl.is_available():
        ...     memory = tp.opencl.get_device_properties().total_memory
    """

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
    """What the driver says of a device (the current one).

    Returns: a DeviceProperties.

    Raises: RuntimeError for a device that is not there.

    Example:
        >>> if tp.opencl.is_available():
        ...     memory = tp.opencl.get_device_properties().total_memory
    """
    return DeviceProperties(**_cl.properties(_index(device)))


def get_device_name(device: Any = None) -> str:
    """The device's name.

    Returns: str.

    Example:
        >>> if tp.opencl.is_available():
        ...     name = tp.opencl.get_device_name()
    """
    return get_device_properties(device).name


def current_device() -> int:
    """The index that `opencl` without one stands for in this thread.

    Returns: int.

    Example:
        >>> if tp.opencl.is_available():
        ...     index = tp.opencl.current_device()
    """
    return int(_cl.current_device())


def set_device(device: Any) -> None:
    """Makes a device the current one of this thread.

    Example:
        >>> if tp.opencl.is_available():
        ...     tp.opencl.set_device(tp.opencl.current_device())
    """
    _cl.set_device(_index(device))


class device:
    """A context in which a device is the current one.

    Example:
        >>> if tp.opencl.is_available():
        ...     with tp.opencl.device(0):
        ...         x = tp.ones(2, device="opencl")
    """

    index: Any

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
    """Waits until all that was enqueued is done.

    Arguments:
        device: a device, its number or name; None takes the current one

    Example:
        >>> if tp.opencl.is_available():
        ...     tp.opencl.synchronize()
    """
    _cl.synchronize(_index(device))


def manual_seed(seed: int, device: Any = None) -> None:
    """Seeds the generator of one device; tensorpy.manual_seed seeds those of all.

    Arguments:
        seed: the seed
        device: a device, its number or name; None takes the current one

    Example:
        >>> if tp.opencl.is_available():
        ...     tp.opencl.manual_seed(5)
    """
    _cl.manual_seed(_index(device), seed & (2**64 - 1))


# ---- memory ----


def memory_stats(device: Any = None) -> dict[str, int]:
    """allocated, peak (bytes in tensors), reserved (bytes taken from the driver), limit, blocks, segments, ...

    Arguments:
        device: a device, its number or name; None takes the current one

    Returns: a dict of ints.

    Example:
        >>> if tp.opencl.is_available():
        ...     stats = tp.opencl.memory_stats()
    """
    return dict(_cl.memory_stats(_index(device)))


def memory_allocated(device: Any = None) -> int:
    """The bytes that tensors hold.

    Arguments:
        device: a device, its number or name; None takes the current one

    Returns: int.

    Example:
        >>> if tp.opencl.is_available():
        ...     nbytes = tp.opencl.memory_allocated()
    """
    return memory_stats(device)["allocated"]


def max_memory_allocated(device: Any = None) -> int:
    """The most that tensors held at once, since the start or the last reset_peak_memory_stats.

    Arguments:
        device: a device, its number or name; None takes the current one

    Returns: int.

    Example:
        >>> if tp.opencl.is_available():
        ...     nbytes = tp.opencl.max_memory_allocated()
    """
    return memory_stats(device)["peak"]


def memory_reserved(device: Any = None) -> int:
    """The bytes taken from the driver, for tensors or for later.

    Arguments:
        device: a device, its number or name; None takes the current one

    Returns: int.

    Example:
        >>> if tp.opencl.is_available():
        ...     nbytes = tp.opencl.memory_reserved()
    """
    return memory_stats(device)["reserved"]


def reset_peak_memory_stats(device: Any = None) -> None:
    """Starts max_memory_allocated anew from what is held now.

    Arguments:
        device: a device, its number or name; None takes the current one

    Example:
        >>> if tp.opencl.is_available():
        ...     tp.opencl.reset_peak_memory_stats()
    """
    _cl.reset_peak(_index(device))


def empty_cache(device: Any = None) -> None:
    """Gives memory that no tensor uses back to the driver.

    Arguments:
        device: a device, its number or name; None takes the current one

    Example:
        >>> if tp.opencl.is_available():
        ...     tp.opencl.empty_cache()
    """
    _cl.empty_cache(_index(device))


def set_memory_limit(nbytes: int, device: Any = None) -> None:
    """The most that is taken from the driver, in bytes; 0 for no limit of our own.

    Arguments:
        nbytes: the bytes; None for no limit
        device: a device, its number or name; None takes the current one

    Example:
        >>> if tp.opencl.is_available():
        ...     tp.opencl.set_memory_limit(0)
    """
    _cl.set_limit(_index(device), nbytes)


def memory_summary(device: Any = None) -> str:
    """A table of what is held.

    Arguments:
        device: a device, its number or name; None takes the current one

    Returns: str.

    Example:
        >>> if tp.opencl.is_available():
        ...     text = tp.opencl.memory_summary()
    """
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
    """Counters of the launch plans and of the kernels: hits, misses, what came from disk, what was built.

    `built_with_header` counts tensorpy's own programs that PoCL had to build a second time, with the header of all
    functions of OpenCL C, since one was not declared without it.

    Returns: a dict of ints.

    Example:
        >>> if tp.opencl.is_available():
        ...     info = tp.opencl.cache_info()
    """
    return dict(_cl.cache_stats())


# ---- streams and events ----


class Event(streams.Event):
    """A mark in a stream: `record()` sets it after all that is enqueued there.

    Arguments:
        enable_timing: whether the time is taken

    Example:
        >>> if tp.opencl.is_available():
        ...     event = tp.opencl.Event(enable_timing=True)
    """

    _type = "opencl"

    def __init__(self, enable_timing: bool = False) -> None:
        super().__init__(None, enable_timing=enable_timing)


class Stream(streams.Stream):
    """A queue of a device: tensorpy.Stream. A device has seven beside the default one; from the eighth on they are
    shared.

    Arguments:
        device: a device, its number or name; None takes the current one
        priority: a lower number goes first

    Example:
        >>> if tp.opencl.is_available():
        ...     stream = tp.opencl.Stream()
    """

    _type = "opencl"

    def __init__(self, device: Any = None, priority: int = 0) -> None:
        super().__init__(device, priority=priority)


def stream(stream: Stream | None) -> Any:
    """A context in which a stream is this thread's current one; None changes nothing.

    Returns: a context manager.

    Example:
        >>> if tp.opencl.is_available():
        ...     with tp.opencl.stream(tp.opencl.Stream()):
        ...         x = tp.ones(2, device="opencl")
    """
    return contextlib.nullcontext() if stream is None else stream


def current_stream(device: Any = None) -> streams.Stream:
    """This thread's current stream of a device.

    Returns: a Stream.

    Example:
        >>> if tp.opencl.is_available():
        ...     stream = tp.opencl.current_stream()
    """
    return streams.current_stream(device, "opencl", Stream)


def default_stream(device: Any = None) -> streams.Stream:
    """The stream of a device that is current until another is chosen.

    Returns: a Stream.

    Example:
        >>> if tp.opencl.is_available():
        ...     stream = tp.opencl.default_stream()
    """
    return streams.default_stream(device, "opencl", Stream)


set_stream = streams.set_stream


# ---- operators without a kernel ----


def fallback_counts() -> dict[str, int]:
    """How often each operator was computed on the CPU for want of an OpenCL kernel.

    Returns: a dict of ints, by the operator's name.

    Example:
        >>> if tp.opencl.is_available():
        ...     counts = tp.opencl.fallback_counts()
    """
    return dict(_C._host_calls("opencl"))


@contextlib.contextmanager
def on_host(*operators: str) -> Iterator[None]:
    """Has the fallback compute operators in spite of their kernels ("sort.stable"): to see whether one is at fault.

    Returns: a context manager.

    Example:
        >>> if tp.opencl.is_available():
        ...     names = tp.opencl.on_host()
    """
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
    `tensorpy.opencl.fused_kernels`: "background" (the calls of a compiled function run one by one until the kernel that
    computes them together is built, by a thread of its own) or "wait" (for it).
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

    @property
    def fused_kernels(self) -> str:
        return "wait" if _cl.get_builds_wait() else "background"

    @fused_kernels.setter
    def fused_kernels(self, mode: str) -> None:
        if mode not in ("background", "wait"):
            raise ValueError(f"tensorpy.opencl.fused_kernels is 'background' or 'wait', not {mode!r}")
        _cl.set_builds_wait(mode == "wait")


sys.modules[__name__].__class__ = _Module
fallback: str  # properties of the module
check_indices: str
fused_kernels: str
