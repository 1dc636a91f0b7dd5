"""Compressed layouts with batches and dense dimensions: made, converted both ways, printed, saved; against PyTorch."""

from __future__ import annotations

import io
import pickle
import re
import warnings
from typing import Any

import numpy as np
import pytest

import tensorpy as tp

LAYOUTS = ["sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"]


def even(batch: tuple[int, ...], dense: tuple[int, ...]) -> Any:
    """Matrices of 4 x 6 with blocks of 2 x 3, of which each has as many with something in them."""
    rng = np.random.default_rng(len(batch) + 10 * len(dense))
    whole = np.zeros((int(np.prod(batch)), 2, 2, 2, 3, *dense))
    for matrix in whole:
        for block in rng.choice(4, 2, replace=False):
            matrix[block // 2, block % 2] = rng.integers(1, 9, (2, 3, *dense))
    turned = np.moveaxis(whole, 3, 2).reshape(*batch, 4, 6, *dense)
    return turned


def made(library: Any, layout: str, values: Any, dense_dim: int) -> Any:
    blocksize = (2, 3) if layout.startswith("sparse_bs") else None
    return library.tensor(values).to_sparse(layout=getattr(library, layout), blocksize=blocksize, dense_dim=dense_dim)


def parts(sparse: Any) -> list[Any]:
    rows = str(sparse.layout).endswith(("csr", "bsr"))
    indices = (sparse.crow_indices(), sparse.col_indices()) if rows else (sparse.ccol_indices(), sparse.row_indices())
    return [part.tolist() for part in (*indices, sparse.values())]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dense", [(), (2,), (2, 1)])
@pytest.mark.parametrize("batch", [(), (3,), (2, 2)])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_batches_and_dense_dimensions(layout: str, batch: tuple[int, ...], dense: tuple[int, ...]) -> None:
    whole = even(batch, dense)
    sparse = made(tp, layout, whole, len(dense))
    assert (sparse.sparse_dim(), sparse.dense_dim(), tuple(sparse.shape)) == (2, len(dense), whole.shape)
    np.testing.assert_array_equal(sparse.to_dense().numpy(), whole)
    np.testing.assert_array_equal(sparse.to_sparse().to_dense().numpy(), whole)
    assert sparse.to_sparse().sparse_dim() == len(batch) + 2
    again = tp.sparse_compressed_tensor(*map(tp.tensor, parts(sparse)), whole.shape, layout=sparse.layout)
    assert parts(again) == parts(sparse)
    for other in LAYOUTS:
        blocksize = (2, 3) if other.startswith("sparse_bs") else None
        converted = sparse.to_sparse(layout=getattr(tp, other), blocksize=blocksize)
        if other != layout:
            np.testing.assert_array_equal(converted.to_dense().numpy(), whole)
    turned = sparse.transpose(len(batch), len(batch) + 1)
    np.testing.assert_array_equal(turned.to_dense().numpy(), np.swapaxes(whole, len(batch), len(batch) + 1))
    np.testing.assert_allclose((sparse * 2).sin().to_dense().numpy(), np.sin(whole * 2), rtol=1e-14)
    if batch:
        np.testing.assert_array_equal(sparse[0].to_dense().numpy(), whole[0])
        assert sparse[0].layout is sparse.layout
    for copy in (sparse.clone(), pickle.loads(pickle.dumps(sparse)), sparse.to(tp.float64)):
        assert parts(copy) == parts(sparse)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dense", [(), (2,)])
@pytest.mark.parametrize("batch", [(), (3,), (2, 2)])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_parts_prints_and_files_are_pytorchs(layout: str, batch: tuple[int, ...], dense: tuple[int, ...]) -> None:
    torch = pytest.importorskip("torch")
    whole = even(batch, dense)
    ours, theirs = made(tp, layout, whole, len(dense)), made(torch, layout, whole, len(dense))
    assert parts(ours) == parts(theirs)
    if not dense:  # PyTorch exchanges no dimensions beside dense ones
        assert str(ours.transpose(len(batch), len(batch) + 1).layout).replace("tensorpy", "torch") == str(
            theirs.transpose(len(batch), len(batch) + 1).layout
        )
    texts = [re.sub(r"\s+", " ", str(t)).replace("tensorpy", "torch") for t in (ours, theirs)]
    assert texts[0] == texts[1]
    for library, other, tensor in ((tp, torch, ours), (torch, tp, theirs)):
        file = io.BytesIO()
        library.save(tensor, file)
        file.seek(0)
        assert parts(other.load(file)) == parts(ours)


def test_matrices_of_a_batch_have_as_many_values() -> None:
    with pytest.raises(RuntimeError, match="same number of specified elements per batch"):
        tp.tensor([[[1.0, 0.0], [0.0, 2.0]], [[0.0, 3.0], [0.0, 0.0]]]).to_sparse_csr()


def test_dense_dimensions_leave_two() -> None:
    with pytest.raises(RuntimeError, match=r"must be in \[0,1\] range"):
        tp.ones(2, 2, 2).to_sparse_csr(dense_dim=2)
    with pytest.raises(RuntimeError, match="matrices"):
        tp.ones(3).to_sparse_csr()


@pytest.mark.parametrize(
    ("parts", "size"),
    [
        (([0, 1, 2], [0, 1], [[1.0], [2.0]]), (2, 2)),  # a dense dimension that the size lacks
        (([0, 1, 2], [0, 1], [[1.0], [2.0]]), (2, 2, 2)),  # another than the values have
        (([0, 1, 2], [0, 1], [1.0, 2.0]), (2, 2, 1)),
        (([0, 1, 2], [0, 5], [[1.0], [2.0]]), (2, 2, 1)),
        (([[0, 1, 2]], [0, 1], [1.0, 2.0]), (2, 2)),
    ],
)
def test_parts_that_do_not_fit_are_refused(parts: Any, size: Any) -> None:
    with pytest.raises(RuntimeError):
        tp.sparse_csr_tensor(*parts, size)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradients_reach_dense_tensors_and_values(layout: str) -> None:
    whole = tp.tensor(even((2,), (2,))).requires_grad_()
    blocksize = (2, 3) if layout.startswith("sparse_bs") else None
    sparse = whole.to_sparse(layout=getattr(tp, layout), blocksize=blocksize, dense_dim=1)
    (sparse.to_dense() * tp.arange(float(whole.numel())).view(whole.shape)).sum().backward()
    there = (whole.detach() != 0).any(-1, keepdim=True)
    assert tp.equal(whole.grad, tp.arange(float(whole.numel()), dtype=tp.float64).view(whole.shape) * there)


def test_blocks_of_a_large_matrix_take_no_dense_one() -> None:
    places = tp.tensor([[0, 99_999, 50_000], [99_998, 1, 7]])
    blocks = tp.sparse_coo_tensor(places, [1.0, 2.0, 3.0], (100_000, 100_000)).to_sparse_bsr((2, 2))
    assert blocks.values().shape == (3, 2, 2) and float(blocks.values().sum()) == 6
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tp.equal(blocks.to_sparse().coalesce().values().sort().values[-3:], tp.tensor([1.0, 2.0, 3.0]))


@pytest.mark.parametrize("layout", [tp.sparse_csr, tp.sparse_csc])
def test_resize(layout: Any) -> None:
    dense = tp.tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    by_rows = layout is tp.sparse_csr
    s = dense.to_sparse(layout=layout)
    alias = s.detach()
    assert s.resize_(4, 5) is s and s.shape == (4, 5) and s._nnz() == 3
    whole = tp.zeros(4, 5)
    whole[:2, :3] = dense
    assert tp.equal(s.to_dense(), whole)
    assert tp.equal(alias.to_dense(), dense)  # keeps its size
    fewer = dense.to_sparse(layout=layout).resize_((1, 3) if by_rows else (2, 1))
    lines = fewer.crow_indices() if by_rows else fewer.ccol_indices()
    assert lines.tolist() == ([0, 3] if by_rows else [0, 2])
    assert dense.to_sparse(layout=layout).resize_((0, 3) if by_rows else (2, 0))._nnz() == 0
    assert dense.to_sparse(layout=layout).resize_as_(tp.ones(3, 3)).shape == (3, 3)
    batched = tp.stack([dense, dense]).to_sparse(layout=layout)
    assert batched.resize_(2, 4, 4).to_dense()[1, :2, :3].equal(dense)


@pytest.mark.parametrize(
    ("layout", "size"),
    [
        (tp.sparse_csr, (2, 2)), (tp.sparse_csr, (6,)), (tp.sparse_csr, (1, 2, 3)), (tp.sparse_csr, (2, -1)),
        (tp.sparse_csr, (2**40, 2**40)), (tp.sparse_csc, (1, 3)), (tp.sparse_bsr, (4, 4)), (tp.sparse_coo, (4, 4)),
    ],
)  # fmt: skip
def test_resize_refuses(layout: Any, size: tuple[int, ...]) -> None:
    dense = tp.tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    s = dense.to_sparse_bsr((1, 1)) if layout is tp.sparse_bsr else dense.to_sparse(layout=layout)
    with pytest.raises(RuntimeError):
        s.resize_(size)
    assert tp.equal(s.to_dense(), dense)
    with pytest.raises(RuntimeError, match="requires grad"):
        tp.eye(2).to_sparse_csr().requires_grad_().resize_(3, 3)


LAYOUTS = {
    "sparse_coo": lambda x: x.to_sparse(), "sparse_csr": lambda x: x.to_sparse_csr(),
    "sparse_csc": lambda x: x.to_sparse_csc(), "sparse_bsr": lambda x: x.to_sparse_bsr((1, 1)),
    "sparse_bsc": lambda x: x.to_sparse_bsc((1, 1)),
}  # fmt: skip


@pytest.mark.parametrize("a", LAYOUTS)
@pytest.mark.parametrize("b", LAYOUTS)
def test_sums_are_of_one_layout(a: str, b: str) -> None:
    x = tp.tensor([[1.0, 0.0], [0.0, 2.0]])
    for call in (lambda s, t: s + t, lambda s, t: s - t, lambda s, t: s.add_(t)):
        s, t = LAYOUTS[a](x), LAYOUTS[b](x)
        if a == b:
            assert call(s, t).layout is s.layout
        else:
            with pytest.raises(RuntimeError, match=f"add.*{a}.*{b}"):
                call(s, t)


def test_on_meta_without_values() -> None:
    places = [tp.empty(n, dtype=tp.int64, device="meta") for n in (5, 2)]
    made = tp.sparse_csr_tensor(*places, tp.empty(2, device="meta"), (4, 6))
    assert made.is_meta and made.shape == (4, 6) and made._nnz() == 2 and tp.empty_like(made).is_meta
    with pytest.raises(RuntimeError):
        tp.sparse_csr_tensor(*places, tp.empty(3, device="meta"), (4, 6))


def test_new_and_small_tensors_of_coordinates() -> None:
    s = tp.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
    assert s.new().layout is tp.sparse_coo and s.new(tp.Size([2, 3])).shape == (2, 3)
    assert s.new(s._indices(), s._values(), s.shape).to_dense().equal(s.to_dense())
    with pytest.raises(RuntimeError, match="inconsistent with indices"):
        s.new(tp.tensor([[0], [3]]), tp.ones(1), s.shape)
    with pytest.raises(RuntimeError, match="values has incorrect size"):
        s.new(tp.tensor([[0], [1]]), tp.ones(1, 2), tp.Size([2, 3, 4]))
    for wrong in (s._values(), [6]):
        with pytest.raises(TypeError):
            s.new(wrong)
    assert tp.sparse_coo_tensor([[0], [0]], [1], (2, 2)).is_coalesced()
    assert not tp.sparse_coo_tensor([[0, 1], [0, 1]], [1, 2], (2, 2)).is_coalesced()
    for place, size in (("sparse", (1, 3)), ("dense", (2, 3, 1))):
        with pytest.raises(RuntimeError, match=f"{'shrinking the size of' if place == 'sparse' else 'changing'}"):
            tp.sparse_coo_tensor([[1]], tp.ones(1, 3), (2, 3)).sparse_resize_(size, 1, len(size) - 1)
