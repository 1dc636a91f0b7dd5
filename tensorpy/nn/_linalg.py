"""The decompositions that initialisation and parametrisations need: those of `tensorpy.linalg` where it has them, and
short loops over vectors until then."""

from __future__ import annotations

import math
from typing import Any

from tensorpy import _C, linalg
from tensorpy._C import Tensor


def qr(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Q with orthonormal columns and R upper triangular, of a matrix with at least as many rows as columns."""
    found: Any = getattr(linalg, "qr", None)
    if found is not None:
        q, r = found(matrix)
        return q, r
    columns: list[Tensor] = []
    upper = _C.zeros(matrix.shape[1], matrix.shape[1], dtype=matrix.dtype, device=matrix.device)
    for j in range(matrix.shape[1]):
        rest = matrix[:, j]
        for _ in range(2 if columns else 0):  # twice, since once loses orthogonality
            basis = _C.stack(columns, 1)
            parts = basis.mH @ rest
            rest = rest - basis @ parts
            upper[: len(columns), j] += parts
        upper[j, j] = rest.norm()
        columns.append(rest / upper[j, j])
    return (_C.stack(columns, 1) if columns else matrix.clone()), upper


def householder_product(below: Tensor, tau: Tensor) -> Tensor:
    """The first columns of the product of the reflections 1 - tau v v.H, whose v are ones on the diagonal and what is
    below it."""
    found: Any = getattr(linalg, "householder_product", None)
    if found is not None:
        return found(below, tau)
    rows, columns = below.shape
    one = _C.eye(rows, columns, dtype=below.dtype, device=below.device)
    vectors, product = below.tril(-1) + one, one
    for i in reversed(range(columns)):
        v = vectors[:, i : i + 1]
        product = product - tau[i] * (v @ (v.mH @ product))
    return product


def matrix_exp(matrix: Tensor) -> Tensor:
    """The exponential of a square matrix, by its series after halving, and squaring back."""
    found: Any = getattr(linalg, "matrix_exp", None)
    if found is not None:
        return found(matrix)
    size = float(matrix.detach().abs().sum(-1).max()) if matrix.numel() else 0.0
    halvings = max(0, math.ceil(math.log2(size)) + 1) if size > 0 else 0
    small = matrix / 2**halvings
    result = term = _C.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    for k in range(1, 19):  # 0.5 ** 18 / 18! is below what float64 shows
        term = term @ small / k
        result = result + term
    for _ in range(halvings):
        result = result @ result
    return result
