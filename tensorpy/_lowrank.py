"""Singular values of matrices of low rank, from products with few random vectors.

N. Halko, P. G. Martinsson, J. A. Tropp, "Finding structure with randomness", 2011: algorithms 4.4 and 5.1.
"""

from __future__ import annotations

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._tensor.torch_function import make_overridable


def _less(product: Tensor, mean: Tensor | None, by: Tensor) -> Tensor:
    return product if mean is None else product - mean @ by


def _basis(matrix: Tensor, count: int, steps: int, mean: Tensor | None) -> Tensor:
    """Orthonormal columns that span about what the columns of the matrix do."""
    start = _C.randn([matrix.shape[-1], count], dtype=matrix.dtype, device=matrix.device)
    basis = _C._linalg.linalg_qr(_less(matrix @ start, mean, start))[0]
    turned = None if mean is None else mean.mH
    for _ in range(steps):
        rows = _C._linalg.linalg_qr(_less(matrix.mH @ basis, turned, basis))[0]
        basis = _C._linalg.linalg_qr(_less(matrix @ rows, mean, rows))[0]
    return basis


def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """U, S, V of about the q largest singular values of matrices, or of A - M.

    Arguments:
        A: the matrix, or a batch of them, (*, m, n)
        niter: how many iterations there are
        M: what is taken from A first; None for nothing

    Returns: U (*, m, q), S (*, q) and V (*, n, q).

    Example:
        >>> U, S, V = tp.svd_lowrank(tp.randn(20, 5), q=3)
        >>> U.shape, S.shape, V.shape
        (tensorpy.Size([20, 3]), tensorpy.Size([3]), tensorpy.Size([5, 3]))
    """
    count, steps = 6 if q is None else q, 2 if niter is None else niter
    mean = None if M is None else M.broadcast_to(A.shape)
    wide = A.shape[-2] < A.shape[-1]
    if wide:
        A, mean = A.mH, None if mean is None else mean.mH
    basis = _basis(A, count, steps, mean)
    small = basis.mH @ A
    if mean is not None:
        small = small - basis.mH @ mean
    U, S, V = _C.svd(small)
    U = basis @ U
    return (V, S, U) if wide else (U, S, V)


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """U, S, V of about the q principal components of the columns; `center` takes the mean off first.

    Arguments:
        A: the matrix, or a batch of them, (*, m, n)
        center: whether the mean of each column is taken off first
        niter: how many iterations there are

    Returns: U (*, m, q), S (*, q) and V (*, n, q).

    Raises: ValueError for a q that is negative or above min(m, n), or a negative niter.

    Example:
        >>> U, S, V = tp.pca_lowrank(tp.randn(20, 5), q=3)
        >>> U.shape, S.shape, V.shape
        (tensorpy.Size([20, 3]), tensorpy.Size([3]), tensorpy.Size([5, 3]))
    """
    most = min(A.shape[-2:])
    count = min(6, most) if q is None else q
    if not 0 <= count <= most:
        raise ValueError(f"q(={count}) must be non-negative integer and not greater than min(m, n)={most}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    if not (A.is_floating_point() or A.is_complex()):
        A = A.to(_C.get_default_dtype())
    return svd_lowrank(A - A.mean([-2], True) if center else A, count, niter)


make_overridable(__name__, ("pca_lowrank", "svd_lowrank"))
