"""The inverse gamma distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import tensorpy as tp
from tensorpy.distributions import constraints
from tensorpy.distributions.gamma import Gamma
from tensorpy.distributions.transformed_distribution import TransformedDistribution
from tensorpy.distributions.transforms import PowerTransform

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """1 / x for gamma x with `concentration` and `rate`; samples have implicit gradients.

    Arguments:
        concentration: the concentration
        rate: the rate
        validate_args: whether parameters and values are checked; None takes the class's setting

    Raises: ValueError, if checked, for parameters out of their range.

    Example:
        >>> d = tp.distributions.InverseGamma(tp.tensor([1.0]), tp.tensor([2.0]))
        >>> d.sample().shape, d.log_prob(tp.tensor([2.0]))
        (tensorpy.Size([1]), tensor([-1.6931]))
    """

    arg_constraints: ClassVar[Any] = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(-base.rate.new_ones(())), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> InverseGamma:
        return super().expand(batch_shape, self._get_checked_instance(InverseGamma, _instance))

    @property
    def concentration(self) -> Any:
        return self.base_dist.concentration

    @property
    def rate(self) -> Any:
        return self.base_dist.rate

    @property
    def mode(self) -> Any:
        return self.rate / (self.concentration + 1)

    @property
    def mean(self) -> Any:
        result = self.rate / (self.concentration - 1)
        return tp.where(self.concentration > 1, result, tp.full_like(result, math.inf))

    @property
    def variance(self) -> Any:
        c = self.concentration
        result = self.rate**2 / ((c - 1) ** 2 * (c - 2))
        return tp.where(c > 2, result, tp.full_like(result, math.inf))

    def entropy(self) -> tp.Tensor:
        c = self.concentration
        return c + self.rate.log() + tp.lgamma(c) - (1 + c) * tp.digamma(c)
