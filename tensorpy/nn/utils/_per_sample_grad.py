"""call_for_per_sample_grads: a module whose parameters get the gradient of each sample."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from tensorpy._C import Tensor
from tensorpy.nn.modules.module import Module
from tensorpy.nn.utils._expanded_weights import ExpandedWeight
from tensorpy.nn.utils.stateless import _functional_call
from tensorpy.utils._pytree import tree_leaves

__all__ = ["call_for_per_sample_grads"]


def _batch_size(values: Any, batch_first: bool) -> int:
    found = None
    for leaf in tree_leaves(values):
        if not isinstance(leaf, Tensor) or leaf.ndim == 0:
            continue
        size = leaf.shape[0 if batch_first or leaf.ndim == 1 else 1]
        if found is not None and size != found:
            raise RuntimeError(
                f"When computing batch size, found at least one input with batch size {found} and one with batch size "
                f"{size}. Please specify it explicitly using the batch size kwarg in call_for_per_sample_grads"
            )
        found = size
    if found is None:
        raise RuntimeError(
            "Unable to find a tensor in the passed args and kwargs: their batch size has to be given, by batch_size"
        )
    return found


def call_for_per_sample_grads(
    module: Module, *, batch_size: int | None = None, loss_reduction: str = "sum", batch_first: bool = True
) -> Callable[..., Any]:
    """The module as a function whose backward gives each parameter `grad_sample`, a gradient for each sample, and no
    `grad`. It may call linear, convolutions, embedding, group, instance and layer norms and recurrent networks.

    Arguments:
        module: the module
        batch_size: how many samples there are; None: as many as the tensors that it is called with have
        loss_reduction: "sum", or "mean", where the loss divides by the number of samples and gradients do not
        batch_first: whether samples are counted by the first dimension of inputs, or by the second

    Example:
        >>> from tensorpy.nn.utils._per_sample_grad import call_for_per_sample_grads
        >>> net = nn.Linear(2, 3)
        >>> call_for_per_sample_grads(net)(tp.ones(4, 2)).sum().backward()
        >>> net.weight.grad_sample.shape
        tensorpy.Size([4, 3, 2])
    """
    if not isinstance(module, Module):
        raise RuntimeError(f"Module passed must be nn.Module, got {type(module).__name__}")
    if not isinstance(batch_size, (int, type(None))) or isinstance(batch_size, bool):
        raise RuntimeError(f"Batch size passed must be None or an integer, got {type(batch_size).__name__}")
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(f"Batch size must be positive, got {batch_size}")
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(f"Expected loss_reduction argument to be sum or mean, got {loss_reduction}")

    def expanded(name: str, weight: Tensor, size: int) -> Tensor:
        if not weight.requires_grad:
            return weight
        if getattr(weight, "grad_sample", None) is not None:
            raise RuntimeError(
                "Current Expanded Weights accumulates the gradients, which will be incorrect for multiple calls "
                f"without clearing gradients: set {name}.grad_sample to None first"
            )
        made = ExpandedWeight(weight, size, loss_reduction)
        made.set_batch_first(batch_first)
        return made

    @wraps(module.forward)
    def call(*args: Any, **kwargs: Any) -> Any:
        size = _batch_size((args, kwargs), batch_first) if batch_size is None else batch_size
        weights = {name: expanded(name, weight, size) for name, weight in module.named_parameters()}
        return _functional_call(module, weights, args, kwargs)

    return call
