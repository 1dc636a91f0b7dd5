"""Kernels of triton, which are for devices that are not here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["wrap_triton"]


def wrap_triton(triton_kernel: Callable[..., Any], /) -> Any:
    """A kernel of triton for use in a triton_op: itself.

    Arguments:
        triton_kernel: what triton.jit or triton.autotune gave

    Returns: the kernel.

    Raises: ModuleNotFoundError where there is no triton, RuntimeError for what is no kernel of it.

    Example:
        >>> try:
        ...     kernel = tp.library.wrap_triton(print)
        ... except (ModuleNotFoundError, RuntimeError):
        ...     kernel = None  # no triton is there, or print is no kernel
    """
    import importlib

    runtime: Any = importlib.import_module("triton.runtime")
    if not isinstance(triton_kernel, (runtime.Autotuner, runtime.JITFunction)):
        raise RuntimeError("wrap_triton: a kernel is what triton.jit or triton.autotune gives")
    return triton_kernel
