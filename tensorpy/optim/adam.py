"""Adam and its kin: running means of the gradient and of its square."""

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
    count,
    decayed,
    number,
    shrink,
    zero_step,
)

__all__ = ["Adam", "AdamW", "Adamax", "NAdam", "RAdam", "SparseAdam"]


class _AdamBase(ListOptimizer):
    """Checks and states that all have in common."""

    second = "exp_avg_sq"

    def _check(self, lr: Any, betas: Any, eps: float, weight_decay: float) -> None:
        check(number(lr) >= 0.0, "learning rate", lr)
        check(eps >= 0.0, "epsilon value", eps)
        for i, beta in enumerate(betas):
            check(0.0 <= number(beta) < 1.0, f"beta parameter at index {i}", beta)
        check(weight_decay >= 0.0, "weight_decay value", weight_decay)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name in self.defaults:
                group.setdefault(name, self.defaults[name])

    def start(self, p: Tensor, group: dict[str, Any]) -> State:
        return {"step": zero_step(), "exp_avg": _C.zeros_like(p), self.second: _C.zeros_like(p)}

    def _average(self, grad: Tensor, state: State, beta1: float, beta2: float) -> tuple[Tensor, Tensor]:
        """Moves the means of the gradient and of its square."""
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        return mean, square


class Adam(_AdamBase):
    """Adam (Kingma & Ba 2015); with decoupled_weight_decay AdamW, with amsgrad the maximum of the squares so far."""

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        self._check(lr, betas, eps, weight_decay)
        check_ways(foreach, fused, differentiable)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def start(self, p: Tensor, group: dict[str, Any]) -> State:
        state = super().start(p, group)
        return {**state, "max_exp_avg_sq": _C.zeros_like(p)} if group["amsgrad"] else state

    def update(
        self, group: dict[str, Any], params: Sequence[Tensor], grads: Sequence[Tensor], states: Sequence[State]
    ) -> None:
        rate, eps, decay = number(group["lr"]), group["eps"], group["weight_decay"]
        beta1, beta2 = map(number, group["betas"])
        if group["decoupled_weight_decay"]:
            shrink(params, rate * decay)
        else:
            grads = decayed(params, grads, decay)
        for p, grad, state in zip(params, grads, states, strict=True):
            step = count(state)
            mean, square = self._average(grad, state, beta1, beta2)
            if group["amsgrad"]:
                largest = state["max_exp_avg_sq"]
                square = _C.maximum(largest, square, out=largest)
            scale = (1 - beta2**step) ** -0.5
            p.addcdiv_(mean, square.sqrt().mul_(scale).add_(eps), value=-rate / (1 - beta1**step))


class AdamW(Adam):
    """Adam with weight decay of its own (Loshchilov & Hutter 2019)."""

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True


class Adamax(_AdamBase):
    """Adam by the largest gradient instead of the mean square (Kingma & Ba 2015)."""

    second = "exp_inf"

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        self._check(lr, betas, eps, weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def update(
        self, group: dict[str, Any], params: Sequence[Tensor], grads: Sequence[Tensor], states: Sequence[State]
    ) -> None:
        rate, (beta1, beta2) = number(group["lr"]), group["betas"]
        grads = decayed(params, grads, group["weight_decay"])
        for p, grad, state in zip(params, grads, states, strict=True):
            step, largest = count(state), state["exp_inf"]
            state["exp_avg"].lerp_(grad, 1 - beta1)
            largest.copy_(_C.maximum(largest * beta2, grad.abs().add_(group["eps"])))
            p.addcdiv_(state["exp_avg"], largest, value=-rate / (1 - beta1**step))


class NAdam(_AdamBase):
    """Adam with Nesterov's momentum (Dozat 2016)."""

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        self._check(lr, betas, eps, weight_decay)
        check(momentum_decay >= 0.0, "momentum_decay value", momentum_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def start(self, p: Tensor, group: dict[str, Any]) -> State:
        return {"step": zero_step(), "mu_product": _C.tensor(1.0), **super().start(p, group)}

    def update(
        self, group: dict[str, Any], params: Sequence[Tensor], grads: Sequence[Tensor], states: Sequence[State]
    ) -> None:
        rate, (beta1, beta2), decay = number(group["lr"]), group["betas"], group["weight_decay"]
        if group["decoupled_weight_decay"]:
            shrink(params, rate * decay)
        else:
            grads = decayed(params, grads, decay)
        for p, grad, state in zip(params, grads, states, strict=True):
            step = count(state)
            mu, following = (beta1 * (1 - 0.5 * 0.96 ** (s * group["momentum_decay"])) for s in (step, step + 1))
            state["mu_product"] *= mu
            product = state["mu_product"].item()
            mean, square = self._average(grad, state, beta1, beta2)
            spread = square.div(1 - beta2**step).sqrt_().add_(group["eps"])
            p.addcdiv_(grad, spread, value=-rate * (1 - mu) / (1 - product))
            p.addcdiv_(mean, spread, value=-rate * following / (1 - product * following))


class RAdam(_AdamBase):
    """Adam that is gradient descent until the variance of its scale is small (Liu et al. 2020)."""

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        self._check(lr, betas, eps, weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def update(
        self, group: dict[str, Any], params: Sequence[Tensor], grads: Sequence[Tensor], states: Sequence[State]
    ) -> None:
        rate, (beta1, beta2), decay = number(group["lr"]), group["betas"], group["weight_decay"]
        if group["decoupled_weight_decay"]:
            shrink(params, rate * decay)
        else:
            grads = decayed(params, grads, decay)
        longest = 2 / (1 - beta2) - 1  # rho: how long the average is
        for p, grad, state in zip(params, grads, states, strict=True):
            step = count(state)
            mean, square = self._average(grad, state, beta1, beta2)
            left = 1 - beta2**step
            length = longest - 2 * step * beta2**step / left
            moved = rate / (1 - beta1**step)
            if length <= 5.0:
                p.add_(mean, alpha=-moved)
                continue
            sides = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
            p.addcdiv_(mean, square.sqrt().add_(group["eps"]), value=-moved * (sides * left) ** 0.5)


class SparseAdam(_AdamBase):
    """Adam of the rows that a sparse gradient has. There are no sparse gradients, so every step refuses."""

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        check(number(lr) > 0.0, "learning rate", lr)
        self._check(lr, betas, eps, 0.0)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})

    def update(
        self, group: dict[str, Any], params: Sequence[Tensor], grads: Sequence[Tensor], states: Sequence[State]
    ) -> None:
        raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
