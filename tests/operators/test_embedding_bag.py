"""Bags of rows: values and gradients are PyTorch's, and what is refused."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tensorpy as tp
from tensorpy.nn import functional as F

rng = np.random.default_rng(2)


def pair(torch: Any, array: np.ndarray) -> tuple[Any, Any]:
    return tp.from_numpy(array.copy()).requires_grad_(), torch.tensor(array, requires_grad=True)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("weighted", [False, True])
def test_values_and_gradients(mode: str, weighted: bool) -> None:
    torch = pytest.importorskip("torch")
    if weighted and mode != "sum":
        with pytest.raises(NotImplementedError):
            F.embedding_bag(tp.tensor([0]), tp.ones(2, 2), tp.tensor([0]), mode=mode, per_sample_weights=tp.ones(1))
        return
    for ends, padding in itertools.product((False, True), (None, 1, -2)):
        w, v = pair(torch, rng.standard_normal((7, 5)))
        p, q = pair(torch, rng.standard_normal(20))
        indices, offsets = rng.integers(0, 7, 20), np.array([0, 3, 3, 9, 15] + [20] * ends)
        options: dict[str, Any] = {"mode": mode, "include_last_offset": ends, "padding_idx": padding}
        ours = F.embedding_bag(
            tp.from_numpy(indices), w, tp.from_numpy(offsets), per_sample_weights=p if weighted else None, **options
        )
        theirs = torch.nn.functional.embedding_bag(
            torch.tensor(indices), v, torch.tensor(offsets), per_sample_weights=q if weighted else None, **options
        )
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), 1e-12, 1e-12)
        factors = rng.standard_normal(theirs.shape)
        (ours * tp.from_numpy(factors)).sum().backward()
        (theirs * torch.tensor(factors)).sum().backward()
        np.testing.assert_allclose(w.grad.numpy(), v.grad.numpy(), 1e-12, 1e-12)
        if weighted:
            np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), 1e-12, 1e-12)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("padding", [None, 1])
def test_indices_beyond_the_last_offset_are_in_no_bag(mode: str, sparse: bool, padding: int | None) -> None:
    """Values and gradients are those of the indices up to the last offset."""
    if sparse and mode == "max":
        return
    found = []
    for indices, ends in (([0, 1, 2, 3, 3], [0, 2, 3]), ([0, 1, 2], [0, 2, 3])):
        table = tp.arange(1.0, 9.0).view(4, 2).requires_grad_()
        each = tp.arange(1.0, 1.0 + len(indices)).requires_grad_() if mode == "sum" else None
        bags = F.embedding_bag(
            tp.tensor(indices), table, tp.tensor(ends), mode=mode, sparse=sparse, include_last_offset=True,
            padding_idx=padding, per_sample_weights=each,
        )  # fmt: skip
        (bags * tp.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
        of_each = None if each is None else each.grad.tolist()
        found.append((bags.tolist(), table.grad.to_dense().tolist(), of_each))
    if mode == "sum":
        assert found[0][2][3:] == [0.0, 0.0]
        found[0][2][3:] = []
    assert found[0] == found[1]


def test_frequencies_divide_as_embeddings_do() -> None:
    """A row's gradient by how often it is named."""
    w = rng.standard_normal((4, 3))
    indices = tp.tensor([1, 1, 3, 1, 0])
    grads = []
    for by_frequency in (False, True):
        table = tp.from_numpy(w.copy()).requires_grad_()
        F.embedding_bag(indices, table, tp.tensor([0, 2]), scale_grad_by_freq=by_frequency, mode="sum").sum().backward()
        grads.append(table.grad.numpy())
    np.testing.assert_allclose(grads[1] * np.array([[1], [3], [1], [1]]), grads[0], 1e-12)


def test_threads_do_not_matter() -> None:
    table, indices = tp.randn(1000, 64), tp.randint(0, 1000, (500, 40))
    before, found = tp.get_num_threads(), []
    for threads in (1, 3):
        tp.set_num_threads(threads)
        w = table.clone().requires_grad_()
        F.embedding_bag(indices, w, mode="mean").square().sum().backward()
        found.append(w.grad.numpy())
    tp.set_num_threads(before)
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize(
    ("indices", "offsets", "error", "says"),
    [
        ([4], [0], RuntimeError, "takes value 4"),
        ([-1], [0], RuntimeError, "takes value -1"),
        ([0, 1], [1], RuntimeError, r"offsets\[0\] has to be 0"),
        ([0, 1], [0, 3], RuntimeError, "can not be greater than input's length 2"),
        ([0, 1], [0, 2, 1], RuntimeError, "must not descend"),
        ([0.0], [0], RuntimeError, "indices"),
        ([0, 1], None, ValueError, "1D Tensor"),
        ([[0, 1]], [0], ValueError, "offsets has to be None"),
    ],
)
def test_mistakes(indices: Any, offsets: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        F.embedding_bag(tp.tensor(indices), tp.ones(4, 2), None if offsets is None else tp.tensor(offsets))


def test_tensors_of_other_dimensions_are_named() -> None:
    weight, row = tp.zeros(2, 6), tp.ones(2, dtype=tp.int64)
    for function in (tp.embedding_bag, tp._embedding_bag, tp._embedding_bag_forward_only):
        with pytest.raises(RuntimeError, match="input has to be a 1D or 2D Tensor"):
            function(weight, row.expand(2, 0, 2), row)
        with pytest.raises(RuntimeError, match="offsets has to be a 1D Tensor"):
            function(weight, row, row.expand(2, 2))
    with pytest.raises(ValueError, match="weight has to be a 2D Tensor, but got Tensor of dimension 1"):
        F.embedding_bag(row, tp.ones(3), row)
    with pytest.raises(ValueError, match="the same shape as the input"):
        F.embedding_bag(row, weight, row[:1], per_sample_weights=tp.ones(3), mode="sum")


def test_gradients_look_at_what_they_are_given() -> None:
    """Called by themselves, with bags and rows that are not there."""
    backward = tp.ops.aten._embedding_bag_dense_backward
    grad, one, sizes = tp.ones(2, 3), tp.tensor([1, 1]), tp.tensor([1, 1])
    with pytest.raises(RuntimeError, match="bag 7 is not in"):
        backward(grad, one, tp.tensor([0, 7]), sizes, sizes, 4, False, 0, None)
    with pytest.raises(RuntimeError, match="row 9 is not in"):
        backward(grad, one, tp.tensor([0, 1]), sizes, tp.full((2, 3), 9), 4, False, 2, None)
    with pytest.raises(RuntimeError, match="takes value 4"):
        backward(grad, tp.tensor([1, 4]), tp.tensor([0, 1]), sizes, sizes, 4, False, 0, None)


def test_no_bags_and_empty_ones() -> None:
    none = tp.tensor([], dtype=tp.int64)
    assert F.embedding_bag(tp.tensor([1]), tp.ones(4, 2), none).shape == (0, 2)
    for mode in ("sum", "mean", "max"):
        assert F.embedding_bag(none, tp.ones(4, 2), tp.tensor([0, 0]), mode=mode).tolist() == [[0, 0], [0, 0]]


def test_older_order_of_arguments_is_taken_with_a_warning() -> None:
    weight, places, offsets = tp.arange(6.0).reshape(3, 2), tp.tensor([0, 2, 1]), tp.tensor([0, 2])
    with pytest.warns(UserWarning, match="embedding_bag"):
        old = tp.nn.functional.embedding_bag(weight, places, offsets)
    assert tp.equal(old, tp.nn.functional.embedding_bag(places, weight, offsets))
