"""The negative binomial distribution."""

from __future__ import annotations

from typing import Any, ClassVar

import tensorpy as tp
from tensorpy.distributions import constraints
from tensorpy.distributions.distribution import SHAPELESS, Distribution
from tensorpy.distributions.utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits, standard_gamma
from tensorpy.nn import functional as F

__all__ = ["NegativeBinomial"]


class NegativeBinomial(Distribution):
    """How many trials succeed, each with probability `probs`, before `total_count` failures. Not reparameterised.

    Arguments:
        total_count: how many trials there are
        probs: the probabilities
        logits: the logarithms of the odds, or unnormalised logarithms of the probabilities, instead of probs
        validate_args: whether parameters and values are checked; None takes the class's setting

    Raises: ValueError for both probs and logits, or neither, and, if checked, for parameters out of their range.

    Example:
        >>> d = tp.distributions.NegativeBinomial(4, probs=tp.tensor([0.5]))
        >>> d.sample().shape, d.log_prob(tp.tensor([2.0]))
        (tensorpy.Size([1]), tensor([-1.8563]))
    """

    total_count: Any
    arg_constraints: ClassVar[Any] = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        if probs is not None:
            self.total_count, self.probs = broadcast_all(total_count, probs)
        else:
            self.total_count, self.logits = broadcast_all(total_count, logits)
        self._param = self.probs if probs is not None else self.logits
        self.total_count = self.total_count.type_as(self._param)
        super().__init__(self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> NegativeBinomial:
        return self._expand(NegativeBinomial, batch_shape, _instance, ("total_count", "probs", "logits", "_param"))

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
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Any:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Any:
        return self.mean / tp.sigmoid(-self.logits)

    def sample(self, sample_shape: Any = SHAPELESS) -> tp.Tensor:
        with tp.no_grad():
            shape = self._extended_shape(sample_shape)
            rate = standard_gamma(self.total_count.expand(shape)) * self.logits.exp()
            return tp.poisson(rate)

    def log_prob(self, value: Any) -> tp.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        ways = tp.lgamma(n + value) - tp.lgamma(value + 1) - tp.lgamma(n)
        ways = tp.where(n + value == 0, tp.zeros_like(ways), ways)
        return ways + n * F.logsigmoid(-self.logits) + value * F.logsigmoid(self.logits)
