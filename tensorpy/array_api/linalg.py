"""The standard's extension `linalg`: functions of matrices, which the last two axes hold, and of vectors."""

from __future__ import annotations

from typing import NamedTuple

import tensorpy as tp
from tensorpy import Tensor, dtype
from tensorpy import linalg as _linalg

from ._promotion import promoted
from ._shape import matrix_transpose
from ._statistical import sum as _sum

__all__ = [
    "EigResult",
    "EighResult",
    "QRResult",
    "SVDResult",
    "SlogdetResult",
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


class EigResult(NamedTuple):
    """What eig() finds.

    Arguments:
        eigenvalues: the eigenvalues, complex numbers
        eigenvectors: a unit eigenvector in each column

    Example:
        >>> xp.linalg.eig(tp.eye(2)).eigenvalues
        tensor([1.+0.j, 1.+0.j])
    """

    eigenvalues: Tensor
    eigenvectors: Tensor


class EighResult(NamedTuple):
    """What eigh() finds.

    Arguments:
        eigenvalues: the eigenvalues, in order
        eigenvectors: a unit eigenvector in each column

    Example:
        >>> xp.linalg.eigh(tp.eye(2)).eigenvalues
        tensor([1., 1.])
    """

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """What qr() finds.

    Arguments:
        Q: orthonormal columns
        R: upper triangular matrices; Q @ R is x

    Example:
        >>> xp.linalg.qr(tp.eye(2)).Q.shape
        tensorpy.Size([2, 2])
    """

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """What slogdet() finds.

    Arguments:
        sign: the determinants' signs
        logabsdet: the logarithms of their magnitudes

    Example:
        >>> xp.linalg.slogdet(tp.eye(2)).sign
        tensor(1.)
    """

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """What svd() finds.

    Arguments:
        U: orthonormal columns
        S: the singular values, the largest first
        Vh: orthonormal rows; (U * S) @ Vh is x

    Example:
        >>> xp.linalg.svd(tp.eye(2)).S
        tensor([1., 1.])
    """

    U: Tensor
    S: Tensor
    Vh: Tensor


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The triangular factor of symmetric positive-definite matrices.

    Arguments:
        x: an array of square matrices
        upper: whether the upper factor is given

    Returns: an array.

    Raises: linalg.LinAlgError for a matrix that is not positive-definite.

    Example:
        >>> xp.linalg.cholesky(4 * tp.eye(1))
        tensor([[2.]])
    """
    return _linalg.cholesky(x, upper=upper)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The cross products of vectors of three numbers.

    Arguments:
        x1: an array
        x2: an array
        axis: along which the vectors lie, of size 3 in both

    Returns: an array.

    Raises: ValueError for an axis of another size.

    Example:
        >>> xp.linalg.cross(tp.tensor([1, 0, 0]), tp.tensor([0, 1, 0]))
        tensor([0, 0, 1])
    """
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError(f"cross(): axis {axis} has sizes {x1.shape[axis]} and {x2.shape[axis]}, not 3")
    first, second = promoted(x1, x2)
    return _linalg.cross(*tp.broadcast_tensors(first, second), dim=axis)


def det(x: Tensor, /) -> Tensor:
    """The determinants.

    Arguments:
        x: an array of square matrices

    Returns: an array.

    Example:
        >>> xp.linalg.det(2 * tp.eye(2))
        tensor(4.)
    """
    return _linalg.det(x)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """A view of the diagonals.

    Arguments:
        x: an array of matrices
        offset: which diagonal; above the main one for offset > 0

    Returns: an array.

    Example:
        >>> xp.linalg.diagonal(tp.tensor([[1, 2], [3, 4]]))
        tensor([1, 4])
    """
    return _linalg.diagonal(x, offset=offset)


def eig(x: Tensor, /) -> EigResult:
    """The eigenvalues and eigenvectors of square matrices.

    Arguments:
        x: an array of square matrices

    Returns: a named tuple (eigenvalues, eigenvectors) of complex numbers.

    Example:
        >>> xp.linalg.eig(tp.tensor([[0.0, 1.0], [0.0, 2.0]])).eigenvalues
        tensor([0.+0.j, 2.+0.j])
    """
    return EigResult(*_linalg.eig(x))


def eigh(x: Tensor, /) -> EighResult:
    """The eigenvalues, in order, and eigenvectors of symmetric or Hermitian matrices.

    Arguments:
        x: an array of square matrices

    Returns: a named tuple (eigenvalues, eigenvectors).

    Example:
        >>> xp.linalg.eigh(tp.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
        tensor([1., 2.])
    """
    return EighResult(*_linalg.eigh(x))


def eigvals(x: Tensor, /) -> Tensor:
    """The eigenvalues of square matrices.

    Arguments:
        x: an array of square matrices

    Returns: an array of complex numbers.

    Example:
        >>> xp.linalg.eigvals(tp.tensor([[0.0, 1.0], [0.0, 2.0]]))
        tensor([0.+0.j, 2.+0.j])
    """
    return _linalg.eigvals(x)


def eigvalsh(x: Tensor, /) -> Tensor:
    """The eigenvalues, in order, of symmetric or Hermitian matrices.

    Arguments:
        x: an array of square matrices

    Returns: an array of real numbers.

    Example:
        >>> xp.linalg.eigvalsh(tp.tensor([[2.0, 0.0], [0.0, 1.0]]))
        tensor([1., 2.])
    """
    return _linalg.eigvalsh(x)


def inv(x: Tensor, /) -> Tensor:
    """The inverse matrices.

    Arguments:
        x: an array of square matrices

    Returns: an array.

    Raises: linalg.LinAlgError for a singular matrix.

    Example:
        >>> xp.linalg.inv(tp.tensor([[2.0]]))
        tensor([[0.5000]])
    """
    return _linalg.inv(x)


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The matrix products.

    Arguments:
        x1: an array of matrices, or a vector
        x2: an array of matrices, or a vector

    Returns: an array.

    Raises: ValueError for an array without dimensions.

    Example:
        >>> xp.matmul(tp.tensor([1, 2]), tp.tensor([3, 4]))
        tensor(11)
    """
    if x1.ndim == 0 or x2.ndim == 0:
        raise ValueError("matmul(): an array has no dimensions")
    return tp.matmul(*promoted(x1, x2))


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: float | str | None = "fro") -> Tensor:
    """The norms of matrices.

    Arguments:
        x: an array of matrices
        keepdims: whether the axes stay, with size 1
        ord: "fro", "nuc", 1, -1, 2, -2, inf or -inf

    Returns: an array of real numbers.

    Example:
        >>> xp.linalg.matrix_norm(tp.ones(2, 2))
        tensor(2.)
    """
    return _linalg.matrix_norm(x, "fro" if ord is None else ord, keepdim=keepdims)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """The powers of matrices to a whole number.

    Arguments:
        x: an array of square matrices
        n: the power; below 0 that of the inverse

    Returns: an array.

    Example:
        >>> xp.linalg.matrix_power(2 * tp.eye(1), 3)
        tensor([[8.]])
    """
    return _linalg.matrix_power(x, n)


def matrix_rank(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """How many singular values are not as good as 0.

    Arguments:
        x: an array of matrices
        rtol: the part of the largest one up to which a singular value counts as 0; None: the larger size times eps

    Returns: an array of int64.

    Example:
        >>> xp.linalg.matrix_rank(tp.ones(2, 2))
        tensor(1)
    """
    return _linalg.matrix_rank(x, rtol=rtol)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The products of each number of a vector with each of another.

    Arguments:
        x1: an array of one dimension
        x2: an array of one dimension

    Returns: an array of two dimensions.

    Example:
        >>> xp.linalg.outer(tp.tensor([1, 2]), tp.tensor([3, 4]))
        tensor([[3, 4],
                [6, 8]])
    """
    return tp.outer(*promoted(x1, x2))


def pinv(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """The pseudo-inverse matrices.

    Arguments:
        x: an array of matrices
        rtol: the part of the largest one up to which a singular value counts as 0; None: the larger size times eps

    Returns: an array.

    Example:
        >>> xp.linalg.pinv(tp.tensor([[2.0]]))
        tensor([[0.5000]])
    """
    return _linalg.pinv(x, rtol=rtol)


def qr(x: Tensor, /, *, mode: str = "reduced") -> QRResult:
    """Orthonormal columns and the triangular matrices that make x of them.

    Arguments:
        x: an array of matrices
        mode: "reduced": as many columns as the smaller size; "complete": as many as rows

    Returns: a named tuple (Q, R).

    Example:
        >>> xp.linalg.qr(tp.ones(3, 2)).R.shape
        tensorpy.Size([2, 2])
    """
    return QRResult(*_linalg.qr(x, mode))


def slogdet(x: Tensor, /) -> SlogdetResult:
    """The signs of determinants and the logarithms of their magnitudes.

    Arguments:
        x: an array of square matrices

    Returns: a named tuple (sign, logabsdet).

    Example:
        >>> xp.linalg.slogdet(-tp.eye(1)).sign
        tensor(-1.)
    """
    return SlogdetResult(*_linalg.slogdet(x))


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The solutions of linear equations.

    Arguments:
        x1: an array of square matrices
        x2: the right sides: a vector, if it has one dimension, or an array of matrices

    Returns: an array.

    Raises: linalg.LinAlgError for a singular matrix.

    Example:
        >>> xp.linalg.solve(tp.tensor([[2.0]]), tp.tensor([6.0]))
        tensor([3.])
    """
    a, b = promoted(x1, x2)
    if b.ndim == 1:
        return solve(a, b.unsqueeze(-1)).squeeze(-1)
    batch = tp.broadcast_shapes(a.shape[:-2], b.shape[:-2])  # else an array of matrices could be one of vectors
    return _linalg.solve(a.expand(*batch, *a.shape[-2:]), b.expand(*batch, *b.shape[-2:]))


def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    """The singular value decompositions.

    Arguments:
        x: an array of matrices
        full_matrices: whether U and Vh are square

    Returns: a named tuple (U, S, Vh).

    Example:
        >>> xp.linalg.svd(tp.ones(3, 2), full_matrices=False).U.shape
        tensorpy.Size([3, 2])
    """
    return SVDResult(*_linalg.svd(x, full_matrices))


def svdvals(x: Tensor, /) -> Tensor:
    """The singular values, the largest first.

    Arguments:
        x: an array of matrices

    Returns: an array of real numbers.

    Example:
        >>> xp.linalg.svdvals(tp.tensor([[3.0, 0.0], [0.0, 4.0]]))
        tensor([4., 3.])
    """
    return _linalg.svdvals(x)


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: int | tuple[tuple[int, ...], tuple[int, ...]] = 2) -> Tensor:
    """The sums of products over some axes.

    Arguments:
        x1: an array
        x2: an array
        axes: how many of the last axes of x1 and the first of x2, or which of both

    Returns: an array.

    Example:
        >>> xp.tensordot(tp.ones(2, 3), tp.ones(3, 4), axes=1).shape
        tensorpy.Size([2, 4])
    """
    first, second = promoted(x1, x2)
    return tp.tensordot(first, second, axes)


def trace(x: Tensor, /, *, offset: int = 0, dtype: dtype | None = None) -> Tensor:
    """The sums of diagonals; of integers in 64 bits.

    Arguments:
        x: an array of matrices
        offset: which diagonal; above the main one for offset > 0
        dtype: the dtype in which is added up; None: x's, or the 64-bit one of its kind

    Returns: an array.

    Example:
        >>> xp.linalg.trace(tp.tensor([[1, 2], [3, 4]]))
        tensor(5)
    """
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The products of vectors, those of x1 conjugated.

    Arguments:
        x1: an array
        x2: an array
        axis: along which the vectors lie

    Returns: an array.

    Raises: ValueError for vectors of different lengths.

    Example:
        >>> xp.vecdot(tp.tensor([1, 2]), tp.tensor([3, 4]))
        tensor(11)
    """
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"vecdot(): axis {axis} has sizes {x1.shape[axis]} and {x2.shape[axis]}")
    first, second = promoted(x1, x2)
    return (first.conj() * second).sum(axis, dtype=first.dtype)


def vector_norm(
    x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False, ord: float = 2
) -> Tensor:
    """The norms of vectors.

    Arguments:
        x: an array of floating numbers
        axis: along which axis, or axes, a vector lies; None: all
        keepdims: whether the axes stay, with size 1
        ord: the order; inf and -inf are the largest and the smallest magnitude

    Returns: an array of real numbers.

    Example:
        >>> xp.linalg.vector_norm(tp.tensor([3.0, 4.0]))
        tensor(5.)
    """
    if axis == ():
        return vector_norm(x.unsqueeze(-1), axis=-1, ord=ord)
    return _linalg.vector_norm(x, ord, axis, keepdims)
