"""Tensors of layouts under vmap: what samples share is computed with as outside, and those of a batch are samples."""

from __future__ import annotations

from typing import Any

import pytest
from layout_calls import CALLS, DENSE, OTHERS, SPARSE, same, taken

import tensorpy as tp
from tensorpy import func, vmap


@pytest.mark.parametrize("kind", [*SPARSE, *OTHERS])
def test_what_samples_share(kind: str) -> None:
    make = {**SPARSE, **OTHERS}[kind]
    names = taken(make)
    assert len(names) > 15
    for name in names:
        s, results = make(), []
        vmap(lambda x, s=s, name=name, results=results: (results.append(CALLS[name](s, DENSE)), x)[1])(tp.ones(2))
        assert same(CALLS[name](make(), DENSE), results[0]), name


@pytest.mark.parametrize("kind", SPARSE)
def test_products_and_their_gradients(kind: str) -> None:
    s = SPARSE[kind]()
    x = tp.arange(18.0).reshape(2, 3, 3)
    assert tp.allclose(vmap(lambda p: s @ p)(x), s.to_dense() @ x)
    assert tp.allclose(vmap(lambda p: p * s.to_dense())(x), x * s.to_dense())
    of_each = vmap(func.grad(lambda p: (s @ p).square().sum()))(x)
    assert tp.allclose(of_each, tp.stack([func.grad(lambda p: (s.to_dense() @ p).square().sum())(p) for p in x]))
    assert tp.allclose(func.jacrev(lambda p: s @ p)(x[0, 0]), s.to_dense())


@pytest.mark.parametrize("layout", [tp.sparse_coo, tp.sparse_csr])
def test_batches(layout: Any) -> None:
    many = tp.stack([DENSE, DENSE * 2]).to_sparse(layout=layout)
    assert tp.equal(vmap(lambda s: s.to_dense())(many), many.to_dense())
    assert tp.equal(vmap(lambda s: s.sin() * 2)(many).to_dense(), many.to_dense().sin() * 2)
    values = tp.tensor([[1.0, 2.0], [3.0, 4.0]])
    if layout is tp.sparse_coo:
        made = vmap(lambda v: tp.sparse_coo_tensor([[0, 1], [1, 0]], v, (2, 2)).to_dense())(values)
    else:
        made = vmap(lambda v: tp.sparse_csr_tensor([0, 1, 2], [1, 0], v, (2, 2)).to_dense())(values)
    assert made.tolist() == [[[0.0, 1.0], [2.0, 0.0]], [[0.0, 3.0], [4.0, 0.0]]]
    with pytest.raises(RuntimeError, match="nonzero"):
        vmap(lambda x: x.to_sparse(layout=layout))(tp.ones(2, 3, 3))


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("dense_dim", [0, 1])
def test_a_whole_sample_is_summed(dim: int, dense_dim: int) -> None:
    x = tp.arange(24.0).reshape(2, 3, 4).to_sparse(3 - dense_dim)
    if dim == -1 and dense_dim:
        dim = 1
    made = vmap(lambda s: s.sum(), in_dims=dim)(x)
    assert made.layout is tp.sparse_coo
    assert made.to_dense().tolist() == x.to_dense().movedim(dim, 0).reshape(x.shape[dim], -1).sum(1).tolist()
    assert vmap(lambda s: s.sum())(tp.arange(3.0).to_sparse()).to_dense().tolist() == [0, 1, 2]
    assert vmap(lambda s: s.sum(dtype=tp.float64), in_dims=dim)(x).dtype is tp.float64


def test_a_matrix_of_all_samples_times_a_vector_of_each() -> None:
    matrix, vectors = tp.arange(12.0).reshape(3, 4).to_sparse(), tp.arange(8.0).reshape(2, 4)
    assert vmap(lambda v: matrix.mv(v))(vectors).equal(vectors @ matrix.to_dense().t())
    assert vmap(lambda m, v: m.mv(v), in_dims=(None, 0))(matrix, vectors).equal(vectors @ matrix.to_dense().t())
