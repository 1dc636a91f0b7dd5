"""Distributions of transformed random variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import tensorpy as tp
from tensorpy.distributions import constraints
from tensorpy.distributions.distribution import SHAPELESS, Distribution
from tensorpy.distributions.independent import Independent
from tensorpy.distributions.transforms import ComposeTransform, Transform
from tensorpy.distributions.utils import sum_rightmost

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of f(x), for x of `base_distribution` and f the transforms one after the other.

    Arguments:
        base_distribution: the distribution
        transforms: one or several transforms, in order
        validate_args: whether parameters and values are checked; None takes the class's setting

    Raises: ValueError for what is no transform, and for a distribution of too few dimensions.

    Example:
        >>> from tensorpy.distributions import ExpTransform, Normal, TransformedDistribution
        >>> d = TransformedDistribution(Normal(0.0, 1.0), ExpTransform())
        >>> d.log_prob(tp.tensor(1.0))
        tensor(-0.9189)
    """

    arg_constraints: ClassVar[Any] = {}
    base_dist: Any
    transforms: Any

    def __init__(self, base_distribution: Any, transforms: Any, validate_args: bool | None = None) -> None:
        self.transforms = [transforms] if isinstance(transforms, Transform) else transforms
        if not isinstance(self.transforms, list) or not all(isinstance(t, Transform) for t in self.transforms):
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        transform = ComposeTransform(self.transforms)
        shape = base_distribution.batch_shape + base_distribution.event_shape
        if len(shape) < transform.domain.event_dim:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {transform.domain.event_dim}, "
                f"but got {shape}."
            )
        forward = transform.forward_shape(shape)
        base_shape = transform.inverse_shape(forward)
        if base_shape != shape:
            batch = base_shape[: len(base_shape) - len(base_distribution.event_shape)]
            base_distribution = base_distribution.expand(batch)
        missing = transform.domain.event_dim - len(base_distribution.event_shape)
        if missing > 0:
            base_distribution = Independent(base_distribution, missing)
        self.base_dist = base_distribution
        change = transform.codomain.event_dim - transform.domain.event_dim
        event_dim = max(transform.codomain.event_dim, len(base_distribution.event_shape) + change)
        cut = len(forward) - event_dim
        super().__init__(forward[:cut], forward[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Self:
        inner = ComposeTransform(self.transforms).inverse_shape(tp.Size(batch_shape) + self._event_shape)
        base = self.base_dist.expand(inner[: len(inner) - len(self.base_dist.event_shape)])
        own = {"transforms": self.transforms, "base_dist": base}
        return self._expand(TransformedDistribution, batch_shape, _instance, **own)

    def _support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        extra = len(self._event_shape) - support.event_dim
        return constraints.independent(support, extra) if extra > 0 else support

    support: Any = constraints.dependent_property(_support, is_discrete=False)
    has_rsample: Any = property(lambda self: self.base_dist.has_rsample)

    def _forward(self, x: Any) -> Any:
        for transform in self.transforms:
            x = transform(x)
        return x

    def sample(self, sample_shape: Any = SHAPELESS) -> tp.Tensor:
        with tp.no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = SHAPELESS) -> tp.Tensor:
        return self._forward(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Any) -> tp.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        event_dim, total, y = len(self._event_shape), 0.0, value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            volume = transform.log_abs_det_jacobian(x, y)
            total = total - sum_rightmost(volume, event_dim - transform.domain.event_dim)
            y = x
        base = self.base_dist.log_prob(y)
        return total + sum_rightmost(base, event_dim - len(self.base_dist.event_shape))

    def _turned(self, value: Any) -> Any:
        """A probability of the value, or of its complement where the transforms are decreasing."""
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value: Any) -> tp.Tensor:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._turned(self.base_dist.cdf(value))

    def icdf(self, value: Any) -> tp.Tensor:
        return self._forward(self.base_dist.icdf(self._turned(value)))
