"""Modules of a model that become one, by their names."""

from __future__ import annotations

import copy
from typing import Any

from tensorpy import nn
from tensorpy.ao.quantization.fuser_method_mappings import get_fuser_method

__all__ = ["fuse_known_modules", "fuse_modules", "fuse_modules_qat"]


def fuse_known_modules(mod_list: Any, is_qat: bool, additional_fuser_method_mapping: Any = None) -> list[Any]:
    """Modules that stand for a sequence: the joined one, and for the others nn.Identity.

    Arguments:
        mod_list: the modules
        is_qat: whether it is for training with fake quantization
        additional_fuser_method_mapping: more functions that join modules, by tuples of types

    Example:
        >>> tp.ao.quantization.fuse_modules.__module__.endswith("fuse_modules")
        True
    """
    types = tuple(type(module) for module in mod_list)
    joined = get_fuser_method(types, additional_fuser_method_mapping)(is_qat, *mod_list)
    for hook in mod_list[0]._forward_pre_hooks.values():
        joined.register_forward_pre_hook(hook)
    mod_list[0]._forward_pre_hooks.clear()
    for hook in mod_list[-1]._forward_hooks.values():
        joined.register_forward_hook(hook)
    mod_list[-1]._forward_hooks.clear()
    return [joined, *(nn.Identity().train(mod_list[0].training) for _ in mod_list[1:])]


def _fuse(model: Any, names: Any, is_qat: bool, inplace: bool, fuser_func: Any, config: Any) -> Any:
    model = model if inplace else copy.deepcopy(model)
    more = (config or {}).get("additional_fuser_method_mapping", {})
    for group in [names] if all(isinstance(name, str) for name in names) else names:
        joined = fuser_func([model.get_submodule(name) for name in group], is_qat, more)
        for name, module in zip(group, joined, strict=True):
            parent, _, last = name.rpartition(".")
            setattr(model.get_submodule(parent), last, module)
    return model


def fuse_modules(
    model: Any,
    modules_to_fuse: Any,
    inplace: bool = False,
    fuser_func: Any = fuse_known_modules,
    fuse_custom_config_dict: Any = None,
) -> Any:
    """A model in evaluation whose convolutions, or linear maps, are one with the batch norms and ReLUs behind them.

    Arguments:
        model: the model
        modules_to_fuse: the names of modules that follow each other, or a list of such lists
        inplace: whether the model itself is changed
        fuser_func: what makes the modules that stand for others
        fuse_custom_config_dict: more functions that join modules, as "additional_fuser_method_mapping"

    Returns: a model, the given one if inplace.

    Raises: AssertionError for modules that have no fused form.

    Example:
        >>> model = nn.Sequential(nn.Linear(2, 2), nn.ReLU()).eval()
        >>> type(tp.ao.quantization.fuse_modules(model, ["0", "1"])[0]).__name__
        'LinearReLU'
    """
    return _fuse(model, modules_to_fuse, False, inplace, fuser_func, fuse_custom_config_dict)


def fuse_modules_qat(
    model: Any,
    modules_to_fuse: Any,
    inplace: bool = False,
    fuser_func: Any = fuse_known_modules,
    fuse_custom_config_dict: Any = None,
) -> Any:
    """The same of a model in training, for fake quantization.

    Arguments:
        model: the model
        modules_to_fuse: the names of modules that follow each other, or a list of such lists
        inplace: whether the model itself is changed
        fuser_func: what makes the modules that stand for others
        fuse_custom_config_dict: more functions that join modules, as "additional_fuser_method_mapping"

    Returns: a model, the given one if inplace.

    Raises: AssertionError for modules that have no fused form.

    Example:
        >>> model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        >>> type(tp.ao.quantization.fuse_modules_qat(model, ["0", "1"])[0]).__name__
        'LinearReLU'
    """
    return _fuse(model, modules_to_fuse, True, inplace, fuser_func, fuse_custom_config_dict)
