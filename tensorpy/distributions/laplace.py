"""The Laplace distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import tensorpy as tp
from tensorpy.distributions import constraints
from tensorpy.distributions.distribution import SHAPELESS, Distribution
from tensorpy.distributions.utils import broadcast_all, clamp_probs

__all__ = ["Laplace"]


class Laplace(Distribution):
    """The density exp(-|x - loc| / scale) / (2 scale).

    Arguments:
        loc: where the middle is
        scale: the scale
        validate_args: whether parameters and values are checked; None takes the class's setting

    Raises: ValueError, if checked, for parameters out of their range.

    Example:
        >>> d = tp.distributions.Laplace(tp.tensor([0.0]), tp.tensor([1.0]))
        >>> d.sample((3,)).shape, d.log_prob(tp.tensor([1.0]))
        (tensorpy.Size([3, 1]), tensor([-1.6931]))
    """

    loc: Any
    scale: Any
    arg_constraints: ClassVar[Any] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Laplace:
        return self._expand(Laplace, batch_shape, _instance, ("loc", "scale"))

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        return 2 * self.scale**2

    @property
    def stddev(self) -> Any:
        return math.sqrt(2) * self.scale

    def rsample(self, sample_shape: Any = SHAPELESS) -> tp.Tensor:
        shape = self._extended_shape(sample_shape)
        u = tp.rand(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.icdf(clamp_probs(u))

    def log_prob(self, value: Any) -> tp.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value: Any) -> tp.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        z = (value - self.loc) / self.scale
        return 0.5 - 0.5 * z.sign() * tp.expm1(-z.abs())

    def icdf(self, value: Any) -> tp.Tensor:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * tp.log1p(-2 * term.abs())

    def entropy(self) -> tp.Tensor:
        return 1 + (2 * self.scale).log()
