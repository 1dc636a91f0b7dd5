"""What multivariate normals need of linear algebra, a Python step for each pair of columns: for some tens of rows."""

from __future__ import annotations

import tensorpy as tp
from tensorpy._C import Tensor


def cholesky(a: Tensor) -> Tensor:
    """The lower triangle L with L L^T = a (..., n, n); NaN or 0 on its diagonal where a is not positive definite."""
    a = (a + a.mT) / 2  # for the gradient: one that is symmetric
    columns: list[Tensor] = []
    rows = tp.arange(a.size(-1), device=a.device)
    for j in range(a.size(-1)):
        rest = a[..., j]
        for column in columns:
            rest = rest - column * column[..., j : j + 1]
        pivot = rest[..., j : j + 1].sqrt()
        columns.append(tp.where(rows >= j, rest / pivot, tp.zeros((), dtype=a.dtype, device=a.device)))
    return tp.stack(columns, -1)


def solve_lower(lower: Tensor, b: Tensor) -> Tensor:
    """The x with lower x = b, for lower (..., n, n) and b (..., n, m), whose batches broadcast."""
    rows: list[Tensor] = []
    for i in range(lower.size(-1)):
        rest = b[..., i, :]
        for k, row in enumerate(rows):
            rest = rest - lower[..., i, k, None] * row
        rows.append(rest / lower[..., i, i, None])
    return tp.stack(rows, -2)


def inverse_lower(lower: Tensor) -> Tensor:
    """The inverse of lower triangles (..., n, n)."""
    return solve_lower(lower, tp.eye(lower.size(-1), dtype=lower.dtype, device=lower.device).expand(lower.shape))


def precision_to_scale_tril(precision: Tensor) -> Tensor:
    """The lower Cholesky factor of the inverse of a precision matrix.

    With the rows and columns of P turned round, P = U U^T for an upper U, and P^-1 = U^-T U^-1 where U^-T is lower.
    """
    upper = cholesky(precision.flip((-2, -1))).flip((-2, -1))
    return inverse_lower(upper.mT)
