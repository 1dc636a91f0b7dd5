"""The LKJ distribution of correlation matrices, by their Cholesky factors."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import tensorpy as tp
from tensorpy import _C
from tensorpy.distributions import constraints
from tensorpy.distributions.beta import Beta
from tensorpy.distributions.distribution import SHAPELESS, Distribution
from tensorpy.distributions.utils import standard_normal

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Lower Cholesky factors L of correlation matrices of density det(L L^T)^(concentration - 1).

    D. Lewandowski, D. Kurowicka, H. Joe, "Generating random correlation matrices based on vines and extended onion
    method", 2009. Row i of L is independent of the others: i numbers w inside the unit ball, of density
    (1 - |w|^2)^(a_i - 1) with a_i = concentration + (dim - 1 - i) / 2, and the positive number that makes the row one
    of length 1. So |w|^2 is a beta variable, and the direction of w is uniform.

    Arguments:
        dim: the dimension; a negative one counts from the last
        concentration: the concentration
        validate_args: whether parameters and values are checked; None takes the class's setting

    Raises: ValueError, if checked, for parameters out of their range.

    Example:
        >>> d = tp.distributions.LKJCholesky(3, 0.5)
        >>> d.sample().shape
        tensorpy.Size([3, 3])
    """

    concentration: Any
    dim: int
    arg_constraints: ClassVar[Any] = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim, self.concentration = dim, _C.as_tensor(concentration)
        super().__init__(self.concentration.size(), (dim, dim), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> LKJCholesky:
        return self._expand(LKJCholesky, batch_shape, _instance, ("concentration",), dim=self.dim)

    def _rows(self) -> Any:
        """1, 2, ..., dim - 1: the rows that are not fixed, each with as many free numbers."""
        return tp.arange(1, self.dim, dtype=self.concentration.dtype, device=self.concentration.device)

    def _exponents(self) -> Any:
        """a_i of the class's description, along a new last dimension."""
        return self.concentration.unsqueeze(-1) + (self.dim - 1 - self._rows()) / 2

    def sample(self, sample_shape: Any = SHAPELESS) -> tp.Tensor:
        with tp.no_grad():
            shape = self._extended_shape(sample_shape)
            squared = Beta(self._rows() / 2, self._exponents(), validate_args=False).sample(sample_shape)
            direction = standard_normal(shape, self.concentration.dtype, self.concentration.device).tril(-1)[..., 1:, :]
            direction = direction / direction.pow(2).sum(-1, keepdim=True).sqrt()
            first = direction.new_zeros((*shape[:-2], 1, self.dim))
            below = tp.cat([first, squared.sqrt().unsqueeze(-1) * direction], -2)
            tiny = tp.finfo(below.dtype).tiny
            return below + (1 - below.pow(2).sum(-1)).clamp(min=tiny).sqrt().diag_embed()

    def log_prob(self, value: Any) -> tp.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        a, rows = self._exponents(), self._rows()
        density = 2 * (a - 1) * value.diagonal(dim1=-2, dim2=-1)[..., 1:].log()
        # the integral of (1 - |w|^2)^(a - 1) over the ball of i dimensions
        volume = rows / 2 * math.log(math.pi) + tp.lgamma(a) - tp.lgamma(a + rows / 2)
        return (density - volume).sum(-1)
