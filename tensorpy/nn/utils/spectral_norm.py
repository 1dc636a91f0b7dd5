"""The older spectral norm: a hook computes the weight before each call; `parametrizations.spectral_norm` is newer."""

from __future__ import annotations

from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.autograd.grad_mode import no_grad
from tensorpy.nn import functional as F
from tensorpy.nn.parameter import Parameter, refuse_uninitialized
from tensorpy.nn.utils import _power
from tensorpy.nn.utils.parametrizations import _default_dim

__all__ = ["SpectralNorm", "remove_spectral_norm", "spectral_norm"]


class SpectralNorm:
    """The hook: the weight `name` from `name`_orig, with the singular vectors `name`_u and `name`_v."""

    dim: int
    eps: float
    n_power_iterations: int
    name: str

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.name, self.dim, self.n_power_iterations, self.eps = name, dim, n_power_iterations, eps

    def compute_weight(self, module: Any, do_power_iteration: bool) -> Tensor:
        """The weight divided by its largest singular value."""
        weight, u, v = (getattr(module, f"{self.name}_{part}") for part in ("orig", "u", "v"))
        matrix = _power.as_matrix(weight, self.dim)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(_C.mv(matrix.t(), u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(_C.mv(matrix, v), dim=0, eps=self.eps))
            u, v = u.clone(), v.clone()
        return weight / _C.dot(u, _C.mv(matrix, v))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))


def _hook_of(module: Any, name: str) -> tuple[int, SpectralNorm] | None:
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            return key, hook
    return None


class _VersionMark:
    """What a state dictionary says of the hook."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, module: Any, state_dict: Any, prefix: str, local_metadata: Any) -> None:
        local_metadata.setdefault("spectral_norm", {})[f"{self.name}.version"] = 1


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """Divides a weight by its largest singular value, before each call.

    Arguments:
        module: the module
        name: the name of the parameter
        n_power_iterations: how many iterations each forward makes
        eps: a small number that keeps divisions in range
        dim: the dimension that is not summed over; None takes all

    Returns: the module.

    Raises: RuntimeError for the second on one parameter, ValueError where the parameter is None.

    Example:
        >>> layer = nn.utils.spectral_norm(nn.Linear(3, 3))
        >>> y = layer(tp.ones(1, 3))
        >>> type(nn.utils.remove_spectral_norm(layer)).__name__
        'Linear'
    """
    if _hook_of(module, name) is not None:
        raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
    weight = module._parameters[name]
    if weight is None:
        raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
    refuse_uninitialized(weight, "SpectralNorm")
    hook = SpectralNorm(name, n_power_iterations, _default_dim(module, dim), eps)
    with no_grad():
        matrix = _power.as_matrix(weight, hook.dim)
        u, v = (F.normalize(weight.new_empty(n).normal_(0, 1), dim=0, eps=eps) for n in matrix.shape)
    del module._parameters[name]
    module.register_parameter(f"{name}_orig", weight)
    setattr(module, name, weight.data)
    module.register_buffer(f"{name}_u", u)
    module.register_buffer(f"{name}_v", v)
    module.register_forward_pre_hook(hook)
    module._register_state_dict_hook(_VersionMark(name))
    return module


def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    """Puts the weight back as a parameter.

    Arguments:
        module: the module
        name: the name of the parameter

    Returns: the module.

    Raises: ValueError where the module has none of this name.

    Example:
        >>> layer = nn.utils.spectral_norm(nn.Linear(3, 3))
        >>> y = layer(tp.ones(1, 3))
        >>> type(nn.utils.remove_spectral_norm(layer)).__name__
        'Linear'
    """
    found = _hook_of(module, name)
    if found is None:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    key, hook = found
    with no_grad():
        weight = hook.compute_weight(module, do_power_iteration=False)
    delattr(module, name)
    delattr(module, f"{name}_u")
    delattr(module, f"{name}_v")
    delattr(module, f"{name}_orig")
    module.register_parameter(name, Parameter(weight.detach()))
    del module._forward_pre_hooks[key]
    for mark_key, mark in list(module._state_dict_hooks.items()):
        if isinstance(mark, _VersionMark) and mark.name == name:
            del module._state_dict_hooks[mark_key]
    return module
