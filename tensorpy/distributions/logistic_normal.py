"""The logistic-normal distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from tensorpy.distributions import constraints
from tensorpy.distributions.normal import Normal
from tensorpy.distributions.transformed_distribution import TransformedDistribution
from tensorpy.distributions.transforms import StickBreakingTransform

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """Probability vectors that a normal vector, one shorter, is broken into by StickBreakingTransform.

    Arguments:
        loc: where the middle is
        scale: the scale
        validate_args: whether parameters and values are checked; None takes the class's setting

    Raises: ValueError, if checked, for parameters out of their range.

    Example:
        >>> d = tp.distributions.LogisticNormal(tp.zeros(2), tp.ones(2))
        >>> d.sample().shape
        tensorpy.Size([3])
    """

    arg_constraints: ClassVar[Any] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> LogisticNormal:
        return super().expand(batch_shape, self._get_checked_instance(LogisticNormal, _instance))

    @property
    def loc(self) -> Any:
        return self.base_dist.base_dist.loc

    @property
    def scale(self) -> Any:
        return self.base_dist.base_dist.scale
