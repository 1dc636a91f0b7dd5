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
        (tp.sparse_csr, (2**40, 2**40)), (tp.sparse_csc, (1, 3)), (tp.sparse_bsr, (2, 2)), (tp.sparse_coo, (4, 4)),
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


@pytest.mark.parametrize("layout", ["sparse_bsr", "sparse_bsc"])
def test_resize_in_whole_blocks(layout: str) -> None:
    by_rows = layout == "sparse_bsr"
    dense = tp.arange(24.0).view(4, 6) + 1
    s = made(tp, layout, dense.tolist(), 0)
    assert s.resize_(6, 9) is s and s.shape == (6, 9) and s.values().shape == (4, 2, 3)
    assert s.to_dense()[:4, :6].equal(dense) and s.to_dense().sum() == dense.sum()
    fewer = made(tp, layout, dense.tolist(), 0).resize_((2, 6) if by_rows else (4, 3))
    assert fewer.values().shape == (2, 2, 3)
    assert fewer.to_dense().equal(dense[:2] if by_rows else dense[:, :3])
    for size in ((5, 6), (4, 8), (2, 3), (4, 6, 1)):
        with pytest.raises(RuntimeError, match=f"resize_.*{layout}"):
            made(tp, layout, dense.tolist(), 0).resize_(size)


@pytest.mark.parametrize("layout", [tp.sparse_coo, tp.sparse_csr, tp.sparse_csc])
def test_factories_write_sparse_tensors(layout: Any) -> None:
    dense = tp.eye(3, dtype=tp.float64)
    for make in (tp.zeros, tp.empty):
        out = dense.to_sparse(layout=layout)
        assert make(2, 3, out=out) is out and out.layout is layout and out.dtype is tp.float64
        assert out.shape == (2, 3) and out._nnz() == 0 and out.to_dense().equal(tp.zeros(2, 3, dtype=tp.float64))
    like = dense.to_sparse(layout=layout)
    assert tp.zeros(3, 3, out=like)._nnz() == 0 and like.shape == (3, 3)
    hybrid = tp.ones(2, 3).to_sparse(1)
    assert tp.zeros(2, 3, out=hybrid).sparse_dim() == 2
    with pytest.raises(RuntimeError, match="requires grad"):
        tp.zeros(3, 3, out=dense.to_sparse(layout=layout).requires_grad_())
    with pytest.raises(RuntimeError, match="sparse_bsr"):
        tp.zeros(2, 2, out=tp.eye(2).to_sparse_bsr((1, 1)))


def test_dense_dimensions_grow() -> None:
    """The elements of values follow each other as before, and zeros behind them, as where a dense tensor is resized."""
    s = tp.sparse_coo_tensor([[0, 1]], tp.arange(1.0, 9.0).view(2, 2, 2), (2, 2, 2))
    assert s.sparse_resize_((3, 2, 4), 1, 2) is s and s.shape == (3, 2, 4) and s._nnz() == 2
    assert s._values().flatten().tolist() == [1, 2, 3, 4, 5, 6, 7, 8] + [0] * 8
    like = tp.sparse_coo_tensor([[0], [1]], tp.ones(1, 2), (2, 2, 2))
    assert like.resize_as_(tp.sparse_coo_tensor([[0], [0]], tp.ones(1, 3), (2, 2, 3))).shape == (2, 2, 3)
    assert like.to_dense()[0, 1].tolist() == [1, 1, 0]
    apart = tp.sparse_coo_tensor([[0, 1]], tp.arange(4.0).view(2, 2).t(), (2, 2))
    assert apart.sparse_resize_((2, 3), 1, 1)._values().tolist() == [[0, 2, 1], [3, 0, 0]]
    with pytest.raises(RuntimeError, match="shrinking the size of dense"):
        s.sparse_resize_((3, 1, 8), 1, 2)
    assert tp.ones(2, 3).resize_as_(tp.eye(2).to_sparse()).tolist() == [[1, 1], [1, 1]]


@pytest.mark.parametrize(
    ("indices", "values", "size"),
    [
        ((1, 2), (2, 3), (4, 2)), ((1, 2), (3, 3), (4, 3)), ((1, 2), (2,), (4, 3)), ((2, 2), (2, 3), (4, 3)),
        ((2,), (2, 3), (4, 3)), ((1, 0), (0, 3), (4, 4)), ((0, 1), (1, 3, 1), (3, 2)),
    ],
)  # fmt: skip
def test_parts_fit_each_other_where_they_are_put_together(indices: Any, values: Any, size: Any) -> None:
    with pytest.raises(RuntimeError, match="_coo: indices of"):
        tp._C._coo(tp.zeros(indices, dtype=tp.int64), tp.ones(values), size, False)


VIEWS = {
    "t": lambda x: x.t(), "mT": lambda x: x.mT, "transpose": lambda x: x.transpose(0, 1), "H": lambda x: x.H,
    "select": lambda x: x.select(0, 1), "unbind": lambda x: x.unbind()[0], "permute": lambda x: x.permute(1, 0),
    "unsqueeze": lambda x: x.unsqueeze(0), "detach": lambda x: x.detach(), "clone": lambda x: x.clone(),
    "itself": lambda x: x, "values": lambda x: x.values(), "sum": lambda x: x.sum(0), "twice": lambda x: x.t().t(),
}  # fmt: skip


@pytest.mark.parametrize("layout", ["sparse_coo", *LAYOUTS])
@pytest.mark.parametrize("name", VIEWS)
def test_what_a_view_says(layout: str, name: str) -> None:
    torch = pytest.importorskip("torch")

    def told(library: Any) -> Any:
        x = made(library, layout, np.ones((4, 6)), 0)
        view = VIEWS[name](x)
        return view._is_view(), None if name == "values" else view._base is x

    try:
        expected = told(torch)
    except RuntimeError:
        pytest.skip(f"PyTorch has no {name} of {layout}")
    assert told(tp) == expected
    with tp.no_grad():
        assert told(tp) == expected or name == "values"


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
    for indices, values in ((tp.zeros(1), tp.ones(1)), (tp.zeros(2, 1), tp.ones(()))):
        with pytest.raises(RuntimeError, match="must be"):
            s.new(indices, values, s.shape)
    for wrong in (s._values(), [6]):
        with pytest.raises(TypeError):
            s.new(wrong)
    assert tp.sparse_coo_tensor([[0], [0]], [1], (2, 2)).is_coalesced()
    assert not tp.sparse_coo_tensor([[0, 1], [0, 1]], [1, 2], (2, 2)).is_coalesced()
    for place, size in (("sparse", (1, 3)), ("dense", (2, 3, 1))):
        with pytest.raises(RuntimeError, match=f"{'shrinking the size of' if place == 'sparse' else 'changing'}"):
            tp.sparse_coo_tensor([[1]], tp.ones(1, 3), (2, 3)).sparse_resize_(size, 1, len(size) - 1)


WRITES = {
    "mul_": lambda t: t.mul_(2), "neg_": lambda t: t.neg_(), "copy_": lambda t: t.copy_(t * 3),
    "values": lambda t: t.values().add_(1), "sin_": lambda t: t.sin_(),
}  # fmt: skip


@pytest.mark.parametrize("layout", ["sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"])
@pytest.mark.parametrize("name", WRITES)
def test_what_is_written_to_a_view_is_its_sources(layout: str, name: str) -> None:
    """A transposed compressed tensor has the lines of its source, and an alias its parts."""
    torch = pytest.importorskip("torch")
    values = np.arange(24.0).reshape(4, 6)

    def written(library: Any, view: Any) -> Any:
        x = made(library, layout, values, 0)
        WRITES[name](view(x))
        return x.to_dense().tolist()

    for view in (lambda x: x.transpose(0, 1), lambda x: x.detach()):
        expected = written(torch, view)
        assert np.allclose(written(tp, view), expected, rtol=1e-12)


def test_a_write_that_changes_the_pattern_leaves_a_view_as_it_is() -> None:
    x = tp.tensor([[1.0, 0.0], [0.0, 2.0]]).to_sparse_csr()
    view = x.transpose(0, 1)
    x.copy_(tp.tensor([[1.0, 1.0], [0.0, 2.0]]).to_sparse_csr())
    assert x.to_dense().tolist() == [[1.0, 1.0], [0.0, 2.0]] and view.to_dense().tolist() == [[1.0, 0.0], [0.0, 2.0]]
