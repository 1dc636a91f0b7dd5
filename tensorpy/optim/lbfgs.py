"""L-BFGS: quasi-Newton steps from the last changes of parameters and gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.autograd.grad_mode import enable_grad, no_grad
from tensorpy.optim._line_search import strong_wolfe
from tensorpy.optim.optimizer import Optimizer, ParamsT, check, chosen, number, one_number

__all__ = ["LBFGS"]


def _number(loss: Any) -> float:
    return float(loss.detach() if isinstance(loss, Tensor) else loss)


class LBFGS(Optimizer):
    """L-BFGS (Nocedal & Wright, algorithm 7.4), with steps of the learning rate or by a line search, "strong_wolfe".

    All parameters are one group; each step calls the closure, which computes the loss, several times.

    Arguments:
        params: the parameters, (name, parameter) pairs, or dicts of groups with settings of their own
        lr: the learning rate
        max_iter: how many iterations a step has at most
        max_eval: how many evaluations a step has at most
        tolerance_grad: the gradient at which it ends
        tolerance_change: the change at which it ends
        history_size: how many updates are kept
        line_search_fn: None or 'strong_wolfe'

    Raises: ValueError for no parameters, or groups of them; TypeError for what is no tensor.

    Example:
        >>> x = nn.Parameter(tp.tensor([1.0]))
        >>> optimizer = tp.optim.LBFGS([x])
        >>> def loss():
        ...     optimizer.zero_grad()
        ...     y = ((x - 3) ** 2).sum()
        ...     y.backward()
        ...     return y
        >>> first = optimizer.step(loss)
        >>> x.detach().round(decimals=2)
        tensor([3.])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check(one_number(lr, "lr") >= 0.0, "learning rate", lr)
        max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        super().__init__(params, chosen(locals()))
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params: list[Tensor] = self.param_groups[0]["params"]

    # ---- all parameters as one vector ----

    def _flat_grad(self) -> Tensor:
        parts = [_C.zeros_like(p) if p.grad is None else p.grad for p in self._params]
        parts = [g if g.layout is _C.strided else g.to_dense() for g in parts]
        return _C.cat([(_C.view_as_real(g) if g.is_complex() else g).reshape(-1) for g in parts])

    def _move(self, size: float, direction: Tensor) -> None:
        begin = 0
        for p in self._params:
            real = _C.view_as_real(p) if p.is_complex() else p
            real.add_(direction[begin : begin + real.numel()].view_as(real), alpha=size)
            begin += real.numel()

    def _evaluated(self, closure: Callable[[], Any], start: list[Tensor], size: float, direction: Tensor) -> Any:
        """Loss and gradient a step away; the parameters go back to where they were."""
        self._move(size, direction)
        loss, grad = _number(closure()), self._flat_grad()
        for p, value in zip(self._params, start, strict=True):
            p.copy_(value)
        return loss, grad

    # ---- the step ----

    @no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Moves the parameters up to max_iter times.

        Returns: the loss before the step.
        """
        if closure is None:
            raise TypeError("LBFGS.step() needs a closure that computes the loss")
        evaluate: Callable[[], Any] = enable_grad()(closure)
        group, state = self.param_groups[0], self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first = evaluate()
        loss, grad = _number(first), self._flat_grad()
        evaluations = 1
        state["func_evals"] += 1
        if _largest(grad) <= group["tolerance_grad"]:
            return first
        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            direction = self._direction(state, grad, group["history_size"])
            state["prev_flat_grad"], state["prev_loss"] = grad.clone(), loss
            rate = number(group["lr"])
            size = rate / max(1.0, float(grad.abs().sum())) if state["n_iter"] == 1 else rate
            slope = float(grad.dot(direction))
            if slope > -group["tolerance_change"]:
                break
            before = loss
            loss, grad, size, calls = self._advanced(evaluate, loss, grad, size, direction, slope, iteration)
            state["d"], state["t"] = direction, size
            evaluations += calls
            state["func_evals"] += calls
            if iteration == group["max_iter"] or evaluations >= group["max_eval"]:
                break
            if _largest(grad) <= group["tolerance_grad"]:
                break
            if _largest(direction) * abs(size) <= group["tolerance_change"]:
                break
            if abs(loss - before) < group["tolerance_change"]:
                break
        return first

    def _direction(self, state: dict[str, Any], grad: Tensor, history: int) -> Tensor:
        """Minus the gradient, times an inverse Hessian from the pairs of changes so far."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return grad.neg()
        change, step = grad.sub(state["prev_flat_grad"]), state["d"].mul(state["t"])
        curvature = float(change.dot(step))
        old, steps, inverse = state["old_dirs"], state["old_stps"], state["ro"]
        if curvature > 1e-10:
            if len(old) == history:
                for kept in (old, steps, inverse):
                    kept.pop(0)
            old.append(change)
            steps.append(step)
            inverse.append(1.0 / curvature)
            state["H_diag"] = curvature / float(change.dot(change))
        shares = state.setdefault("al", [None] * history)
        q = grad.neg()
        inverse = [float(r) for r in inverse]  # a state of torch has tensors
        for i in reversed(range(len(old))):
            shares[i] = float(steps[i].dot(q)) * inverse[i]
            q.add_(old[i], alpha=-shares[i])
        q = q * state["H_diag"]
        for i in range(len(old)):
            q.add_(steps[i], alpha=shares[i] - float(old[i].dot(q)) * inverse[i])
        return q

    def _advanced(
        self,
        closure: Callable[[], Any],
        loss: float,
        grad: Tensor,
        size: float,
        direction: Tensor,
        slope: float,
        iteration: int,
    ) -> tuple[float, Tensor, float, int]:
        """Moves along a direction; the new loss and gradient, how far, and with how many calls."""
        group = self.param_groups[0]
        if group["line_search_fn"] is None:
            self._move(size, direction)
            if iteration == group["max_iter"]:
                return loss, grad, size, 0
            return _number(closure()), self._flat_grad(), size, 1
        if group["line_search_fn"] != "strong_wolfe":
            raise RuntimeError("only 'strong_wolfe' is supported")
        start = [p.clone() for p in self._params]
        found = strong_wolfe(
            lambda t: self._evaluated(closure, start, t, direction),
            size,
            _largest(direction),
            direction,
            loss,
            grad,
            slope,
            tolerance_change=group["tolerance_change"],
        )
        self._move(found[2], direction)
        return found


def _largest(t: Tensor) -> float:
    return float(t.abs().max())
