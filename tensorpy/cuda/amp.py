"""Mixed precision under the names that programs for NVIDIA's devices use: switched off, as there is no such device."""

from __future__ import annotations

import warnings
from typing import Any

from tensorpy._C import dtype as _dtype
from tensorpy._C import float16
from tensorpy._modes import ContextDecorator
from tensorpy.amp.grad_scaler import GradScaler as _GradScaler
from tensorpy.amp.grad_scaler import OptState

__all__ = ["GradScaler", "OptState", "autocast", "custom_bwd", "custom_fwd"]


class autocast(ContextDecorator):
    """Would cast on an NVIDIA device: nothing changes inside, and a warning says so where it was meant to be on."""

    def __init__(self, enabled: bool = True, dtype: _dtype = float16, cache_enabled: bool = True) -> None:
        self.given = (enabled, dtype, cache_enabled)
        if enabled:
            warnings.warn("there is no CUDA device: tensorpy.cuda.amp.autocast does nothing", stacklevel=2)

    def clone(self) -> autocast:
        return autocast(False, *self.given[1:])

    def __enter__(self) -> autocast:
        return self

    def __exit__(self, kind: Any, value: Any, where: Any) -> None:
        pass


class GradScaler(_GradScaler):
    """A scaler of losses that is switched off: a warning says so where it was meant to be on."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        if enabled:
            warnings.warn("there is no CUDA device: tensorpy.cuda.amp.GradScaler does nothing", stacklevel=2)
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled=False)


def custom_fwd(fwd: Any = None, *, cast_inputs: _dtype | None = None) -> Any:
    """Decorates `forward` of an autograd.Function: as it is, since nothing is cast."""
    return fwd if fwd is not None else lambda function: function


def custom_bwd(bwd: Any) -> Any:
    """Decorates `backward` of an autograd.Function: as it is, since nothing is cast."""
    return bwd
