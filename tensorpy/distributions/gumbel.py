"""The Gumbel distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import tensorpy as tp
from tensorpy.distributions import constraints
from tensorpy.distributions.distribution import SHAPELESS, Distribution
from tensorpy.distributions.utils import broadcast_all, open_uniform

__all__ = ["Gumbel"]
EULER = 0.57721566490153286060


class Gumbel(Distribution):
    """The distribution function exp(-exp(-(x - loc) / scale)).

    Arguments:
        loc: where the middle is
        scale: the scale
        validate_args: whether parameters and values are checked; None takes the class's setting

    Raises: ValueError, if checked, for parameters out of their range.

    Example:
        >>> d = tp.distributions.Gumbel(tp.tensor([0.0]), tp.tensor([1.0]))
        >>> d.sample((3,)).shape, d.log_prob(tp.tensor([1.0]))
        (tensorpy.Size([3, 1]), tensor([-1.3679]))
    """

    loc: Any
    scale: Any
    arg_constraints: ClassVar[Any] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Gumbel:
        return self._expand(Gumbel, batch_shape, _instance, ("loc", "scale"))

    @property
    def mean(self) -> Any:
        return self.loc + self.scale * EULER

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def stddev(self) -> Any:
        return math.pi / math.sqrt(6) * self.scale

    @property
    def variance(self) -> Any:
        return self.stddev**2

    def rsample(self, sample_shape: Any = SHAPELESS) -> tp.Tensor:
        return self.icdf(open_uniform(self._extended_shape(sample_shape), self.loc))

    def log_prob(self, value: Any) -> tp.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return y - y.exp() - self.scale.log()

    def cdf(self, value: Any) -> tp.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return tp.exp(-tp.exp((self.loc - value) / self.scale))

    def icdf(self, value: Any) -> tp.Tensor:
        return self.loc - self.scale * (-value.log()).log()

    def entropy(self) -> tp.Tensor:
        return self.scale.log() + (1 + EULER)
