"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorpy._C import Tensor
from tensorpy.optim.optimizer import ListOptimizer, ParamsT, State, check, check_ways, decayed, number

__all__ = ["SGD"]


class SGD(ListOptimizer):
    """Gradient descent with momentum, also Nesterov's (Sutskever et al. 2013)."""

    complex_as_real = False  # every operation is linear

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check(number(lr) >= 0.0, "learning rate", lr)
        check(momentum >= 0.0, "momentum value", momentum)
        check(number(weight_decay) >= 0.0, "weight_decay value", weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        check_ways(foreach, fused, differentiable)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in (("nesterov", False), ("maximize", False), ("foreach", None), ("fused", None)):
                group.setdefault(name, value)
            group.setdefault("differentiable", False)

    def start(self, p: Tensor, group: dict[str, Any]) -> State:
        return {"momentum_buffer": None} if group["momentum"] else {}

    def update(
        self, group: dict[str, Any], params: Sequence[Tensor], grads: Sequence[Tensor], states: Sequence[State]
    ) -> None:
        rate, momentum = number(group["lr"]), group["momentum"]
        grads = decayed(params, grads, group["weight_decay"])
        for p, grad, state in zip(params, grads, states, strict=True):
            if momentum:
                velocity = state["momentum_buffer"]
                if velocity is None:
                    velocity = state["momentum_buffer"] = grad.detach().clone()
                else:
                    velocity.mul_(momentum).add_(grad, alpha=1 - group["dampening"])
                grad = grad.add(velocity, alpha=momentum) if group["nesterov"] else velocity
            p.add_(grad, alpha=-rate)
