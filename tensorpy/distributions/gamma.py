"""The gamma distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import tensorpy as tp
from tensorpy import _C
from tensorpy.distributions import constraints
from tensorpy.distributions.distribution import SHAPELESS
from tensorpy.distributions.exp_family import ExponentialFamily
from tensorpy.distributions.utils import broadcast_all, standard_gamma

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Gamma"]


class Gamma(ExponentialFamily):
    """The density rate^c x^(c - 1) exp(-rate x) / Gamma(c) for c = `concentration`; samples have implicit gradients.

    Arguments:
        concentration: the concentration
        rate: the rate
        validate_args: whether parameters and values are checked; None takes the class's setting

    Raises: ValueError, if checked, for parameters out of their range.

    Example:
        >>> d = tp.distributions.Gamma(tp.tensor([2.0]), tp.tensor([3.0]))
        >>> d.sample().shape, d.log_prob(tp.tensor([0.5]))
        (tensorpy.Size([1]), tensor([0.0041]))
    """

    concentration: Any
    rate: Any
    arg_constraints: ClassVar[Any] = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Self:
        return self._expand(Gamma, batch_shape, _instance, ("concentration", "rate"))

    @property
    def mean(self) -> Any:
        return self.concentration / self.rate

    @property
    def mode(self) -> Any:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Any:
        return self.concentration / self.rate**2

    def rsample(self, sample_shape: Any = SHAPELESS) -> tp.Tensor:
        shape = self._extended_shape(sample_shape)
        draws = standard_gamma(self.concentration.expand(shape)) / self.rate
        return draws.clamp(min=tp.finfo(draws.dtype).tiny)

    def log_prob(self, value: Any) -> tp.Tensor:
        value = _C.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        if self._validate_args:
            self._validate_sample(value)
        c = self.concentration
        return tp.xlogy(c, self.rate) + tp.xlogy(c - 1, value) - self.rate * value - tp.lgamma(c)

    def cdf(self, value: Any) -> tp.Tensor:
        """The regularised incomplete gamma function."""
        if self._validate_args:
            self._validate_sample(value)
        return tp.igamma(self.concentration, self.rate * value)

    def entropy(self) -> tp.Tensor:
        c = self.concentration
        return c - self.rate.log() + tp.lgamma(c) + (1 - c) * tp.digamma(c)

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, *natural_params: Any) -> Any:
        x, y = natural_params
        return tp.lgamma(x + 1) - (x + 1) * tp.log(-y)
