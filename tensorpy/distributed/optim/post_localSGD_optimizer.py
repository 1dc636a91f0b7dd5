"""An optimizer whose processes step on their own, and average their parameters every few steps."""

from __future__ import annotations

import warnings
from typing import Any

from tensorpy.distributed.algorithms.model_averaging.averagers import ModelAverager
from tensorpy.optim.optimizer import Optimizer

__all__ = ["PostLocalSGDOptimizer"]


class PostLocalSGDOptimizer(Optimizer):
    """An optimizer, and an averager that is asked after each of its steps.

    Arguments:
        optim: the optimizer
        averager: what averages parameters, such as PeriodicModelAverager

    Example:
        >>> from tensorpy.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
        >>> from tensorpy.distributed.optim import PostLocalSGDOptimizer
        >>> net = nn.Linear(1, 1)
        >>> averager = PeriodicModelAverager(period=4, warmup_steps=100)
        >>> optimizer = PostLocalSGDOptimizer(tp.optim.SGD(net.parameters(), lr=0.1), averager)
        >>> net(tp.ones(1)).sum().backward()
        >>> optimizer.step()
    """

    optim: Any
    averager: Any

    def __init__(self, optim: Optimizer, averager: ModelAverager) -> None:
        self.optim, self.averager = optim, averager
        self.param_groups, self.state = optim.param_groups, optim.state

    def __repr__(self) -> str:
        return repr(self.optim)

    def state_dict(self) -> dict[str, Any]:
        """The optimizer's, and the averager's count of steps as "step"."""
        return {**self.optim.state_dict(), "step": self.averager.step}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes settings, states and the count of steps; without one the count begins at 0.

        Arguments:
            state_dict: what state_dict() gave
        """
        self.optim.load_state_dict(state_dict)
        self.param_groups, self.state = self.optim.param_groups, self.optim.state
        if "step" not in state_dict:
            warnings.warn("PostLocalSGDOptimizer: the state has no count of steps (step): it begins at 0", stacklevel=2)
        self.averager.step = state_dict.get("step", 0)

    def step(self, closure: Any = None) -> Any:
        """Moves the parameters once, and averages them if it is time to.

        Returns: what closure gives; None without one.
        """
        loss = self.optim.step() if closure is None else self.optim.step(closure)
        self.averager.average_parameters(self.param_groups)
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops the parameters' gradients, or sets them to zero."""
        self.optim.zero_grad(set_to_none=set_to_none)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds parameters, {"params": ...}, with settings of their own."""
        self.optim.add_param_group(param_group)
