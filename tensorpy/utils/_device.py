"""Functions that make their tensors on a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorpy import _C
from tensorpy.utils._contextlib import ContextDecorator

DeviceContext = _C.device


class _OnDevice(ContextDecorator):
    """A device as a context; what it decorates may be a generator, and no class."""

    def __init__(self, device: Any) -> None:
        self.device, self.entered = device, _C.device(device)

    def clone(self) -> _OnDevice:
        return _OnDevice(self.device)

    def __enter__(self) -> Any:
        return self.entered.__enter__()

    def __exit__(self, kind: Any, value: Any, where: Any) -> None:
        self.entered.__exit__(kind, value, where)

    def __call__(self, function: Any) -> Any:
        if isinstance(function, type):
            raise RuntimeError(
                "Cannot decorate classes: whether the constructor or all methods are meant is not known. Decorate the "
                "methods."
            )
        return super().__call__(function)


def set_device(device: Any) -> Callable[[Any], Any]:
    """A decorator: factories that the function calls give tensors of this device, where they are not told another.

    Arguments:
        device: the device, or its name

    Raises: RuntimeError for a class.

    Example:
        >>> from tensorpy.utils._device import set_device
        >>> set_device("meta")(tp.ones)(2).device.type
        'meta'
    """
    return _OnDevice(device)


__all__ = ["DeviceContext", "set_device"]
