"""Modules as functions of their state: called with other parameters than their own, and many of one kind at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.nn.utils.stateless import functional_call

__all__ = ["functional_call", "stack_module_state"]


def _stacked(tensors: list[Tensor]) -> Tensor:
    """A leaf that wants a gradient if they do."""
    return _C.stack(tensors).detach().requires_grad_(tensors[0].requires_grad)


def _by_name(states: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    return {name: _stacked([state[name] for state in states]) for name in states[0]}


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The parameters and the buffers of modules of one class, stacked: for vmap over functional_call."""
    if not models:
        raise RuntimeError("stack_module_state: there are no models")
    if len({model.training for model in models}) > 1:
        raise RuntimeError("stack_module_state: some models are in training mode and some are not")
    if len({type(model) for model in models}) > 1:
        raise RuntimeError("stack_module_state: the models are of different classes")
    parameters = _by_name([dict(model.named_parameters()) for model in models])
    return parameters, _by_name([dict(model.named_buffers()) for model in models])
