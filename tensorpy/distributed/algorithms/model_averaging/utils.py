"""The mean of parameters over the processes of a group."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tensorpy as tp
from tensorpy._C import Tensor
from tensorpy.distributed import groups
from tensorpy.distributed.collectives import all_reduce

__all__ = ["average_parameters", "average_parameters_or_parameter_groups", "get_params_to_average"]


def average_parameters(params: Iterable[Tensor], process_group: Any) -> None:
    """Gives parameters the mean of all processes' values, in one message; nothing where this process is outside.

    Arguments:
        params: the parameters, alike in all processes
        process_group: the processes; None takes all
    """
    if process_group is groups.group.NON_GROUP_MEMBER:
        return
    found, chosen = groups.of(process_group), list(params)
    if found._is_one() or not chosen:
        return
    with tp.no_grad():
        flat = tp.cat([p.detach().reshape(-1) for p in chosen])
        flat /= found.size()
        all_reduce(flat, group=found)
        for p, mean in zip(chosen, flat.split([p.numel() for p in chosen]), strict=True):
            p.copy_(mean.reshape(p.shape))


def get_params_to_average(params: Iterable[Any]) -> list[Tensor]:
    """Those of the parameters that have a gradient.

    Arguments:
        params: parameters, or groups of an optimizer
    """
    chosen: list[Tensor] = []
    for each in params:
        if not isinstance(each, (Tensor, dict)):
            raise NotImplementedError(f"Parameter input of type {type(each)} is not supported")
        several = [each] if isinstance(each, Tensor) else each["params"]
        chosen += [p for p in several if p.grad is not None]
    return chosen


def average_parameters_or_parameter_groups(params: Iterable[Any], process_group: Any) -> None:
    """Gives parameters that have a gradient the mean of all processes' values.

    Arguments:
        params: parameters, or groups of an optimizer
        process_group: the processes; None takes all
    """
    average_parameters(get_params_to_average(params), process_group)
