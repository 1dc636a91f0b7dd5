"""Gradients that are too large, made smaller."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from tensorpy import _C, linalg
from tensorpy._C import Tensor
from tensorpy.autograd.grad_mode import no_grad

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]

_norm: Any = getattr(linalg, "vector_norm")  # noqa: B009
Tensors = Tensor | Iterable[Tensor]


def _listed(tensors: Tensors) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _grads(parameters: Tensors) -> list[Tensor]:
    return [p.grad for p in _listed(parameters) if p.grad is not None]


@no_grad()
def get_total_norm(
    tensors: Tensors, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """The norm of all tensors as one vector.

    Arguments:
        tensors: the tensors
        norm_type: which norm: 2 the Euclidean one
        error_if_nonfinite: whether a norm of NaN or infinity is an error
        foreach: whether all parameters are updated by calls on lists; None decides

    Returns: a tensor without dimensions.

    Raises: RuntimeError with error_if_nonfinite for a norm that is NaN or infinite.

    Example:
        >>> nn.utils.get_total_norm([tp.tensor([3.0]), tp.tensor([4.0])])
        tensor(5.)
    """
    given = _listed(tensors)
    if not given:
        return _C.tensor(0.0)
    order, device = float(norm_type), given[0].device
    norms = [norm.to(device=device) for norm in _C._foreach_norm(given, order)]
    total = _norm(_C.stack(norms), order)
    if error_if_nonfinite and bool((total.isnan() | total.isinf()).item()):
        raise RuntimeError(
            f"The total norm of order {order} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


@no_grad()
def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scales the gradients as if their norm, which is given, were to be at most max_norm.

    Arguments:
        parameters: a parameter or several
        max_norm: the largest norm; longer gradients are shortened
        total_norm: the norm of all gradients
        foreach: whether all parameters are updated by calls on lists; None decides

    Example:
        >>> x = nn.Parameter(tp.ones(2))
        >>> (x * tp.tensor([3.0, 4.0])).sum().backward()
        >>> nn.utils.clip_grads_with_norm_([x], 1.0, tp.tensor(5.0))
        >>> x.grad
        tensor([0.6000, 0.8000])
    """
    scale = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)  # no branch: a device need not be waited for
    by_device: dict[Any, list[Tensor]] = {}
    for grad in _grads(parameters):
        by_device.setdefault(grad.device, []).append(grad)
    for device, grads in by_device.items():
        _C._foreach_mul_(grads, scale.to(device=device))


def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales the gradients so that their norm is at most max_norm; returns what it was.

    Arguments:
        parameters: a parameter or several
        max_norm: the largest norm; longer gradients are shortened
        norm_type: which norm: 2 the Euclidean one
        error_if_nonfinite: whether a norm of NaN or infinity is an error
        foreach: whether all parameters are updated by calls on lists; None decides

    Returns: a tensor without dimensions.

    Raises: RuntimeError with error_if_nonfinite for a norm that is NaN or infinite.

    Example:
        >>> x = nn.Parameter(tp.ones(2))
        >>> (x * tp.tensor([3.0, 4.0])).sum().backward()
        >>> nn.utils.clip_grad_norm_([x], max_norm=1.0)
        tensor(5.)
        >>> x.grad
        tensor([0.6000, 0.8000])
    """
    kept = _listed(parameters)
    total = get_total_norm(_grads(kept), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(kept, max_norm, total, foreach)
    return total


def clip_grad_norm(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """An older name of clip_grad_norm_.

    Arguments:
        parameters: a parameter or several
        max_norm: the largest norm; longer gradients are shortened
        norm_type: which norm: 2 the Euclidean one
        error_if_nonfinite: whether a norm of NaN or infinity is an error
        foreach: whether all parameters are updated by calls on lists; None decides

    Returns: a tensor without dimensions.

    Example:
        >>> x = nn.Parameter(tp.ones(2))
        >>> (x * tp.tensor([3.0, 4.0])).sum().backward()
        >>> nn.utils.clip_grad_norm([x], max_norm=1.0)
        tensor(5.)
        >>> x.grad
        tensor([0.6000, 0.8000])
    """
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


@no_grad()
def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Clamps each element of the gradients to [-clip_value, clip_value].

    Arguments:
        parameters: a parameter or several
        foreach: whether all parameters are updated by calls on lists; None decides

    Example:
        >>> x = nn.Parameter(tp.ones(2))
        >>> (x * tp.tensor([3.0, 0.5])).sum().backward()
        >>> nn.utils.clip_grad_value_([x], 1.0)
        >>> x.grad
        tensor([1.0000, 0.5000])
    """
    if grads := _grads(parameters):
        _C._foreach_clamp_min_(grads, -float(clip_value))
        _C._foreach_clamp_max_(grads, float(clip_value))
