"""The older weight norm: a hook computes the weight before each call. `parametrizations.weight_norm` is the newer."""

from __future__ import annotations

import warnings
from typing import Any

from tensorpy import _C
from tensorpy.nn.parameter import Parameter, refuse_uninitialized

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]


class WeightNorm:
    """The hook: the weight `name` from `name`_g and `name`_v."""

    dim: Any
    name: str

    def __init__(self, name: str, dim: int | None) -> None:
        self.name, self.dim = name, -1 if dim is None else dim

    def compute_weight(self, module: Any) -> Any:
        """The weight from norm and direction."""
        g, v = getattr(module, f"{self.name}_g"), getattr(module, f"{self.name}_v")
        return _C._weight_norm(v, g, self.dim)

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def _hook_of(module: Any, name: str) -> tuple[int, WeightNorm] | None:
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            return key, hook
    return None


def weight_norm(module: Any, name: str = "weight", dim: int = 0) -> Any:
    """Splits a weight into norm and direction, `name`_g and `name`_v.

    Arguments:
        module: the module
        name: the name of the parameter
        dim: the dimension that is not summed over; None takes all

    Returns: the module.

    Raises: RuntimeError for the second on one parameter.

    Example:
        >>> layer = nn.utils.weight_norm(nn.Linear(3, 3))
        >>> y = layer(tp.ones(1, 3))
        >>> type(nn.utils.remove_weight_norm(layer)).__name__
        'Linear'
    """
    warnings.warn(
        "`torch.nn.utils.weight_norm` is deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=2,
    )
    if _hook_of(module, name) is not None:
        raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
    hook = WeightNorm(name, dim)
    weight = getattr(module, name)
    refuse_uninitialized(weight, "WeightNorm")
    del module._parameters[name]
    module.register_parameter(f"{name}_g", Parameter(_C.norm_except_dim(weight, 2, hook.dim).detach()))
    module.register_parameter(f"{name}_v", Parameter(weight.detach()))
    setattr(module, name, hook.compute_weight(module))
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Puts the weight back in the place of norm and direction.

    Arguments:
        module: the module
        name: the name of the parameter

    Returns: the module.

    Raises: ValueError where the module has none of this name.

    Example:
        >>> layer = nn.utils.weight_norm(nn.Linear(3, 3))
        >>> y = layer(tp.ones(1, 3))
        >>> type(nn.utils.remove_weight_norm(layer)).__name__
        'Linear'
    """
    found = _hook_of(module, name)
    if found is None:
        raise ValueError(f"weight_norm of '{name}' not found in {module}")
    key, hook = found
    weight = hook.compute_weight(module).detach()
    delattr(module, name)
    for letter in "gv":
        del module._parameters[f"{name}_{letter}"]
    setattr(module, name, Parameter(weight))
    del module._forward_pre_hooks[key]
    return module
