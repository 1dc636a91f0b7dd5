"""The Wishart distribution."""

from __future__ import annotations

import math
import warnings
from typing import Any, ClassVar

import tensorpy as tp
from tensorpy import _C
from tensorpy._C import _linalg
from tensorpy.distributions import constraints
from tensorpy.distributions._matrices import inverse_lower, precision_to_scale_tril, solve_lower
from tensorpy.distributions.chi2 import Chi2
from tensorpy.distributions.distribution import SHAPELESS
from tensorpy.distributions.exp_family import ExponentialFamily
from tensorpy.distributions.utils import lazy_property, standard_normal

__all__ = ["Wishart"]


def _shifted(a: Any, n: int) -> Any:
    """a, a - 1/2, ... a - (n - 1)/2 along a new last dimension."""
    return a.unsqueeze(-1) - tp.arange(n, dtype=a.dtype, device=a.device) / 2


def log_multigamma(a: Any, n: int) -> Any:
    """The logarithm of the gamma function of n dimensions."""
    return n * (n - 1) / 4 * math.log(math.pi) + tp.lgamma(_shifted(a, n)).sum(-1)


def multidigamma(a: Any, n: int) -> Any:
    """The derivative of log_multigamma."""
    return tp.digamma(_shifted(a, n)).sum(-1)


class Wishart(ExponentialFamily):
    """The sum of x x^T over `df` normal vectors x, given by one of their covariance, precision and Cholesky factor.

    Samples are Bartlett's: L A A^T L^T, A lower with chi variables on its diagonal and normal ones below it.

    Arguments:
        df: the degrees of freedom
        covariance_matrix: the covariances, (*, d, d)
        precision_matrix: the inverse of the covariances; instead of them
        scale_tril: the lower Cholesky factor of the covariances; instead of them
        validate_args: whether parameters and values are checked; None takes the class's setting

    Raises: AssertionError for other than one of the three matrices, ValueError for a df that is not above the matrix's
        size less one.

    Example:
        >>> d = tp.distributions.Wishart(tp.tensor(3.0), covariance_matrix=tp.eye(2))
        >>> d.sample().shape
        tensorpy.Size([2, 2])
    """

    df: Any
    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0
    _unbroadcasted_scale_tril: Any

    def _constraints(self) -> Any:
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self._event_shape[-1] - 1),
        }

    arg_constraints: ClassVar[Any] = property(_constraints)  # df's bound is an instance's

    def __init__(
        self,
        df: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        given = {
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }
        given = {name: matrix for name, matrix in given.items() if matrix is not None}
        if len(given) != 1:
            raise AssertionError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        n = matrix.shape[-1]
        df = _C.as_tensor(df, dtype=matrix.dtype, device=matrix.device)
        batch = tp.broadcast_shapes(matrix.shape[:-2], df.shape)
        self.df = df.expand(batch)
        if (df <= n - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {n - 1}.")
        if (df < n).any():
            warnings.warn("df is below the dimension: samples may be singular", stacklevel=2)
        setattr(self, name, matrix.expand((*batch, -1, -1)))
        super().__init__(batch, (n, n), validate_args=validate_args)
        makers = {
            "covariance_matrix": _linalg.linalg_cholesky,
            "precision_matrix": precision_to_scale_tril,
            "scale_tril": lambda m: m,
        }
        self._unbroadcasted_scale_tril = makers[name](matrix)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Wishart:
        names = ("df", "covariance_matrix", "precision_matrix", "scale_tril")
        own = {"_unbroadcasted_scale_tril": self._unbroadcasted_scale_tril}
        return self._expand(Wishart, batch_shape, _instance, names, **own)

    def _full(self, matrix: Any) -> Any:
        return matrix.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Any:
        return self._full(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Any:
        lower = self._unbroadcasted_scale_tril
        return self._full(lower @ lower.mT)

    @lazy_property
    def precision_matrix(self) -> Any:
        inverse = inverse_lower(self._unbroadcasted_scale_tril)
        return self._full(inverse.mT @ inverse)

    @property
    def mean(self) -> Any:
        return self.df[..., None, None] * self.covariance_matrix

    @property
    def mode(self) -> Any:
        factor = self.df - self._event_shape[-1] - 1
        return tp.where(factor > 0, factor, math.nan)[..., None, None] * self.covariance_matrix

    @property
    def variance(self) -> Any:
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        return self.df[..., None, None] * (v.pow(2) + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def _half_log_det(self) -> Any:
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def rsample(self, sample_shape: Any = SHAPELESS, max_try_correction: int | None = None) -> tp.Tensor:
        """Samples; those that rounding made singular are drawn again, so many times.

        Arguments:
            sample_shape: the shape of the samples
            max_try_correction: how often; None takes 10

        Returns: a tensor.
        """
        sample = self._draw(sample_shape)
        for _ in range(10 if max_try_correction is None else max_try_correction):
            sound = self.support.check(sample)
            if sound.all():
                break
            sample = tp.where(sound[..., None, None], sample, self._draw(sample_shape))
        return sample

    def _draw(self, sample_shape: Any) -> tp.Tensor:
        n, tiny = self._event_shape[-1], tp.finfo(self.df.dtype).tiny
        left = self.df.unsqueeze(-1) - tp.arange(n, dtype=self.df.dtype, device=self.df.device)
        diagonal = Chi2(left, validate_args=False).rsample(sample_shape).clamp(min=tiny).sqrt()
        below = standard_normal(self._extended_shape(sample_shape), self.df.dtype, self.df.device).tril(-1)
        factor = self._unbroadcasted_scale_tril @ (below + diagonal.diag_embed())
        return factor @ factor.mT

    def log_prob(self, value: Any) -> tp.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n, half = self._event_shape[-1], self.df / 2
        log_det = _linalg.linalg_slogdet(value)[1]
        lower = self._unbroadcasted_scale_tril
        inner = solve_lower(lower, solve_lower(lower, value).mT)
        trace = inner.diagonal(dim1=-2, dim2=-1).sum(-1)
        normalizer = half * n * math.log(2) + self.df * self._half_log_det() + log_multigamma(half, n)
        return (half - (n + 1) / 2) * log_det - trace / 2 - normalizer

    def entropy(self) -> tp.Tensor:
        n, half = self._event_shape[-1], self.df / 2
        spread = (n + 1) * (self._half_log_det() + n * math.log(2) / 2)
        return spread + log_multigamma(half, n) - (half - (n + 1) / 2) * multidigamma(half, n) + half * n

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, *natural_params: Any) -> Any:
        matrix, power = natural_params
        n = self._event_shape[-1]
        half = power + (n + 1) / 2
        return log_multigamma(half, n) - half * _linalg.linalg_slogdet(-matrix)[1]
