"""Exponential families: densities exp(<t(x), eta> - F(eta) + k(x))."""

from __future__ import annotations

from typing import Any

import tensorpy as tp
from tensorpy.autograd import grad
from tensorpy.distributions.distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """Subclasses may give natural parameters and the log normalizer, from which the entropy follows.

    Arguments:
        batch_shape: the shape of parameters
        event_shape: the shape of one draw
        validate_args: whether parameters and values are checked; None takes the class's setting

    Example:
        >>> isinstance(tp.distributions.Normal(0.0, 1.0), tp.distributions.ExponentialFamily)
        True
    """

    _mean_carrier_measure: Any = None  # E[k(x)], where it is known

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Any) -> Any:
        raise NotImplementedError

    def entropy(self) -> tp.Tensor:
        """F(eta) - <eta, grad F(eta)> - E[k(x)], the gradient by autograd."""
        carrier = self._mean_carrier_measure
        if carrier is None:
            raise NotImplementedError
        with tp.enable_grad():
            parameters = [p.detach().requires_grad_() for p in self._natural_params]
            normalizer = self._log_normalizer(*parameters)
            gradients = grad(normalizer.sum(), parameters, create_graph=True)
        result = normalizer - carrier
        event = len(self._event_shape)
        for parameter, gradient in zip(parameters, gradients, strict=True):
            product = parameter * gradient
            result = result - (product.reshape((*self._batch_shape, -1)).sum(-1) if event else product)
        return result
