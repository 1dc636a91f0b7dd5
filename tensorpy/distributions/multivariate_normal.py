"""The multivariate normal distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import tensorpy as tp
from tensorpy._C import _linalg
from tensorpy.distributions import constraints
from tensorpy.distributions._matrices import inverse_lower, precision_to_scale_tril, solve_lower
from tensorpy.distributions.distribution import SHAPELESS, Distribution
from tensorpy.distributions.utils import lazy_property, standard_normal

__all__ = ["MultivariateNormal"]


class MultivariateNormal(Distribution):
    """The normal distribution of vectors with mean `loc` and one of covariance, precision and Cholesky factor.

    The factorisation is a Python step for each pair of columns, meant for up to some tens of dimensions.

    Arguments:
        loc: where the middle is
        covariance_matrix: the covariances, (*, d, d)
        precision_matrix: the inverse of the covariances; instead of them
        scale_tril: the lower Cholesky factor of the covariances; instead of them
        validate_args: whether parameters and values are checked; None takes the class's setting

    Raises: ValueError for other than one of the three matrices, for one of less than two dimensions, and, if checked,
        one that is not positive definite.

    Example:
        >>> d = tp.distributions.MultivariateNormal(tp.zeros(2), tp.eye(2))
        >>> d.sample().shape, d.log_prob(tp.zeros(2))
        (tensorpy.Size([2]), tensor(-1.8379))
    """

    loc: Any
    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True
    _unbroadcasted_scale_tril: Any

    def __init__(
        self,
        loc: Any,
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
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        batch = tp.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        self.loc = loc.expand((*batch, -1))
        setattr(self, name, matrix.expand((*batch, -1, -1)))
        super().__init__(batch, self.loc.shape[-1:], validate_args=validate_args)
        makers = {
            "covariance_matrix": _linalg.linalg_cholesky,
            "precision_matrix": precision_to_scale_tril,
            "scale_tril": lambda m: m,
        }
        self._unbroadcasted_scale_tril = makers[name](matrix)

    def expand(self, batch_shape: Any, _instance: Any = None) -> MultivariateNormal:
        names = ("loc", "covariance_matrix", "precision_matrix", "scale_tril")
        own = {"_unbroadcasted_scale_tril": self._unbroadcasted_scale_tril}
        return self._expand(MultivariateNormal, batch_shape, _instance, names, **own)

    def _full(self, matrix: Any) -> Any:
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

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
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(self._batch_shape + self._event_shape)

    def _half_log_det(self) -> Any:
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def rsample(self, sample_shape: Any = SHAPELESS) -> tp.Tensor:
        eps = standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device)
        return self.loc + (self._unbroadcasted_scale_tril @ eps.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Any) -> tp.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        z = solve_lower(self._unbroadcasted_scale_tril, (value - self.loc).unsqueeze(-1)).squeeze(-1)
        n = self._event_shape[0]
        return -0.5 * (n * math.log(2 * math.pi) + (z * z).sum(-1)) - self._half_log_det()

    def entropy(self) -> tp.Tensor:
        h = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._half_log_det()
        return h.expand(self._batch_shape)
