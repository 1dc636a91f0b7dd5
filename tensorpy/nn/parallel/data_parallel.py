"""DataParallel as a function, and where PyTorch has both."""

from __future__ import annotations

from typing import Any

from tensorpy.nn.modules.module import Module
from tensorpy.nn.parallel import DataParallel

__all__ = ["DataParallel", "data_parallel"]


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Any = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """The module's output, on the device that it is on."""
    given = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    return module(*given, **(module_kwargs or {}))
