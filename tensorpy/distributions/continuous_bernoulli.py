"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import tensorpy as tp
from tensorpy.distributions import constraints
from tensorpy.distributions.distribution import SHAPELESS
from tensorpy.distributions.exp_family import ExponentialFamily
from tensorpy.distributions.utils import (
    broadcast_all,
    clamp_probs,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
    special,
)

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(ExponentialFamily):
    """The density C p^x (1 - p)^(1 - x) over [0, 1] (Loaiza-Ganem, Cunningham, 2019).

    Where p lies within `lims`, formulas that divide 0 by 0 at p = 1/2 are replaced by their Taylor series.

    Arguments:
        probs: the probabilities
        logits: the logarithms of the odds, or unnormalised logarithms of the probabilities, instead of probs
        validate_args: whether parameters and values are checked; None takes the class's setting

    Raises: ValueError for both probs and logits, or neither, and, if checked, for parameters out of their range.

    Example:
        >>> d = tp.distributions.ContinuousBernoulli(tp.tensor([0.3]))
        >>> d.sample().shape, d.log_prob(tp.tensor([0.5]))
        (tensorpy.Size([1]), tensor([-0.0297]))
    """

    arg_constraints: ClassVar[Any] = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        if probs is not None:
            (given,) = broadcast_all(probs)
            if validate_args is not None and not constraints.unit_interval.check(given).all():
                raise ValueError("The parameter probs has invalid values")
            self.probs = clamp_probs(given)
        else:
            (self.logits,) = broadcast_all(logits)
        self._param = self.probs if probs is not None else self.logits
        self._lims = lims
        super().__init__(self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> ContinuousBernoulli:
        names = "probs", "logits", "_param"
        return self._expand(ContinuousBernoulli, batch_shape, _instance, names, _lims=self._lims)

    @lazy_property
    def logits(self) -> Any:
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Any:
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    @property
    def param_shape(self) -> Any:
        return self._param.size()

    def _regular(self) -> tuple[Any, Any]:
        """Where p is away from 1/2, and p, replaced by a harmless number elsewhere."""
        regular = (self.probs <= self._lims[0]) | (self.probs > self._lims[1])
        return regular, tp.where(regular, self.probs, tp.full_like(self.probs, self._lims[0]))

    def _cont_bern_log_norm(self) -> Any:
        regular, p = self._regular()
        exact = ((-p).log1p() - p.log()).abs().log() - (1 - 2 * p).abs().log()
        x2 = (self.probs - 0.5) ** 2
        return tp.where(regular, exact, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x2) * x2)

    @property
    def mean(self) -> Any:
        regular, p = self._regular()
        exact = p / (2 * p - 1) + 1 / ((-p).log1p() - p.log())
        x = self.probs - 0.5
        return tp.where(regular, exact, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x * x) * x)

    @property
    def variance(self) -> Any:
        regular, p = self._regular()
        exact = p * (p - 1) / (1 - 2 * p) ** 2 + 1 / ((-p).log1p() - p.log()) ** 2
        x2 = (self.probs - 0.5) ** 2
        return tp.where(regular, exact, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x2) * x2)

    def rsample(self, sample_shape: Any = SHAPELESS) -> tp.Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(tp.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Any) -> tp.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        density = tp.xlogy(value, self.probs) + special.xlog1py(1 - value, -self.probs)
        return density + self._cont_bern_log_norm()

    def cdf(self, value: Any) -> tp.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        regular, p = self._regular()
        exact = (p**value * (1 - p) ** (1 - value) + p - 1) / (2 * p - 1)
        inside = tp.where(regular, exact, value)
        return tp.where(value <= 0, tp.zeros_like(inside), tp.where(value >= 1, tp.ones_like(inside), inside))

    def icdf(self, value: Any) -> tp.Tensor:
        regular, p = self._regular()
        exact = ((-p + value * (2 * p - 1)).log1p() - (-p).log1p()) / (p.log() - (-p).log1p())
        return tp.where(regular, exact, value)

    def entropy(self) -> tp.Tensor:
        log0, log1 = (-self.probs).log1p(), self.probs.log()
        return self.mean * (log0 - log1) - self._cont_bern_log_norm() - log0
