"""Averaged gradient descent, and Muon."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.optim.optimizer import (
    ListOptimizer,
    ParamsT,
    State,
    check,
    chosen,
    counted,
    counter,
    decayed,
    listed,
    number,
    one_number,
)

__all__ = ["ASGD", "Muon"]


class ASGD(ListOptimizer):
    """Gradient descent that keeps the mean of its parameters, `ax` (Polyak & Juditsky 1992).

    Arguments:
        params: the parameters, (name, parameter) pairs, or dicts of groups with settings of their own
        lr: the learning rate
        lambd: how fast the learning rate falls
        alpha: the exponent of the learning rate's fall
        t0: the step at which averaging begins
        weight_decay: how much of the parameter is added to its gradient
        foreach: whether all parameters are updated by calls on lists; None decides
        maximize: whether the objective is maximised
        differentiable: whether autograd records the steps
        capturable: is taken, and changes nothing here

    Raises: ValueError for no parameters, one that is no leaf, or a setting out of range; TypeError for what is no
        tensor.

    Example:
        >>> x = nn.Parameter(tp.tensor([1.0]))
        >>> optimizer = tp.optim.ASGD([x], lr=0.1)
        >>> for _ in range(3):
        ...     optimizer.zero_grad()
        ...     (x * x).sum().backward()
        ...     optimizer.step()
        >>> x.item() < 1
        True
    """

    counters: tuple[str, ...] = ("step", "eta", "mu")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check(one_number(lr, "lr") >= 0.0, "learning rate", lr)
        check(weight_decay >= 0.0, "weight_decay value", weight_decay)
        super().__init__(params, chosen(locals()))

    def start(self, p: Tensor, group: dict[str, Any]) -> State:
        rate = counter(float(number(group["lr"])))
        return {"step": counter(), "eta": rate, "mu": counter(1.0), "ax": _C.zeros_like(p)}

    def update(
        self, group: dict[str, Any], params: Sequence[Tensor], grads: Sequence[Tensor], states: Sequence[State]
    ) -> None:
        rate, shrinking = number(group["lr"]), group["lambd"]
        grads = decayed(params, grads, group["weight_decay"])
        steps, means = counted(states), listed(states, "ax")
        etas, mus = [number(s["eta"]) for s in states], [number(s["mu"]) for s in states]
        _C._foreach_mul_(params, [1 - shrinking * eta for eta in etas])
        if len(set(etas)) == 1:
            _C._foreach_add_(params, grads, alpha=-etas[0])
        else:
            _C._foreach_sub_(params, _C._foreach_mul(grads, etas))
        for p, mean, mu in zip(params, means, mus, strict=True):
            if mu == 1:
                mean.copy_(p)
            else:
                mean.add_(p.sub(mean), alpha=mu)
        for state, step in zip(states, steps, strict=True):
            state["eta"].fill_(rate / (1 + shrinking * rate * step) ** group["alpha"])
            state["mu"].fill_(1 / max(1, step - group["t0"]))


def _orthogonalized(update: Tensor, coefficients: Sequence[float], steps: int, eps: float) -> Tensor:
    """Near the closest matrix with orthonormal rows or columns, by a polynomial of Newton and Schulz in bfloat16."""
    a, b, c = coefficients
    tall = update.shape[0] > update.shape[1]
    x = update.to(_C.bfloat16)
    x = x.T if tall else x
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        x = a * x + (b * gram + c * (gram @ gram)) @ x
    return x.T if tall else x


class Muon(ListOptimizer):
    """Momentum whose update is made orthogonal, for matrices (Jordan et al. 2024).

    Arguments:
        params: the parameters, (name, parameter) pairs, or dicts of groups with settings of their own
        lr: the learning rate
        weight_decay: how much of the parameter is added to its gradient
        momentum: how much of the last step goes into the next
        nesterov: whether Nesterov's momentum is taken
        ns_coefficients: the three coefficients of the Newton-Schulz iteration
        eps: a small number that keeps divisions in range
        ns_steps: how many of its iterations there are
        adjust_lr_fn: 'original' or 'match_rms_adamw': how the rate follows the shape

    Raises: ValueError for parameters that are no matrices, or a setting out of range; TypeError for what is no tensor.

    Example:
        >>> x = nn.Parameter(tp.ones(2, 2))
        >>> optimizer = tp.optim.Muon([x], lr=0.1)
        >>> (x * x).sum().backward()
        >>> optimizer.step()
        >>> x.mean().item() < 1
        True
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        check(one_number(lr, "lr") >= 0.0, "learning rate", lr)
        check(momentum >= 0.0, "momentum value", momentum)
        check(weight_decay >= 0.0, "weight_decay value", weight_decay)
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        super().__init__(params, chosen(locals()))
        for group in self.param_groups:
            for p in group["params"]:
                if p.ndim != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: {p.size()}"
                    )

    def start(self, p: Tensor, group: dict[str, Any]) -> State:
        if p.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        return {"momentum_buffer": _C.zeros_like(p)}

    def update(
        self, group: dict[str, Any], params: Sequence[Tensor], grads: Sequence[Tensor], states: Sequence[State]
    ) -> None:
        rate, momentum = number(group["lr"]), group["momentum"]
        for p, grad, state in zip(params, grads, states, strict=True):
            mean = state["momentum_buffer"].lerp_(grad, 1 - momentum)
            update = grad.lerp(mean, momentum) if group["nesterov"] else mean
            update = _orthogonalized(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
            rows, columns = p.shape
            if group["adjust_lr_fn"] == "match_rms_adamw":
                adjusted = rate * 0.2 * math.sqrt(max(rows, columns))
            else:
                adjusted = rate * math.sqrt(max(1, rows / columns))
            p.mul_(1 - rate * group["weight_decay"])
            p.add_(update.to(p.dtype), alpha=-adjusted)
