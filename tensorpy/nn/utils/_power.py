"""The largest singular value of a matrix by power iteration (Miyato et al. 2018)."""

from __future__ import annotations

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.nn import functional as F


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """One dimension against all others."""
    return weight.movedim(dim, 0).flatten(1) if weight.dim() > 1 else weight


def iterate(matrix: Tensor, u: Tensor, v: Tensor, steps: int, eps: float) -> None:
    """Brings u and v nearer to the singular vectors, in place."""
    for _ in range(steps):
        u.copy_(F.normalize(_C.mv(matrix, v), dim=0, eps=eps))
        v.copy_(F.normalize(_C.mv(matrix.mH, u), dim=0, eps=eps))
