"""The beta distribution."""

from __future__ import annotations

from typing import Any, ClassVar

import tensorpy as tp
from tensorpy.distributions import constraints
from tensorpy.distributions.dirichlet import Dirichlet
from tensorpy.distributions.distribution import SHAPELESS
from tensorpy.distributions.exp_family import ExponentialFamily
from tensorpy.distributions.utils import broadcast_all

__all__ = ["Beta"]


class Beta(ExponentialFamily):
    """The density x^(a - 1) (1 - x)^(b - 1) / B(a, b) for a = `concentration1`, b = `concentration0`.

    Arguments:
        validate_args: whether parameters and values are checked; None takes the class's setting

    Raises: ValueError, if checked, for parameters out of their range.

    Example:
        >>> d = tp.distributions.Beta(tp.tensor([2.0]), tp.tensor([3.0]))
        >>> d.sample().shape, d.log_prob(tp.tensor([0.5]))
        (tensorpy.Size([1]), tensor([0.4055]))
    """

    arg_constraints: ClassVar[Any] = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        both = tp.stack(broadcast_all(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(both, validate_args=validate_args)
        super().__init__(self._dirichlet.batch_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Beta:
        inner = self._dirichlet.expand(tp.Size(batch_shape))
        return self._expand(Beta, batch_shape, _instance, _dirichlet=inner)

    @property
    def concentration1(self) -> Any:
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self) -> Any:
        return self._dirichlet.concentration[..., 1]

    @property
    def mean(self) -> Any:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Any:
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Any:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total**2 * (total + 1))

    def rsample(self, sample_shape: Any = SHAPELESS) -> tp.Tensor:
        return self._dirichlet.rsample(sample_shape)[..., 0]

    def log_prob(self, value: Any) -> tp.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self._dirichlet.log_prob(tp.stack((value, 1.0 - value), -1))

    def entropy(self) -> tp.Tensor:
        return self._dirichlet.entropy()

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return self.concentration1, self.concentration0

    def _log_normalizer(self, *natural_params: Any) -> Any:
        x, y = natural_params
        return tp.lgamma(x) + tp.lgamma(y) - tp.lgamma(x + y)
