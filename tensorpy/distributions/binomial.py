"""The binomial distribution."""

from __future__ import annotations

from typing import Any, ClassVar

import tensorpy as tp
from tensorpy.distributions import constraints
from tensorpy.distributions.distribution import SHAPELESS, Distribution
from tensorpy.distributions.utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits, softplus

__all__ = ["Binomial"]


class Binomial(Distribution):
    """How many of `total_count` trials succeed, each with probability `probs`. Not reparameterised.

    Arguments:
        total_count: how many trials there are
        probs: the probabilities
        logits: the logarithms of the odds, or unnormalised logarithms of the probabilities, instead of probs
        validate_args: whether parameters and values are checked; None takes the class's setting

    Raises: ValueError for both probs and logits, or neither, and, if checked, for parameters out of their range.

    Example:
        >>> d = tp.distributions.Binomial(4, probs=tp.tensor([0.5]))
        >>> d.sample().shape, d.log_prob(tp.tensor([2.0]))
        (tensorpy.Size([1]), tensor([-0.9808]))
    """

    total_count: Any
    arg_constraints: ClassVar[Any] = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
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

    def expand(self, batch_shape: Any, _instance: Any = None) -> Binomial:
        return self._expand(Binomial, batch_shape, _instance, ("total_count", "probs", "logits", "_param"))

    @lazy_property
    def logits(self) -> Any:
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Any:
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def param_shape(self) -> Any:
        return self._param.size()

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Any:
        return self.total_count * self.probs

    @property
    def mode(self) -> Any:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = SHAPELESS) -> tp.Tensor:
        shape = self._extended_shape(sample_shape)
        with tp.no_grad():
            return tp.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Any) -> tp.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        choices = tp.lgamma(n + 1) - tp.lgamma(value + 1) - tp.lgamma(n - value + 1)
        return choices + value * self.logits - n * softplus(self.logits)

    def entropy(self) -> tp.Tensor:
        total = int(self.total_count.max())
        if not (self.total_count == total).all():
            raise NotImplementedError("Inhomogeneous total count not supported by `entropy`.")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> tp.Tensor:
        total = int(self.total_count.max())
        if not (self.total_count == total).all():
            raise NotImplementedError("Inhomogeneous total count not supported by `enumerate_support`.")
        values = tp.arange(1 + total, dtype=self._param.dtype, device=self._param.device)
        return self._enumerated(values, expand)
