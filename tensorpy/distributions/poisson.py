"""The Poisson distribution."""

from __future__ import annotations

from typing import Any, ClassVar

import tensorpy as tp
from tensorpy.distributions import constraints
from tensorpy.distributions.distribution import SHAPELESS
from tensorpy.distributions.exp_family import ExponentialFamily
from tensorpy.distributions.utils import broadcast_all

__all__ = ["Poisson"]


class Poisson(ExponentialFamily):
    """Counts with probabilities rate^k exp(-rate) / k!. Not reparameterised.

    Arguments:
        rate: the rate
        validate_args: whether parameters and values are checked; None takes the class's setting

    Raises: ValueError, if checked, for parameters out of their range.

    Example:
        >>> d = tp.distributions.Poisson(tp.tensor([2.0]))
        >>> d.sample().shape, d.log_prob(tp.tensor([1.0]))
        (tensorpy.Size([1]), tensor([-1.3069]))
    """

    rate: Any
    arg_constraints: ClassVar[Any] = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Poisson:
        return self._expand(Poisson, batch_shape, _instance, ("rate",))

    @property
    def mean(self) -> Any:
        return self.rate

    @property
    def mode(self) -> Any:
        return self.rate.floor()

    @property
    def variance(self) -> Any:
        return self.rate

    def sample(self, sample_shape: Any = SHAPELESS) -> tp.Tensor:
        with tp.no_grad():
            return tp.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> tp.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value, rate = broadcast_all(value, self.rate)
        return tp.xlogy(value, rate) - rate - tp.lgamma(value + 1)

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.rate.log(),)

    def _log_normalizer(self, *natural_params: Any) -> Any:
        return tp.exp(natural_params[0])
