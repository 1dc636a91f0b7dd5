"""Methods of Tensor that are about layouts: dense tensors have them as well, and answer or refuse."""

from __future__ import annotations

from typing import Any

from tensorpy import _C
from tensorpy._package.names import METHODS
from tensorpy.sparse import _operators as operators
from tensorpy.sparse import _products
from tensorpy.sparse._operators import to_coo, to_csr
from tensorpy.sparse._patterns import Coo, Csr
from tensorpy.sparse._tensors import ABOVE, at, is_sparse, sparse_of, values_of


def _coordinates(self: Any, what: str) -> Coo:
    if not is_sparse(self) or not isinstance(self._pattern, Coo):
        found = "Strided" if not is_sparse(self) else "SparseCsr"
        raise RuntimeError(f"{what} expected sparse coordinate tensor layout but got {found}")
    return self._pattern


def _rows(self: Any, what: str) -> Csr:
    if not is_sparse(self) or not isinstance(self._pattern, Csr):
        found = "Strided" if not is_sparse(self) else "Sparse"
        raise RuntimeError(f"{what} expected sparse row compressed tensor layout but got {found}")
    return self._pattern


def _sparse(self: Any, what: str) -> Any:
    if not is_sparse(self):
        raise RuntimeError(f"{what} expected sparse tensor layout but got Strided")
    return self


def to_dense(self: Any, dtype: Any = None, *, masked_grad: bool | None = None) -> Any:
    """A dense tensor with the same elements."""
    if is_sparse(self):
        return operators.to_dense(self, dtype)
    return self if dtype is None else self.to(dtype)


def to_sparse(
    self: Any, sparse_dim: Any = None, *, layout: Any = None, blocksize: Any = None, dense_dim: int | None = None
) -> Any:
    """The elements that are not zero, and where they are; of a sparse layout as it is, or in another one."""
    if isinstance(sparse_dim, type(_C.strided)):
        layout, sparse_dim = sparse_dim, None
    if layout not in (None, _C.sparse_coo, _C.sparse_csr):
        raise NotImplementedError(f"to_sparse: there are no tensors of the layout {layout}")
    wanted = layout or _C.sparse_coo
    made = self if is_sparse(self) else _of_dense(self, self.dim() if sparse_dim is None else sparse_dim)
    return to_coo(made) if wanted is _C.sparse_coo else to_csr(made)


def _of_dense(self: Any, sparse_dim: int) -> Any:
    if not 0 < sparse_dim <= max(self.dim(), 1) and self.dim():
        raise RuntimeError(f"to_sparse: sparse_dim is from 1 to {self.dim()}, not {sparse_dim}")
    if not self.dim():
        raise NotImplementedError("to_sparse: the tensor has no dimensions")
    there = self.detach() != 0
    if sparse_dim < self.dim():
        there = there.flatten(sparse_dim).any(-1)
    pattern = Coo(there.nonzero().t().contiguous(), tuple(self.shape), True)
    return sparse_of(pattern, at(self, pattern))


def to_sparse_coo(self: Any) -> Any:
    """The elements that are not zero, by coordinates."""
    return to_sparse(self)


def to_sparse_csr(self: Any, dense_dim: int | None = None) -> Any:
    """A matrix's elements that are not zero, row by row."""
    if dense_dim:
        raise NotImplementedError("to_sparse_csr: dense_dim: values are numbers")
    if not is_sparse(self) and self.dim() != 2:
        raise RuntimeError(f"to_sparse_csr: expected a matrix, got a tensor with {self.dim()} dimensions")
    return to_sparse(self, layout=_C.sparse_csr)


def coalesce(self: Any) -> Any:
    """Indices in order, each once; values of one place are added."""
    _coordinates(self, "coalesce")
    return operators.coalesce(self)


def is_coalesced(self: Any) -> bool:
    """Whether indices are known to be in order, and each once."""
    return _coordinates(self, "is_coalesced").is_coalesced


def _coalesced_(self: Any, coalesced: bool) -> Any:
    """Says that they are, without a look."""
    pattern = _coordinates(self, "_coalesced_")
    self._pattern = Coo(pattern.indices, pattern.size, bool(coalesced))
    return self


def indices(self: Any) -> Any:
    """A column per value: where it is."""
    if not _coordinates(self, "indices").is_coalesced:
        raise RuntimeError("Cannot get indices on an uncoalesced tensor, please call .coalesce() first")
    return self._pattern.indices


def values(self: Any) -> Any:
    """The values, differentiable."""
    pattern = _sparse(self, "values")._pattern
    if isinstance(pattern, Coo) and not pattern.is_coalesced:
        raise RuntimeError("Cannot get values on an uncoalesced tensor, please call .coalesce() first")
    return values_of(self)


def _indices(self: Any) -> Any:
    """The indices as they are."""
    return _coordinates(self, "_indices").indices


def _values(self: Any) -> Any:
    """The values as they are, out of reach of autograd."""
    return _sparse(self, "_values")._kept


def _nnz(self: Any) -> int:
    """How many values there are."""
    return int(_sparse(self, "_nnz")._pattern.nnz)


def sparse_dim(self: Any) -> int:
    """How many dimensions have indices; 0 of a dense tensor."""
    return self._pattern.as_coo().sparse_dim if is_sparse(self) else 0


def dense_dim(self: Any) -> int:
    """How many dimensions each value has; all of a dense tensor."""
    return len(self._pattern.size) - sparse_dim(self) if is_sparse(self) else int(self.dim())


def sparse_mask(self: Any, mask: Any) -> Any:
    """The elements at the places that a sparse tensor has values for."""
    if not is_sparse(mask):
        raise RuntimeError("sparse_mask: the mask is a sparse tensor")
    size = self._pattern.size if is_sparse(self) else tuple(self.shape)
    if size != mask._pattern.size:
        raise RuntimeError(
            f"sparse_mask(): operands have incompatible sizes; self has size {list(size)} but mask has size "
            f"{list(mask._pattern.size)}"
        )
    return sparse_of(mask._pattern, at(self, mask._pattern))


def crow_indices(self: Any) -> Any:
    """Where each row begins, and the number of values."""
    return _rows(self, "crow_indices").crow_indices


def col_indices(self: Any) -> Any:
    """The column of each value."""
    return _rows(self, "col_indices").col_indices


def sparse_resize_(self: Any, size: Any, sparse_dim: int, dense_dim: int) -> Any:
    """Another size, which the indices fit into."""
    pattern = _coordinates(self, "sparse_resize_")
    if (sparse_dim, dense_dim) != (pattern.sparse_dim, len(pattern.dense_size)) or any(
        new < old for new, old in zip(size, pattern.size, strict=True)
    ):
        raise RuntimeError("sparse_resize_: dimensions stay as they are, and none gets smaller")
    raise NotImplementedError("sparse_resize_: a tensor's size does not change; sparse_coo_tensor makes one of another")


def smm(self: Any, mat: Any) -> Any:
    """A sparse matrix by a dense one, as a sparse one."""
    return to_sparse(_products.mm(self, mat))


ABOVE.update({name: globals()[name] for name in METHODS["sparse._methods"]})
