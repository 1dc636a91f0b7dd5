"""Products of sparse tensors with dense ones and with each other."""

from __future__ import annotations

import math
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.sparse._dimensions import ranges, t, transpose
from tensorpy.sparse._operators import add, like, mul, operator, size_of
from tensorpy.sparse._patterns import Coo, keys_of
from tensorpy.sparse._tensors import ABOVE, coalesce, coo, is_sparse, sparse_coo_tensor, sparse_of


def _product(indices: Tensor, values: Tensor, rows: int, dense: Any) -> Tensor:
    """A sparse matrix, whose coordinates these are, by a dense one."""
    dtype = _C.result_type(values, dense)
    parts = dense.to(dtype).index_select(0, indices[1]) * values.to(dtype).unsqueeze(1)
    return parts.new_zeros((rows, dense.shape[1])).index_add(0, indices[0], parts)


def _sparse_product(a: Any, b: Any) -> Any:
    """Both sparse: each value of a row of `a` meets all of a row of `b`."""
    (mine, left), (theirs, right) = coo(coalesce(a)), coo(coalesce(b))
    inner = mine.indices[1].contiguous()
    rows = theirs.indices[0].contiguous()
    first = _C.searchsorted(rows, inner)
    which, source = ranges(first, _C.searchsorted(rows, inner, right=True) - first)
    indices = _C.stack([mine.indices[0][which], theirs.indices[1][source]])
    pattern = Coo(indices, (mine.size[0], theirs.size[1]), False)
    return coalesce(sparse_of(pattern, left.index_select(0, which) * right.index_select(0, source)))


@operator("spmm", "dsmm")
def mm(self: Any, mat2: Any, *, out: Any = None) -> Any:
    a, b = size_of(self), size_of(mat2)
    if len(a) != 2 or len(b) != 2:
        raise RuntimeError(f"mm: Expected two matrices, but the tensors are of {len(a)} and {len(b)} dimensions")
    if a[1] != b[0]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({a[0]}x{a[1]} and {b[0]}x{b[1]})")
    if is_sparse(self) and is_sparse(mat2):
        return like(self, _sparse_product(self, mat2))
    if is_sparse(self):
        pattern, values = coo(self)
        return _product(pattern.indices, values, a[0], mat2)
    pattern, values = coo(mat2)
    return _product(pattern.indices.flip(0), values, b[1], self.t()).t()


@operator()
def mv(self: Any, vec: Any, *, out: Any = None) -> Any:
    return mm(self, vec.unsqueeze(1)).squeeze(1)


@operator()
def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1, out: Any = None) -> Any:
    product = mm(mat1, mat2)
    product = mul(product, alpha) if is_sparse(product) else product * alpha
    return (
        add(mul(input, beta) if is_sparse(input) else input * beta, product)
        if is_sparse(product)
        else input * beta + product
    )


@operator()
def bmm(self: Any, mat2: Any, *, out: Any = None) -> Any:
    """Each matrix of a batch, of any number of dimensions: rows of all of them are numbered through."""
    if not is_sparse(self):
        return bmm(transpose(mat2, -2, -1), self.transpose(-2, -1)).transpose(-2, -1)
    pattern, values = coo(self)
    *batch, rows, inner = pattern.size
    number, count = keys_of(pattern.indices[:-2], tuple(batch)), math.prod(batch)
    flat = _C.stack([number * rows + pattern.indices[-2], number * inner + pattern.indices[-1]])
    made = _product(flat, values, count * rows, mat2.expand(*batch, inner, -1).reshape(count * inner, -1))
    return made.reshape(*batch, rows, -1)


def _matmul(self: Any, other: Any, *, out: Any = None) -> Any:
    a, b = len(size_of(self)), len(size_of(other))
    if b == 1:
        return mv(self, other)
    if a == 1:
        return mm(self.unsqueeze(0), other).squeeze(0)
    if (a, b) == (2, 2):
        return mm(self, other)
    if a == b and not (is_sparse(self) and is_sparse(other)):
        return bmm(self, other)
    if a == 2 and not is_sparse(other):  # one matrix by many: they stand beside each other
        size = size_of(other)
        wide = other.movedim(-2, 0).reshape(size[-2], -1)
        return mm(self, wide).reshape(size_of(self)[0], *size[:-2], size[-1]).movedim(0, -2)
    if b == 2 and not is_sparse(self):
        return mm(self.reshape(-1, size_of(self)[-1]), other).reshape(*size_of(self)[:-1], size_of(other)[1])
    raise NotImplementedError(f"matmul: a sparse tensor with the sizes {size_of(self)} and {size_of(other)}")


ABOVE |= {"matmul": _matmul, "__matmul__": _matmul, "__rmatmul__": lambda self, other: _matmul(other, self)}


# ---- what asks without computing ----


ABOVE["is_contiguous"] = lambda self, *args, **kwargs: False
ABOVE["is_same_size"] = lambda self, other: size_of(self) == size_of(other)
ABOVE["new"] = lambda self, *args: _from_parts(self, args)
ABOVE["linear"] = lambda input, weight, bias=None: (
    _matmul(input, t(weight) if is_sparse(weight) else weight.t()) + (0 if bias is None else bias)
)


def _from_parts(self: Any, args: Any) -> Any:
    """`s.new(indices, values, size)`."""
    return sparse_coo_tensor(*args, dtype=self._kept.dtype)
