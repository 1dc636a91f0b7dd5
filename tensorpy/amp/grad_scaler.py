"""GradScaler: losses times a factor, so that small gradients do not vanish in float16."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from enum import Enum
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.autograd.grad_mode import no_grad

__all__ = ["GradScaler", "OptState"]


class OptState(Enum):
    """How far an optimizer is since the last update."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


class GradScaler:
    """Scales losses, and gradients back before a step; a step whose gradients have an infinity or NaN is left out.

    The factor falls by backoff_factor after such a step, and grows by growth_factor after growth_interval steps without
    one.

    Arguments:
        device: where the elements are: a device or its name; None takes the default
        init_scale: the factor at first
        growth_factor: the factor by which the scale grows
        backoff_factor: the factor by which it falls at an overflow
        growth_interval: how many steps without overflow it waits to grow
        enabled: whether it is on

    Raises: AssertionError for a growth_factor that is not above 1, or a backoff_factor that is not below 1.

    Example:
        >>> model = nn.Linear(2, 1)
        >>> optimizer, scaler = tp.optim.SGD(model.parameters(), lr=0.1), tp.GradScaler("cpu")
        >>> scaler.scale(model(tp.ones(3, 2)).sum()).backward()
        >>> scaler.step(optimizer)
        >>> scaler.update()
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device, self._enabled = device, enabled
        if enabled and growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if enabled and backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale, self._init_growth_tracker = init_scale, 0
        self._growth_factor, self._backoff_factor, self._growth_interval = (
            growth_factor,
            backoff_factor,
            growth_interval,
        )
        self._scale: Any = None
        self._growth_tracker = 0
        self._stages: dict[int, OptState] = {}
        self._found_inf: dict[int, bool] = {}

    def _started(self, what: str) -> Any:
        if self._scale is None:
            raise AssertionError(
                f"Attempted {what} but _scale is None.  This may indicate your script did not use scaler.scale(loss or "
                "outputs) earlier in the iteration."
            )
        return self._scale

    def scale(self, outputs: Any) -> Any:
        """A loss, or several, times the factor.

        Returns: tensors as they were given.
        """
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            if self._scale is None:
                self._scale = _C.tensor(float(self._init_scale), device=outputs.device)
                self._growth_tracker = self._init_growth_tracker
            return outputs * self._scale.to(device=outputs.device)
        if isinstance(outputs, Iterable):
            scaled = [self.scale(output) for output in outputs]
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    @no_grad()
    def _unscale(self, optimizer: Any, factor: float) -> bool:
        """Scales the gradients back; whether one of them is not finite."""
        by_device: dict[Any, list[Tensor]] = {}
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if p.grad.dtype == _C.float16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                by_device.setdefault(p.grad.device, []).append(p.grad)
        if not by_device:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        infinite = []
        for device, grads in by_device.items():
            found, inverse = _C.zeros((), device=device), _C.full((), factor, device=device)
            _C._amp_foreach_non_finite_check_and_unscale_(grads, found, inverse)
            infinite.append(found)
        return any(bool(found) for found in infinite)

    def unscale_(self, optimizer: Any) -> None:
        """Scales an optimizer's gradients back, before they are clipped."""
        if not self._enabled:
            return
        scale, stage = self._started("unscale_"), self._stages.get(id(optimizer), OptState.READY)
        if stage is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if stage is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        self._found_inf[id(optimizer)] = self._unscale(optimizer, 1.0 / scale.item())
        self._stages[id(optimizer)] = OptState.UNSCALED

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Calls optimizer.step() unless a gradient is not finite; scales the gradients back if that is not done yet.

        Returns: what optimizer.step() gives; None if it was not called.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._started("step")
        stage = self._stages.get(id(optimizer), OptState.READY)
        if stage is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if stage is OptState.READY:
            self.unscale_(optimizer)
        self._stages[id(optimizer)] = OptState.STEPPED
        return None if self._found_inf[id(optimizer)] else optimizer.step(*args, **kwargs)

    def update(self, new_scale: Any = None) -> None:
        """Makes the factor larger or smaller by what was found, or sets it."""
        if not self._enabled:
            return
        scale = self._started("update")
        if new_scale is not None:
            scale.fill_(float(new_scale))
        elif not self._found_inf:
            raise AssertionError("No inf checks were recorded prior to update.")
        elif any(self._found_inf.values()):
            scale.mul_(self._backoff_factor)
            self._growth_tracker = 0
        else:
            self._growth_tracker += 1
            if self._growth_tracker == self._growth_interval:
                grown = scale * self._growth_factor
                if bool(grown.isfinite()):
                    scale.copy_(grown)
                self._growth_tracker = 0
        self._stages, self._found_inf = {}, {}

    # ---- settings ----

    def get_scale(self) -> float:
        """The factor."""
        if not self._enabled:
            return 1.0
        return float(self._init_scale if self._scale is None else self._scale)

    def get_growth_factor(self) -> float:
        """By what the factor grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Sets by what the factor grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """By what the factor falls."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Sets by what the factor falls."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """After how many steps the factor grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Sets after how many steps the factor grows."""
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        """Whether it does anything."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """The factor, its settings, and the steps since it changed; empty if not enabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker if self._scale is not None else self._init_growth_tracker,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes a state_dict."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = self._growth_tracker = state_dict["_growth_tracker"]

    def __getstate__(self) -> dict[str, Any]:
        if self._stages:
            warnings.warn("a GradScaler is pickled between two updates: that is forgotten", stacklevel=2)
        state = {**self.__dict__, "_stages": {}, "_found_inf": {}}
        return {**state, "_init_scale": self.get_scale(), "_scale": None, "_init_growth_tracker": self._growth_tracker}
