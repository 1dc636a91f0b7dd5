"""The categorical distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import tensorpy as tp
from tensorpy.distributions import constraints
from tensorpy.distributions.distribution import SHAPELESS, Distribution
from tensorpy.distributions.utils import lazy_property, logits_to_probs, probs_to_logits
from tensorpy.functional import broadcast_tensors

__all__ = ["Categorical"]


class Categorical(Distribution):
    """The index i of the last dimension with probability `probs[..., i]`, normalised; or by `logits`.

    Arguments:
        probs: the probabilities
        logits: the logarithms of the odds, or unnormalised logarithms of the probabilities, instead of probs
        validate_args: whether parameters and values are checked; None takes the class's setting

    Raises: ValueError for both probs and logits, or neither, and, if checked, for parameters out of their range.

    Example:
        >>> d = tp.distributions.Categorical(probs=tp.tensor([0.25, 0.75]))
        >>> d.sample((3,)).shape, d.log_prob(tp.tensor(1))
        (tensorpy.Size([3]), tensor(-0.2877))
    """

    arg_constraints: ClassVar[Any] = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _num_events: int

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        given = probs if probs is not None else logits
        if given.dim() < 1:
            name = "probs" if probs is not None else "logits"
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if probs is not None:
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = logits - logits.logsumexp(-1, keepdim=True)
        self._param = self.probs if probs is not None else self.logits
        self._num_events = given.size(-1)
        super().__init__(given.shape[:-1], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Categorical:
        names = "probs", "logits", "_param"
        return self._expand(Categorical, batch_shape, _instance, names, _num_events=self._num_events)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self) -> Any:
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Any:
        return logits_to_probs(self.logits)

    @property
    def param_shape(self) -> Any:
        return self._param.size()

    @property
    def mean(self) -> Any:
        return self._undefined()

    @property
    def variance(self) -> Any:
        return self._undefined()

    def _undefined(self) -> Any:
        return tp.full(self._batch_shape, math.nan, dtype=self.probs.dtype, device=self.probs.device)

    @property
    def mode(self) -> Any:
        return self.probs.argmax(-1)

    def sample(self, sample_shape: Any = SHAPELESS) -> tp.Tensor:
        count = math.prod(sample_shape)
        rows = self.probs.detach().reshape(-1, self._num_events)
        drawn = tp.multinomial(rows, count, True).T
        return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Any) -> tp.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value, logits = broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> tp.Tensor:
        logits = self.logits.clamp(min=tp.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> tp.Tensor:
        return self._enumerated(tp.arange(self._num_events, dtype=tp.int64, device=self._param.device), expand)
