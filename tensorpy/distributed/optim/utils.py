"""Optimizers that are given gradients: what takes a step as soon as one is there has them so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import tensorpy as tp
from tensorpy._C import Tensor
from tensorpy.optim import SGD, Adadelta, Adagrad, Adam, Adamax, AdamW, RMSprop, Rprop

__all__ = ["as_functional_optim", "functional_optim_map", "given_gradients", "register_functional_optim"]


@contextmanager
def given_gradients(pairs: Sequence[tuple[Tensor, Tensor]]) -> Iterator[None]:
    """Parameters have these gradients, and then those that they had.

    Arguments:
        pairs: each parameter and its gradient

    Example:
        >>> from tensorpy.distributed.optim.utils import given_gradients
        >>> x = tp.ones(1, requires_grad=True)
        >>> with given_gradients([(x, tp.ones(1))]):
        ...     x.grad
        tensor([1.])
    """
    before = [p.grad for p, _ in pairs]
    try:
        for p, grad in pairs:
            p.grad = grad
        yield
    finally:
        for (p, _), grad_ in zip(pairs, before, strict=True):
            p.grad = grad_


class _Given:
    """An optimizer whose steps are given gradients, of the parameters that it was made with or that a step names.

    `param_group["params"]` has the parameters of step(), `state` the states of all that took one.
    """

    state: dict[Any, Any]

    def __init__(
        self, kind: Any, params: Sequence[Tensor], *args: Any, _allow_empty_param_list: bool = False, **settings: Any
    ) -> None:
        if not params and not _allow_empty_param_list:
            raise ValueError("optimizer got an empty parameter list")
        self._kind, self._args, self._settings = kind, args, settings
        self._optim: Any = None
        self.param_group: dict[str, list[Tensor]] = {"params": list(params)}
        self.state = {}

    def step(self, gradients: list[Tensor | None]) -> None:
        """One step of all parameters of param_group, each by its gradient; None: by none.

        Arguments:
            gradients: one for each parameter
        """
        params = self.param_group["params"]
        if len(params) != len(gradients):
            raise ValueError(f"step: {len(gradients)} gradients of {len(params)} parameters")
        self._move([(p, g) for p, g in zip(params, gradients, strict=True) if g is not None])

    def step_param(self, param: Tensor, grad: Tensor | None) -> None:
        """One step of one parameter.

        Arguments:
            param: the parameter
            grad: its gradient; None: no step
        """
        self._move([] if grad is None else [(param, grad)])

    def _move(self, pairs: list[tuple[Tensor, Tensor]]) -> None:
        if not pairs:
            return
        params = [p for p, _ in pairs]
        if self._optim is None:
            self._optim = self._kind(params, *self._args, **self._settings)
            self.state = self._optim.state
        self._optim.param_groups[0]["params"] = params
        with tp.no_grad(), given_gradients(pairs):
            self._optim.step()


#: What makes the optimizer of each key: it takes parameters, then settings.
functional_optim_map: dict[Any, Any] = {
    kind: partial(_Given, kind) for kind in (Adadelta, Adagrad, Adam, AdamW, Adamax, RMSprop, Rprop, SGD)
}


def register_functional_optim(key: Any, optim: Any) -> None:
    """Has as_functional_optim make something for a key of one's own.

    Arguments:
        key: what it is asked for by
        optim: takes an empty list of parameters, then what as_functional_optim was given

    Example:
        >>> from tensorpy.distributed.optim import utils
        >>> utils.register_functional_optim("counter", lambda params, **settings: settings)
        >>> utils.as_functional_optim("counter", lr=1)["lr"]
        1
    """
    functional_optim_map.setdefault(key, optim)


def as_functional_optim(optim_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """An optimizer whose steps are given gradients: step(gradients) of param_group, step_param(parameter, gradient).

    Arguments:
        optim_cls: Adadelta, Adagrad, Adam, AdamW, Adamax, RMSprop, Rprop, SGD, or a key that was registered
        args: its settings
        kwargs: its settings

    Returns: an optimizer.

    Raises: ValueError for a class that has no such form.

    Example:
        >>> from tensorpy.distributed.optim import as_functional_optim
        >>> made, x = as_functional_optim(tp.optim.SGD, lr=0.5), tp.ones(2)
        >>> made.step_param(x, tp.ones(2))
        >>> x
        tensor([0.5000, 0.5000])
    """
    if optim_cls not in functional_optim_map:
        raise ValueError(f"Optimizer {optim_cls} does not have a functional counterpart!")
    return functional_optim_map[optim_cls]([], *args, **kwargs, _allow_empty_param_list=True)
