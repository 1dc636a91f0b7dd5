"""The Pareto distribution."""

from __future__ import annotations

from typing import Any, ClassVar

import tensorpy as tp
from tensorpy.distributions import constraints
from tensorpy.distributions.distribution import SHAPELESS, Distribution
from tensorpy.distributions.utils import broadcast_all, exponential

__all__ = ["Pareto"]


class Pareto(Distribution):
    """The density alpha scale^alpha / x^(alpha + 1) over x >= scale.

    Arguments:
        scale: the scale
        alpha: the number that shapes the function
        validate_args: whether parameters and values are checked; None takes the class's setting

    Raises: ValueError, if checked, for parameters out of their range.

    Example:
        >>> d = tp.distributions.Pareto(tp.tensor([1.0]), tp.tensor([2.0]))
        >>> d.sample().shape, d.log_prob(tp.tensor([2.0]))
        (tensorpy.Size([1]), tensor([-1.3863]))
    """

    alpha: Any
    scale: Any
    arg_constraints: ClassVar[Any] = {"alpha": constraints.positive, "scale": constraints.positive}
    has_rsample = True

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        super().__init__(self.scale.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Pareto:
        return self._expand(Pareto, batch_shape, _instance, ("scale", "alpha"))

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Any:
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    @property
    def mode(self) -> Any:
        return self.scale

    @property
    def variance(self) -> Any:
        a = self.alpha.clamp(min=2)
        return self.scale**2 * a / ((a - 1) ** 2 * (a - 2))

    def rsample(self, sample_shape: Any = SHAPELESS) -> tp.Tensor:
        return self.scale * (exponential(self._extended_shape(sample_shape), self.scale) / self.alpha).exp()

    def log_prob(self, value: Any) -> tp.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self.alpha.log() + self.alpha * self.scale.log() - (self.alpha + 1) * tp.log(value)

    def cdf(self, value: Any) -> tp.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 1 - (self.scale / value) ** self.alpha

    def icdf(self, value: Any) -> tp.Tensor:
        return self.scale * (1 - value) ** (-1 / self.alpha)

    def entropy(self) -> tp.Tensor:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())
