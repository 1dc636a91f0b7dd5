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
    chosen,
    counted,
    counter,
    decayed,
    differentiated,
    kept,
    listed,
    number,
    one_number,
    shrink,
)

__all__ = ["Adam", "AdamW", "Adamax", "NAdam", "RAdam", "SparseAdam"]


class _AdamBase(ListOptimizer):
    """Checks and states that all have in common."""

    second = "exp_avg_sq"

    def _check(self, lr: Any, betas: Any, eps: float, weight_decay: float) -> None:
        check(one_number(lr, "lr") >= 0.0, "learning rate", lr)
        check(eps >= 0.0, "epsilon value", eps)
        for i, beta in enumerate(betas):
            check(0.0 <= one_number(beta, f"betas[{i}]") < 1.0, f"beta parameter at index {i}", beta)
        check(weight_decay >= 0.0, "weight_decay value", weight_decay)

    @staticmethod
    def _check_tensors(lr: Any, betas: Any, foreach: bool | None, capturable: bool) -> None:
        """Settings that are tensors go with some ways only."""
        if isinstance(betas[0], Tensor) is not isinstance(betas[1], Tensor):
            raise ValueError("betas must be either both floats or both Tensors")
        for name, value in (("lr", lr), ("betas[0]", betas[0]), ("betas[1]", betas[1])):
            if isinstance(value, Tensor) and foreach and not capturable:
                raise ValueError(f"{name} as a Tensor is not supported for capturable=False and foreach=True")

    def start(self, p: Tensor, group: dict[str, Any]) -> State:
        return {"step": counter(), "exp_avg": _C.zeros_like(p), self.second: _C.zeros_like(p)}

    def _average(
        self, grads: Sequence[Tensor], states: Sequence[State], beta1: float, beta2: float
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Moves the means of the gradients and of their squares."""
        means, squares = listed(states, "exp_avg"), listed(states, "exp_avg_sq")
        _C._foreach_lerp_(means, grads, 1 - beta1)
        _C._foreach_mul_(squares, beta2)
        _C._foreach_addcmul_(squares, grads, grads, 1 - beta2)
        return means, squares


class Adam(_AdamBase):
    """Adam (Kingma & Ba 2015); with decoupled_weight_decay AdamW, with amsgrad the maximum of the squares so far.

    Arguments:
        params: the parameters, (name, parameter) pairs, or dicts of groups with settings of their own
        lr: the learning rate
        betas: how fast the averages of gradients and of their squares forget
        eps: a small number that keeps divisions in range
        weight_decay: how much of the parameter is added to its gradient
        amsgrad: whether the largest average of squares counts
        foreach: whether all parameters are updated by calls on lists; None decides
        maximize: whether the objective is maximised
        capturable: is taken, and changes nothing here
        differentiable: whether autograd records the steps
        fused: is taken, and changes nothing here
        decoupled_weight_decay: whether the decay goes to the parameter, not to its gradient

    Raises: ValueError for no parameters, one that is no leaf, or a setting out of range; TypeError for what is no
        tensor.

    Example:
        >>> x = nn.Parameter(tp.tensor([1.0]))
        >>> optimizer = tp.optim.Adam([x], lr=0.1)
        >>> for _ in range(3):
        ...     optimizer.zero_grad()
        ...     (x * x).sum().backward()
        ...     optimizer.step()
        >>> x.item() < 1
        True
    """

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
        self._check_tensors(lr, betas, foreach, capturable)
        self._check(lr, betas, eps, weight_decay)
        check_ways(foreach, fused, differentiable)
        super().__init__(params, chosen(locals()))

    def start(self, p: Tensor, group: dict[str, Any]) -> State:
        state = super().start(p, group)
        return {**state, "max_exp_avg_sq": _C.zeros_like(p)} if group["amsgrad"] else state

    def update(
        self, group: dict[str, Any], params: Sequence[Tensor], grads: Sequence[Tensor], states: Sequence[State]
    ) -> None:
        rate, eps, decay = number(group["lr"]), group["eps"], group["weight_decay"]
        if differentiated(group["lr"], decay, *group["betas"]):
            for item in zip(params, grads, states, strict=True):
                self._differentiated(group, *item)
            return
        beta1, beta2 = map(number, group["betas"])
        if group["decoupled_weight_decay"]:
            shrink(params, rate * decay)
        else:
            grads = decayed(params, grads, decay)
        steps = counted(states)
        means, squares = self._average(grads, states, beta1, beta2)
        if group["amsgrad"]:
            largest = listed(states, "max_exp_avg_sq")
            _C._foreach_maximum_(largest, kept(squares))
            squares = largest
        spreads = kept(_C._foreach_sqrt(squares))
        _C._foreach_mul_(spreads, [(1 - beta2**step) ** -0.5 for step in steps])
        _C._foreach_add_(spreads, eps)
        _C._foreach_addcdiv_(params, kept(means), spreads, [-rate / (1 - beta1**step) for step in steps])

    def _differentiated(self, group: dict[str, Any], p: Tensor, grad: Tensor, state: State) -> None:
        """The same for one parameter, by operators that record the settings too."""
        rate, decay, (beta1, beta2) = group["lr"], group["weight_decay"], group["betas"]
        if group["decoupled_weight_decay"]:
            p.mul_(1 - rate * decay)
        else:
            (grad,) = decayed([p], [grad], decay)
        (step,) = counted([state])
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.copy_(beta1 * mean.clone() + (1 - beta1) * grad)
        square.copy_(beta2 * square.clone() + (1 - beta2) * grad * grad)
        if group["amsgrad"]:
            square = state["max_exp_avg_sq"].copy_(_C.maximum(state["max_exp_avg_sq"].clone(), square.clone()))
        spread = (square.clone() / (1 - beta2**step)).sqrt() + group["eps"]
        p.sub_(rate / (1 - beta1**step) * mean.clone() / spread)

    def fused_update(
        self, group: dict[str, Any], params: Sequence[Tensor], grads: Sequence[Tensor], states: Sequence[State]
    ) -> None:
        step = _C._fused_adamw_ if group["decoupled_weight_decay"] else _C._fused_adam_
        beta1, beta2 = map(number, group["betas"])
        step(
            params,
            grads,
            listed(states, "exp_avg"),
            listed(states, "exp_avg_sq"),
            listed(states, "max_exp_avg_sq") if group["amsgrad"] else [],
            self.counted_steps(states),
            lr=number(group["lr"]),
            beta1=beta1,
            beta2=beta2,
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            amsgrad=group["amsgrad"],
            maximize=group["maximize"],
            **self.scaling(),
        )


class AdamW(Adam):
    """Adam with weight decay of its own (Loshchilov & Hutter 2019).

    Arguments:
        params: the parameters, (name, parameter) pairs, or dicts of groups with settings of their own
        lr: the learning rate
        betas: how fast the averages of gradients and of their squares forget
        eps: a small number that keeps divisions in range
        weight_decay: how much of the parameter is added to its gradient
        amsgrad: whether the largest average of squares counts
        maximize: whether the objective is maximised
        foreach: whether all parameters are updated by calls on lists; None decides
        capturable: is taken, and changes nothing here
        differentiable: whether autograd records the steps
        fused: is taken, and changes nothing here

    Raises: ValueError for no parameters, one that is no leaf, or a setting out of range; TypeError for what is no
        tensor.

    Example:
        >>> x = nn.Parameter(tp.tensor([1.0]))
        >>> optimizer = tp.optim.AdamW([x], lr=0.1)
        >>> for _ in range(3):
        ...     optimizer.zero_grad()
        ...     (x * x).sum().backward()
        ...     optimizer.step()
        >>> x.item() < 1
        True
    """

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
    """Adam by the largest gradient instead of the mean square (Kingma & Ba 2015).

    Arguments:
        params: the parameters, (name, parameter) pairs, or dicts of groups with settings of their own
        lr: the learning rate
        betas: how fast the averages of gradients and of their squares forget
        eps: a small number that keeps divisions in range
        weight_decay: how much of the parameter is added to its gradient
        foreach: whether all parameters are updated by calls on lists; None decides
        maximize: whether the objective is maximised
        differentiable: whether autograd records the steps
        capturable: is taken, and changes nothing here

    Raises: ValueError for no parameters, one that is no leaf, or a setting out of range; TypeError for what is no
        tensor.

    Example:
        >>> x = nn.Parameter(tp.tensor([1.0]))
        >>> optimizer = tp.optim.Adamax([x], lr=0.1)
        >>> for _ in range(3):
        ...     optimizer.zero_grad()
        ...     (x * x).sum().backward()
        ...     optimizer.step()
        >>> x.item() < 1
        True
    """

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
        super().__init__(params, chosen(locals()))

    def update(
        self, group: dict[str, Any], params: Sequence[Tensor], grads: Sequence[Tensor], states: Sequence[State]
    ) -> None:
        rate, (beta1, beta2) = number(group["lr"]), group["betas"]
        grads = decayed(params, grads, group["weight_decay"])
        steps, means, largest = counted(states), listed(states, "exp_avg"), listed(states, "exp_inf")
        _C._foreach_lerp_(means, grads, 1 - beta1)
        _C._foreach_mul_(largest, beta2)
        _C._foreach_maximum_(largest, _C._foreach_add(_C._foreach_abs(grads), group["eps"]))
        _C._foreach_addcdiv_(params, kept(means), kept(largest), [-rate / (1 - beta1**step) for step in steps])


def _add_quotients(
    params: Sequence[Tensor], tops: Sequence[Tensor], bottoms: Sequence[Tensor], by: Sequence[Any]
) -> None:
    """Adds quotients times factors, whose gradients are recorded where they are tensors."""
    if differentiated(*by):
        tops, by = [top * factor for top, factor in zip(tops, by, strict=True)], [1.0] * len(by)
    _C._foreach_addcdiv_(params, tops, bottoms, by)


class NAdam(_AdamBase):
    """Adam with Nesterov's momentum (Dozat 2016).

    Arguments:
        params: the parameters, (name, parameter) pairs, or dicts of groups with settings of their own
        lr: the learning rate
        betas: how fast the averages of gradients and of their squares forget
        eps: a small number that keeps divisions in range
        weight_decay: how much of the parameter is added to its gradient
        momentum_decay: how the momentum grows with time
        decoupled_weight_decay: whether the decay goes to the parameter, not to its gradient
        foreach: whether all parameters are updated by calls on lists; None decides
        maximize: whether the objective is maximised
        capturable: is taken, and changes nothing here
        differentiable: whether autograd records the steps

    Raises: ValueError for no parameters, one that is no leaf, or a setting out of range; TypeError for what is no
        tensor.

    Example:
        >>> x = nn.Parameter(tp.tensor([1.0]))
        >>> optimizer = tp.optim.NAdam([x], lr=0.1)
        >>> for _ in range(3):
        ...     optimizer.zero_grad()
        ...     (x * x).sum().backward()
        ...     optimizer.step()
        >>> x.item() < 1
        True
    """

    counters: tuple[str, ...] = ("step", "mu_product")

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
        super().__init__(params, chosen(locals()))

    def start(self, p: Tensor, group: dict[str, Any]) -> State:
        return {"step": counter(), "mu_product": counter(1.0), **super().start(p, group)}

    def update(
        self, group: dict[str, Any], params: Sequence[Tensor], grads: Sequence[Tensor], states: Sequence[State]
    ) -> None:
        rate, (beta1, beta2), decay = number(group["lr"]), group["betas"], group["weight_decay"]
        if group["decoupled_weight_decay"]:
            shrink(params, rate * decay)
        else:
            grads = decayed(params, grads, decay)
        steps = counted(states)

        def momentum_at(step: float) -> float:
            return beta1 * (1 - 0.5 * 0.96 ** (step * group["momentum_decay"]))

        now, following = [momentum_at(s) for s in steps], [momentum_at(s + 1) for s in steps]
        _C._foreach_mul_(listed(states, "mu_product"), now)
        products = [p if differentiated(p) else number(p) for p in listed(states, "mu_product")]
        means, squares = self._average(grads, states, beta1, beta2)
        spreads: Sequence[Tensor] = _C._foreach_div(squares, [1 - beta2**step for step in steps])
        _C._foreach_sqrt_(spreads)
        spreads = kept(spreads)
        _C._foreach_add_(spreads, group["eps"])
        by = [-rate * (1 - mu) / (1 - product) for mu, product in zip(now, products, strict=True)]
        _add_quotients(params, grads, spreads, by)
        by = [-rate * mu / (1 - product * mu) for mu, product in zip(following, products, strict=True)]
        _add_quotients(params, kept(means), spreads, by)


class RAdam(_AdamBase):
    """Adam that is gradient descent until the variance of its scale is small (Liu et al. 2020).

    Arguments:
        params: the parameters, (name, parameter) pairs, or dicts of groups with settings of their own
        lr: the learning rate
        betas: how fast the averages of gradients and of their squares forget
        eps: a small number that keeps divisions in range
        weight_decay: how much of the parameter is added to its gradient
        decoupled_weight_decay: whether the decay goes to the parameter, not to its gradient
        foreach: whether all parameters are updated by calls on lists; None decides
        maximize: whether the objective is maximised
        capturable: is taken, and changes nothing here
        differentiable: whether autograd records the steps

    Raises: ValueError for no parameters, one that is no leaf, or a setting out of range; TypeError for what is no
        tensor.

    Example:
        >>> x = nn.Parameter(tp.tensor([1.0]))
        >>> optimizer = tp.optim.RAdam([x], lr=0.1)
        >>> for _ in range(3):
        ...     optimizer.zero_grad()
        ...     (x * x).sum().backward()
        ...     optimizer.step()
        >>> x.item() < 1
        True
    """

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
        super().__init__(params, chosen(locals()))

    def update(
        self, group: dict[str, Any], params: Sequence[Tensor], grads: Sequence[Tensor], states: Sequence[State]
    ) -> None:
        rate, (beta1, beta2), decay = number(group["lr"]), group["betas"], group["weight_decay"]
        if group["decoupled_weight_decay"]:
            shrink(params, rate * decay)
        else:
            grads = decayed(params, grads, decay)
        longest = 2 / (1 - beta2) - 1  # rho: how long the average is
        steps = counted(states)
        means, squares = self._average(grads, states, beta1, beta2)
        adaptive, by = [], []
        for i, step in enumerate(steps):
            left = 1 - beta2**step
            length = longest - 2 * step * beta2**step / left
            moved = rate / (1 - beta1**step)
            if length <= 5.0:
                params[i].add_(means[i], alpha=-moved)
                continue
            sides = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
            adaptive.append(i)
            by.append(-moved * (sides * left) ** 0.5)
        if adaptive:
            spreads = kept(_C._foreach_sqrt([squares[i] for i in adaptive]))
            _C._foreach_add_(spreads, group["eps"])
            _C._foreach_addcdiv_([params[i] for i in adaptive], kept([means[i] for i in adaptive]), spreads, by)


class SparseAdam(_AdamBase):
    """Adam of the places that a sparse gradient has.

    Arguments:
        params: the parameters, (name, parameter) pairs, or dicts of groups with settings of their own
        lr: the learning rate
        betas: how fast the averages of gradients and of their squares forget
        eps: a small number that keeps divisions in range
        maximize: whether the objective is maximised

    Raises: ValueError for no parameters, sparse or complex ones, or a setting out of range; TypeError for what is no
        tensor.

    Example:
        >>> table = nn.Embedding(4, 2, sparse=True)
        >>> optimizer = tp.optim.SparseAdam(table.parameters(), lr=0.1)
        >>> table(tp.tensor([1])).sum().backward()
        >>> optimizer.step()
        >>> table.weight.grad.is_sparse
        True
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        check(one_number(lr, "lr") > 0.0, "learning rate", lr)
        self._check(lr, betas, eps, 0.0)
        super().__init__(params, chosen(locals()))
        if any(p.layout is not _C.strided for p in self._all_params()):
            raise ValueError("SparseAdam requires dense parameter tensors")
        if any(p.is_complex() for p in self._all_params()):
            raise ValueError("SparseAdam does not support complex parameters")

    def _all_params(self) -> list[Tensor]:
        return [p for group in self.param_groups for p in group["params"]]

    def update(
        self, group: dict[str, Any], params: Sequence[Tensor], grads: Sequence[Tensor], states: Sequence[State]
    ) -> None:
        raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")

    def sparse_update(self, group: dict[str, Any], p: Tensor, grad: Any, state: State) -> None:
        from tensorpy.sparse import _gradients

        _gradients.adam(p, grad, state, group)
