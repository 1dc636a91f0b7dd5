"""Mixed precision under its former names for the CPU."""

from __future__ import annotations

import warnings

from tensorpy import amp
from tensorpy._C import bfloat16
from tensorpy._C import dtype as _dtype
from tensorpy.amp.grad_scaler import GradScaler as _GradScaler

__all__ = ["GradScaler", "autocast"]


class autocast(amp.autocast):
    """tensorpy.autocast("cpu", ...)."""

    def __init__(self, enabled: bool = True, dtype: _dtype = bfloat16, cache_enabled: bool = True) -> None:
        warnings.warn(
            "`torch.cpu.amp.autocast(args...)` is deprecated. Please use `torch.amp.autocast('cpu', args...)` instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__("cpu", dtype, enabled, cache_enabled)

    def clone(self) -> amp.autocast:
        return amp.autocast("cpu", self.dtype, self.enabled, self.cache_enabled)


class GradScaler(_GradScaler):
    """tensorpy.GradScaler("cpu", ...)."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
