"""Shape operators against NumPy, and the views that change a tensor in place."""

from __future__ import annotations

import numpy as np
import pytest

import tensorpy as tp
from tensorpy.autograd import gradcheck, gradgradcheck

X = np.arange(24.0).reshape(2, 3, 4)


def tensor():
    return tp.arange(24.0).reshape(2, 3, 4)


CASES = {
    "flatten": (lambda t: t.flatten(1), X.reshape(2, 12)),
    "unflatten": (lambda t: t.unflatten(-1, (2, -1)), X.reshape(2, 3, 2, 2)),
    "movedim": (lambda t: t.movedim(0, -1), np.moveaxis(X, 0, -1)),
    "diagonal": (lambda t: t.diagonal(1, 1, 2), X.diagonal(1, 1, 2)),
    "unfold": (lambda t: t.unfold(2, 2, 1), np.lib.stride_tricks.sliding_window_view(X, 2, 2)),
    "flip": (lambda t: t.flip(0, 2), np.flip(X, (0, 2))),
    "roll": (lambda t: t.roll((1, -2), (0, 2)), np.roll(X, (1, -2), (0, 2))),
    "rot90": (lambda t: tp.rot90(t, 3, (1, 2)), np.rot90(X, 3, (1, 2))),
    "repeat": (lambda t: t.repeat(2, 1, 1, 3), np.tile(X, (2, 1, 1, 3))),
    "repeat_interleave": (lambda t: t.repeat_interleave(2, 1), np.repeat(X, 2, 1)),
    "repeats_of_each": (lambda t: t.repeat_interleave(tp.tensor([1, 0, 3]), 1), np.repeat(X, [1, 0, 3], 1)),
    "pad": (
        lambda t: tp.constant_pad_nd(t, (1, 2, 0, -1), 9),
        np.pad(X[:, :2], ((0, 0), (0, 0), (1, 2)), constant_values=9),
    ),
    "chunk": (lambda t: t.chunk(3, 2)[1], X[:, :, 2:]),
    "tensor_split": (lambda t: t.tensor_split(3, 2)[0], X[:, :, :2]),
    "hstack": (lambda t: tp.hstack([t, t]), np.hstack([X, X])),
    "dstack": (lambda t: tp.dstack([t, t]), np.dstack([X, X])),
}


@pytest.mark.parametrize("name", CASES)
def test_against_numpy(name):
    call, expected = CASES[name]
    np.testing.assert_array_equal(np.asarray(call(tensor())), expected)


@pytest.mark.parametrize("name", CASES)
def test_gradient_counts_uses(name):
    """The gradient of the sum is how often each element shows."""
    call, _ = CASES[name]
    t = tensor().requires_grad_()
    call(t).sum().backward()
    shown = np.asarray(call(tensor() + 100).reshape(-1)).astype(int) - 100
    counts = np.bincount(shown[shown >= 0], minlength=24).reshape(X.shape)
    np.testing.assert_array_equal(np.asarray(t.grad), counts)


def test_transposes_are_attributes():
    x = tp.ones(2, 3, 4)
    assert x.mT.shape == (2, 4, 3) and x.mH.shape == (2, 4, 3)
    assert x[0].T.shape == (4, 3) and x[0].H.shape == (4, 3)
    assert x.mT._base is x
    with pytest.raises(RuntimeError, match="mT"):
        tp.ones(3).mT  # noqa: B018


def test_sizes_are_tuples_that_stay_sizes():
    size = tp.ones(2, 3).shape
    four = (4,)
    for made in (size + four, four + size, size * 2, 2 * size, size[1:], size + size, tp.Size([tp.tensor(1), True])):
        assert type(made) is tp.Size
        assert all(type(n) is int for n in made)
    assert four + size == (4, 2, 3) and size + four == (2, 3, 4)
    assert tp.broadcast_shapes((2, 1), (3,), 1) == (2, 3)
    assert tp.broadcast_shapes() == () and tp.broadcast_tensors() == ()
    assert [t.tolist() for t in tp.split(tp.arange(3), split_size_or_sections=[1, 2])] == [[0], [1, 2]]


def test_inplace_views():
    t = tensor()
    assert t.transpose_(0, 2) is t and tuple(t.shape) == (4, 3, 2)
    np.testing.assert_array_equal(np.asarray(t), X.T.transpose(0, 1, 2))
    t.unsqueeze_(0).squeeze_(0)
    leaf = tp.ones(2, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        leaf.t_()
    y = leaf * tp.arange(6.0).reshape(2, 3)
    row = y[1]
    y.t_()
    (y * tp.arange(6.0).reshape(3, 2)).sum().backward()
    np.testing.assert_array_equal(np.asarray(leaf.grad), np.arange(6.0).reshape(2, 3) * np.arange(6.0).reshape(3, 2).T)
    assert tuple(row.shape) == (3,)


def test_errors():
    t = tensor()
    with pytest.raises(RuntimeError, match="start_dim cannot come after end_dim"):
        t.flatten(2, 1)
    with pytest.raises(RuntimeError, match="exceeds dimension size"):
        t.narrow(0, 1, 2)
    with pytest.raises(RuntimeError, match="maximum size for tensor"):
        t.unfold(0, 3, 1)


# ---- borders ----


@pytest.mark.parametrize(("shape", "pad"), [((1, 2, 4), (1, 2)), ((2, 4), (0, 4)), ((1, 1, 40), (20, 19)),
                                             ((1, 2, 3, 4), (1, 1, 2, 0)), ((1, 1, 3, 2, 4), (1, 0, 1, 1, 0, 2)),
                                             ((1, 2, 4), (-1, 2))])  # fmt: skip
def test_a_circular_border_has_its_gradient(shape: tuple[int, ...], pad: tuple[int, ...]) -> None:
    x = tp.randn(*shape, dtype=tp.float64, requires_grad=True)
    made = tp.nn.functional.pad(x, pad, mode="circular")
    assert made.requires_grad
    assert gradcheck(lambda t: tp.nn.functional.pad(t, pad, mode="circular"), [x])
    assert gradgradcheck(lambda t: tp.nn.functional.pad(t, pad, mode="circular"), [x])


@pytest.mark.parametrize("mode", ["reflect", "replicate"])
def test_a_border_may_take_a_dimension_away(mode: str) -> None:
    """But not all that are padded."""
    pad = tp.nn.functional.pad
    assert pad(tp.ones(1, 2, 3, 3), (-3, 0, 1, 1), mode=mode).shape == (1, 2, 5, 0)
    assert pad(tp.ones(1, 2, 3, 3, 3), (-1, -2, 0, 0, 0, 0), mode=mode).shape == (1, 2, 3, 3, 0)
    for shape, amounts in (((1, 2, 3), (-1, -2)), ((1, 2, 3), (1, -5)), ((1, 2, 3, 3), (-3, 0, -3, 0))):
        with pytest.raises(RuntimeError, match="too small"):
            pad(tp.ones(shape), amounts, mode=mode)
    with pytest.raises(RuntimeError, match="non-zero dimensions"):
        pad(tp.ones(2, 0, 3), (1, 1), mode=mode)


def test_bincount_of_nothing() -> None:
    """Counts, whatever the weights are; as in PyTorch."""
    none = tp.empty(0, dtype=tp.int64)
    assert tp.bincount(none, tp.empty(0), 3).dtype == tp.int64
    assert tp.bincount(none, tp.empty(0, dtype=tp.float64)).tolist() == []


def test_set_names_the_devices_that_differ():
    with pytest.raises(RuntimeError, match="a tensor on cpu cannot take the storage of a tensor on meta"):
        tp.ones(2).set_(tp.ones(2, device="meta"))


def test_resize_as_takes_the_sizes_of_another():
    x = tp.arange(6.0)
    assert x.resize_as_(tp.empty(2, 3)) is x and x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert x.resize_as_(tp.empty(4, 3)).shape == (4, 3)


@pytest.mark.parametrize("dtype", [tp.uint8, tp.int8, tp.int32, tp.int64])
def test_coordinates_are_int64(dtype):
    """Also those of a shape that the dtype of the places has no number for."""
    places = tp.unravel_index(tp.tensor([5, 100], dtype=dtype), (200, 3, 400))
    assert [(p.dtype, p.tolist()) for p in places] == [(tp.int64, [0, 0]), (tp.int64, [0, 0]), (tp.int64, [5, 100])]
    assert tp.unravel_index(tp.tensor([5], dtype=dtype), ()) == ()


def test_unravel_index():
    places = tp.tensor([[0, 5], [11, -1]])
    rows, columns = tp.unravel_index(places, (3, 4))
    assert rows.tolist() == [[0, 1], [2, 2]] and columns.tolist() == [[0, 1], [3, 3]]
    with pytest.raises(TypeError, match="integer dtype"):
        tp.unravel_index(tp.ones(2), (3, 4))
    with pytest.raises(TypeError, match="int or sequence of ints"):
        tp.unravel_index(places, tp.tensor([3, 4]))
    with pytest.raises(ValueError, match="negative"):
        tp.unravel_index(places, (3, -4))


def test_new_dimensions_of_one_element_have_strides_as_unsqueeze_gives():
    x = tp.ones(5)[::2]
    assert x.expand(1, 1, 3).stride() == x.unsqueeze(0).unsqueeze(1).stride() == (6, 6, 2)
    assert x.expand(2, 1, 3).stride() == (0, 6, 2) and x.expand(1, 2, 3).stride() == (0, 0, 2)
    assert tp.ones(()).expand(1, 1).stride() == (0, 0) and tp.ones(1).expand(1, 4).stride() == (0, 0)
    assert tp.ones(2, 1).expand(1, -1, 3).stride() == (2, 1, 0)
