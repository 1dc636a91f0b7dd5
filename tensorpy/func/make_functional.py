"""Modules as functions of tuples of parameters: functorch's names, older than functional_call."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from tensorpy._C import Tensor
from tensorpy.func.stateless import stack_module_state
from tensorpy.nn.modules.module import Module
from tensorpy.nn.utils.stateless import _functional_call

Tensors = tuple[Tensor, ...]


def _values(tensors: Any, keep_graph: bool) -> Tensors:
    return tuple(t if keep_graph else t.detach() for t in tensors)


class FunctionalModuleWithBuffers(Module):
    """Called with (params, buffers, *args): the module with these in place of its own, by their order."""

    buffer_names: tuple[Any, ...]
    param_names: tuple[Any, ...]

    def __init__(self, stateless_model: Module, param_names: Sequence[str], buffer_names: Sequence[str]) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names, self.buffer_names = tuple(param_names), tuple(buffer_names)

    @classmethod
    def _create_from(cls, model: Module, disable_autograd_tracking: bool = False) -> tuple[Any, Tensors, Tensors]:
        own = copy.deepcopy(model)
        params, buffers = dict(own.named_parameters()), dict(own.named_buffers())
        function = cls(own, list(params), list(buffers))
        return function, _values(params.values(), not disable_autograd_tracking), tuple(buffers.values())

    def forward(self, params: Any, buffers: Any, *args: Any, **kwargs: Any) -> Any:
        state = dict(zip(self.param_names, params, strict=True)) | dict(zip(self.buffer_names, buffers, strict=True))
        return _functional_call(self.stateless_model, state, args, kwargs)


class FunctionalModule(Module):
    """Called with (params, *args): the module with these in place of its own parameters, by their order."""

    param_names: tuple[Any, ...]

    def __init__(self, stateless_model: Module, param_names: Sequence[str]) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names = tuple(param_names)

    @classmethod
    def _create_from(cls, model: Module, disable_autograd_tracking: bool = False) -> tuple[Any, Tensors]:
        own = copy.deepcopy(model)
        params = dict(own.named_parameters())
        return cls(own, list(params)), _values(params.values(), not disable_autograd_tracking)

    def forward(self, params: Any, *args: Any, **kwargs: Any) -> Any:
        return _functional_call(self.stateless_model, dict(zip(self.param_names, params, strict=True)), args, kwargs)


def make_functional(model: Module, disable_autograd_tracking: bool = False) -> Any:
    """A module's function of its parameters, and these: (function, params)."""
    if list(model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead."
        )
    return FunctionalModule._create_from(model, disable_autograd_tracking)


def make_functional_with_buffers(model: Module, disable_autograd_tracking: bool = False) -> Any:
    """A module's function of its parameters and buffers, and these: (function, params, buffers)."""
    return FunctionalModuleWithBuffers._create_from(model, disable_autograd_tracking)


def combine_state_for_ensemble(models: Sequence[Module]) -> tuple[Any, Tensors, Tensors]:
    """The function that modules of one class have in common, and their parameters and buffers, stacked."""
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    params, buffers = stack_module_state(models, "combine_state_for_ensemble")
    function, _, _ = make_functional_with_buffers(models[0])
    return function, tuple(params.values()), tuple(buffers.values())


def functional_init(
    model_class: type[Module], ensemble_shape: tuple[int, ...] = (), device: Any = "cpu"
) -> Callable[..., Any]:
    """Makes modules of a class: a function of their arguments that gives (params, function, names)."""

    def made(*args: Any, **kwargs: Any) -> Any:
        params, buffers, function, names, _ = functional_init_with_buffers(model_class, ensemble_shape, device)(
            *args, **kwargs
        )
        if buffers:
            raise RuntimeError("functional_init: the module has buffers; call functional_init_with_buffers")

        def of_parameters(weights: Any, inputs: Any) -> Any:
            return function(weights, (), inputs)

        return params, of_parameters, names

    return made


def functional_init_with_buffers(
    model_class: type[Module], ensemble_shape: tuple[int, ...] = (), device: Any = "cpu"
) -> Callable[..., Any]:
    """Makes modules of a class: a function of their arguments that gives (params, buffers, function, param_names,
    buffer_names)."""
    if len(ensemble_shape) > 1:
        raise ValueError("NYI: ensemble_shape with more than 1 element")

    def made(*args: Any, **kwargs: Any) -> Any:
        count = ensemble_shape[0] if ensemble_shape else None
        if count is not None and count <= 0:
            raise ValueError(f"num_models {count} should be > 0")
        models: list[Any] = [model_class(*args, **kwargs).to(device) for _ in range(count or 1)]
        function, params, buffers = make_functional_with_buffers(models[0])
        if count is not None:
            _, params, buffers = combine_state_for_ensemble(models)

        def of_state(weights: Any, state: Any, inputs: Any) -> Any:
            return function(weights, state, *inputs)

        return params, buffers, of_state, function.param_names, function.buffer_names

    return made
