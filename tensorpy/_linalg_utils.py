"""Products for blocks of vectors, and what took its leave of the package: lstsq, solve, eig, symeig, matrix_rank."""

from __future__ import annotations

from typing import Any, NoReturn

from tensorpy import _C
from tensorpy._C import Tensor


def is_sparse(A: Any) -> bool:
    """Whether a matrix is a sparse one."""
    if isinstance(A, Tensor):
        return A.layout != _C.strided
    raise TypeError(f"expected Tensor but got {type(A)}")


def get_floating_dtype(A: Tensor) -> Any:
    """The dtype to compute a matrix in: its own, or float32 for whole numbers."""
    return A.dtype if A.dtype in (_C.float16, _C.float32, _C.float64) else _C.float32


def matmul(A: Tensor | None, B: Tensor) -> Tensor:
    """A @ B; None stands for the identity."""
    return B if A is None else A.mm(B) if is_sparse(A) else A @ B


def bform(X: Tensor, A: Tensor | None, Y: Tensor) -> Tensor:
    """The bilinear form X.mT A Y."""
    return X.mT @ matmul(A, Y)


def qform(A: Tensor | None, S: Tensor) -> Tensor:
    """The quadratic form S.mT A S."""
    return bform(S, A, S)


def basis(A: Tensor) -> Tensor:
    """An orthogonal basis of the columns' space."""
    return _C._linalg.linalg_qr(A)[0]


def _gone(name: str, instead: str) -> NoReturn:
    raise RuntimeError(
        f"This function was deprecated since version 1.9 and is now removed. `torch.{name}` is not there any more: "
        f"`torch.linalg.{instead}` is, with arguments of its own."
    )


def symeig(input: Tensor, eigenvectors: bool = False, upper: bool = True, *, out: Any = None) -> tuple[Tensor, Tensor]:
    """Says that linalg.eigh is the function.

    Arguments:
        input: the tensor
        eigenvectors: whether they are wanted
        upper: whether the upper triangle is taken
        out: a tensor to write to, which is returned

    Returns: nothing.

    Raises: RuntimeError always.

    Example:
        >>> tp.symeig(tp.eye(2))
        Traceback (most recent call last):
            ...
        RuntimeError: ...
    """
    _gone("symeig", "eigh")


def matrix_rank(input: Tensor, tol: Any = None, symmetric: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Says that linalg.matrix_rank is the function.

    Arguments:
        input: the tensor
        tol: which singular values count as zero
        symmetric: whether the matrices are symmetric
        out: a tensor to write to, which is returned

    Returns: nothing.

    Raises: RuntimeError always.

    Example:
        >>> tp.linalg.matrix_rank(tp.eye(2))
        tensor(2)
    """
    _gone("matrix_rank", "matrix_rank")


def solve(input: Tensor, A: Tensor, *, out: Any = None) -> tuple[Tensor, Tensor]:
    """Says that linalg.solve is the function.

    Arguments:
        input: the tensor
        A: the matrix, or a batch of them, (*, m, n)
        out: a tensor to write to, which is returned

    Returns: nothing.

    Raises: RuntimeError always.

    Example:
        >>> tp.linalg.solve(tp.tensor([[2.0]]), tp.tensor([4.0]))
        tensor([2.])
    """
    _gone("solve", "solve")


def lstsq(input: Tensor, A: Tensor, *, out: Any = None) -> tuple[Tensor, Tensor]:
    """Says that linalg.lstsq is the function.

    Arguments:
        input: the tensor
        A: the matrix, or a batch of them, (*, m, n)
        out: a tensor to write to, which is returned

    Returns: nothing.

    Raises: RuntimeError always.

    Example:
        >>> tp.linalg.lstsq(tp.tensor([[2.0]]), tp.tensor([[4.0]])).solution
        tensor([[2.]])
    """
    _gone("lstsq", "lstsq")


def eig(self: Tensor, eigenvectors: bool = False, *, e: Any = None, v: Any = None) -> tuple[Tensor, Tensor]:
    """Says that linalg.eig is the function.

    Arguments:
        eigenvectors: whether they are wanted
        e: is taken, and means nothing
        v: is taken, and means nothing

    Returns: nothing.

    Raises: RuntimeError always.

    Example:
        >>> tp.eig(tp.eye(2))
        Traceback (most recent call last):
            ...
        RuntimeError: ...
    """
    _gone("eig", "eig")
