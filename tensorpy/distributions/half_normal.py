"""The half-normal distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import tensorpy as tp
from tensorpy import _C
from tensorpy.distributions import constraints
from tensorpy.distributions.normal import Normal
from tensorpy.distributions.transformed_distribution import TransformedDistribution
from tensorpy.distributions.transforms import AbsTransform

__all__ = ["HalfNormal"]


class HalfNormal(TransformedDistribution):
    """|x| for normal x with mean 0 and standard deviation `scale`.

    Arguments:
        scale: the scale
        validate_args: whether parameters and values are checked; None takes the class's setting

    Raises: ValueError, if checked, for parameters out of their range.

    Example:
        >>> d = tp.distributions.HalfNormal(tp.tensor([2.0]))
        >>> d.sample().shape, d.log_prob(tp.tensor([1.0]))
        (tensorpy.Size([1]), tensor([-1.0439]))
    """

    arg_constraints: ClassVar[Any] = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> HalfNormal:
        return super().expand(batch_shape, self._get_checked_instance(HalfNormal, _instance))

    @property
    def scale(self) -> Any:
        return self.base_dist.scale

    @property
    def mean(self) -> Any:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def mode(self) -> Any:
        return tp.zeros_like(self.scale)

    @property
    def variance(self) -> Any:
        return self.scale**2 * (1 - 2 / math.pi)

    def log_prob(self, value: Any) -> tp.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value = _C.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        log_prob = self.base_dist.log_prob(value) + math.log(2)
        return tp.where(value >= 0, log_prob, tp.full_like(log_prob, -math.inf))

    def cdf(self, value: Any) -> tp.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Any) -> tp.Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> tp.Tensor:
        return self.base_dist.entropy() - math.log(2)
