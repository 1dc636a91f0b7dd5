"""Relaxed Bernoulli distributions."""

from __future__ import annotations

from typing import Any, ClassVar

from tensorpy import _C
from tensorpy.distributions import constraints
from tensorpy.distributions.bernoulli import Bernoulli
from tensorpy.distributions.distribution import SHAPELESS, Distribution
from tensorpy.distributions.transformed_distribution import TransformedDistribution
from tensorpy.distributions.transforms import SigmoidTransform
from tensorpy.distributions.utils import broadcast_all, clamp_probs, open_uniform, softplus

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(Distribution):
    """Log-odds of relaxed Bernoulli variables (Maddison et al., 2017; Jang et al., 2017)."""

    arg_constraints: ClassVar[Any] = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True
    temperature: Any
    _bernoulli: Any

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        self._bernoulli = Bernoulli(probs, logits, validate_args=validate_args)
        super().__init__(self._bernoulli.batch_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        own = {"temperature": self.temperature, "_bernoulli": self._bernoulli.expand(batch_shape)}
        return self._expand(LogitRelaxedBernoulli, batch_shape, _instance, **own)

    @property
    def probs(self) -> Any:
        return self._bernoulli.probs

    @property
    def logits(self) -> Any:
        return self._bernoulli.logits

    @property
    def param_shape(self) -> Any:
        return self._bernoulli.param_shape

    def rsample(self, sample_shape: Any = SHAPELESS) -> Any:
        probs = clamp_probs(self.probs.expand(self._extended_shape(sample_shape)))
        u = open_uniform(probs.shape, probs)
        return (u.log() - (-u).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        difference = logits - value * self.temperature
        return _C.as_tensor(self.temperature).log() + difference - 2 * softplus(difference)


class RelaxedBernoulli(TransformedDistribution):
    """Numbers in (0, 1) near 0 or 1, reparameterised, with a temperature; Bernoulli is the limit at 0.

    Arguments:
        temperature: the temperature
        probs: the probabilities
        logits: the logarithms of the odds, or unnormalised logarithms of the probabilities, instead of probs
        validate_args: whether parameters and values are checked; None takes the class's setting

    Raises: ValueError for both probs and logits, or neither, and, if checked, for parameters out of their range.

    Example:
        >>> d = tp.distributions.RelaxedBernoulli(tp.tensor(0.5), probs=tp.tensor([0.5]))
        >>> d.rsample().shape
        tensorpy.Size([1])
    """

    arg_constraints: ClassVar[Any] = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> RelaxedBernoulli:
        return super().expand(batch_shape, self._get_checked_instance(RelaxedBernoulli, _instance))

    @property
    def temperature(self) -> Any:
        return self.base_dist.temperature

    @property
    def probs(self) -> Any:
        return self.base_dist.probs

    @property
    def logits(self) -> Any:
        return self.base_dist.logits
