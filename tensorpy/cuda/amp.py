"""Mixed precision under the names that programs for NVIDIA's devices use: off where nothing is called "cuda"."""

from __future__ import annotations

import warnings
from typing import Any

from tensorpy._C import dtype as _dtype
from tensorpy._C import float16
from tensorpy.amp import autocast as _autocast
from tensorpy.amp import autocast_mode as _custom
from tensorpy.amp import is_autocast_available
from tensorpy.amp.grad_scaler import GradScaler as _GradScaler
from tensorpy.amp.grad_scaler import OptState

__all__ = ["GradScaler", "OptState", "autocast", "custom_bwd", "custom_fwd"]


class autocast(_autocast):
    """amp.autocast for the device called "cuda": nothing changes inside where there is none, and a warning says so."""

    def __init__(self, enabled: bool = True, dtype: _dtype = float16, cache_enabled: bool = True) -> None:
        warnings.warn(
            "`torch.cuda.amp.autocast(args...)` is deprecated. "
            "Please use `torch.amp.autocast('cuda', args...)` instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(_GradScaler):
    """amp.GradScaler for the device called "cuda": off where there is none, and a warning says so."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        there = is_autocast_available("cuda")
        if enabled and not there:
            warnings.warn("there is no CUDA device: tensorpy.cuda.amp.GradScaler does nothing", stacklevel=2)
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled and there)


def custom_fwd(fwd: Any = None, *, cast_inputs: _dtype | None = None) -> Any:
    """amp.custom_fwd for "cuda"."""
    return _custom.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Any) -> Any:
    """amp.custom_bwd for "cuda"."""
    return _custom.custom_bwd(bwd, device_type="cuda")
