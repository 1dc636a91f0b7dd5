"""What a device from outside gets by its name: `t.is_mirror`, `t.mirror()`, `module.mirror()`, `tensorpy.mirror`."""

from __future__ import annotations

import sys
import types
from typing import Any

import tensorpy
from tensorpy import _C, accelerator, opencl
from tensorpy._C import Tensor
from tensorpy.accelerator import streams

_done: set[str] = set()


def _module(name: str) -> types.ModuleType:
    """tensorpy.mirror: the functions that tensorpy.accelerator has, for this device."""
    module = types.ModuleType(f"tensorpy.{name}", f"The device {name}, from outside.")

    def index_of(device: Any) -> Any:
        found = _C.device(_device(name, device))
        if found.type != name:
            raise ValueError(f"expected a device {name}, got {found}")
        return found

    def is_available() -> bool:
        """Whether there is a device of this type."""
        return bool(_C._device_count(name) > 0)

    def device_count() -> int:
        """How many there are."""
        return int(_C._device_count(name))

    def current_device() -> int:
        """The index of the current one."""
        return int(_C._current_device(name))

    def set_device(device: Any) -> None:
        """Makes one the current one."""
        _C._set_device(index_of(device))

    def synchronize(device: Any = None) -> None:
        """Waits until a device has done what was asked of it."""
        _C._synchronize(index_of(device))

    def manual_seed(seed: int) -> None:
        """Starts the current device's random numbers that belong to a seed."""
        _C._streams.generator(index_of(None)).manual_seed(int(seed))

    def manual_seed_all(seed: int) -> None:
        """The same on all devices of this type."""
        for i in range(device_count()):
            _C._streams.generator(index_of(i)).manual_seed(int(seed))

    def get_rng_state(device: Any = None) -> Tensor:
        """The seed and the position of a device's random numbers, 16 bytes of the host."""
        return _C._streams.generator(index_of(device)).get_state()

    def set_rng_state(new_state: Tensor, device: Any = None) -> None:
        """Takes a device's random numbers back to a state."""
        _C._streams.generator(index_of(device)).set_state(new_state)

    def get_device_name(device: Any = None) -> str:
        """What the device is called."""
        return accelerator.get_device_properties(index_of(device)).name

    def current_stream(device: Any = None) -> streams.Stream:
        """This thread's current stream of a device."""
        return streams.current_stream(index_of(device), name)

    def default_stream(device: Any = None) -> streams.Stream:
        """The stream of a device that is current until another is chosen."""
        return streams.default_stream(index_of(device), name)

    def empty_cache() -> None:
        """Gives back the memory that no tensor holds."""
        _C._streams.empty_cache(index_of(None))

    def of_accelerator(function: Any) -> Any:
        def of_device(device: Any = None) -> Any:
            return function(index_of(device))

        of_device.__name__, of_device.__doc__ = function.__name__, function.__doc__
        return of_device

    shared = (
        accelerator.get_device_properties,
        accelerator.memory_stats,
        accelerator.memory_allocated,
        accelerator.max_memory_allocated,
        accelerator.memory_reserved,
        accelerator.max_memory_reserved,
        accelerator.reset_peak_memory_stats,
    )
    own = (
        *(is_available, device_count, current_device, set_device, synchronize),
        *(manual_seed, manual_seed_all, get_rng_state, set_rng_state, get_device_name),
        *(current_stream, default_stream, empty_cache),
    )
    for function in (*own, *map(of_accelerator, shared)):
        setattr(module, function.__name__, function)
        function.__module__ = module.__name__
    for cls in (streams.Stream, streams.Event):
        setattr(module, cls.__name__, type(cls.__name__, (cls,), {"_type": name, "__module__": module.__name__}))
    module.Stream._event = module.Event
    for function in (opencl.stream, streams.set_stream):
        setattr(module, function.__name__, function)
    return module


def add_names() -> None:
    """For the devices that have come since the last time. A name that is taken already stays what it is."""
    for name in set(_C._outside_devices()) - _done:
        _done.add(name)
        if not hasattr(Tensor, f"is_{name}"):
            _C._set_type_attribute(Tensor, f"is_{name}", _is_there(name))
        if not hasattr(Tensor, name):
            _C._set_type_attribute(Tensor, name, _to(name))
        from tensorpy.nn import Module

        if not hasattr(Module, name):
            setattr(Module, name, _module_to(name))
        if name not in vars(tensorpy) and f"tensorpy.{name}" not in sys.modules:
            setattr(tensorpy, name, _module(name))
            sys.modules[f"tensorpy.{name}"] = getattr(tensorpy, name)


def _is_there(name: str) -> property:
    def is_there(self: Tensor) -> bool:
        return bool(self.device.type == name)

    return property(is_there, doc=f"Whether the tensor is on the device {name}.")


def _device(name: str, index: Any) -> Any:
    return f"{name}:{index}" if isinstance(index, int) else name if index is None else index


def _to(name: str) -> Any:
    def to(self: Tensor, device: Any = None, non_blocking: bool = False) -> Tensor:
        return self.to(_device(name, device), non_blocking=non_blocking)

    to.__name__, to.__doc__ = name, f"The tensor on the device {name}; itself if it is there."
    return to


def _module_to(name: str) -> Any:
    def to(self: Any, device: Any = None) -> Any:
        return self.to(_device(name, device))

    to.__name__, to.__doc__ = name, f"Moves all parameters and buffers to the device {name}."
    return to
