"""Modules as functions of their state: called with other parameters than their own, and many of one kind at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.nn.utils.stateless import _functional_call

__all__ = ["functional_call", "stack_module_state"]


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Calls a module with the given parameters and buffers, by path, in place of its own.

    Arguments:
        module: the module
        parameter_and_buffer_dicts: the tensors by name that stand for the module's own, in a dictionary or several;
            what the call assigns in their places is in a single one afterwards
        args: the arguments by position
        kwargs: the keyword arguments
        tie_weights: whether a parameter that is shared is replaced everywhere
        strict: whether all of the module's parameters and buffers have to be given, and no others

    Raises ValueError where names of one shared tensor are given tensors that differ, RuntimeError for what strict asks.

    Returns: what the module gives.

    Raises: ValueError for one tensor under two names of the module.

    Example:
        >>> model = nn.Linear(2, 1, bias=False)
        >>> tp.func.functional_call(model, {"weight": tp.ones(1, 2)}, tp.ones(1, 2))
        tensor([[2.]])
    """
    return _functional_call(module, parameter_and_buffer_dicts, args, kwargs, tie_weights=tie_weights, strict=strict)


def _stacked(what: str, tensors: list[Tensor]) -> Tensor:
    """A leaf that wants a gradient if they do."""
    wanted = tensors[0].requires_grad
    if any(t.requires_grad != wanted for t in tensors):
        raise RuntimeError(f"{what}(models, ...): Expected parameters from each model to have the same .requires_grad")
    return _C._want_gradient(_C.stack(tensors).detach(), wanted)


def _by_name(what: str, states: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    return {name: _stacked(what, [state[name] for state in states]) for name in states[0]}


def stack_module_state(
    models: Sequence[Any], _what: str = "stack_module_state"
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The parameters and the buffers of modules of one class, stacked: for vmap over functional_call.

    Arguments:
        models: modules of one class and shape

    Returns: two dicts of tensors, by path, with a first dimension for the modules.

    Raises: RuntimeError for no modules, or modules of different classes or modes.

    Example:
        >>> params, buffers = tp.func.stack_module_state([nn.Linear(2, 3), nn.Linear(2, 3)])
        >>> params["weight"].shape
        tensorpy.Size([2, 3, 2])
    """
    if not models:
        raise RuntimeError(f"{_what}: Expected at least one model, got 0.")
    if len({model.training for model in models}) > 1:
        raise RuntimeError(f"{_what}: Expected all models to have the same training/eval mode.")
    if len({type(model) for model in models}) > 1:
        raise RuntimeError(f"{_what}: Expected all models to be of the same class.")
    parameters = _by_name(_what, [dict(model.named_parameters()) for model in models])
    return parameters, _by_name(_what, [dict(model.named_buffers()) for model in models])
