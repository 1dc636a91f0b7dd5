"""The uniform distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import tensorpy as tp
from tensorpy.distributions import constraints
from tensorpy.distributions.distribution import SHAPELESS, Distribution
from tensorpy.distributions.utils import broadcast_all

__all__ = ["Uniform"]


class Uniform(Distribution):
    """The uniform distribution over [low, high).

    Arguments:
        low: the lower bound
        high: the upper bound
        validate_args: whether parameters and values are checked; None takes the class's setting

    Raises: ValueError, if checked, for parameters out of their range.

    Example:
        >>> d = tp.distributions.Uniform(tp.tensor([0.0]), tp.tensor([4.0]))
        >>> d.sample((3,)).shape, d.log_prob(tp.tensor([1.0]))
        (tensorpy.Size([3, 1]), tensor([-1.3863]))
    """

    high: Any
    low: Any
    has_rsample = True

    def _bounds(self) -> Any:
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    arg_constraints: ClassVar[Any] = property(_bounds)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.interval(self.low, self.high)

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Uniform:
        return self._expand(Uniform, batch_shape, _instance, ("low", "high"))

    @property
    def mean(self) -> Any:
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Any:
        return tp.full_like(self.low, math.nan)

    @property
    def stddev(self) -> Any:
        return (self.high - self.low) / math.sqrt(12)

    @property
    def variance(self) -> Any:
        return (self.high - self.low) ** 2 / 12

    def rsample(self, sample_shape: Any = SHAPELESS) -> tp.Tensor:
        shape = self._extended_shape(sample_shape)
        return self.low + tp.rand(shape, dtype=self.low.dtype, device=self.low.device) * (self.high - self.low)

    def log_prob(self, value: Any) -> tp.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        inside = ((self.low <= value) & (value < self.high)).type_as(self.low)
        return inside.log() - (self.high - self.low).log()

    def cdf(self, value: Any) -> tp.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Any) -> tp.Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> tp.Tensor:
        return (self.high - self.low).log()
