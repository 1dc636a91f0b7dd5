"""The Bernoulli distribution."""

from __future__ import annotations

from typing import Any, ClassVar

import tensorpy as tp
from tensorpy.distributions import constraints
from tensorpy.distributions.distribution import SHAPELESS
from tensorpy.distributions.exp_family import ExponentialFamily
from tensorpy.distributions.utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits, softplus

__all__ = ["Bernoulli"]


class Bernoulli(ExponentialFamily):
    """1 with probability `probs`, else 0; or by the log-odds `logits`. Not reparameterised.

    Arguments:
        probs: the probabilities
        logits: the logarithms of the odds, or unnormalised logarithms of the probabilities, instead of probs
        validate_args: whether parameters and values are checked; None takes the class's setting

    Raises: ValueError for both probs and logits, or neither, and, if checked, for parameters out of their range.

    Example:
        >>> d = tp.distributions.Bernoulli(tp.tensor([0.5]))
        >>> d.sample().shape, d.log_prob(tp.tensor([1.0]))
        (tensorpy.Size([1]), tensor([-0.6931]))
    """

    arg_constraints: ClassVar[Any] = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
        else:
            (self.logits,) = broadcast_all(logits)
        self._param = self.probs if probs is not None else self.logits
        super().__init__(self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Bernoulli:
        return self._expand(Bernoulli, batch_shape, _instance, ("probs", "logits", "_param"))

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
        return self.probs

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)

    @property
    def mode(self) -> Any:
        mode = (self.probs >= 0.5).to(self.probs.dtype)
        return tp.where(self.probs == 0.5, tp.full_like(mode, float("nan")), mode)

    def sample(self, sample_shape: Any = SHAPELESS) -> tp.Tensor:
        with tp.no_grad():
            return tp.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> tp.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return value * self.logits - softplus(self.logits)

    def entropy(self) -> tp.Tensor:
        return softplus(self.logits) - self.probs * self.logits

    def enumerate_support(self, expand: bool = True) -> tp.Tensor:
        return self._enumerated(tp.arange(2, dtype=self._param.dtype, device=self._param.device), expand)

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (tp.logit(self.probs),)

    def _log_normalizer(self, *natural_params: Any) -> Any:
        return softplus(natural_params[0])
