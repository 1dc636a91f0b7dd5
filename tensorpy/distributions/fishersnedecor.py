"""The F distribution of Fisher and Snedecor."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import tensorpy as tp
from tensorpy.distributions import constraints
from tensorpy.distributions.distribution import SHAPELESS, Distribution
from tensorpy.distributions.gamma import Gamma
from tensorpy.distributions.utils import broadcast_all

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """The ratio of two chi-squared variables, each over its degrees of freedom; samples have implicit gradients.

    Arguments:
        df1: the degrees of freedom of the numerator
        df2: those of the denominator
        validate_args: whether parameters and values are checked; None takes the class's setting

    Raises: ValueError, if checked, for parameters out of their range.

    Example:
        >>> d = tp.distributions.FisherSnedecor(tp.tensor([2.0]), tp.tensor([3.0]))
        >>> d.sample().shape, d.log_prob(tp.tensor([1.0]))
        (tensorpy.Size([1]), tensor([-1.2771]))
    """

    df1: Any
    df2: Any
    arg_constraints: ClassVar[Any] = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        super().__init__(self.df1.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> FisherSnedecor:
        return self._expand(FisherSnedecor, batch_shape, _instance, ("df1", "df2"))

    @property
    def mean(self) -> Any:
        result = self.df2 / (self.df2 - 2)
        return tp.where(self.df2 > 2, result, tp.full_like(result, math.nan))

    @property
    def mode(self) -> Any:
        result = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return tp.where(self.df1 > 2, result, tp.full_like(result, math.nan))

    @property
    def variance(self) -> Any:
        a, b = self.df1, self.df2
        result = 2 * b**2 * (a + b - 2) / (a * (b - 2) ** 2 * (b - 4))
        return tp.where(b > 4, result, tp.full_like(result, math.nan))

    def rsample(self, sample_shape: Any = SHAPELESS) -> tp.Tensor:
        top = Gamma(self.df1 / 2, self.df1 / 2, validate_args=False).rsample(sample_shape)
        bottom = Gamma(self.df2 / 2, self.df2 / 2, validate_args=False).rsample(sample_shape)
        return top / bottom.clamp(min=tp.finfo(bottom.dtype).tiny)

    def log_prob(self, value: Any) -> tp.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        a, b = self.df1 / 2, self.df2 / 2
        ratio = self.df1 / self.df2
        constant = tp.lgamma(a + b) - tp.lgamma(a) - tp.lgamma(b) + a * ratio.log()
        return constant + (a - 1) * value.log() - (a + b) * tp.log1p(ratio * value)
