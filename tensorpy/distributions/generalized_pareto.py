"""The generalized Pareto distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import tensorpy as tp
from tensorpy.distributions import constraints
from tensorpy.distributions.distribution import SHAPELESS, Distribution
from tensorpy.distributions.utils import broadcast_all, open_uniform

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """What exceeds a threshold: 1 - cdf is (1 + c z)^(-1/c) for z = (x - loc) / scale, and exp(-z) where c is 0.

    The support begins at `loc`, and ends at loc - scale / c where the concentration c is negative.

    Arguments:
        loc: where the middle is
        scale: the scale
        concentration: the concentration
        validate_args: whether parameters and values are checked; None takes the class's setting

    Raises: ValueError, if checked, for parameters out of their range.

    Example:
        >>> d = tp.distributions.GeneralizedPareto(tp.tensor([0.0]), tp.tensor([1.0]), tp.tensor([0.5]))
        >>> d.sample().shape, d.log_prob(tp.tensor([1.0]))
        (tensorpy.Size([1]), tensor([-1.2164]))
    """

    concentration: Any
    loc: Any
    scale: Any
    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> GeneralizedPareto:
        return self._expand(GeneralizedPareto, batch_shape, _instance, ("loc", "scale", "concentration"))

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        ends = self.concentration < 0
        end = self.loc - self.scale / tp.where(ends, self.concentration, -1.0)
        return constraints.interval(self.loc, tp.where(ends, end, math.inf))

    def _curve(self) -> tuple[Any, Any]:
        """Where the concentration is as good as 0, and a concentration that may be divided by everywhere.

        There a function of it is its value and its slope at 0, so that gradients are right too.
        """
        flat = self.concentration.abs() < tp.finfo(self.concentration.dtype).eps
        return flat, tp.where(flat, 1.0, self.concentration)

    def _log_survival(self, value: Any) -> Any:
        """log(1 - cdf)."""
        z = (value - self.loc) / self.scale
        flat, c = self._curve()
        return tp.where(flat, -z + self.concentration * z * z / 2, -(c * z).log1p() / c)

    @property
    def mean(self) -> Any:
        """NaN where it is not finite, as in PyTorch."""
        c = self.concentration
        return tp.where(c < 1, self.loc + self.scale / (1 - c), math.nan)

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        """NaN where it is not finite, as in PyTorch."""
        c = self.concentration
        return tp.where(c < 0.5, self.scale**2 / ((1 - c) ** 2 * (1 - 2 * c)), math.nan)

    def rsample(self, sample_shape: Any = SHAPELESS) -> tp.Tensor:
        return self.icdf(open_uniform(self._extended_shape(sample_shape), self.loc))

    def log_prob(self, value: Any) -> tp.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return (1 + self.concentration) * self._log_survival(value) - self.scale.log()

    def cdf(self, value: Any) -> tp.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return -self._log_survival(value).expm1()

    def icdf(self, value: Any) -> tp.Tensor:
        flat, c = self._curve()
        left = (-value).log1p()  # log(1 - value)
        at_zero = -left + self.concentration * left * left / 2
        return self.loc + self.scale * tp.where(flat, at_zero, (-c * left).expm1() / c)

    def entropy(self) -> tp.Tensor:
        return self.scale.log() + self.concentration + 1
