"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.optim.optimizer import (
    ListOptimizer,
    ParamsT,
    State,
    check,
    check_ways,
    chosen,
    decayed,
    differentiated,
    kept,
    listed,
    number,
    one_number,
)

__all__ = ["SGD"]


class SGD(ListOptimizer):
    """Gradient descent with momentum, also Nesterov's (Sutskever et al. 2013).

    Arguments:
        params: the parameters, (name, parameter) pairs, or dicts of groups with settings of their own
        lr: the learning rate
        momentum: how much of the last step goes into the next
        dampening: how much less of the gradient goes into the momentum
        weight_decay: how much of the parameter is added to its gradient
        nesterov: whether Nesterov's momentum is taken
        maximize: whether the objective is maximised
        foreach: whether all parameters are updated by calls on lists; None decides
        differentiable: whether autograd records the steps
        fused: is taken, and changes nothing here

    Raises: ValueError for no parameters, one that is no leaf, a setting out of range, or nesterov without momentum;
        TypeError for what is no tensor.

    Example:
        >>> x = nn.Parameter(tp.tensor([1.0]))
        >>> optimizer = tp.optim.SGD([x], lr=0.1)
        >>> for _ in range(3):
        ...     optimizer.zero_grad()
        ...     (x * x).sum().backward()
        ...     optimizer.step()
        >>> x.item() < 1
        True
    """

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
        check(one_number(lr, "lr") >= 0.0, "learning rate", lr)
        check(momentum >= 0.0, "momentum value", momentum)
        check(number(weight_decay) >= 0.0, "weight_decay value", weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        check_ways(foreach, fused, differentiable)
        super().__init__(params, chosen(locals()))

    def start(self, p: Tensor, group: dict[str, Any]) -> State:
        return {"momentum_buffer": None} if group["momentum"] else {}

    def update(
        self, group: dict[str, Any], params: Sequence[Tensor], grads: Sequence[Tensor], states: Sequence[State]
    ) -> None:
        rate, momentum = group["lr"], group["momentum"]
        grads = decayed(params, grads, group["weight_decay"])
        if momentum:
            moving = [i for i, state in enumerate(states) if state["momentum_buffer"] is not None]
            if moving:
                before = [states[i]["momentum_buffer"] for i in moving]
                _C._foreach_mul_(before, momentum)
                _C._foreach_add_(before, [grads[i] for i in moving], alpha=1 - group["dampening"])
            for grad, state in zip(grads, states, strict=True):
                if state["momentum_buffer"] is None:
                    state["momentum_buffer"] = grad.detach().clone()
            velocities = listed(states, "momentum_buffer")
            grads = _C._foreach_add(grads, velocities, alpha=momentum) if group["nesterov"] else velocities
        if differentiated(rate):
            for p, grad in zip(params, kept(grads), strict=True):
                p.addcmul_(grad, rate, value=-1)
        else:
            _C._foreach_add_(params, grads, alpha=-number(rate))

    def sparse_update(self, group: dict[str, Any], p: Tensor, grad: Any, state: State) -> None:
        from tensorpy.sparse import _gradients

        _gradients.sgd(p, grad, state, group)

    def _is_fused(self, group: dict[str, Any], params: Sequence[Tensor], grads: Sequence[Tensor]) -> bool:
        """Without momentum a step is one operator over lists anyway."""
        return bool(group["momentum"] or group["fused"]) and super()._is_fused(group, params, grads)

    def fused_update(
        self, group: dict[str, Any], params: Sequence[Tensor], grads: Sequence[Tensor], states: Sequence[State]
    ) -> None:
        momentum = group["momentum"]
        starting = [i for i, state in enumerate(states) if momentum and state["momentum_buffer"] is None]
        moving = [i for i in range(len(states)) if i not in starting] if starting else range(len(states))
        for i in starting:
            states[i]["momentum_buffer"] = _C.empty_like(params[i])
        for places in (starting, moving):
            if not places:
                continue
            _C._fused_sgd_(
                [params[i] for i in places],
                [grads[i] for i in places],
                [states[i]["momentum_buffer"] for i in places] if momentum else [],
                weight_decay=number(group["weight_decay"]),
                momentum=momentum,
                lr=number(group["lr"]),
                dampening=group["dampening"],
                nesterov=group["nesterov"],
                maximize=group["maximize"],
                is_first_step=places is starting,
                **self.scaling(),
            )
