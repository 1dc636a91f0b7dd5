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
