"""Averages of models: stochastic weight averaging (Izmailov et al. 2018) and exponential means."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.autograd.grad_mode import no_grad
from tensorpy.nn import Module
from tensorpy.nn.modules.batchnorm import _BatchNorm
from tensorpy.optim.lr_scheduler import LRScheduler, _for_groups
from tensorpy.optim.optimizer import Optimizer

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def _check_decay(decay: float) -> None:
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def _is_continuous(t: Tensor) -> bool:
    return t.is_floating_point() or t.is_complex()


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., None]:
    """Moves lists of parameters towards others by 1 - decay.

    Returns: a function of the means, parameters and how many they are the mean of.

    Example:
        >>> averages = [tp.tensor([1.0])]
        >>> tp.optim.swa_utils.get_ema_multi_avg_fn()(averages, [tp.tensor([1.0])], 3)
        >>> averages
        [tensor([1.])]
    """
    _check_decay(decay)

    @no_grad()
    def update(means: Any, news: Any, unused: Any) -> None:
        if all(_is_continuous(mean) for mean in means):
            _C._foreach_lerp_(means, news, 1 - decay)
            return
        for mean, new in zip(means, news, strict=True):
            if _is_continuous(mean):
                mean.lerp_(new, 1 - decay)
            else:
                mean.copy_(mean * decay + new * (1 - decay))

    return update


def get_swa_multi_avg_fn() -> Callable[..., None]:
    """Takes lists of parameters into means of equal weights.

    Returns: a function of the means, parameters and how many they are the mean of.

    Example:
        >>> averages = [tp.tensor([1.0])]
        >>> tp.optim.swa_utils.get_swa_multi_avg_fn()(averages, [tp.tensor([1.0])], 3)
        >>> averages
        [tensor([1.])]
    """

    @no_grad()
    def update(means: Any, news: Any, num_averaged: Any) -> None:
        share = 1 / (float(num_averaged) + 1)
        if all(_is_continuous(mean) for mean in means):
            _C._foreach_lerp_(means, news, share)
            return
        for mean, new in zip(means, news, strict=True):
            if _is_continuous(mean):
                mean.lerp_(new, share)
            else:
                mean.copy_(mean + (new - mean) * share)

    return update


def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Tensor]:
    """An exponential mean of one parameter.

    Arguments:
        decay: how much of the old average stays

    Returns: a function of the mean, a parameter and how many it is the mean of.

    Example:
        >>> average = tp.optim.swa_utils.get_ema_avg_fn()
        >>> average(tp.tensor([1.0]), tp.tensor([1.0]), 3)
        tensor([1.])
    """
    _check_decay(decay)

    @no_grad()
    def update(mean: Tensor, new: Tensor, unused: Any) -> Tensor:
        return decay * mean + (1 - decay) * new

    return update


def get_swa_avg_fn() -> Callable[..., Tensor]:
    """A mean of equal weights of one parameter.

    Returns: a function of the mean, a parameter and how many it is the mean of.

    Example:
        >>> average = tp.optim.swa_utils.get_swa_avg_fn()
        >>> average(tp.tensor([1.0]), tp.tensor([1.0]), 3)
        tensor([1.])
    """

    @no_grad()
    def update(mean: Tensor, new: Tensor, num_averaged: Any) -> Tensor:
        return mean + (new - mean) / (num_averaged + 1)

    return update


class AveragedModel(Module):
    """A copy of a model whose parameters are means of the model's, taken at each update_parameters.

    Arguments:
        model: the function or module; None makes a decorator
        device: where the averages are kept
        avg_fn: a function (average, new value, count) that gives the new average
        multi_avg_fn: the same for lists, in place
        use_buffers: whether buffers are averaged too

    Raises: AssertionError for both avg_fn and multi_avg_fn.

    Example:
        >>> model = nn.Linear(2, 1)
        >>> average = tp.optim.swa_utils.AveragedModel(model)
        >>> average.update_parameters(model)
        >>> tp.equal(average.module.weight, model.weight)
        True
    """

    avg_fn: Callable[..., Tensor] | None
    module: Any
    multi_avg_fn: Callable[..., None] | None
    use_buffers: bool
    n_averaged: Any

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable[..., Tensor] | None = None,
        multi_avg_fn: Callable[..., None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", _C.tensor(0, dtype=_C.int64, device=device))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def _tensors(self, model: Module) -> list[Tensor]:
        return list(itertools.chain(model.parameters(), model.buffers() if self.use_buffers else ()))

    @no_grad()
    def update_parameters(self, model: Module) -> None:
        """Takes a model's parameters into the means; buffers too with use_buffers, else they are copied."""
        means = self._tensors(self.module)
        news = [new.detach().to(device=mean.device) for mean, new in zip(means, self._tensors(model), strict=True)]
        if int(self.n_averaged) == 0:
            for mean, new in zip(means, news, strict=True):
                mean.copy_(new)
        elif self.avg_fn is not None:
            for mean, new in zip(means, news, strict=True):
                mean.copy_(self.avg_fn(mean.detach(), new, self.n_averaged))
        else:
            (self.multi_avg_fn or get_swa_multi_avg_fn())(means, news, self.n_averaged)
        if not self.use_buffers:
            for mean, new in zip(self.module.buffers(), model.buffers(), strict=True):
                mean.detach().copy_(new.detach().to(device=mean.device))
        self.n_averaged += 1


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Computes the running statistics of a model's batch norms anew, from the data.

    Arguments:
        loader: the batches: inputs, or tuples that begin with them
        model: the function or module; None makes a decorator
        device: where the averages are kept

    Example:
        >>> model = nn.BatchNorm1d(1)
        >>> tp.optim.swa_utils.update_bn([tp.tensor([[1.0], [3.0]])], model)
        >>> model.running_mean
        tensor([2.])
    """
    norms = [m for m in model.modules() if isinstance(m, _BatchNorm)]
    if not norms:
        return
    momenta = [m.momentum for m in norms]
    was_training = model.training
    model.train()
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
    for batch in loader:
        given = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(given if device is None else given.to(device))
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Goes to a rate in some epochs and stays there.

    Arguments:
        optimizer: the optimizer whose learning rates change
        swa_lr: the rate of the averaging, for all groups or for each
        anneal_epochs: how many epochs it takes to get there
        anneal_strategy: 'cos' or 'linear'
        last_epoch: the epoch that was the last; -1 begins

    Raises: TypeError for what is no Optimizer, ValueError for an unknown anneal_strategy, or negative anneal_epochs.

    Example:
        >>> optimizer = tp.optim.SGD([nn.Parameter(tp.ones(1))], lr=1.0)
        >>> schedule = tp.optim.swa_utils.SWALR(optimizer, swa_lr=0.1, anneal_epochs=1)
        >>> optimizer.step()
        >>> schedule.step()
        >>> schedule.get_last_lr()
        [0.1]
    """

    anneal_epochs: int

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        for rate, group in zip(_for_groups(optimizer, "swa_lr", swa_lr), optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must by one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy, self.anneal_epochs = anneal_strategy, anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, epoch: float) -> float:
        """How much of the way is done."""
        t = max(0.0, min(1.0, epoch / max(1, self.anneal_epochs)))
        return t if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

    def get_lr(self) -> list[Any]:
        epoch = self._step_count - 1
        if self.anneal_epochs == 0:
            epoch = max(1, epoch)
        before, now = self._share(max(0, epoch - 1)), self._share(epoch)
        rates = []
        for group in self.optimizer.param_groups:
            goal, rate = group["swa_lr"], group["lr"]
            start = goal if before == 1 else (rate - before * goal) / (1 - before)
            rates.append(goal * now + start * (1 - now))
        return rates
