"""The Dirichlet distribution."""

from __future__ import annotations

from typing import Any, ClassVar

import tensorpy as tp
from tensorpy import _C
from tensorpy.distributions import constraints
from tensorpy.distributions.distribution import SHAPELESS
from tensorpy.distributions.exp_family import ExponentialFamily
from tensorpy.distributions.utils import sample_dirichlet

__all__ = ["Dirichlet"]


def _Dirichlet_backward(x: Any, concentration: Any, grad_output: Any) -> Any:
    """The gradient of a draw `x` by the concentration, times that of the draw."""
    total = concentration.sum(-1, True).expand_as(concentration)
    return _C._dirichlet_grad(x, concentration, total) * (grad_output - (x * grad_output).sum(-1, True))


class Dirichlet(ExponentialFamily):
    """Probabilities with density proportional to prod x_i^(c_i - 1) for c = `concentration`; implicit gradients.

    Arguments:
        concentration: the concentration
        validate_args: whether parameters and values are checked; None takes the class's setting

    Raises: ValueError for a concentration without dimensions, and, if checked, for parameters out of their range.

    Example:
        >>> d = tp.distributions.Dirichlet(tp.tensor([2.0, 3.0]))
        >>> d.sample().sum(), d.log_prob(tp.tensor([0.5, 0.5]))
        (tensor(1.), tensor(0.4055))
    """

    arg_constraints: ClassVar[Any] = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True
    concentration: Any

    def __init__(self, concentration: Any, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Dirichlet:
        return self._expand(Dirichlet, batch_shape, _instance, ("concentration",))

    @property
    def mean(self) -> Any:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Any:
        above = (self.concentration - 1).clamp(min=0.0)
        mode = above / above.sum(-1, True)
        largest = tp.zeros_like(mode).scatter(-1, mode.argmax(-1, True), 1.0)
        return tp.where((self.concentration < 1).all(-1, keepdim=True), largest, mode)

    @property
    def variance(self) -> Any:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total * total * (total + 1))

    def rsample(self, sample_shape: Any = SHAPELESS) -> tp.Tensor:
        concentration = self.concentration.expand(self._extended_shape(sample_shape))
        return sample_dirichlet(concentration)

    def log_prob(self, value: Any) -> tp.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        c = self.concentration
        return tp.xlogy(c - 1, value).sum(-1) + tp.lgamma(c.sum(-1)) - tp.lgamma(c).sum(-1)

    def entropy(self) -> tp.Tensor:
        c = self.concentration
        total, k = c.sum(-1), c.size(-1)
        normalizer = tp.lgamma(c).sum(-1) - tp.lgamma(total)
        return normalizer - (k - total) * tp.digamma(total) - ((c - 1) * tp.digamma(c)).sum(-1)

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.concentration,)

    def _log_normalizer(self, *natural_params: Any) -> Any:
        (x,) = natural_params
        return tp.lgamma(x).sum(-1) - tp.lgamma(x.sum(-1))
