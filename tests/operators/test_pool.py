"""Pooling: indices, NaN, shapes without windows, errors, second gradients of every dimension."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tensorpy as tp
import tensorpy.nn.functional as F
from tensorpy.autograd import gradcheck, gradgradcheck


def distinct(*shape: int) -> tp.Tensor:
    n = math.prod(shape)
    return (tp.randperm(n).to(tp.float64) * 0.1).reshape(shape).requires_grad_()


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("name", ["max_pool", "avg_pool", "adaptive_max_pool", "adaptive_avg_pool"])
def test_gradients(name: str, dims: int) -> None:
    function = getattr(F, f"{name}{dims}d")
    x = distinct(2, 2, *(4, 5, 3)[:dims])
    assert gradcheck(lambda t: function(t, 2), (x,))
    assert gradgradcheck(lambda t: function(t, 2), (x,))


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_indices_name_the_elements(dims: int) -> None:
    x = tp.randn(2, 3, *(6, 4, 5)[:dims])
    for function in (getattr(F, f"max_pool{dims}d"), getattr(F, f"adaptive_max_pool{dims}d")):
        values, places = function(x, 2, return_indices=True)
        flat = x.flatten(2).gather(2, places.flatten(2))
        assert tp.equal(flat, values.flatten(2))


def test_nan_wins_and_equal_elements_give_the_first() -> None:
    x = tp.tensor([[[1.0, 3.0, 2.0, math.nan], [3.0, 0.0, 5.0, 6.0]]])
    values, places = F.max_pool2d(x, 2, return_indices=True)
    assert values[0, 0, 0] == 3 and places[0, 0, 0] == 1
    assert values[0, 0, 1].isnan() and places[0, 0, 1] == 3
    other = F.max_pool2d(x, 2, padding=1, stride=1)
    assert other.shape == (1, 3, 5)


@pytest.mark.parametrize("width", [2, 4, 7, 8, 16, 33, 64, 300])
def test_windows_side_by_side_are_like_any_others(width: int) -> None:
    x = tp.randn(3, 6, width)
    values, places = F.max_pool2d(x, 2, return_indices=True)
    general, there = F.max_pool2d(x, 2, padding=1, stride=1, return_indices=True)
    assert tp.equal(values, general[:, 1::2, 1::2][:, :3, : width // 2])
    assert tp.equal(places, there[:, 1::2, 1::2][:, :3, : width // 2])


def test_whole_numbers() -> None:
    x = tp.arange(16).reshape(1, 4, 4)
    assert F.max_pool2d(x, 2).tolist() == [[[5, 7], [13, 15]]]
    assert F.avg_pool2d(x, 2).dtype is tp.int64


def test_errors() -> None:
    x = tp.randn(1, 4, 4)
    with pytest.raises(RuntimeError, match="at most half of effective kernel size"):
        F.max_pool2d(x, 2, padding=2)
    with pytest.raises(RuntimeError, match="Output size is too small"):
        F.avg_pool2d(x, 5)
    with pytest.raises(RuntimeError, match="divisor must be not zero"):
        F.avg_pool2d(x, 2, divisor_override=0)
    with pytest.raises(RuntimeError, match="Expected 3D or 4D"):
        F.max_pool2d(tp.randn(4, 4), 2)
    with pytest.raises(RuntimeError, match="Expected 4D or 5D"):
        F.max_pool3d(x, 2)
    with pytest.raises(NotImplementedError, match="not implemented for 'Bool'"):
        F.max_pool2d(x > 0, 2)


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("kind", ["avg", "max"])
def test_a_size_for_each_dimension_or_one_number_for_all(kind, dims):
    pool, x = getattr(F, f"adaptive_{kind}_pool{dims}d"), tp.ones([1, 1] + [4] * dims)
    assert pool(x, 2).shape == pool(x, np.int64(2)).shape == pool(x, [2] * dims).shape == (1, 1, *[2] * dims)
    for wrong in ((2,), (2,) * (dims + 1)):
        with pytest.raises(RuntimeError, match=rf"output_size(.size\(\))? must be {dims}"):
            pool(x, wrong)


@pytest.mark.parametrize("dtype", [tp.int8, tp.int16, tp.int32, tp.int64, tp.uint8])
def test_a_window_in_the_padding_has_the_least_integer(dtype):
    x = tp.full((1, 1, 6, 1), 5, dtype=dtype)
    values = F.max_pool2d(x, (3, 2), 3, 1, (1, 2))
    assert values.flatten().tolist() == [tp.iinfo(dtype).min] * 2


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("kind", ["avg", "max"])
def test_gradient_of_an_adaptive_pool_to_nothing_is_refused(kind: str, dims: int) -> None:
    x = tp.ones((2, 3) + (4,) * dims, requires_grad=True)
    y = getattr(tp.nn.functional, f"adaptive_{kind}_pool{dims}d")(x, 0)
    with pytest.raises(RuntimeError, match="Expected grad_output to have non-zero size for non-batch dimensions"):
        y.sum().backward()
    empty = tp.ones((0, 3) + (4,) * dims, requires_grad=True)
    getattr(tp.nn.functional, f"adaptive_{kind}_pool{dims}d")(empty, 2).sum().backward()
    assert empty.grad.shape == empty.shape


def test_one_volume_keeps_its_format_where_its_maximum_is_taken() -> None:
    """As in PyTorch, and as a batch of one: no other pool does, nor one in two dimensions."""
    volume = tp.randn(9, 8, 7, 6).permute(3, 0, 1, 2).requires_grad_()
    out, places = tp.nn.functional.max_pool3d(volume, 2, return_indices=True)
    assert out.stride() == places.stride() == (1, 72, 18, 6) == tp.nn.functional.max_pool3d(volume, 2).stride()
    of_batch, of_places = tp.nn.functional.max_pool3d(volume[None], 2, return_indices=True)
    assert out.equal(of_batch[0]) and places.equal(of_places[0])
    back = tp.ops.aten.max_pool3d_with_indices_backward(
        tp.ones_like(out), volume, [2] * 3, [2] * 3, [0] * 3, [1] * 3, False, places
    )
    assert back.stride() == volume.stride()
    assert back.equal(tp.autograd.grad(of_batch.sum(), volume)[0])
    assert tp.nn.functional.avg_pool3d(volume, 2).is_contiguous()
    assert tp.nn.functional.max_pool2d(volume[:, 0], 2).is_contiguous()
