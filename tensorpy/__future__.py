"""torch.__future__: how a module that is converted takes its new tensors."""

from __future__ import annotations


class _Ways:
    overwrite = False
    swap = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether Module.to() and its kin make new parameters, where the old ones would keep their identity.

    Arguments:
        value: whether they do

    Example:
        >>> tp.__future__.set_overwrite_module_params_on_conversion(False)
    """
    _Ways.overwrite = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Whether Module.to() and its kin make new parameters.

    Example:
        >>> tp.__future__.get_overwrite_module_params_on_conversion()
        False
    """
    return _Ways.overwrite


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Whether Module.to(), its kin and load_state_dict() swap the parameters with the new ones: utils.swap_tensors.

    load_state_dict() asks Tensor.module_load() for the new ones then.

    Arguments:
        value: whether they do

    Example:
        >>> tp.__future__.set_swap_module_params_on_conversion(False)
    """
    _Ways.swap = value


def get_swap_module_params_on_conversion() -> bool:
    """Whether Module.to(), its kin and load_state_dict() swap.

    Example:
        >>> tp.__future__.get_swap_module_params_on_conversion()
        False
    """
    return _Ways.swap
