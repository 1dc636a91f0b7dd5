"""Relaxed one-hot categorical distributions."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from tensorpy import _C
from tensorpy.distributions import constraints
from tensorpy.distributions.categorical import Categorical
from tensorpy.distributions.distribution import SHAPELESS, Distribution
from tensorpy.distributions.transformed_distribution import TransformedDistribution
from tensorpy.distributions.transforms import ExpTransform
from tensorpy.distributions.utils import open_uniform

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(Distribution):
    """Logarithms of relaxed one-hot vectors (Maddison et al., 2017)."""

    arg_constraints: ClassVar[Any] = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector
    has_rsample = True
    temperature: Any
    _categorical: Any

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        self._categorical = Categorical(probs, logits)
        shape = self._categorical.param_shape
        super().__init__(self._categorical.batch_shape, shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        own = {"temperature": self.temperature, "_categorical": self._categorical.expand(batch_shape)}
        return self._expand(ExpRelaxedCategorical, batch_shape, _instance, **own)

    @property
    def probs(self) -> Any:
        return self._categorical.probs

    @property
    def logits(self) -> Any:
        return self._categorical.logits

    @property
    def param_shape(self) -> Any:
        return self._categorical.param_shape

    def rsample(self, sample_shape: Any = SHAPELESS) -> Any:
        shape = self._extended_shape(sample_shape)
        gumbels = -(-open_uniform(shape, self.logits).log()).log()
        scores = (self.logits + gumbels) / self.temperature
        return scores - scores.logsumexp(-1, keepdim=True)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        k = self._event_shape[0]
        temperature = _C.as_tensor(self.temperature, dtype=self.logits.dtype, device=self.logits.device)
        score = self.logits - value * temperature
        score = (score - score.logsumexp(-1, keepdim=True)).sum(-1)
        return score + math.lgamma(k) + (k - 1) * temperature.log()


class RelaxedOneHotCategorical(TransformedDistribution):
    """Probability vectors near one-hot ones, reparameterised, with a temperature.

    Arguments:
        temperature: the temperature
        probs: the probabilities
        logits: the logarithms of the odds, or unnormalised logarithms of the probabilities, instead of probs
        validate_args: whether parameters and values are checked; None takes the class's setting

    Raises: ValueError for both probs and logits, or neither, and, if checked, for parameters out of their range.

    Example:
        >>> d = tp.distributions.RelaxedOneHotCategorical(tp.tensor(0.5), probs=tp.tensor([0.25, 0.75]))
        >>> d.rsample().shape
        tensorpy.Size([2])
    """

    arg_constraints: ClassVar[Any] = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> RelaxedOneHotCategorical:
        return super().expand(batch_shape, self._get_checked_instance(RelaxedOneHotCategorical, _instance))

    @property
    def temperature(self) -> Any:
        return self.base_dist.temperature

    @property
    def probs(self) -> Any:
        return self.base_dist.probs

    @property
    def logits(self) -> Any:
        return self.base_dist.logits
