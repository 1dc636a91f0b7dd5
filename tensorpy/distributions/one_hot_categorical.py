"""One-hot vectors with categorical probabilities."""

from __future__ import annotations

from typing import Any, ClassVar

import tensorpy as tp
from tensorpy.distributions import constraints
from tensorpy.distributions.categorical import Categorical
from tensorpy.distributions.distribution import SHAPELESS, Distribution
from tensorpy.nn import functional as F

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(Distribution):
    """Vectors of zeros with a one where Categorical says. Not reparameterised.

    Arguments:
        probs: the probabilities
        logits: the logarithms of the odds, or unnormalised logarithms of the probabilities, instead of probs
        validate_args: whether parameters and values are checked; None takes the class's setting

    Raises: ValueError for both probs and logits, or neither, and, if checked, for parameters out of their range.

    Example:
        >>> d = tp.distributions.OneHotCategorical(probs=tp.tensor([0.25, 0.75]))
        >>> d.sample().sum(), d.log_prob(tp.tensor([0.0, 1.0]))
        (tensor(1.), tensor(-0.2877))
    """

    arg_constraints: ClassVar[Any] = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits)
        shape = self._categorical.param_shape
        super().__init__(self._categorical.batch_shape, shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> OneHotCategorical:
        inner = self._categorical.expand(tp.Size(batch_shape))
        return self._expand(OneHotCategorical, batch_shape, _instance, _categorical=inner)

    @property
    def probs(self) -> Any:
        return self._categorical.probs

    @property
    def logits(self) -> Any:
        return self._categorical.logits

    @property
    def param_shape(self) -> Any:
        return self._categorical.param_shape

    @property
    def mean(self) -> Any:
        return self._categorical.probs

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)

    @property
    def mode(self) -> Any:
        return F.one_hot(self.probs.argmax(-1), self._event_shape[0]).to(self.probs.dtype)

    def sample(self, sample_shape: Any = SHAPELESS) -> tp.Tensor:
        drawn = self._categorical.sample(sample_shape)
        return F.one_hot(drawn, self._event_shape[0]).to(self.probs.dtype)

    def log_prob(self, value: Any) -> tp.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> tp.Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> tp.Tensor:
        n = self._event_shape[0]
        values = tp.eye(n, dtype=self.probs.dtype, device=self.probs.device)
        values = values.reshape((n,) + (1,) * len(self._batch_shape) + (n,))
        return values.expand((n, *self._batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """OneHotCategorical whose samples pass gradients straight to the probabilities (Bengio et al., 2013).

    Arguments:
        probs: the probabilities
        logits: the logarithms of the odds, or unnormalised logarithms of the probabilities, instead of probs
        validate_args: whether parameters and values are checked; None takes the class's setting

    Raises: ValueError for both probs and logits, or neither, and, if checked, for parameters out of their range.

    Example:
        >>> d = tp.distributions.OneHotCategoricalStraightThrough(probs=tp.tensor([0.25, 0.75]))
        >>> d.sample().sum(), d.log_prob(tp.tensor([0.0, 1.0]))
        (tensor(1.), tensor(-0.2877))
    """

    has_rsample = True

    def rsample(self, sample_shape: Any = SHAPELESS) -> tp.Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
