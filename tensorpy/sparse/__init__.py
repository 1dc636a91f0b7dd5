"""Sparse tensors: torch.sparse's functions, and what makes sparse tensors.

    s = tensorpy.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
    s @ dense, s + s, 2 * s, s.t(), s.to_dense(), tensorpy.sparse.sum(s, 0)

Layouts are `sparse_coo` and, for matrices, `sparse_csr`. Kernels are composed of dense operators on indices and values
(_operators.py), so they run on each device and are differentiable with respect to the values. What has no kernel is a
NotImplementedError. Indices are always checked.
"""

from __future__ import annotations

from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._package.absent import absent
from tensorpy.sparse import _dimensions, _methods, _products
from tensorpy.sparse._operators import coalesce, coo, dim_of, is_sparse, layout_of, to_coo
from tensorpy.sparse._tensors import Coo, Csr, keys_of, sparse_of, values_of

__all__ = [
    "addmm", "as_sparse_gradcheck", "check_sparse_tensor_invariants", "log_softmax", "mm", "sampled_addmm", "softmax",
    "solve", "spdiags", "spsolve", "sum",
]  # fmt: skip

spsolve = solve = absent(__name__, "spsolve")


# ---- making ----


def _values(values: Any, dtype: Any, device: Any) -> Tensor:
    if isinstance(values, Tensor):
        return values.to(dtype=dtype, device=device) if dtype is not None or device is not None else values
    return _C.tensor(values, dtype=dtype, device=device)


def _index(indices: Any, device: Any) -> Tensor:
    made = indices if isinstance(indices, Tensor) else _C.tensor(indices, dtype=_C.int64)
    return made.detach().to(device=device, dtype=_C.int64)


def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Any = None,
    *more_sizes: int,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Any:
    """A tensor with `values` at the places that the columns of `indices` say, and zeros elsewhere. Without a size it is
    as large as the indices need; with a size only, it is empty."""
    if values is None:
        return _empty_coo(size if indices is None else indices, dtype, device).requires_grad_(requires_grad)
    kept = _values(values, dtype, device)
    places = _index(indices, kept.device)
    if places.dim() == 1 and not places.numel():
        places = places.reshape(len(size) if size is not None else 1, 0)
    if places.dim() != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(places.shape)}")
    kept = kept.expand(places.shape[1]) if kept.dim() == 0 else kept
    if places.shape[1] != kept.shape[0]:
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {places.shape[1]}, nnz from values: "
            f"{kept.shape[0]}"
        )
    n = places.shape[0]
    least = [int(m) + 1 for m in places.amax(1).tolist()] if places.shape[1] else [0] * n
    if places.numel() and int(places.min()) < 0:
        raise RuntimeError(f"found negative index {int(places.min())} among the indices")
    whole = (*least, *kept.shape[1:]) if size is None else tuple(int(s) for s in size)
    if len(whole) != n + kept.dim() - 1:
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(whole)}, sparse_dim = {n}, "
            f"dense_dim = {kept.dim() - 1}"
        )
    for d, (needed, given) in enumerate(zip(least, whole, strict=False)):
        if needed > given:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {d}, size is {given} but found index {needed - 1}"
            )
    if tuple(kept.shape[1:]) != whole[n:]:
        raise RuntimeError(
            f"values has incorrect size, expected [{kept.shape[0]}, {list(whole[n:])}], got {list(kept.shape)}"
        )
    pattern = Coo(places, whole, _is_in_order(places, whole[:n]) if is_coalesced else False)
    if requires_grad:
        return sparse_of(pattern, kept.detach()).requires_grad_()
    return sparse_of(pattern, kept)


def _is_in_order(places: Tensor, size: tuple[int, ...]) -> bool:
    """What a caller says of the indices is looked at: operators rely on it."""
    keys = keys_of(places, size)
    if not bool((keys[1:] > keys[:-1]).all()):
        raise RuntimeError("is_coalesced: the indices are not in order, or not each once")
    return True


def _empty_coo(size: Any, dtype: Any, device: Any) -> Any:
    size = tuple(int(s) for s in size)
    kept = _C.zeros(0, dtype=dtype, device=device)
    return sparse_of(Coo(_C.zeros((len(size), 0), dtype=_C.int64, device=kept.device), size, True), kept)


_sparse_coo_tensor_unsafe = sparse_coo_tensor


def sparse_csr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Any:
    """A matrix: row r has the values from crow_indices[r] to crow_indices[r + 1], in the columns of col_indices."""
    kept = _values(values, dtype, device)
    crow, columns = (
        (i if isinstance(i, Tensor) else _C.tensor(i, dtype=_C.int64)).detach().to(kept.device)
        for i in (crow_indices, col_indices)
    )
    if not crow.dim() == columns.dim() >= 1 or kept.dim() > columns.dim():
        raise NotImplementedError("sparse_csr_tensor: values are numbers, in rows as columns are")
    if crow.shape[-1] < 1 or columns.shape != kept.shape or crow.shape[:-1] != kept.shape[:-1]:
        raise RuntimeError(
            f"sparse_csr_tensor: row borders of the size {tuple(crow.shape)}, columns of {tuple(columns.shape)}, "
            f"values of {tuple(kept.shape)}"
        )
    widest = int(columns.max()) + 1 if columns.numel() else 0
    rows, batch = crow.shape[-1] - 1, tuple(kept.shape[:-1])
    whole = (*batch, rows, widest) if size is None else tuple(int(s) for s in size)
    if whole[:-1] != (*batch, rows):
        raise RuntimeError(
            f"sparse_csr_tensor: row borders of the size {tuple(crow.shape)} are not those of matrices of {whole}"
        )
    if bool((crow[..., 0] != 0).any() | (crow[..., -1] != kept.shape[-1]).any() | (crow.diff() < 0).any()):
        raise RuntimeError("sparse_csr_tensor: crow_indices go from 0 to the number of values, and do not fall")
    if columns.numel() and (int(columns.min()) < 0 or widest > whole[-1]):
        raise RuntimeError(f"sparse_csr_tensor: a column is not among {whole[-1]}")
    made = sparse_of(Csr(crow, columns, whole), kept.detach() if requires_grad else kept)
    return made.requires_grad_() if requires_grad else made


def sparse_compressed_tensor(
    compressed_indices: Any, plain_indices: Any, values: Any, size: Any = None, *, layout: Any = None, **options: Any
) -> Any:
    """A sparse matrix of a compressed layout: there is `sparse_csr`."""
    if layout is not _C.sparse_csr:
        raise NotImplementedError(f"sparse_compressed_tensor: there are no tensors of the layout {layout}")
    return sparse_csr_tensor(compressed_indices, plain_indices, values, size, **options)


def _typed(name: str, dtype: Any) -> Any:
    def make(cls: Any, *args: Any, device: Any = None) -> Any:
        if not args or isinstance(args[0], int):
            return _empty_coo(args, dtype, device)
        return sparse_coo_tensor(*args, dtype=dtype, device=device)

    return type(name, (), {"__new__": make, "__module__": __name__, "dtype": dtype, "layout": _C.sparse_coo})


FloatTensor, DoubleTensor = _typed("FloatTensor", _C.float32), _typed("DoubleTensor", _C.float64)
HalfTensor, BFloat16Tensor = _typed("HalfTensor", _C.float16), _typed("BFloat16Tensor", _C.bfloat16)
LongTensor, IntTensor = _typed("LongTensor", _C.int64), _typed("IntTensor", _C.int32)
ShortTensor, CharTensor, ByteTensor = (
    _typed("ShortTensor", _C.int16), _typed("CharTensor", _C.int8), _typed("ByteTensor", _C.uint8),
)  # fmt: skip


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Any, layout: Any = None) -> Any:
    """A matrix with the rows of `diagonals` on its diagonals, which `offsets` say; column j of it has the j-th ones."""
    lines = diagonals if diagonals.dim() == 2 else diagonals.unsqueeze(0)
    starts = offsets.reshape(-1).to(_C.int64)
    if starts.unique().numel() != starts.numel():
        raise RuntimeError("spdiags(): each diagonal's offset stands once")
    if lines.shape[0] != starts.shape[0]:
        raise RuntimeError(f"spdiags(): {lines.shape[0]} diagonals and {starts.shape[0]} offsets")
    columns = _C.arange(lines.shape[1]).expand(lines.shape)
    rows = columns - starts.unsqueeze(1)
    there = (rows >= 0) & (rows < shape[0]) & (columns < shape[1])
    indices = _C.stack([rows[there], columns[there]])
    made = sparse_of(Coo(indices, tuple(shape), False), lines[there])
    return made if layout is None else _methods.to_sparse(made, layout=layout)


# ---- functions ----


def mm(mat1: Any, mat2: Any, reduce: Any = None) -> Any:
    """A product of matrices, one of which is sparse; of two sparse ones it is sparse."""
    if reduce not in (None, "sum"):
        raise NotImplementedError(f"sparse.mm: reduce={reduce!r}")
    return _products.mm(mat1, mat2)


def addmm(mat: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * mat + alpha * (mat1 @ mat2)."""
    return _products.addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


def sampled_addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1, out: Any = None) -> Any:
    """The same at the places that a sparse `input` has values for, of two dense matrices."""
    pattern, values = coo(input)
    rows, columns = pattern.indices
    products = (mat1.index_select(0, rows) * mat2.t().index_select(0, columns)).sum(1)
    return sparse_of(input._pattern, values * beta + products * alpha)


def sum(input: Any, dim: Any = None, dtype: Any = None) -> Any:
    """The sum over all or some dimensions: sparse as long as sparse dimensions are left."""
    return _dimensions.sum(input, dim, dtype=dtype)


def _groups(input: Any, dim: int, dtype: Any) -> tuple[Any, Tensor, int, Any]:
    """The pattern, the values, the dimension, and which line along it each value is in (None: a dense dimension)."""
    if not is_sparse(input):
        raise RuntimeError(f"sparse.softmax: of sparse tensors, not of the layout {layout_of((input,))}")
    pattern, values = coo(coalesce(to_coo(input)))
    values = values if dtype is None else values.to(dtype)
    d = dim_of(dim, len(pattern.size))
    if d >= pattern.sparse_dim:
        return pattern, values, d - pattern.sparse_dim + 1, None
    others = [i for i in range(pattern.sparse_dim) if i != d]
    keys = keys_of(pattern.indices[others], tuple(pattern.size[i] for i in others))
    return pattern, values, d, keys.unique(return_inverse=True)[1]


def _shifted(values: Tensor, line: Tensor) -> tuple[Tensor, Tensor]:
    """Values less the largest of their line, and the sums of the exponentials of these, line by line."""
    count = int(line.max()) + 1 if line.numel() else 0
    spread = line.reshape(-1, *(1,) * (values.dim() - 1)).expand(values.shape)
    zeros = values.new_zeros((count, *values.shape[1:]))
    largest = zeros.detach().scatter_reduce(0, spread, values.detach(), "amax", include_self=False)
    values = values - largest.index_select(0, line)
    return values, zeros.index_add(0, line, values.exp()).index_select(0, line)


def softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """softmax over the values of each line along a dimension; what is not there counts as -inf."""
    pattern, values, d, line = _groups(input, dim, dtype)
    if line is None:
        return sparse_of(pattern, values.softmax(d))
    shifted, sums = _shifted(values, line)
    return sparse_of(pattern, shifted.exp() / sums)


def log_softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """The logarithm of softmax."""
    pattern, values, d, line = _groups(input, dim, dtype)
    if line is None:
        return sparse_of(pattern, values.log_softmax(d))
    shifted, sums = _shifted(values, line)
    return sparse_of(pattern, shifted - sums.log())


dsmm = spmm = mm
hsmm = mm


def smm(input: Any, mat: Any) -> Any:
    """A sparse matrix by a dense one, as a sparse one."""
    return _methods.smm(input, mat)


def hspmm(mat1: Any, mat2: Any) -> Any:
    """The same with the rows of the result as values."""
    pattern, _ = coo(coalesce(mat1))
    rows = pattern.indices[0].unique()
    dense = _products.mm(mat1, mat2)
    return sparse_of(Coo(rows.unsqueeze(0), tuple(dense.shape), True), dense.index_select(0, rows))


# ---- checks ----


class check_sparse_tensor_invariants:
    """A switch and context for checks of indices: these are always checked here."""

    def __init__(self, enable: bool = True) -> None:
        self.state = enable

    @staticmethod
    def is_enabled() -> bool:
        """Whether indices are checked: they are."""
        return True

    @staticmethod
    def enable() -> None:
        """Switches checks on."""

    @staticmethod
    def disable() -> None:
        """Would switch them off: indices are checked all the same."""

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *unused: object) -> None:
        pass

    def __call__(self, function: Any) -> Any:
        return function


def as_sparse_gradcheck(gradcheck: Any) -> Any:
    """A gradcheck that takes sparse inputs: their values are what is varied."""

    def checked(func: Any, inputs: Any, **kwargs: Any) -> Any:
        given = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
        kwargs.pop("masked", None)

        def of_values(*values: Any) -> Any:
            found = func(*(sparse_of(s._pattern, v) if is_sparse(s) else v for s, v in zip(given, values, strict=True)))
            outs = found if isinstance(found, (tuple, list)) else (found,)
            return tuple(values_of(o) if is_sparse(o) else o for o in outs)

        flat = tuple(s._kept.detach().requires_grad_(s.requires_grad) if is_sparse(s) else s for s in given)
        return gradcheck(of_values, flat, **kwargs)

    return checked
