"""The Kumaraswamy distribution."""

from __future__ import annotations

from typing import Any, ClassVar

import tensorpy as tp
from tensorpy.distributions import constraints
from tensorpy.distributions.distribution import SHAPELESS, Distribution
from tensorpy.distributions.gumbel import EULER
from tensorpy.distributions.utils import broadcast_all, open_uniform, special

__all__ = ["Kumaraswamy"]


class Kumaraswamy(Distribution):
    """The distribution function 1 - (1 - x^a)^b over (0, 1) for a = `concentration1`, b = `concentration0`.

    Arguments:
        validate_args: whether parameters and values are checked; None takes the class's setting

    Raises: ValueError, if checked, for parameters out of their range.

    Example:
        >>> d = tp.distributions.Kumaraswamy(tp.tensor([2.0]), tp.tensor([3.0]))
        >>> d.sample().shape, d.log_prob(tp.tensor([0.5]))
        (tensorpy.Size([1]), tensor([0.5232]))
    """

    concentration0: Any
    concentration1: Any
    arg_constraints: ClassVar[Any] = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        super().__init__(self.concentration1.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Kumaraswamy:
        return self._expand(Kumaraswamy, batch_shape, _instance, ("concentration1", "concentration0"))

    def _moment(self, n: int) -> Any:
        power, b = 1 + n / self.concentration1, self.concentration0
        return b * (tp.lgamma(power) + tp.lgamma(b) - tp.lgamma(power + b)).exp()

    @property
    def mean(self) -> Any:
        return self._moment(1)

    @property
    def variance(self) -> Any:
        return self._moment(2) - self.mean**2

    @property
    def mode(self) -> Any:
        a, b = self.concentration1, self.concentration0
        mode = ((a - 1) / (a * b - 1)).clamp(min=0) ** a.reciprocal()
        return tp.where((a < 1) | (b < 1), tp.full_like(mode, float("nan")), mode)

    def rsample(self, sample_shape: Any = SHAPELESS) -> tp.Tensor:
        return self.icdf(1 - open_uniform(self._extended_shape(sample_shape), self.concentration0))  # PyTorch's numbers

    def log_prob(self, value: Any) -> tp.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        a, b = self.concentration1, self.concentration0
        return a.log() + b.log() + tp.xlogy(a - 1, value) + special.xlog1py(b - 1, -(value**a))

    def cdf(self, value: Any) -> tp.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 1 - (1 - value**self.concentration1) ** self.concentration0

    def icdf(self, value: Any) -> tp.Tensor:
        return (1 - (1 - value) ** self.concentration0.reciprocal()) ** self.concentration1.reciprocal()

    def entropy(self) -> tp.Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = tp.digamma(b + 1) + EULER
        return 1 - 1 / b + (1 - 1 / a) * harmonic - a.log() - b.log()
