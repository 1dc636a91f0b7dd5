"""Patterns: where the elements of a sparse tensor are, by coordinates (Coo) or row by row (Csr)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor

Size = tuple[int, ...]


def keys_of(indices: Tensor, sizes: Size) -> Tensor:
    """One number per column of indices: its place in a dense tensor of these sizes."""
    keys = _C.zeros(indices.shape[1], dtype=_C.int64, device=indices.device)
    for row, size in zip(indices, sizes, strict=True):
        keys = keys * size + row
    return keys


def columns_of(keys: Tensor, sizes: Size) -> Tensor:
    """The indices of such numbers."""
    rows = []
    for size in reversed(sizes):
        rows.append(keys % size)
        keys = keys.div(size, rounding_mode="floor")
    return _C.stack(rows[::-1]) if rows else keys.new_zeros((0, keys.shape[0]))


@dataclass(frozen=True, eq=False)
class Coo:
    """Coordinates: a column of `indices` per value. Coalesced: in order, and each once."""

    indices: Tensor
    size: Size
    is_coalesced: bool

    layout = _C.sparse_coo

    @property
    def sparse_dim(self) -> int:
        return int(self.indices.shape[0])

    @property
    def nnz(self) -> int:
        return int(self.indices.shape[1])

    @property
    def sparse_size(self) -> Size:
        return self.size[: self.sparse_dim]

    @property
    def dense_size(self) -> Size:
        return self.size[self.sparse_dim :]

    def keys(self) -> Tensor:
        return keys_of(self.indices, self.sparse_size)

    def is_same(self, other: Any) -> bool:
        """Whether values of the one are values of the other."""
        if not isinstance(other, Coo) or self.size != other.size:
            return False
        return self.indices is other.indices or bool(_C.equal(self.indices, other.indices))

    def to(self, device: Any) -> Coo:
        return Coo(self.indices.to(device), self.size, self.is_coalesced)

    def as_coo(self) -> Coo:
        return self


@dataclass(frozen=True, eq=False)
class Csr:
    """Rows one after another: row r has the values from crow_indices[r] to crow_indices[r + 1]. Dimensions in front of
    the last of both indices and of the values are those of a batch of matrices."""

    crow_indices: Tensor
    col_indices: Tensor
    size: Size

    layout = _C.sparse_csr

    @property
    def nnz(self) -> int:
        return int(self.col_indices.shape[-1])

    def is_same(self, other: Any) -> bool:
        if not isinstance(other, Csr) or self.size != other.size or self.nnz != other.nnz:
            return False
        same = self.col_indices is other.col_indices and self.crow_indices is other.crow_indices
        return same or bool(
            _C.equal(self.col_indices, other.col_indices) and _C.equal(self.crow_indices, other.crow_indices)
        )

    def to(self, device: Any) -> Csr:
        return Csr(self.crow_indices.to(device), self.col_indices.to(device), self.size)

    def as_coo(self) -> Coo:
        """Rows are in order; columns in a row need not be, nor be different."""
        counts = self.crow_indices.diff().to(_C.int64).reshape(-1)
        rows = _C.arange(counts.shape[0], device=counts.device).repeat_interleave(counts)
        columns = self.col_indices.to(_C.int64).reshape(1, -1)
        return Coo(_C.cat([columns_of(rows, self.size[:-1]), columns]), self.size, False)


Pattern = Coo | Csr
