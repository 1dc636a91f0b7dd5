"""The Weibull distribution."""

from __future__ import annotations

from typing import Any, ClassVar

import tensorpy as tp
from tensorpy.distributions import constraints
from tensorpy.distributions.distribution import SHAPELESS, Distribution
from tensorpy.distributions.gumbel import EULER
from tensorpy.distributions.utils import broadcast_all, exponential

__all__ = ["Weibull"]


class Weibull(Distribution):
    """The distribution function 1 - exp(-(x / scale)^c) for c = `concentration`.

    Arguments:
        scale: the scale
        concentration: the concentration
        validate_args: whether parameters and values are checked; None takes the class's setting

    Raises: ValueError, if checked, for parameters out of their range.

    Example:
        >>> d = tp.distributions.Weibull(tp.tensor([1.0]), tp.tensor([2.0]))
        >>> d.sample().shape, d.log_prob(tp.tensor([2.0]))
        (tensorpy.Size([1]), tensor([-2.6137]))
    """

    concentration: Any
    scale: Any
    arg_constraints: ClassVar[Any] = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        super().__init__(self.scale.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Weibull:
        return self._expand(Weibull, batch_shape, _instance, ("scale", "concentration"))

    @property
    def mean(self) -> Any:
        return self.scale * tp.lgamma(1 + self.concentration.reciprocal()).exp()

    @property
    def mode(self) -> Any:
        c = self.concentration
        return self.scale * ((c - 1) / c) ** c.reciprocal()

    @property
    def variance(self) -> Any:
        inverse = self.concentration.reciprocal()
        second, first = tp.lgamma(1 + 2 * inverse).exp(), tp.lgamma(1 + inverse).exp()
        return self.scale**2 * (second - first**2)

    def rsample(self, sample_shape: Any = SHAPELESS) -> tp.Tensor:
        return (
            self.scale * exponential(self._extended_shape(sample_shape), self.scale) ** self.concentration.reciprocal()
        )

    def log_prob(self, value: Any) -> tp.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        c, z = self.concentration, value / self.scale
        return c.log() - self.scale.log() + (c - 1) * z.log() - z**c

    def cdf(self, value: Any) -> tp.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return -tp.expm1(-((value / self.scale) ** self.concentration))

    def icdf(self, value: Any) -> tp.Tensor:
        return self.scale * (-tp.log1p(-value)) ** self.concentration.reciprocal()

    def entropy(self) -> tp.Tensor:
        inverse = self.concentration.reciprocal()
        return EULER * (1 - inverse) + (self.scale * inverse).log() + 1
