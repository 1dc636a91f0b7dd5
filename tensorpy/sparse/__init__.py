"""Sparse tensors: torch.sparse's functions, and what makes sparse tensors.

    s = tensorpy.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
    s @ dense, s + s, 2 * s, s.t(), s.to_dense(), tensorpy.sparse.sum(s, 0)

The operators of sparse tensors are those of dense ones, with kernels for their layouts (`layouts:` of their entries).
What has none is a NotImplementedError. Indices are always checked to fit.
"""

from __future__ import annotations

import functools
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._package import proposing as _proposing
from tensorpy._package.absent import absent
from tensorpy.sparse._make import (  # noqa: F401  (what makes tensors)
    ORDERED,
    _sparse_coo_tensor_unsafe,
    empty_coo,
    sparse_bsc_tensor,
    sparse_bsr_tensor,
    sparse_compressed_tensor,
    sparse_coo_tensor,
    sparse_csc_tensor,
    sparse_csr_tensor,
)

__all__ = [
    "addmm", "as_sparse_gradcheck", "check_sparse_tensor_invariants", "log_softmax", "mm", "sampled_addmm", "softmax",
    "solve", "spdiags", "spsolve", "sum",
]  # fmt: skip

spsolve = solve = absent(__name__, "spsolve")


class _Typed(type):
    """The type of FloatTensor and its like: tensors of coordinates and a dtype are its instances."""

    def __instancecheck__(cls, value: object) -> bool:
        dtype: Any = cls.__dict__["dtype"]
        return isinstance(value, Tensor) and value.layout is _C.sparse_coo and value.dtype is dtype


def _typed(name: str, dtype: Any) -> Any:
    def make(cls: Any, *args: Any, device: Any = None) -> Any:
        if not args or isinstance(args[0], int):
            return empty_coo(args, dtype, device)
        return sparse_coo_tensor(*args, dtype=dtype, device=device)

    doc = f"A sparse tensor of {dtype}: of sizes, or of what sparse_coo_tensor takes."
    about = {"__module__": __name__, "__doc__": doc, "dtype": dtype, "layout": _C.sparse_coo}
    return _Typed(name, (), {"__new__": make, **about})


FloatTensor: Any
DoubleTensor: Any
FloatTensor, DoubleTensor = _typed("FloatTensor", _C.float32), _typed("DoubleTensor", _C.float64)
HalfTensor: Any
BFloat16Tensor: Any
HalfTensor, BFloat16Tensor = _typed("HalfTensor", _C.float16), _typed("BFloat16Tensor", _C.bfloat16)
LongTensor: Any
IntTensor: Any
LongTensor, IntTensor = _typed("LongTensor", _C.int64), _typed("IntTensor", _C.int32)
ShortTensor: Any
CharTensor: Any
ByteTensor: Any
ShortTensor, CharTensor, ByteTensor = (
    _typed("ShortTensor", _C.int16), _typed("CharTensor", _C.int8), _typed("ByteTensor", _C.uint8),
)  # fmt: skip


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Any, layout: Any = None) -> Any:
    """A matrix with the rows of `diagonals` on its diagonals, which `offsets` say; column j of it has the j-th ones.

    Arguments:
        shape: the sizes
        layout: the layout

    Returns: a sparse tensor of that shape.

    Raises: RuntimeError for an offset that stands twice, and for other than one for each row.

    Example:
        >>> tp.sparse.spdiags(tp.tensor([[1.0, 2.0]]), tp.tensor([0]), (2, 2)).to_dense()
        tensor([[1., 0.],
                [0., 2.]])
    """
    lines = diagonals if diagonals.dim() == 2 else diagonals.unsqueeze(0)
    if len(shape) != 2:
        raise RuntimeError(f"spdiags(): Output shape must be 2d, not {tuple(shape)}")
    if offsets.dim() > 1:
        raise RuntimeError(f"spdiags(): Offsets must be scalar or vector, not of {offsets.dim()} dimensions")
    if lines.dim() != 2:
        raise RuntimeError(f"spdiags(): Diagonals must be vector or matrix, not of {diagonals.dim()} dimensions")
    if layout not in (None, _C.sparse_coo, _C.sparse_csr, _C.sparse_csc):
        raise RuntimeError(f"spdiags(): the layout is sparse_coo, sparse_csr or sparse_csc, not {layout}")
    if offsets.dtype is not _C.int64:
        raise RuntimeError(f"spdiags(): offsets are of int64, not of {offsets.dtype}")
    starts = offsets.reshape(-1)
    if starts.unique().numel() != starts.numel():
        raise RuntimeError("spdiags(): each diagonal's offset stands once")
    if lines.shape[0] != starts.shape[0]:
        raise RuntimeError(f"spdiags(): {lines.shape[0]} diagonals and {starts.shape[0]} offsets")
    columns = _C.arange(lines.shape[1]).expand(lines.shape)
    rows = columns - starts.unsqueeze(1)
    there = (rows >= 0) & (rows < shape[0]) & (columns < shape[1])
    indices = _C.stack([rows[there], columns[there]])
    made = _C._coo(indices, lines[there], tuple(shape), False)
    return made if layout is None else made.to_sparse(layout=layout)


# ---- functions ----


def mm(mat1: Any, mat2: Any, reduce: Any = None) -> Any:
    """A product of matrices, one of which is sparse; of two sparse ones it is sparse.

    Arguments:
        mat1: the first matrix
        mat2: the second matrix
        reduce: of a matrix of the layout sparse_csr by a dense one, what becomes of the products of an element: 'sum',
            'mean', 'amax' or 'amin'; of none it is 0

    Returns: a matrix, sparse if both are.

    Example:
        >>> a = tp.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse()
        >>> tp.dsmm(a, tp.eye(2)).to_dense()
        tensor([[0., 2.],
                [3., 0.]])
    """
    return _C.mm(mat1, mat2) if reduce is None else _C._sparse._sparse_mm(mat1, mat2, reduce)


def addmm(mat: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * mat + alpha * (mat1 @ mat2).

    Returns: a tensor, sparse if all are.

    Example:
        >>> a = tp.tensor([[0.0, 2.0]]).to_sparse()
        >>> tp.sparse.addmm(tp.ones(1, 2), a, tp.eye(2))
        tensor([[1., 3.]])
    """
    return _C.addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


def sampled_addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1, out: Any = None) -> Any:
    """The same at the places that a sparse `input` has values for, of two dense matrices.

    Arguments:
        input: the tensor
        mat1: the first matrix
        mat2: the second matrix
        beta: what input is multiplied by
        alpha: what the product is multiplied by
        out: a tensor to write to, which is returned

    Returns: a sparse tensor with the input's indices.

    Example:
        >>> pattern = tp.tensor([[0.0, 1.0], [1.0, 0.0]]).to_sparse_csr()
        >>> tp.sparse.sampled_addmm(pattern, tp.ones(2, 3), tp.ones(3, 2)).values()
        tensor([4., 4.])
    """
    made = _C._sparse.sparse_sampled_addmm(input, mat1, mat2, beta=beta, alpha=alpha)
    return made if out is None else out.copy_(made)


def sum(input: Any, dim: Any = None, dtype: Any = None) -> Any:
    """The sum over all or some dimensions: sparse as long as sparse dimensions are left.

    Arguments:
        input: the tensor
        dim: the dimension; a negative one counts from the last
        dtype: the dtype; None takes the usual one

    Returns: a tensor, sparse as long as sparse dimensions are left.

    Example:
        >>> tp.sparse.sum(tp.tensor([[0.0, 5.0], [6.0, 1.0]]).to_sparse(), 1).to_dense()
        tensor([5., 7.])
    """
    return _C.sum(input, dtype=dtype) if dim is None else _C.sum(input, dim, dtype=dtype or input.dtype)


def softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """softmax over the values of each line along a dimension; what is not there counts as -inf.

    Arguments:
        input: the tensor
        dim: the dimension; a negative one counts from the last
        dtype: the dtype; None takes the usual one

    Returns: a sparse tensor with the input's indices.

    Example:
        >>> tp.sparse.softmax(tp.tensor([[0.0, 1.0, 2.0]]).to_sparse(), 1).values()
        tensor([0.2689, 0.7311])
    """
    return _C._sparse._sparse_softmax(input, dim, dtype)


def log_softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """The logarithm of softmax.

    Arguments:
        input: the tensor
        dim: the dimension; a negative one counts from the last
        dtype: the dtype; None takes the usual one

    Returns: a sparse tensor with the input's indices.

    Example:
        >>> tp.sparse.log_softmax(tp.tensor([[0.0, 1.0, 2.0]]).to_sparse(), 1).values()
        tensor([-1.3133, -0.3133])
    """
    return _C._sparse._sparse_log_softmax(input, dim, dtype)


dsmm = spmm = mm
hsmm = mm


# ---- checks ----


def _is_sparse(value: Any) -> bool:
    return isinstance(value, Tensor) and value.layout is not _C.strided


class check_sparse_tensor_invariants:
    """A switch and context for checks of indices, which are sorted and distinct where it is on; that they fit is
    checked always.

    Arguments:
        enable: whether it is on

    Example:
        >>> with tp.sparse.check_sparse_tensor_invariants():
        ...     print(tp.sparse.check_sparse_tensor_invariants.is_enabled())
        True
    """

    def __init__(self, enable: bool = True) -> None:
        self.state = enable
        self._before: list[bool] = []

    @staticmethod
    def is_enabled() -> bool:
        """Whether indices are checked to be sorted and distinct."""
        return ORDERED[0]

    @staticmethod
    def enable() -> None:
        """Switches the checks on."""
        ORDERED[0] = True

    @staticmethod
    def disable() -> None:
        """Switches them off; that indices fit is checked all the same."""
        ORDERED[0] = False

    def __enter__(self) -> Any:
        self._before.append(ORDERED[0])
        ORDERED[0] = self.state
        return self

    def __exit__(self, *unused: object) -> None:
        ORDERED[0] = self._before.pop()

    def __call__(self, function: Any) -> Any:
        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.state):
                return function(*args, **kwargs)

        return checked


def as_sparse_gradcheck(gradcheck: Any) -> Any:
    """A gradcheck that takes sparse inputs: their values are what is varied.

    Returns: a function.

    Example:
        >>> check = tp.sparse.as_sparse_gradcheck(tp.autograd.gradcheck)
        >>> x = tp.eye(2, dtype=tp.float64).to_sparse().requires_grad_()
        >>> check(lambda t: t.to_dense(), (x,), masked=True)
        True
    """

    def checked(func: Any, inputs: Any, **kwargs: Any) -> Any:
        given = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
        kwargs.pop("masked", None)

        def of_values(*values: Any) -> Any:
            found = func(*(_C._layout_like(s, v) if _is_sparse(s) else v for s, v in zip(given, values, strict=True)))
            outs = found if isinstance(found, (tuple, list)) else (found,)
            return tuple(_C._layout_values(o) if _is_sparse(o) else o for o in outs)

        flat = tuple(
            _C._layout_values(s.detach()).requires_grad_(s.requires_grad) if _is_sparse(s) else s for s in given
        )
        return gradcheck(of_values, flat, **kwargs)

    return checked


TYPE_CHECKING = False
if not TYPE_CHECKING:
    __getattr__ = _proposing("sparse", globals())
