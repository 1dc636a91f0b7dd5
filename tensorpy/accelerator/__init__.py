"""The device that is not the CPU, whichever it is: one from outside if a library brought it, else OpenCL's.

`set_device_index("mirror:1")` chooses where there are several kinds. `devices` knows which devices there are, `streams`
has the streams and events of all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tensorpy import _C
from tensorpy._C import device as _device
from tensorpy.accelerator import devices, streams
from tensorpy.accelerator.streams import Stream


@dataclass(frozen=True)
class DeviceProperties:
    """What a device says of itself; bytes, and 0 for what it does not know.

    Arguments:
        name: the name
        total_memory: bytes of memory
        multi_processor_count: how many cores or compute units there are

    Example:
        >>> tp.accelerator.DeviceProperties("a GPU", 1 << 30, 16).name
        'a GPU'
    """

    name: str
    total_memory: int
    multi_processor_count: int


def is_available() -> bool:
    """Whether there is an accelerator.

    Returns: bool.

    Example:
        >>> isinstance(tp.accelerator.is_available(), bool)
        True
    """
    return bool(devices.types())


def device_count() -> int:
    """How many there are, of the current type.

    Returns: int.

    Example:
        >>> tp.accelerator.device_count() >= 0
        True
    """
    there = devices.types()
    return int(_C._device_count(there[0])) if there else 0


def current_accelerator(check_available: bool = False) -> _device | None:
    """The accelerators' device type, without an index; None where there is none.

    Arguments:
        check_available: whether None is returned where the device is not there

    Returns: a device, or None.

    Example:
        >>> device = tp.accelerator.current_accelerator()
    """
    there = devices.types()
    return _C.device(there[0]) if there else None


def current_device_index() -> int:
    """The index of the current device.

    Returns: int.

    Example:
        >>> if tp.accelerator.is_available():
        ...     index = tp.accelerator.current_device_index()
    """
    return int(_C._current_device(devices.type_name()))


def set_device_index(device: Any, /) -> None:
    """Makes a device the current one: an index of the current type, or a name ("mirror:1").

    Example:
        >>> if tp.accelerator.is_available():
        ...     tp.accelerator.set_device_index(0)
    """
    found = devices.resolve(device)
    _C._set_device(found)
    if not isinstance(device, int):
        devices.chosen[:] = [found.type]


current_device_idx: Any
set_device_idx: Any
current_device_idx, set_device_idx = current_device_index, set_device_index  # older names


def synchronize(device: Any = None, /) -> None:
    """Waits until a device has done what was asked of it.

    Example:
        >>> if tp.accelerator.is_available():
        ...     tp.accelerator.synchronize()
    """
    _C._synchronize(devices.resolve(device))


class device_index:
    """Makes a device the current one for a scope: `with device_index(1):`; None leaves it as it is.

    Example:
        >>> if tp.accelerator.is_available():
        ...     with tp.accelerator.device_index(0):
        ...         x = tp.ones(2)
    """

    def __init__(self, device: int | None, /) -> None:
        self.idx = device

    def __enter__(self) -> None:
        if self.idx is not None:
            self._before = current_device_index()
            set_device_index(self.idx)

    def __exit__(self, *unused: object) -> None:
        if self.idx is not None:
            set_device_index(self._before)


# ---- streams ----


def current_stream(device: Any = None, /) -> Stream:
    """This thread's current stream of a device.

    Returns: a Stream.

    Example:
        >>> if tp.accelerator.is_available():
        ...     stream = tp.accelerator.current_stream()
    """
    return streams.current_stream(device, None)


def set_stream(stream: Stream, /) -> None:
    """Makes a stream the current one of this thread, and its device the current one.

    Example:
        >>> if tp.accelerator.is_available():
        ...     tp.accelerator.set_stream(tp.accelerator.current_stream())
    """
    _C._set_device(stream.device)
    streams.set_stream(stream)


# ---- memory ----


def get_device_properties(device: Any = None, /) -> DeviceProperties:
    """What a device is: its name, and what it says of itself.

    Returns: a DeviceProperties.

    Example:
        >>> if tp.accelerator.is_available():
        ...     name = tp.accelerator.get_device_properties().name
    """
    return DeviceProperties(**_C._streams.properties(devices.resolve(device)))


def empty_cache() -> None:
    """Gives back the memory that no tensor holds, where the device keeps any.

    Example:
        >>> if tp.accelerator.is_available():
        ...     tp.accelerator.empty_cache()
    """
    if is_available():
        _C._streams.empty_cache(devices.resolve(None))


def get_memory_info(device: Any = None, /) -> tuple[int, int]:
    """Bytes of a device that nobody has taken here, and all of them.

    Returns: two ints.

    Example:
        >>> if tp.accelerator.is_available():
        ...     free, total = tp.accelerator.get_memory_info()
    """
    found = devices.resolve(device)
    total = get_device_properties(found).total_memory
    return total - memory_reserved(found), total


def memory_stats(device: Any = None, /) -> dict[str, int]:
    """What is held on a device, and the most that was: bytes by tensors (allocated) and those kept for later, too
    (reserved), and how many storages there are.

    Returns: a dict of ints.

    Example:
        >>> if tp.accelerator.is_available():
        ...     stats = tp.accelerator.memory_stats()
    """
    return dict(_C._streams.memory_stats(devices.resolve(device)))


def memory_allocated(device: Any = None, /) -> int:
    """Bytes that tensors hold on a device.

    Returns: int.

    Example:
        >>> if tp.accelerator.is_available():
        ...     nbytes = tp.accelerator.memory_allocated()
    """
    return memory_stats(device)["allocated_bytes.all.current"]


def max_memory_allocated(device: Any = None, /) -> int:
    """The most bytes that tensors held at once on a device.

    Returns: int.

    Example:
        >>> if tp.accelerator.is_available():
        ...     nbytes = tp.accelerator.max_memory_allocated()
    """
    return memory_stats(device)["allocated_bytes.all.peak"]


def memory_reserved(device: Any = None, /) -> int:
    """Bytes taken from a device, those kept for later included.

    Returns: int.

    Example:
        >>> if tp.accelerator.is_available():
        ...     nbytes = tp.accelerator.memory_reserved()
    """
    return memory_stats(device)["reserved_bytes.all.current"]


def max_memory_reserved(device: Any = None, /) -> int:
    """The most bytes that were taken from a device at once.

    Returns: int.

    Example:
        >>> if tp.accelerator.is_available():
        ...     nbytes = tp.accelerator.max_memory_reserved()
    """
    return memory_stats(device)["reserved_bytes.all.peak"]


def reset_peak_memory_stats(device: Any = None, /) -> None:
    """Starts the count of the most bytes anew.

    Arguments:
        device: where the elements are: a device or its name; None takes the default

    Example:
        >>> if tp.accelerator.is_available():
        ...     tp.accelerator.reset_peak_memory_stats()
    """
    _C._streams.reset_peaks(devices.resolve(device))
