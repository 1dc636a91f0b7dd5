"""The Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import tensorpy as tp
from tensorpy.distributions import constraints
from tensorpy.distributions.distribution import SHAPELESS, Distribution
from tensorpy.distributions.utils import broadcast_all

__all__ = ["Cauchy"]


class Cauchy(Distribution):
    """The density 1 / (pi scale (1 + z^2)) with z = (x - loc) / scale; it has no mean.

    Arguments:
        loc: where the middle is
        scale: the scale
        validate_args: whether parameters and values are checked; None takes the class's setting

    Raises: ValueError, if checked, for parameters out of their range.

    Example:
        >>> d = tp.distributions.Cauchy(tp.tensor([0.0]), tp.tensor([1.0]))
        >>> d.sample((3,)).shape, d.log_prob(tp.tensor([1.0]))
        (tensorpy.Size([3, 1]), tensor([-1.8379]))
    """

    loc: Any
    scale: Any
    arg_constraints: ClassVar[Any] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Cauchy:
        return self._expand(Cauchy, batch_shape, _instance, ("loc", "scale"))

    @property
    def mean(self) -> Any:
        return tp.full_like(self.loc, math.nan)

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        return tp.full_like(self.loc, math.inf)

    def rsample(self, sample_shape: Any = SHAPELESS) -> tp.Tensor:
        shape = self._extended_shape(sample_shape)
        eps = tp.empty(shape, dtype=self.loc.dtype, device=self.loc.device).cauchy_()
        return self.loc + eps * self.scale

    def log_prob(self, value: Any) -> tp.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        z = (value - self.loc) / self.scale
        return -math.log(math.pi) - self.scale.log() - tp.log1p(z * z)

    def cdf(self, value: Any) -> tp.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return tp.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value: Any) -> tp.Tensor:
        return tp.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> tp.Tensor:
        return math.log(4 * math.pi) + self.scale.log()
