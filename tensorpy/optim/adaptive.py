"""Optimizers with a step of its own for each element: Adagrad, Adadelta, RMSprop, Rprop, Adafactor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._tensor.dtypes import finfo
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
    kept,
    listed,
    number,
    one_number,
    shrink,
)

__all__ = ["Adadelta", "Adafactor", "Adagrad", "RMSprop", "Rprop"]


class Adagrad(ListOptimizer):
    """Steps divided by the root of the sum of all squares so far (Duchi et al. 2011).

    Arguments:
        params: the parameters, (name, parameter) pairs, or dicts of groups with settings of their own
        lr: the learning rate
        lr_decay: how fast the learning rate falls
        weight_decay: how much of the parameter is added to its gradient
        initial_accumulator_value: the sums of squares at first
        eps: a small number that keeps divisions in range
        foreach: whether all parameters are updated by calls on lists; None decides
        maximize: whether the objective is maximised
        differentiable: whether autograd records the steps
        fused: is taken, and changes nothing here

    Raises: ValueError for no parameters, one that is no leaf, or a setting out of range; TypeError for what is no
        tensor.

    Example:
        >>> x = nn.Parameter(tp.tensor([1.0]))
        >>> optimizer = tp.optim.Adagrad([x], lr=0.1)
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
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check(one_number(lr, "lr") >= 0.0, "learning rate", lr)
        check(lr_decay >= 0.0, "lr_decay value", lr_decay)
        check(weight_decay >= 0.0, "weight_decay value", weight_decay)
        check(initial_accumulator_value >= 0.0, "initial_accumulator_value value", initial_accumulator_value)
        check(eps >= 0.0, "epsilon value", eps)
        check_ways(foreach, fused, differentiable)
        super().__init__(params, chosen(locals()))
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p].update(self.start(p, group))

    def start(self, p: Tensor, group: dict[str, Any]) -> State:
        value = group["initial_accumulator_value"]
        return {"step": counter(), "sum": _C.full_like(p, complex(value, value) if p.is_complex() else value)}

    def share_memory(self) -> None:
        """Moves the sums to memory that processes share."""
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["sum"].share_memory_()

    def update(
        self, group: dict[str, Any], params: Sequence[Tensor], grads: Sequence[Tensor], states: Sequence[State]
    ) -> None:
        grads = decayed(params, grads, group["weight_decay"])
        steps, sums = counted(states), listed(states, "sum")
        _C._foreach_addcmul_(sums, grads, grads)
        spreads = kept(_C._foreach_sqrt(sums))
        _C._foreach_add_(spreads, group["eps"])
        rate = number(group["lr"])
        by = [-rate / (1 + (step - 1) * group["lr_decay"]) for step in steps]
        _C._foreach_addcdiv_(params, grads, spreads, by)

    def sparse_update(self, group: dict[str, Any], p: Tensor, grad: Any, state: State) -> None:
        from tensorpy.sparse import _gradients

        _gradients.adagrad(p, grad, state, group)

    def fused_update(
        self, group: dict[str, Any], params: Sequence[Tensor], grads: Sequence[Tensor], states: Sequence[State]
    ) -> None:
        _C._fused_adagrad_(
            params,
            grads,
            listed(states, "sum"),
            self.counted_steps(states),
            lr=number(group["lr"]),
            lr_decay=group["lr_decay"],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            maximize=group["maximize"],
            **self.scaling(),
        )


class Adadelta(ListOptimizer):
    """Steps by the ratio of the mean squares of steps and gradients (Zeiler 2012).

    Arguments:
        params: the parameters, (name, parameter) pairs, or dicts of groups with settings of their own
        lr: the learning rate
        rho: how fast the averages forget
        eps: a small number that keeps divisions in range
        weight_decay: how much of the parameter is added to its gradient
        foreach: whether all parameters are updated by calls on lists; None decides
        capturable: is taken, and changes nothing here
        maximize: whether the objective is maximised
        differentiable: whether autograd records the steps

    Raises: ValueError for no parameters, one that is no leaf, or a setting out of range; TypeError for what is no
        tensor.

    Example:
        >>> x = nn.Parameter(tp.tensor([1.0]))
        >>> optimizer = tp.optim.Adadelta([x], lr=0.1)
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
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check(one_number(lr, "lr") >= 0.0, "learning rate", lr)
        check(0.0 <= rho <= 1.0, "rho value", rho)
        check(eps >= 0.0, "epsilon value", eps)
        check(weight_decay >= 0.0, "weight_decay value", weight_decay)
        super().__init__(params, chosen(locals()))

    def start(self, p: Tensor, group: dict[str, Any]) -> State:
        return {"step": counter(), "square_avg": _C.zeros_like(p), "acc_delta": _C.zeros_like(p)}

    def update(
        self, group: dict[str, Any], params: Sequence[Tensor], grads: Sequence[Tensor], states: Sequence[State]
    ) -> None:
        rho, eps = group["rho"], group["eps"]
        grads = decayed(params, grads, group["weight_decay"])
        counted(states)
        squares, moved = listed(states, "square_avg"), listed(states, "acc_delta")
        _C._foreach_mul_(squares, rho)
        _C._foreach_addcmul_(squares, grads, grads, 1 - rho)
        spreads = _C._foreach_add(squares, eps)
        deltas: Sequence[Tensor] = _C._foreach_add(moved, eps)
        _C._foreach_sqrt_(spreads)
        _C._foreach_sqrt_(deltas)
        deltas = kept(deltas)
        _C._foreach_div_(deltas, spreads)
        _C._foreach_mul_(deltas, grads)
        _C._foreach_mul_(moved, rho)
        _C._foreach_addcmul_(moved, deltas, deltas, 1 - rho)
        _C._foreach_add_(params, deltas, alpha=-number(group["lr"]))


class RMSprop(ListOptimizer):
    """Steps divided by the root of a running mean of squares, or of the variance (Hinton's lecture).

    Arguments:
        params: the parameters, (name, parameter) pairs, or dicts of groups with settings of their own
        lr: the learning rate
        alpha: how fast the average of squares forgets
        eps: a small number that keeps divisions in range
        weight_decay: how much of the parameter is added to its gradient
        momentum: how much of the last step goes into the next
        centered: whether the average gradient is subtracted
        capturable: is taken, and changes nothing here
        foreach: whether all parameters are updated by calls on lists; None decides
        maximize: whether the objective is maximised
        differentiable: whether autograd records the steps

    Raises: ValueError for no parameters, one that is no leaf, or a setting out of range; TypeError for what is no
        tensor.

    Example:
        >>> x = nn.Parameter(tp.tensor([1.0]))
        >>> optimizer = tp.optim.RMSprop([x], lr=0.1)
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
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check(one_number(lr, "lr") >= 0.0, "learning rate", lr)
        check(eps >= 0.0, "epsilon value", eps)
        check(momentum >= 0.0, "momentum value", momentum)
        check(weight_decay >= 0.0, "weight_decay value", weight_decay)
        check(alpha >= 0.0, "alpha value", alpha)
        super().__init__(params, chosen(locals()))

    def start(self, p: Tensor, group: dict[str, Any]) -> State:
        state = {"step": counter(), "square_avg": _C.zeros_like(p)}
        if group["momentum"] > 0:
            state["momentum_buffer"] = _C.zeros_like(p)
        if group["centered"]:
            state["grad_avg"] = _C.zeros_like(p)
        return state

    def update(
        self, group: dict[str, Any], params: Sequence[Tensor], grads: Sequence[Tensor], states: Sequence[State]
    ) -> None:
        rate, alpha, momentum = number(group["lr"]), group["alpha"], group["momentum"]
        grads = decayed(params, grads, group["weight_decay"])
        counted(states)
        squares: Sequence[Tensor] = listed(states, "square_avg")
        _C._foreach_mul_(squares, alpha)
        _C._foreach_addcmul_(squares, grads, grads, 1 - alpha)
        if group["centered"]:
            means = listed(states, "grad_avg")
            _C._foreach_lerp_(means, grads, 1 - alpha)
            squares = _C._foreach_addcmul(squares, kept(means), kept(means), -1)
        spreads = kept(_C._foreach_sqrt(squares))
        _C._foreach_add_(spreads, group["eps"])
        if momentum > 0:
            velocities = listed(states, "momentum_buffer")
            _C._foreach_mul_(velocities, momentum)
            _C._foreach_addcdiv_(velocities, grads, spreads)
            _C._foreach_add_(params, velocities, alpha=-rate)
        else:
            _C._foreach_addcdiv_(params, grads, spreads, -rate)


class Rprop(ListOptimizer):
    """Steps that grow while the gradient keeps its sign and shrink when it turns (Riedmiller & Braun 1993).

    Arguments:
        params: the parameters, (name, parameter) pairs, or dicts of groups with settings of their own
        lr: the learning rate
        etas: the factors of a step that gets smaller and larger
        step_sizes: the smallest and the largest step
        capturable: is taken, and changes nothing here
        foreach: whether all parameters are updated by calls on lists; None decides
        maximize: whether the objective is maximised
        differentiable: whether autograd records the steps

    Raises: ValueError for no parameters, one that is no leaf, or a setting out of range; TypeError for what is no
        tensor.

    Example:
        >>> x = nn.Parameter(tp.tensor([1.0]))
        >>> optimizer = tp.optim.Rprop([x], lr=0.1)
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
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check(one_number(lr, "lr") >= 0.0, "learning rate", lr)
        check(0.0 < etas[0] < 1.0 < etas[1], "eta values", f"{etas[0]}, {etas[1]}")
        super().__init__(params, chosen(locals()))

    def start(self, p: Tensor, group: dict[str, Any]) -> State:
        rate = number(group["lr"])
        first = _C.full_like(p, complex(rate, rate) if p.is_complex() else rate)
        return {"step": counter(), "prev": _C.zeros_like(p), "step_size": first}

    def update(
        self, group: dict[str, Any], params: Sequence[Tensor], grads: Sequence[Tensor], states: Sequence[State]
    ) -> None:
        (less, more), (least, most) = group["etas"], group["step_sizes"]
        counted(states)
        for p, grad, state in zip(params, grads, states, strict=True):
            agreed, size = grad * kept([state["prev"]])[0], state["step_size"]
            factor = _C.ones_like(size).masked_fill(agreed > 0, more).masked_fill(agreed < 0, less)
            size.mul_(factor).clamp_(least, most)
            grad = grad.masked_fill(agreed < 0, 0.0)
            p.addcmul_(grad.sign(), kept([size])[0], value=-1)
            state["prev"].copy_(grad)


class Adafactor(ListOptimizer):
    """Adam whose squares are kept as one number for each row and column (Shazeer & Stern 2018).

    Arguments:
        params: the parameters, (name, parameter) pairs, or dicts of groups with settings of their own
        lr: the learning rate
        beta2_decay: how fast the average of squares stops forgetting
        eps: a small number that keeps divisions in range
        d: the largest root mean square of an update
        weight_decay: how much of the parameter is added to its gradient
        foreach: whether all parameters are updated by calls on lists; None decides
        maximize: whether the objective is maximised

    Raises: ValueError for no parameters, one that is no leaf, or a setting out of range; TypeError for what is no
        tensor.

    Example:
        >>> x = nn.Parameter(tp.tensor([1.0]))
        >>> optimizer = tp.optim.Adafactor([x], lr=0.1)
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
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        check(one_number(lr, "lr") >= 0.0, "learning rate", lr)
        if beta2_decay > 0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and eps[0] < 0.0:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if eps[1] < 0.0:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if d < 1.0:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        check(weight_decay >= 0.0, "weight_decay value", weight_decay)
        super().__init__(params, chosen(locals()))

    def start(self, p: Tensor, group: dict[str, Any]) -> State:
        if p.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        if p.dim() <= 1:
            return {"step": counter(), "variance": _C.zeros_like(p)}
        rows, columns = (*p.shape[:-1], 1), (*p.shape[:-2], 1, p.shape[-1])
        return {"step": counter(), "row_var": p.new_zeros(rows), "col_var": p.new_zeros(columns)}

    def update(
        self, group: dict[str, Any], params: Sequence[Tensor], grads: Sequence[Tensor], states: Sequence[State]
    ) -> None:
        rate, (tiny, least) = number(group["lr"]), group["eps"]
        lengths = [norm.item() / p.numel() ** 0.5 for norm, p in zip(_C._foreach_norm(params), params, strict=True)]
        shrink(params, rate * group["weight_decay"])
        steps = counted(states)
        for p, length, grad, state, step in zip(params, lengths, grads, states, steps, strict=True):
            small = finfo(p.dtype).eps if tiny is None else tiny
            moved = max(least, length) * min(rate, step**-0.5)
            square = self._squares(grad, state, step ** group["beta2_decay"], small)
            update = square.clamp_(min=small * small).rsqrt_().mul_(grad)
            clipped = max(1.0, update.norm().item() / (p.numel() ** 0.5 * group["d"]))
            p.add_(update, alpha=-moved / clipped)

    def _squares(self, grad: Tensor, state: State, share: float, small: float) -> Tensor:
        """The mean squares: of all elements, or those that rows and columns give."""
        square = grad * grad
        if grad.dim() <= 1:
            return state["variance"].lerp_(square, share).clone()
        rows = state["row_var"].lerp_(square.mean(-1, keepdim=True), share)
        columns = state["col_var"].lerp_(square.mean(-2, keepdim=True), share)
        return rows.matmul(columns).div_(rows.mean(-2, keepdim=True).clamp_(min=small))
