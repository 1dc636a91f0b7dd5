"""What DataParallel is made of, as functions: on one device or several, one after the other."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.nn.modules.module import Module

__all__ = ["gather", "parallel_apply", "replicate", "scatter", "scatter_kwargs"]


def _device(device: Any) -> Any:
    return _C.device("cuda", device) if isinstance(device, int) else device


def _is_named(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """Parts of tensors along a dimension, one per device; what is no tensor goes to each.

    Arguments:
        inputs: the inputs
        target_gpus: the devices
        dim: the dimension; a negative one counts from the last

    Returns: a list or tuple, an item for each device.

    Example:
        >>> nn.parallel.scatter(tp.ones(2), ["cpu"])
        [tensor([1., 1.])]
    """
    count = len(target_gpus)

    def spread(value: Any) -> list[Any]:
        if isinstance(value, Tensor):
            return [part.to(_device(d)) for part, d in zip(value.chunk(count, dim), target_gpus, strict=False)]
        if _is_named(value):
            return [type(value)(*items) for items in zip(*map(spread, value), strict=False)]
        if isinstance(value, (tuple, list)) and value:
            return [type(value)(items) for items in zip(*map(spread, value), strict=False)]
        if isinstance(value, dict) and value:
            return [type(value)(items) for items in zip(*map(spread, value.items()), strict=False)]
        return [value for _ in target_gpus]

    return spread(inputs)


def scatter_kwargs(inputs: Any, kwargs: Any, target_gpus: Sequence[Any], dim: int = 0) -> tuple[Any, Any]:
    """The same of positional and keyword arguments, as many of the ones as of the others."""
    parts = scatter(inputs, target_gpus, dim) if inputs else []
    named = scatter(kwargs, target_gpus, dim) if kwargs else []
    most = max(len(parts), len(named))
    return (*parts, *((),) * (most - len(parts))), (*named, *({},) * (most - len(named)))


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """The parts of results one after another, on one device.

    Arguments:
        outputs: the outputs
        target_device: where they go
        dim: the dimension; a negative one counts from the last

    Returns: what one device gave, with longer tensors.

    Raises: ValueError for dicts of different lengths.

    Example:
        >>> nn.parallel.gather([tp.ones(1), tp.zeros(2)], "cpu")
        tensor([1., 0., 0.])
    """
    first, device = outputs[0], _device(target_device)
    if isinstance(first, Tensor):
        if all(part.dim() == 0 for part in outputs) and dim == 0:
            return _C.stack([part.to(device) for part in outputs])
        return _C.cat([part.to(device) for part in outputs], dim)
    if first is None:
        return None
    if isinstance(first, Mapping):
        if any(len(part) != len(first) for part in outputs):
            raise ValueError("All dicts must have the same number of keys")
        kind: Any = type(first)
        return kind((key, gather([part[key] for part in outputs], device, dim)) for key in first)
    items = [gather(each, device, dim) for each in zip(*outputs, strict=True)]
    return type(first)(*items) if _is_named(first) else type(first)(items)


def replicate(network: Module, devices: Sequence[Any], detach: bool = False) -> list[Any]:
    """A copy of a module per device, whose parameters are those of the module, moved there: gradients flow back.

    Arguments:
        network: the module
        devices: the devices
        detach: whether the copies have no history

    Returns: a list of modules.

    Example:
        >>> len(nn.parallel.replicate(nn.ReLU(), ["cpu"]))
        1
    """
    made = []
    for device in devices:
        copied = copy.copy(network)
        memo = {id(network): copied}
        _replace(network, copied, _device(device), detach, memo)
        made.append(copied)
    return made


def _replace(module: Module, copied: Module, device: Any, detach: bool, memo: dict[int, Any]) -> None:
    own = copied.__dict__ = dict(module.__dict__)
    moved = {name: None if p is None else p.to(device) for name, p in module._parameters.items()}
    own["_parameters"] = {n: p.detach() if detach and p is not None else p for n, p in moved.items()}
    own["_buffers"] = {n: None if b is None else b.to(device) for n, b in module._buffers.items()}
    own["_modules"] = dict(module._modules)
    for name, child in module._modules.items():
        if child is None:
            continue
        if id(child) not in memo:
            memo[id(child)] = copy.copy(child)
            _replace(child, memo[id(child)], device, detach, memo)
        own["_modules"][name] = memo[id(child)]


def parallel_apply(
    modules: Sequence[Module], inputs: Sequence[Any], kwargs_tup: Any = None, devices: Sequence[Any] | None = None
) -> list[Any]:
    """Calls each module with its inputs.

    Arguments:
        modules: the modules
        inputs: the inputs
        kwargs_tup: the keyword arguments of each
        devices: the devices

    Returns: a list of what each gives.

    Raises: AssertionError for other than one input for each module.

    Example:
        >>> nn.parallel.parallel_apply([nn.ReLU()], [(tp.tensor([-1.0, 2.0]),)])
        [tensor([0., 2.])]
    """
    if len(modules) != len(inputs):
        raise AssertionError(f"The number of modules {len(modules)} is not equal to the number of inputs {len(inputs)}")
    named = kwargs_tup or [{}] * len(modules)
    return [
        module(*(given if isinstance(given, (list, tuple)) else (given,)), **keywords)
        for module, given, keywords in zip(modules, inputs, named, strict=True)
    ]
