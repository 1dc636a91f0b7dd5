"""The multinomial distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import tensorpy as tp
from tensorpy import _C
from tensorpy.distributions import constraints
from tensorpy.distributions.binomial import Binomial
from tensorpy.distributions.categorical import Categorical
from tensorpy.distributions.distribution import SHAPELESS, Distribution
from tensorpy.functional import broadcast_tensors

__all__ = ["Multinomial"]


class Multinomial(Distribution):
    """Counts of each category in `total_count` draws of Categorical. Not reparameterised.

    Arguments:
        total_count: how many trials there are
        probs: the probabilities
        logits: the logarithms of the odds, or unnormalised logarithms of the probabilities, instead of probs
        validate_args: whether parameters and values are checked; None takes the class's setting

    Raises: ValueError for both probs and logits, or neither, and, if checked, for parameters out of their range.

    Example:
        >>> d = tp.distributions.Multinomial(4, probs=tp.tensor([0.25, 0.75]))
        >>> d.sample().sum(), d.log_prob(tp.tensor([1.0, 3.0]))
        (tensor(4.), tensor(-0.8630))
    """

    arg_constraints: ClassVar[Any] = {"probs": constraints.simplex, "logits": constraints.real_vector}
    total_count: int

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        if total_count < 0:
            raise ValueError(f"Multinomial: total_count is a number of draws, not {total_count}")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        shape = self._categorical.param_shape
        super().__init__(self._categorical.batch_shape, shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Multinomial:
        inner = self._categorical.expand(tp.Size(batch_shape))
        return self._expand(Multinomial, batch_shape, _instance, _categorical=inner, total_count=self.total_count)

    @property
    def probs(self) -> Any:
        return self._categorical.probs

    @property
    def logits(self) -> Any:
        return self._categorical.logits

    @property
    def param_shape(self) -> Any:
        return self._categorical.param_shape

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Any:
        return self.probs * self.total_count

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = SHAPELESS) -> tp.Tensor:
        drawn = self._categorical.sample((self.total_count, *sample_shape))
        counts = [(drawn == i).sum(0) for i in range(self._event_shape[0])]
        return tp.stack(counts, -1).to(self.probs.dtype)

    def log_prob(self, value: Any) -> tp.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_tensors(self.logits, value)
        certain_zero = (value == 0) & (logits == -math.inf)
        logits = logits.masked_fill(certain_zero, 0)
        ways = tp.lgamma(value.sum(-1) + 1) - tp.lgamma(value + 1).sum(-1)
        return ways + (logits * value).sum(-1)

    def entropy(self) -> tp.Tensor:
        n = _C.tensor(float(self.total_count), dtype=self.probs.dtype, device=self.probs.device)
        marginal = Binomial(self.total_count, self.probs)
        counts = marginal.enumerate_support(False)[1:]
        expected = (marginal.log_prob(counts).exp() * tp.lgamma(counts + 1)).sum((0, -1))
        return n * self._categorical.entropy() - tp.lgamma(n + 1) + expected
