"""The CPU under the names that every device has: one device, whose calls are done when they return."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from tensorpy.cpu import amp
from tensorpy.cpu._facts import _init_amx as _init_amx
from tensorpy.cpu._facts import _is_amx_fp16_supported as _is_amx_fp16_supported
from tensorpy.cpu._facts import _is_amx_tile_supported as _is_amx_tile_supported
from tensorpy.cpu._facts import _is_avx2_supported as _is_avx2_supported
from tensorpy.cpu._facts import _is_avx512_bf16_supported as _is_avx512_bf16_supported
from tensorpy.cpu._facts import _is_avx512_supported as _is_avx512_supported
from tensorpy.cpu._facts import _is_vnni_supported as _is_vnni_supported
from tensorpy.cpu._facts import get_capabilities as get_capabilities


def is_available() -> bool:
    """Whether there is a CPU.

    Returns: bool.

    Example:
        >>> tp.cpu.is_available()
        True
    """
    return True


def is_initialized() -> bool:
    """Whether it is ready.

    Returns: bool.

    Example:
        >>> tp.cpu.is_initialized()
        True
    """
    return True


def device_count() -> int:
    """How many there are: one, of all cores.

    Returns: int.

    Example:
        >>> tp.cpu.device_count()
        1
    """
    return 1


def current_device() -> str:
    """The current device: "cpu".

    Returns: str.

    Example:
        >>> tp.cpu.current_device()
        'cpu'
    """
    return "cpu"


def set_device(device: Any) -> None:
    """Nothing: there is one device.

    Arguments:
        device: is taken

    Example:
        >>> tp.cpu.set_device("cpu")
    """


def synchronize(device: Any = None) -> None:
    """Nothing: calls are done when they return.

    Arguments:
        device: is taken

    Example:
        >>> tp.cpu.synchronize()
    """


def stream(stream: Any) -> nullcontext[None]:
    """A context that changes nothing: calls are done in order.

    Arguments:
        stream: is taken

    Returns: a context manager.

    Example:
        >>> with tp.cpu.stream(None):
        ...     pass
    """
    return nullcontext()


__all__ = ["amp", "get_capabilities"]
