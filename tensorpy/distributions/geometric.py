"""The geometric distribution."""

from __future__ import annotations

from typing import Any, ClassVar

import tensorpy as tp
from tensorpy.distributions import constraints
from tensorpy.distributions.distribution import SHAPELESS, Distribution
from tensorpy.distributions.utils import (
    broadcast_all,
    lazy_property,
    logits_to_probs,
    open_uniform,
    probs_to_logits,
    special,
)

__all__ = ["Geometric"]


class Geometric(Distribution):
    """How many trials fail before the first success, each with probability `probs`. Not reparameterised.

    Arguments:
        probs: the probabilities
        logits: the logarithms of the odds, or unnormalised logarithms of the probabilities, instead of probs
        validate_args: whether parameters and values are checked; None takes the class's setting

    Raises: ValueError for both probs and logits, or neither, and, if checked, for parameters out of their range.

    Example:
        >>> d = tp.distributions.Geometric(tp.tensor([0.5]))
        >>> d.sample().shape, d.log_prob(tp.tensor([1.0]))
        (tensorpy.Size([1]), tensor([-1.3863]))
    """

    arg_constraints: ClassVar[Any] = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
        else:
            (self.logits,) = broadcast_all(logits)
        self._param = self.probs if probs is not None else self.logits
        super().__init__(self._param.size(), validate_args=validate_args)
        if self._validate_args and probs is not None and not (self.probs > 0).all():
            raise ValueError(
                f"Expected parameter probs (Tensor of shape {tuple(self.probs.shape)}) of distribution {self!r} "
                f"to be positive but found invalid values:\n{self.probs}"
            )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Geometric:
        return self._expand(Geometric, batch_shape, _instance, ("probs", "logits", "_param"))

    @lazy_property
    def logits(self) -> Any:
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Any:
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def param_shape(self) -> Any:
        return self._param.size()

    @property
    def mean(self) -> Any:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Any:
        return tp.zeros_like(self.probs)

    @property
    def variance(self) -> Any:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Any = SHAPELESS) -> tp.Tensor:
        with tp.no_grad():
            u = open_uniform(self._extended_shape(sample_shape), self.probs)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Any) -> tp.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        failures = tp.where(value == 0, tp.zeros_like(value), value)
        return special.xlog1py(failures, -probs) + self.probs.log()

    def entropy(self) -> tp.Tensor:
        p, q = self.probs, 1 - self.probs
        return -(tp.xlogy(q, q) / p + p.log())
