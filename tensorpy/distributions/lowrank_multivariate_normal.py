"""The multivariate normal distribution whose covariance is a matrix of low rank and a diagonal."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import tensorpy as tp
from tensorpy._C import _linalg
from tensorpy.distributions import constraints
from tensorpy.distributions._matrices import solve_lower
from tensorpy.distributions.distribution import SHAPELESS, Distribution
from tensorpy.distributions.utils import lazy_property, standard_normal

__all__ = ["LowRankMultivariateNormal"]


class LowRankMultivariateNormal(Distribution):
    """The normal distribution of vectors with mean `loc` and covariance W W^T + diag(D), W `cov_factor`, D `cov_diag`.

    With C = I + W^T D^-1 W, as small as the rank, the determinant is det(C) det(D), and the inverse
    D^-1 - D^-1 W C^-1 W^T D^-1 (Woodbury): no matrix of the event's size is factorised.

    Arguments:
        loc: where the middle is
        validate_args: whether parameters and values are checked; None takes the class's setting

    Raises: ValueError for parameters of shapes that do not fit.

    Example:
        >>> d = tp.distributions.LowRankMultivariateNormal(tp.zeros(2), tp.ones(2, 1), tp.ones(2))
        >>> d.sample().shape, d.log_prob(tp.zeros(2))
        (tensorpy.Size([2]), tensor(-2.3872))
    """

    cov_diag: Any
    cov_factor: Any
    loc: Any
    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Any, cov_factor: Any, cov_diag: Any, validate_args: bool | None = None) -> None:
        if loc.dim() < 1:
            raise ValueError("LowRankMultivariateNormal: loc has no dimension, where a vector or several are wanted")
        if cov_factor.dim() < 2:
            raise ValueError(f"cov_factor has {cov_factor.dim()} dimensions, where a matrix or several are wanted")
        n = loc.shape[-1]
        if cov_factor.shape[-2] != n:
            raise ValueError(f"cov_factor has {cov_factor.shape[-2]} rows for vectors of {n}")
        if tuple(cov_diag.shape[-1:]) != (n,):
            raise ValueError(f"cov_diag is of shape {tuple(cov_diag.shape)} for vectors of {n}")
        try:
            batch = tp.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        except RuntimeError:
            shapes = f"loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}"
            raise ValueError(f"LowRankMultivariateNormal: these batches do not fit each other: {shapes}") from None
        self.loc = loc.expand((*batch, -1))
        self.cov_factor = cov_factor.expand((*batch, -1, -1))
        self.cov_diag = cov_diag.expand((*batch, -1))
        super().__init__(batch, (n,), validate_args=validate_args)
        # the factors as they were given: what depends on them alone is computed once for the whole batch
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        scaled = cov_factor / cov_diag.sqrt().unsqueeze(-1)
        identity = tp.eye(cov_factor.shape[-1], dtype=cov_factor.dtype, device=cov_factor.device)
        self._capacitance_tril = _linalg.linalg_cholesky(identity + scaled.mT @ scaled)

    def expand(self, batch_shape: Any, _instance: Any = None) -> LowRankMultivariateNormal:
        names = "loc", "cov_factor", "cov_diag"
        same = ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril")
        own = {name: getattr(self, name) for name in same}
        return self._expand(LowRankMultivariateNormal, batch_shape, _instance, names, **own)

    def _full(self, matrix: Any) -> Any:
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def covariance_matrix(self) -> Any:
        factor = self._unbroadcasted_cov_factor
        return self._full(factor @ factor.mT + self._unbroadcasted_cov_diag.diag_embed())

    @lazy_property
    def scale_tril(self) -> Any:
        return self._full(_linalg.linalg_cholesky(self.covariance_matrix))

    @lazy_property
    def precision_matrix(self) -> Any:
        diagonal = self._unbroadcasted_cov_diag.reciprocal()
        half = solve_lower(self._capacitance_tril, self._unbroadcasted_cov_factor.mT * diagonal.unsqueeze(-2))
        return self._full(diagonal.diag_embed() - half.mT @ half)

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        variance = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        return variance.expand(self._batch_shape + self._event_shape)

    def _log_det(self) -> Any:
        small = self._capacitance_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return 2 * small + self._unbroadcasted_cov_diag.log().sum(-1)

    def _distance(self, difference: Any) -> Any:
        """The squared Mahalanobis distance of vectors from the mean."""
        whitened = difference / self._unbroadcasted_cov_diag
        inner = (self._unbroadcasted_cov_factor.mT @ whitened.unsqueeze(-1)).squeeze(-1)
        removed = solve_lower(self._capacitance_tril, inner.unsqueeze(-1)).squeeze(-1)
        return (difference * whitened).sum(-1) - removed.pow(2).sum(-1)

    def rsample(self, sample_shape: Any = SHAPELESS) -> tp.Tensor:
        shape = self._extended_shape(sample_shape)
        along = standard_normal((*shape[:-1], self.cov_factor.shape[-1]), self.loc.dtype, self.loc.device)
        each = standard_normal(shape, self.loc.dtype, self.loc.device)
        common = (self._unbroadcasted_cov_factor @ along.unsqueeze(-1)).squeeze(-1)
        return self.loc + common + self._unbroadcasted_cov_diag.sqrt() * each

    def log_prob(self, value: Any) -> tp.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + self._log_det() + self._distance(value - self.loc))

    def entropy(self) -> tp.Tensor:
        h = 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._log_det())
        return h.expand(self._batch_shape)
