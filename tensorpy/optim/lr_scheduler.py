"""Schedules of learning rates.

`get_lr` goes from the rates of now to those of the next epoch, so that several schedules work on one optimizer;
`_get_closed_form_lr`, where there is one, gives the rates of any epoch.
"""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any

from tensorpy._C import Tensor
from tensorpy._package import proposing as _proposing
from tensorpy.optim.optimizer import Optimizer, number

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]


EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. "
    "Please use `scheduler.step()`: the scheduler counts the epochs itself"
)


def _put(group: dict[str, Any], name: str, value: Any) -> None:
    """A setting that is a tensor is changed in place."""
    if isinstance(group[name], Tensor):
        group[name].fill_(number(value))
    else:
        group[name] = value


def _function(method: Any) -> Any:
    return getattr(method, "__func__", method)


def _own(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value


def _asked_in_step(rates: Callable[[Any], list[Any]]) -> Callable[[Any], list[Any]]:
    """A get_lr() that warns outside of step(): what it gives is the rates of the next epoch, not the last ones."""

    @wraps(rates)
    def get_lr(self: Any) -> list[Any]:
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.", stacklevel=2
            )
        return rates(self)

    return get_lr


def _undo(scheduler: Any) -> None:
    """Takes back the epoch that a schedule began with, or those that its parts did."""
    if isinstance(scheduler, ChainedScheduler):
        for part in scheduler._schedulers:
            _undo(part)
    else:
        scheduler.last_epoch -= 1


class LRScheduler:
    """What schedules of learning rates have in common: the epoch, the last rates, state_dict.

    Arguments:
        optimizer: the optimizer whose learning rates change
        last_epoch: the epoch that was the last; -1 begins

    Raises: TypeError for what is no Optimizer, KeyError for a last_epoch from 0 on where groups have no initial_lr.

    Example:
        >>> issubclass(tp.optim.lr_scheduler.StepLR, tp.optim.lr_scheduler.LRScheduler)
        True
    """

    last_epoch: int
    _last_lr: list[Any]
    _get_lr_called_within_step = False  # schedules of programs look whether it is step() that asks for rates
    _is_initial = False  # and whether it is the first of all

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _own(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with "
                    "last_epoch >= 0"
                )
        self.base_lrs: list[Any] = [_own(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        self.optimizer._scheduled_step = _function(self.optimizer.step)
        try:
            self.step()
        finally:
            self._is_initial = False

    def _rates(self) -> list[Any]:
        return [_own(group["lr"]) for group in self.optimizer.param_groups]

    def _scaled(self, factor: float) -> list[Any]:
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes the attributes of a state_dict."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Any]:
        """The rates that were written last."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """The rates of this epoch, from those of the one before."""
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        """Goes on to the next epoch."""
        step = _function(self.optimizer.step)
        if self._step_count == 1 and getattr(self.optimizer, "_scheduled_step", step) is not step:
            warnings.warn(
                "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization, so no "
                "one sees whether it is called before `lr_scheduler.step()` (how-to-adjust-learning-rate in PyTorch's "
                "pages shows the order)",
                stacklevel=2,
            )
        elif self._step_count == 1 and not getattr(self.optimizer, "_opt_called", False):
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`: the first value of the schedule is "
                "skipped (how-to-adjust-learning-rate in PyTorch's pages shows the order)",
                stacklevel=2,
            )
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        rates = self.get_lr
        if epoch is not None:
            rates = getattr(self, "_get_closed_form_lr", rates)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self._write(rates)

    def _write(self, rates: Callable[[], list[Any]]) -> None:
        """Writes what a function gives into the groups."""
        self._get_lr_called_within_step = True
        try:
            given = rates()
        finally:
            self._get_lr_called_within_step = False
        for group, rate in zip(self.optimizer.param_groups, given, strict=True):
            _put(group, "lr", rate)
        self._last_lr = self._rates()


# ---- rates by a function ----


def _is_object(function: Any) -> bool:
    """Whether a function is an object with a state of its own."""
    return not isinstance(function, type(lambda: None))


class _LRScheduler(LRScheduler):
    """LRScheduler by its older name, for classes of users."""


class _ByFunction(LRScheduler):
    def __init__(
        self, optimizer: Optimizer, lr_lambda: Callable[[int], float] | Sequence[Any], last_epoch: int = -1
    ) -> None:
        groups = len(optimizer.param_groups)
        if isinstance(lr_lambda, (list, tuple)):
            if len(lr_lambda) != groups:
                raise ValueError(f"Expected {groups} lr_lambdas, but got {len(lr_lambda)}")
            self.lr_lambdas: list[Any] = list(lr_lambda)
        else:
            self.lr_lambdas = [lr_lambda] * groups
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimizer; of functions only those that are objects keep a state."""
        state = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "lr_lambdas")}
        state["lr_lambdas"] = [dict(f.__dict__) if _is_object(f) else None for f in self.lr_lambdas]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes the attributes of a state_dict, and the functions' states."""
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "lr_lambdas"})
        for function, state in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=True):
            if state is not None:
                function.__dict__.update(state)


class LambdaLR(_ByFunction):
    """The first rates times a function of the epoch.

    Arguments:
        optimizer: the optimizer whose learning rates change
        lr_lambda: a function of the epoch that gives a factor, or a list with one for each group
        last_epoch: the epoch that was the last; -1 begins

    Raises: TypeError for what is no Optimizer, ValueError for other than one function for each group.

    Example:
        >>> optimizer = tp.optim.SGD([nn.Parameter(tp.ones(1))], lr=1.0)
        >>> schedule = tp.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5**epoch)
        >>> optimizer.step()
        >>> schedule.step()
        >>> schedule.get_last_lr()
        [0.5]
    """

    @_asked_in_step
    def get_lr(self) -> list[Any]:
        return [base * f(self.last_epoch) for base, f in zip(self.base_lrs, self.lr_lambdas, strict=True)]


class MultiplicativeLR(_ByFunction):
    """The rates times a function of the epoch, at each epoch.

    Arguments:
        optimizer: the optimizer whose learning rates change
        lr_lambda: a function of the epoch that gives a factor, or a list with one for each group
        last_epoch: the epoch that was the last; -1 begins

    Raises: TypeError for what is no Optimizer or function, ValueError for other than one function for each group.

    Example:
        >>> optimizer = tp.optim.SGD([nn.Parameter(tp.ones(1))], lr=1.0)
        >>> schedule = tp.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5**epoch)
        >>> optimizer.step()
        >>> schedule.step()
        >>> schedule.get_last_lr()
        [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | list[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        for given in lr_lambda if isinstance(lr_lambda, (list, tuple)) else [lr_lambda]:
            if not callable(given):
                raise TypeError(f"lr_lambda should be a function, but got {type(given).__name__}")
        super().__init__(optimizer, lr_lambda, last_epoch)

    @_asked_in_step
    def get_lr(self) -> list[Any]:
        if self._is_initial:
            return self._rates()
        pairs = zip(self.optimizer.param_groups, self.lr_lambdas, strict=True)
        return [group["lr"] * f(self.last_epoch) for group, f in pairs]


# ---- rates by a formula ----


class StepLR(LRScheduler):
    """Times gamma every step_size epochs.

    Arguments:
        optimizer: the optimizer whose learning rates change
        step_size: how many epochs lie between two changes
        gamma: the factor
        last_epoch: the epoch that was the last; -1 begins

    Raises: TypeError for what is no Optimizer, KeyError for a last_epoch from 0 on where groups have no initial_lr.

    Example:
        >>> optimizer = tp.optim.SGD([nn.Parameter(tp.ones(1))], lr=1.0)
        >>> schedule = tp.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
        >>> optimizer.step()
        >>> schedule.step()
        >>> schedule.get_last_lr()
        [0.5]
    """

    gamma: float
    step_size: int

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    @_asked_in_step
    def get_lr(self) -> list[Any]:
        return self._scaled(1.0 if self.last_epoch == 0 or self.last_epoch % self.step_size else self.gamma)

    def _get_closed_form_lr(self) -> list[Any]:
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Times gamma at each of some epochs.

    Arguments:
        optimizer: the optimizer whose learning rates change
        milestones: the epochs at which it changes
        gamma: the factor
        last_epoch: the epoch that was the last; -1 begins

    Raises: TypeError for what is no Optimizer, KeyError for a last_epoch from 0 on where groups have no initial_lr.

    Example:
        >>> optimizer = tp.optim.SGD([nn.Parameter(tp.ones(1))], lr=1.0)
        >>> schedule = tp.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 3], gamma=0.5)
        >>> optimizer.step()
        >>> schedule.step()
        >>> schedule.get_last_lr()
        [0.5]
    """

    gamma: float
    milestones: Any

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    @_asked_in_step
    def get_lr(self) -> list[Any]:
        return self._scaled(self.gamma ** self.milestones[self.last_epoch])

    def _get_closed_form_lr(self) -> list[Any]:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * self.gamma**passed for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """Times a factor for the first total_iters epochs.

    Arguments:
        optimizer: the optimizer whose learning rates change
        factor: the factor
        total_iters: how many epochs it takes
        last_epoch: the epoch that was the last; -1 begins

    Raises: TypeError for what is no Optimizer, ValueError for a factor outside [0, 1].

    Example:
        >>> optimizer = tp.optim.SGD([nn.Parameter(tp.ones(1))], lr=1.0)
        >>> schedule = tp.optim.lr_scheduler.ConstantLR(optimizer, total_iters=4)
        >>> schedule.get_last_lr()
        [0.3333333333333333]
        >>> for _ in range(4):
        ...     optimizer.step()
        ...     schedule.step()
        >>> schedule.get_last_lr()
        [1.0]
    """

    factor: float
    total_iters: int

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if not 0 <= factor <= 1.0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    @_asked_in_step
    def get_lr(self) -> list[Any]:
        if self.last_epoch == 0:
            return self._scaled(self.factor)
        return self._scaled(1.0 / self.factor if self.last_epoch == self.total_iters else 1.0)

    def _get_closed_form_lr(self) -> list[Any]:
        factor = 1.0 if self.last_epoch >= self.total_iters else self.factor
        return [base * factor for base in self.base_lrs]


class LinearLR(LRScheduler):
    """Times a factor that goes from start_factor to end_factor in total_iters epochs.

    Arguments:
        optimizer: the optimizer whose learning rates change
        start_factor: the factor at first
        end_factor: the factor at the end
        total_iters: how many epochs it takes
        last_epoch: the epoch that was the last; -1 begins

    Raises: TypeError for what is no Optimizer, ValueError for a start_factor outside (0, 1] or an end_factor outside
        [0, 1].

    Example:
        >>> optimizer = tp.optim.SGD([nn.Parameter(tp.ones(1))], lr=1.0)
        >>> schedule = tp.optim.lr_scheduler.LinearLR(optimizer, total_iters=4)
        >>> schedule.get_last_lr()
        [0.3333333333333333]
        >>> for _ in range(4):
        ...     optimizer.step()
        ...     schedule.step()
        >>> schedule.get_last_lr()
        [1.0]
    """

    end_factor: float
    start_factor: float
    total_iters: int

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1.0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if not 0 <= end_factor <= 1.0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch: int) -> float:
        share = min(self.total_iters, epoch) / self.total_iters
        return self.start_factor + (self.end_factor - self.start_factor) * share

    @_asked_in_step
    def get_lr(self) -> list[Any]:
        if self.last_epoch == 0:
            return self._scaled(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._rates()
        change = self.end_factor - self.start_factor  # the quotient of two factors, rounded as PyTorch's
        return self._scaled(1.0 + change / (self.total_iters * self.start_factor + (self.last_epoch - 1) * change))

    def _get_closed_form_lr(self) -> list[Any]:
        return [base * self._factor(self.last_epoch) for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Times gamma at every epoch.

    Arguments:
        optimizer: the optimizer whose learning rates change
        gamma: the factor
        last_epoch: the epoch that was the last; -1 begins

    Raises: TypeError for what is no Optimizer, KeyError for a last_epoch from 0 on where groups have no initial_lr.

    Example:
        >>> optimizer = tp.optim.SGD([nn.Parameter(tp.ones(1))], lr=1.0)
        >>> schedule = tp.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        >>> optimizer.step()
        >>> schedule.step()
        >>> schedule.get_last_lr()
        [0.5]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    @_asked_in_step
    def get_lr(self) -> list[Any]:
        return self._scaled(1.0 if self._is_initial else self.gamma)

    def _get_closed_form_lr(self) -> list[Any]:
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """Falls to zero in total_iters epochs, by a power of what is left.

    Arguments:
        optimizer: the optimizer whose learning rates change
        total_iters: how many epochs it takes
        power: the exponent
        last_epoch: the epoch that was the last; -1 begins

    Raises: TypeError for what is no Optimizer, KeyError for a last_epoch from 0 on where groups have no initial_lr.

    Example:
        >>> optimizer = tp.optim.SGD([nn.Parameter(tp.ones(1))], lr=1.0)
        >>> schedule = tp.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4)
        >>> schedule.get_last_lr()
        [1.0]
        >>> for _ in range(4):
        ...     optimizer.step()
        ...     schedule.step()
        >>> schedule.get_last_lr()
        [0.0]
    """

    power: float
    total_iters: int

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch: int) -> float:
        return (1.0 - min(self.total_iters, epoch) / self.total_iters) ** self.power

    @_asked_in_step
    def get_lr(self) -> list[Any]:
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._rates()
        return self._scaled(self._factor(self.last_epoch) / self._factor(self.last_epoch - 1))

    def _get_closed_form_lr(self) -> list[Any]:
        return [base * self._factor(self.last_epoch) for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the first rate to eta_min in T_max epochs, and back (Loshchilov & Hutter 2017).

    Arguments:
        optimizer: the optimizer whose learning rates change
        T_max: how many epochs it takes to reach eta_min
        eta_min: the smallest learning rate
        last_epoch: the epoch that was the last; -1 begins

    Raises: TypeError for what is no Optimizer, KeyError for a last_epoch from 0 on where groups have no initial_lr.

    Example:
        >>> optimizer = tp.optim.SGD([nn.Parameter(tp.ones(1))], lr=1.0)
        >>> schedule = tp.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
        >>> optimizer.step()
        >>> schedule.step()
        >>> schedule.get_last_lr()
        [0.5]
    """

    T_max: int
    eta_min: float

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def _height(self, epoch: int) -> float:
        return 1 + math.cos(math.pi * epoch / self.T_max)

    @_asked_in_step
    def get_lr(self) -> list[Any]:
        if self._is_initial:
            return self._rates()
        if self._step_count == 1 and self.last_epoch > 0:
            return self._get_closed_form_lr()
        groups = zip(self.base_lrs, self.optimizer.param_groups, strict=True)
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # from the lowest point
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [group["lr"] + (base - self.eta_min) * rise for base, group in groups]
        ratio = self._height(self.last_epoch) / self._height(self.last_epoch - 1)
        return [ratio * (group["lr"] - self.eta_min) + self.eta_min for _, group in groups]

    def _get_closed_form_lr(self) -> list[Any]:
        height = self._height(self.last_epoch) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half cosines, each T_mult times as long as the one before (Loshchilov & Hutter 2017).

    Arguments:
        optimizer: the optimizer whose learning rates change
        T_0: how many epochs the first cycle has
        T_mult: how many times longer each further cycle is
        eta_min: the smallest learning rate
        last_epoch: the epoch that was the last; -1 begins

    Raises: TypeError for what is no Optimizer, ValueError for a T_0 or T_mult below 1.

    Example:
        >>> optimizer = tp.optim.SGD([nn.Parameter(tp.ones(1))], lr=1.0)
        >>> schedule = tp.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
        >>> optimizer.step()
        >>> schedule.step()
        >>> schedule.get_last_lr()
        [0.5]
    """

    T_i: Any
    T_mult: int
    eta_min: float
    last_epoch: int

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0, self.T_i, self.T_mult, self.eta_min = T_0, T_0, T_mult, eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    @_asked_in_step
    def get_lr(self) -> list[Any]:
        height = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Goes on to the next epoch, or to any, also to a part of one."""
        if epoch is None:
            epoch = max(self.last_epoch + 1, 0)
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            if epoch < 0:
                raise ValueError(f"Expected non-negative epoch, but got {epoch}")
            self._find(epoch)
        self.last_epoch = math.floor(epoch)
        self._write(self.get_lr)

    def _find(self, epoch: float) -> None:
        """The cosine that an epoch is in, and where."""
        self.T_i, self.T_cur = self.T_0, epoch
        if epoch < self.T_0:
            return
        if self.T_mult == 1:
            self.T_cur = epoch % self.T_0
            return
        n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
        self.T_cur = epoch - self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
        self.T_i = self.T_0 * self.T_mult**n


# ---- rates and momenta that go up and down ----


def _for_groups(optimizer: Optimizer, name: str, value: Any) -> list[Any]:
    """One value for each group."""
    groups = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [_own(value) for _ in range(groups)]
    if len(value) != groups:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups: expected {groups}, got {len(value)}"
        )
    return list(map(_own, value))


def _put_momentum(group: dict[str, Any], value: float) -> None:
    if "betas" in group:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


def _check_momentum(optimizer: Optimizer) -> None:
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")


class CyclicLR(LRScheduler):
    """Between two rates, up and down (Smith 2017); the momentum the other way.

    Arguments:
        optimizer: the optimizer whose learning rates change
        base_lr: the smallest learning rate, for all groups or for each
        max_lr: the largest learning rate, for all groups or for each
        step_size_up: how many steps the rate goes up
        step_size_down: how many steps it goes down; None takes step_size_up
        mode: 'triangular', 'triangular2' or 'exp_range'
        gamma: the factor
        scale_fn: a function that shapes cycles, instead of mode
        scale_mode: 'cycle' or 'iterations': what scale_fn takes
        cycle_momentum: whether momentum goes against the learning rate
        base_momentum: the smallest momentum
        max_momentum: the largest momentum
        last_epoch: the epoch that was the last; -1 begins

    Raises: TypeError for what is no Optimizer, ValueError for an unknown mode.

    Example:
        >>> optimizer = tp.optim.SGD([nn.Parameter(tp.ones(1))], lr=1.0, momentum=0.9)
        >>> schedule = tp.optim.lr_scheduler.CyclicLR(optimizer, base_lr=0.0, max_lr=1.0, step_size_up=2)
        >>> optimizer.step()
        >>> schedule.step()
        >>> schedule.get_last_lr()
        [0.5]
    """

    base_lrs: Any
    base_momentums: Any
    gamma: float
    max_lrs: Any
    max_momentums: Any
    mode: str
    scale_mode: Any
    step_ratio: Any
    total_size: float
    use_beta1: bool

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        if last_epoch == -1:
            for rate, group in zip(_for_groups(optimizer, "base_lr", base_lr), optimizer.param_groups, strict=True):
                _put(group, "lr", rate)
        self.max_lrs = _for_groups(optimizer, "max_lr", max_lr)
        down = step_size_up if step_size_down is None else step_size_down
        self.total_size = float(step_size_up + down)
        self.step_ratio = step_size_up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode, self.gamma = mode, gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            _check_momentum(optimizer)
            self.use_beta1 = "betas" in optimizer.defaults
            self.base_momentums = _for_groups(optimizer, "base_momentum", base_momentum)
            self.max_momentums = _for_groups(optimizer, "max_momentum", max_momentum)
            if last_epoch == -1:
                for momentum, group in zip(self.max_momentums, optimizer.param_groups, strict=True):
                    _put_momentum(group, momentum)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = _for_groups(optimizer, "base_lr", base_lr)

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimizer; a function is kept only if it is an object, by its attributes."""
        state, function = super().state_dict(), self._scale_fn_custom
        if function is not None:
            state["_scale_fn_custom"] = dict(function.__dict__) if _is_object(function) else None
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes the attributes of a state_dict, and the function's state."""
        function, state = self._scale_fn_custom, state_dict.get("_scale_fn_custom")
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "_scale_fn_custom"})
        if function is not None and state is not None:
            function.__dict__.update(state)

    def scale_fn(self, x: float) -> float:
        """How high a cycle, or the iteration, reaches."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        return self._scale_fn_ref(self, x)

    @property
    def _scale_fn_ref(self) -> Callable[[Any, float], float]:
        """The mode's function, of a scheduler and what scale_fn takes."""
        found: Callable[[Any, float], float] = getattr(CyclicLR, f"_{self.mode}_scale_fn")
        return found

    def _triangular_scale_fn(self, x: float) -> float:
        return 1.0

    def _triangular2_scale_fn(self, x: float) -> float:
        return 1 / (2.0 ** (x - 1))

    def _exp_range_scale_fn(self, x: float) -> float:
        return self.gamma**x

    @_asked_in_step
    def get_lr(self) -> list[Any]:
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            triples = zip(self.base_momentums, self.max_momentums, self.optimizer.param_groups, strict=True)
            for low, high, group in triples:
                _put_momentum(group, high - (high - low) * height)
        return [low + (high - low) * height for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]


class OneCycleLR(LRScheduler):
    """Once up and far down, the momentum the other way (Smith & Topin 2019).

    Arguments:
        optimizer: the optimizer whose learning rates change
        max_lr: the largest learning rate, for all groups or for each
        total_steps: how many steps there are; or epochs and steps_per_epoch
        epochs: how many epochs there are
        steps_per_epoch: how many steps an epoch has
        pct_start: the part of the steps in which the rate goes up
        anneal_strategy: 'cos' or 'linear'
        cycle_momentum: whether momentum goes against the learning rate
        base_momentum: the smallest momentum
        max_momentum: the largest momentum
        div_factor: how many times smaller the rate is at first
        final_div_factor: how many times smaller still it is at the end
        three_phase: whether a third phase follows in which it falls further
        last_epoch: the epoch that was the last; -1 begins

    Raises: TypeError for what is no Optimizer, ValueError for no number of steps, a pct_start outside [0, 1], or an
        unknown anneal_strategy.

    Example:
        >>> optimizer = tp.optim.SGD([nn.Parameter(tp.ones(1))], lr=1.0, momentum=0.9)
        >>> schedule = tp.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=10)
        >>> optimizer.step()
        >>> schedule.step()
        >>> schedule.get_last_lr()[0] < 1
        True
    """

    # of each phase its end, and the group's settings at its begin and end
    total_steps: int
    use_beta1: bool
    _PHASE = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
            for name, value in (("epochs", epochs), ("steps_per_epoch", steps_per_epoch)):
                if not isinstance(value, int) or value <= 0:
                    raise ValueError(f"Expected positive integer {name}, but got {value}")
            total_steps = epochs * steps_per_epoch
        if not isinstance(total_steps, int) or total_steps <= 0:
            raise ValueError(f"Expected positive integer total_steps, but got {total_steps}")
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self.total_steps, self._anneal_func_type = total_steps, anneal_strategy
        up, end = float(pct_start * total_steps) - 1, total_steps - 1
        phases: list[tuple[Any, ...]] = [(up, "initial_lr", "max_lr", "max_momentum", "base_momentum")]
        if three_phase:
            down = float(2 * pct_start * total_steps) - 2
            phases += [
                (down, "max_lr", "initial_lr", "base_momentum", "max_momentum"),
                (end, "initial_lr", "min_lr", "max_momentum", "max_momentum"),
            ]
        else:
            phases += [(end, "max_lr", "min_lr", "base_momentum", "max_momentum")]
        self._schedule_phases: list[dict[str, Any]] = [dict(zip(self._PHASE, phase, strict=True)) for phase in phases]
        if last_epoch == -1:
            for highest, group in zip(_for_groups(optimizer, "max_lr", max_lr), optimizer.param_groups, strict=True):
                group["initial_lr"] = highest / div_factor
                group["max_lr"] = highest
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            _check_momentum(optimizer)
            self.use_beta1 = "betas" in optimizer.defaults
            if last_epoch == -1:
                lows = _for_groups(optimizer, "base_momentum", base_momentum)
                highs = _for_groups(optimizer, "max_momentum", max_momentum)
                for low, high, group in zip(lows, highs, optimizer.param_groups, strict=True):
                    _put_momentum(group, high)
                    group["max_momentum"], group["base_momentum"] = high, low
        super().__init__(optimizer, last_epoch)

    @staticmethod
    def _annealing_cos(start: float, end: float, pct: float) -> float:
        return end + (start - end) / 2.0 * (math.cos(math.pi * pct) + 1)

    @staticmethod
    def _annealing_linear(start: float, end: float, pct: float) -> float:
        return (end - start) * pct + start

    def _anneal_func(self, start: float, end: float, pct: float) -> float:
        kind = getattr(self, "_anneal_func_type", None)
        if kind is None:  # states of older files have the function itself
            return vars(self)["anneal_func"](start, end, pct)
        return self._annealing_linear(start, end, pct) if kind == "linear" else self._annealing_cos(start, end, pct)

    @_asked_in_step
    def get_lr(self) -> list[Any]:
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        rates = []
        for group in self.optimizer.param_groups:
            begin = 0.0
            for i, phase in enumerate(self._schedule_phases):
                end, from_lr, to_lr, from_momentum, to_momentum = (phase[key] for key in self._PHASE)
                if step <= end or i == len(self._schedule_phases) - 1:
                    share = (step - begin) / (end - begin)
                    rates.append(self._anneal_func(group[from_lr], group[to_lr], share))
                    if self.cycle_momentum:
                        _put_momentum(group, self._anneal_func(group[from_momentum], group[to_momentum], share))
                    break
                begin = end
        return rates


# ---- schedules of schedules ----


class SequentialLR(LRScheduler):
    """One schedule after the other, at given epochs.

    Arguments:
        optimizer: the optimizer whose learning rates change
        schedulers: the schedules, in order
        milestones: the epochs at which it changes
        last_epoch: the epoch that was the last; -1 begins

    Raises: ValueError for no schedulers, ones of several optimizers, or other than one milestone less; TypeError for
        what is no scheduler.

    Example:
        >>> from tensorpy.optim.lr_scheduler import ConstantLR, ExponentialLR, SequentialLR
        >>> optimizer = tp.optim.SGD([nn.Parameter(tp.ones(1))], lr=1.0)
        >>> parts = [ConstantLR(optimizer, factor=0.5, total_iters=2), ExponentialLR(optimizer, gamma=0.5)]
        >>> schedule = SequentialLR(optimizer, parts, milestones=[2])
        >>> schedule.get_last_lr()
        [0.5]
    """

    last_epoch: int

    def __init__(
        self, optimizer: Optimizer, schedulers: list[Any], milestones: list[int], last_epoch: int = -1
    ) -> None:
        if not schedulers:
            raise ValueError(f"{type(self).__name__} expects at least one scheduler, but got no scheduler.")
        for i, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(f"{type(self).__name__} at index {i} should have `optimizer` as its attribute.")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(f"{type(self).__name__} does not support `ReduceLROnPlateau` scheduler, at index {i}")
            if scheduler.optimizer is not optimizer:
                raise ValueError(f"{type(self).__name__} expects all schedulers to belong to the same optimizer")
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of "
                f"milestone points, but got number of schedulers {len(schedulers)} and the number of milestones to be "
                f"equal to {len(milestones)}"
            )
        self._schedulers, self._milestones = schedulers, milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        for group in optimizer.param_groups:  # what each of them did when it was made
            _put(group, "lr", _own(group["initial_lr"]))
        for scheduler in schedulers:
            _undo(scheduler)
        schedulers[0]._initial_step()
        self._last_lr = schedulers[0].get_last_lr()

    def step(self) -> None:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimizer, and the states of the schedules."""
        return _nested_state(self)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes the attributes of a state_dict, and the states of the schedules."""
        _load_nested(self, state_dict)


class ChainedScheduler(LRScheduler):
    """Several schedules at once, each on what the one before made of the rates.

    Arguments:
        schedulers: the schedules, in order
        optimizer: the optimizer whose learning rates change

    Raises: ValueError for no schedulers, or ones of several optimizers; TypeError for what is no scheduler.

    Example:
        >>> from tensorpy.optim.lr_scheduler import ChainedScheduler, ConstantLR, ExponentialLR
        >>> optimizer = tp.optim.SGD([nn.Parameter(tp.ones(1))], lr=1.0)
        >>> parts = [ConstantLR(optimizer, factor=0.5, total_iters=2), ExponentialLR(optimizer, gamma=0.5)]
        >>> schedule = ChainedScheduler(parts)
        >>> schedule.get_last_lr()
        [0.5]
    """

    optimizer: Any

    def __init__(self, schedulers: Sequence[Any], optimizer: Optimizer | None = None) -> None:
        if not schedulers:
            raise ValueError(f"{type(self).__name__} expects at least one scheduler, but got no scheduler.")
        self.optimizer = optimizer or schedulers[0].optimizer
        for i, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(f"{type(self).__name__} at index {i} should have `optimizer` as its attribute.")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(f"{type(self).__name__} does not support `ReduceLROnPlateau` scheduler, at index {i}")
            if scheduler.optimizer is not self.optimizer:
                raise ValueError(f"{type(self).__name__} expects all schedulers to belong to the same optimizer")
        self._schedulers = schedulers
        self._last_lr = self._rates()

    def step(self) -> None:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._rates()

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimizer, and the states of the schedules."""
        return _nested_state(self)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes the attributes of a state_dict, and the states of the schedules."""
        _load_nested(self, state_dict)


def _nested_state(self: Any) -> dict[str, Any]:
    state = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "_schedulers")}
    return {**state, "_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}


def _load_nested(self: Any, state_dict: dict[str, Any]) -> None:
    self.__dict__.update({k: v for k, v in state_dict.items() if k != "_schedulers"})
    for scheduler, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
        scheduler.load_state_dict(state)


# ---- rates by what is measured ----


class ReduceLROnPlateau(LRScheduler):
    """Times a factor when what is measured has not become better for `patience` epochs.

    Arguments:
        optimizer: the optimizer whose learning rates change
        mode: 'min' or 'max': whether the metric should fall or grow
        factor: the factor
        patience: how many epochs without progress it waits
        threshold: by how much a figure has to be better to count
        threshold_mode: 'rel' or 'abs': what threshold is measured by
        cooldown: how many epochs it waits behind a change
        min_lr: the smallest learning rate, for all groups or for each
        eps: the smallest change of a rate that is made

    Raises: TypeError for what is no Optimizer, ValueError for a factor from 1 on, or an unknown mode.

    Example:
        >>> optimizer = tp.optim.SGD([nn.Parameter(tp.ones(1))], lr=1.0)
        >>> schedule = tp.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
        >>> for loss in (1.0, 1.0):
        ...     schedule.step(loss)
        >>> schedule.get_last_lr()
        [0.1]
    """

    best: Any
    cooldown: int
    cooldown_counter: Any
    default_min_lr: Any
    eps: float
    factor: float
    last_epoch: int
    min_lrs: Any
    mode_worse: Any
    num_bad_epochs: int
    optimizer: Optimizer
    patience: int
    threshold: float

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: list[float] | float = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.factor, self.optimizer = factor, optimizer
        self.min_lrs = _for_groups(optimizer, "min_lr", min_lr)
        self.default_min_lr = None if isinstance(min_lr, (list, tuple)) else min_lr
        self.patience, self.cooldown, self.eps = patience, cooldown, eps
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode
        self.last_epoch = 0
        self._last_lr = self._rates()
        self._reset()

    def _reset(self) -> None:
        self.mode_worse = math.inf if self.mode == "min" else -math.inf  # what everything is better than
        self.best = self.mode_worse
        self.cooldown_counter = self.num_bad_epochs = 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        """Takes the measurement of an epoch."""
        measured = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(measured, self.best):
            self.best, self.num_bad_epochs = measured, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr(self.last_epoch)
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._rates()

    def _reduce_lr(self, epoch: int) -> None:  # libraries override it
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the optimizer, {len(groups)}, is another than that of min_lrs, "
                    f"{len(self.min_lrs)}: append to min_lrs what a new group may not fall below"
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, least)
            if old - new > self.eps:
                _put(group, "lr", new)

    @property
    def in_cooldown(self) -> bool:
        """Whether it waits after a change."""
        return self.cooldown_counter > 0

    def _is_better(self, a: float, best: float) -> bool:
        sign = 1 if self.mode == "min" else -1
        if self.threshold_mode == "abs":
            return sign * a < sign * best - self.threshold
        return sign * a < sign * best * (1 - sign * self.threshold)

    @_asked_in_step
    def get_lr(self) -> list[Any]:
        return self._rates()


TYPE_CHECKING = False
if not TYPE_CHECKING:
    __getattr__ = _proposing("optim.lr_scheduler", globals())
