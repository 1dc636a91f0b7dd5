"""Mixtures of distributions of one family."""

from __future__ import annotations

from typing import Any, ClassVar

import tensorpy as tp
from tensorpy.distributions import constraints
from tensorpy.distributions.categorical import Categorical
from tensorpy.distributions.distribution import SHAPELESS, Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """Components along the last batch dimension, weighted by a Categorical. Not reparameterised.

    Arguments:
        mixture_distribution: a Categorical with the weights
        component_distribution: the components, along the last dimension of the batch
        validate_args: whether parameters and values are checked; None takes the class's setting

    Raises: ValueError for what is no Categorical or Distribution, and for batches that do not fit.

    Example:
        >>> from tensorpy.distributions import Categorical, MixtureSameFamily, Normal
        >>> d = MixtureSameFamily(Categorical(tp.ones(2)), Normal(tp.tensor([-1.0, 1.0]), tp.ones(2)))
        >>> d.sample().shape, d.log_prob(tp.tensor(0.0))
        (tensorpy.Size([]), tensor(-1.4189))
    """

    arg_constraints: ClassVar[Any] = {}

    def __init__(
        self, mixture_distribution: Any, component_distribution: Any, validate_args: bool | None = None
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError("The Mixture distribution needs to be an instance of tensorpy.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution needs to be an instance of Distribution")
        self._mixture_distribution: Any = mixture_distribution
        self._component_distribution: Any = component_distribution
        batch = component_distribution.batch_shape[:-1]
        for ours, theirs in zip(reversed(mixture_distribution.batch_shape), reversed(batch), strict=False):
            if ours != 1 and theirs != 1 and ours != theirs:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({mixture_distribution.batch_shape}) is not compatible with "
                    f"`component_distribution.batch_shape` ({component_distribution.batch_shape})"
                )
        km, kc = mixture_distribution.logits.shape[-1], component_distribution.batch_shape[-1]
        if km != kc:
            raise ValueError(
                f"`mixture_distribution component` ({km}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({kc})"
            )
        self._num_component = km
        super().__init__(batch, component_distribution.event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> MixtureSameFamily:
        batch_shape = tp.Size(batch_shape)
        return self._expand(
            MixtureSameFamily,
            batch_shape,
            _instance,
            _component_distribution=self._component_distribution.expand((*batch_shape, self._num_component)),
            _mixture_distribution=self._mixture_distribution.expand(batch_shape),
            _num_component=self._num_component,
        )

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Any:
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Any:
        return self._component_distribution

    def _weights(self) -> Any:
        """The components' probabilities with the event's dimensions after them."""
        probs = self._mixture_distribution.probs
        return probs.reshape(probs.shape + (1,) * len(self._event_shape))

    def _average(self, x: Any) -> Any:
        return (self._weights() * x).sum(-1 - len(self._event_shape))

    @property
    def mean(self) -> Any:
        return self._average(self._component_distribution.mean)

    @property
    def variance(self) -> Any:
        inside = self._average(self._component_distribution.variance)
        mean = self.mean.unsqueeze(-1 - len(self._event_shape))
        return inside + self._average((self._component_distribution.mean - mean) ** 2)

    def cdf(self, value: Any) -> tp.Tensor:
        below = self._component_distribution.cdf(value.unsqueeze(-1 - len(self._event_shape)))
        return (below * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, value: Any) -> tp.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value = value.unsqueeze(-1 - len(self._event_shape))
        log_prob = self._component_distribution.log_prob(value)
        weights = tp.log_softmax(self._mixture_distribution.logits, -1)
        return tp.logsumexp(log_prob + weights, -1)

    def sample(self, sample_shape: Any = SHAPELESS) -> tp.Tensor:
        with tp.no_grad():
            batch, event = len(sample_shape) + len(self._batch_shape), len(self._event_shape)
            chosen = self._mixture_distribution.expand(self._batch_shape).sample(sample_shape)
            drawn = self._component_distribution.sample(sample_shape)
            index = chosen.reshape((*chosen.shape, *(1,) * (event + 1)))
            drawn = drawn.expand((*chosen.shape, *drawn.shape[batch:]))
            index = index.expand((*chosen.shape, 1, *self._event_shape))
            return drawn.gather(batch, index).squeeze(batch)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self._mixture_distribution},\n  {self._component_distribution})"
