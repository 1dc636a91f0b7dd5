"""The decompositions that initialisation and parametrisations need: those of `tensorpy.linalg` where it has them, and
short loops over vectors until then."""

from __future__ import annotations

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
