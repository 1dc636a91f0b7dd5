"""Another set of parameters and states for an optimizer, for a while."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensorpy._C import Tensor
from tensorpy.optim.optimizer import Optimizer

__all__ = ["swap_in_optimizer_params_and_state"]


@contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: Optimizer, swapin_parameters: dict[str, Tensor], swapin_optim_state: dict[str, Any]
) -> Iterator[None]:
    """A context in which the optimizer has these parameters, in the order of its own, and a state dictionary's states.

    What a step in it changes is theirs; afterwards the optimizer has its own again, as they were.

    Arguments:
        optimizer: the optimizer
        swapin_parameters: the parameters that the optimizer gets, by name
        swapin_optim_state: the state that it gets, as an optimizer's state_dict() gives it

    Returns: a context manager.

    Raises: ValueError for other than one parameter for each of the optimizer's.

    Example:
        >>> a, b = nn.Parameter(tp.ones(1)), nn.Parameter(tp.zeros(1))
        >>> optimizer = tp.optim.SGD([a], lr=0.1)
        >>> with tp.optim.swap_in_optimizer_params_and_state(optimizer, {"b": b}, optimizer.state_dict()):
        ...     b.grad = tp.ones(1)
        ...     optimizer.step()
        >>> a.item(), round(b.item(), 4)
        (1.0, -0.1)
    """
    groups, state = optimizer.param_groups, optimizer.state
    given = list(swapin_parameters.values())
    if len(given) != sum(len(group["params"]) for group in groups):
        raise ValueError(
            f"the optimizer has {sum(len(g['params']) for g in groups)} parameters, {len(given)} are given"
        )
    parts, fresh = iter(given), []
    for group, options in zip(groups, swapin_optim_state["param_groups"], strict=True):
        fresh.append({**group, **options, "params": [next(parts) for _ in group["params"]]})
    numbers = [number for options in swapin_optim_state["param_groups"] for number in options["params"]]
    states = swapin_optim_state["state"]
    optimizer.param_groups = fresh
    optimizer.state = defaultdict(
        dict, {p: states[number] for number, p in zip(numbers, given, strict=True) if number in states}
    )
    try:
        yield
    finally:
        optimizer.param_groups, optimizer.state = groups, state
