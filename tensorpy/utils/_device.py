"""Functions that make their tensors on a device."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tensorpy import _C

DeviceContext = _C.device


def set_device(device: Any) -> Callable[[Any], Any]:
    """A decorator: factories that the function calls give tensors of this device, where they are not told another.

    Arguments:
        device: the device, or its name

    Example:
        >>> from tensorpy.utils._device import set_device
        >>> set_device("meta")(tp.ones)(2).device.type
        'meta'
    """

    def decorate(func: Any) -> Any:
        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with _C.device(device):
                return func(*args, **kwargs)

        return wrapper

    return decorate


__all__ = ["DeviceContext", "set_device"]
