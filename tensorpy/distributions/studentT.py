"""Student's t-distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import tensorpy as tp
from tensorpy.distributions import constraints
from tensorpy.distributions.distribution import SHAPELESS, Distribution
from tensorpy.distributions.utils import broadcast_all, standard_gamma, standard_normal

__all__ = ["StudentT"]


class StudentT(Distribution):
    """loc + scale z / sqrt(c / df) for a standard normal z and a chi-squared c with `df` degrees of freedom.

    Arguments:
        df: the degrees of freedom
        loc: where the middle is
        scale: the scale
        validate_args: whether parameters and values are checked; None takes the class's setting

    Raises: ValueError, if checked, for parameters out of their range.

    Example:
        >>> d = tp.distributions.StudentT(tp.tensor([3.0]))
        >>> d.sample().shape, d.log_prob(tp.tensor([1.0]))
        (tensorpy.Size([1]), tensor([-1.5763]))
    """

    df: Any
    loc: Any
    scale: Any
    arg_constraints: ClassVar[Any] = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        super().__init__(self.df.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> StudentT:
        return self._expand(StudentT, batch_shape, _instance, ("df", "loc", "scale"))

    @property
    def mean(self) -> Any:
        return tp.where(self.df <= 1, tp.full_like(self.loc, math.nan), self.loc)

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        above = tp.where(self.df > 2, self.df, tp.full_like(self.df, 3))
        heavy = tp.where(self.df > 1, tp.full_like(self.df, math.inf), tp.full_like(self.df, math.nan))
        return tp.where(self.df > 2, self.scale**2 * above / (above - 2), heavy)

    def rsample(self, sample_shape: Any = SHAPELESS) -> tp.Tensor:
        shape = self._extended_shape(sample_shape)
        z = standard_normal(shape, self.df.dtype, self.df.device)
        chi2 = 2 * standard_gamma(self.df.expand(shape) / 2)
        return self.loc + self.scale * z * (chi2 / self.df).rsqrt()

    def log_prob(self, value: Any) -> tp.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        y, half = (value - self.loc) / self.scale, 0.5 * self.df
        constant = (
            self.scale.log() + 0.5 * (self.df.log() + math.log(math.pi)) + tp.lgamma(half) - tp.lgamma(half + 0.5)
        )
        return -(half + 0.5) * tp.log1p(y**2 / self.df) - constant

    def entropy(self) -> tp.Tensor:
        half = 0.5 * self.df
        beta = tp.lgamma(half) + math.lgamma(0.5) - tp.lgamma(half + 0.5)
        spread = (half + 0.5) * (tp.digamma(half + 0.5) - tp.digamma(half))
        return self.scale.log() + spread + 0.5 * self.df.log() + beta
