"""Batch dimensions as dimensions of the event."""

from __future__ import annotations

from typing import Any, ClassVar

import tensorpy as tp
from tensorpy.distributions import constraints
from tensorpy.distributions.distribution import SHAPELESS, Distribution
from tensorpy.distributions.utils import sum_rightmost

__all__ = ["Independent"]


class Independent(Distribution):
    """`base_distribution` with its last `reinterpreted_batch_ndims` batch dimensions counted to the event.

    Arguments:
        base_distribution: the distribution
        reinterpreted_batch_ndims: how many dimensions of the batch belong to one event
        validate_args: whether parameters and values are checked; None takes the class's setting

    Raises: ValueError for more dimensions than the batch has.

    Example:
        >>> from tensorpy.distributions import Independent, Normal
        >>> d = Independent(Normal(tp.zeros(3), tp.ones(3)), 1)
        >>> d.event_shape, d.log_prob(tp.zeros(3))
        (tensorpy.Size([3]), tensor(-2.7568))
    """

    arg_constraints: ClassVar[Any] = {}
    base_dist: Any
    reinterpreted_batch_ndims: int

    def __init__(
        self, base_distribution: Any, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        if reinterpreted_batch_ndims > len(base_distribution.batch_shape):
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), "
                f"actual {reinterpreted_batch_ndims} vs {len(base_distribution.batch_shape)}"
            )
        shape = base_distribution.batch_shape + base_distribution.event_shape
        cut = len(base_distribution.batch_shape) - reinterpreted_batch_ndims
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Independent:
        n = self.reinterpreted_batch_ndims
        base = self.base_dist.expand(tp.Size(batch_shape) + self._event_shape[:n])
        return self._expand(Independent, batch_shape, _instance, base_dist=base, reinterpreted_batch_ndims=n)

    @property
    def has_rsample(self) -> bool:
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        return False if self.reinterpreted_batch_ndims > 0 else self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self) -> Any:
        support = self.base_dist.support
        n = self.reinterpreted_batch_ndims
        return constraints.independent(support, n) if n else support

    @property
    def mean(self) -> Any:
        return self.base_dist.mean

    @property
    def mode(self) -> Any:
        return self.base_dist.mode

    @property
    def variance(self) -> Any:
        return self.base_dist.variance

    def sample(self, sample_shape: Any = SHAPELESS) -> tp.Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = SHAPELESS) -> tp.Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Any) -> tp.Tensor:
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> tp.Tensor:
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> tp.Tensor:
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"
