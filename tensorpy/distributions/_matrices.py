"""What multivariate normals need of linear algebra."""

from __future__ import annotations

import tensorpy as tp
from tensorpy import _C
from tensorpy._C import Tensor


def solve_lower(lower: Tensor, b: Tensor) -> Tensor:
    """The x with lower x = b, for lower (..., n, n) and b (..., n, m), whose batches broadcast."""
    return _C._linalg.linalg_solve_triangular(lower, b, upper=False)


def inverse_lower(lower: Tensor) -> Tensor:
    """The inverse of lower triangles (..., n, n)."""
    return solve_lower(lower, tp.eye(lower.size(-1), dtype=lower.dtype, device=lower.device))


def precision_to_scale_tril(precision: Tensor) -> Tensor:
    """The lower Cholesky factor of the inverse of a precision matrix.

    With the rows and columns of P turned round, P = U U^T for an upper U, and P^-1 = U^-T U^-1 where U^-T is lower.
    """
    upper = _C._linalg.linalg_cholesky(precision.flip((-2, -1))).flip((-2, -1))
    return inverse_lower(upper.mT)
