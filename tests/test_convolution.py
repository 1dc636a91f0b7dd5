"""Convolution and pooling against loops, their gradients against finite differences."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from test_products import check_gradients

import tensorpy as tp
import tensorpy.nn.functional as F

rng = np.random.default_rng(0)


def reference(x, w, stride, padding, dilation, groups):
    """The definition of a 2-dimensional convolution."""
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    n, _, h, width = x.shape
    out_channels, per_group, kh, kw = w.shape
    oh = (h - dilation * (kh - 1) - 1) // stride + 1
    ow = (width - dilation * (kw - 1) - 1) // stride + 1
    out = np.zeros((n, out_channels, oh, ow), dtype=np.result_type(x, w))
    for o, y, z in np.ndindex(out_channels, oh, ow):
        group = o // (out_channels // groups)
        rows = slice(y * stride, y * stride + dilation * (kh - 1) + 1, dilation)
        cols = slice(z * stride, z * stride + dilation * (kw - 1) + 1, dilation)
        window = x[:, group * per_group : (group + 1) * per_group, rows, cols]
        out[:, o, y, z] = (window * w[o]).sum((1, 2, 3))
    return out


CASES = list(itertools.product((1, 2), (0, 1), (1, 2), (1, 2)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128, np.int64])
@pytest.mark.parametrize(("stride", "padding", "dilation", "groups"), CASES)
def test_conv2d(stride, padding, dilation, groups, dtype):
    x = (rng.standard_normal((3, 4, 8, 7)) * 3).astype(dtype)
    w = (rng.standard_normal((6, 4 // groups, 3, 2)) * 3).astype(dtype)
    result = tp.conv2d(tp.from_numpy(x), tp.from_numpy(w), None, stride, padding, dilation, groups)
    expected = reference(x, w, stride, padding, dilation, groups)
    np.testing.assert_allclose(np.array(result.tolist()), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("stride", "padding", "dilation", "groups"), CASES)
@pytest.mark.parametrize("transposed", [False, True])
def test_gradient(stride, padding, dilation, groups, transposed):
    f = F.conv_transpose2d if transposed else F.conv2d
    options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    w = (2, 4 // groups, 2, 2) if transposed else (4, 2 // groups, 2, 2)
    arrays = [rng.standard_normal(s) for s in ((2, 2, 4, 5), w, (4,))]
    check_gradients(lambda x, k, b: f(x, k, b, **options) ** 2, *arrays, tolerance=1e-4)


def test_transposed_is_the_adjoint():
    x, w = rng.standard_normal((2, 3, 6, 6)), rng.standard_normal((4, 3, 3, 3))
    y = rng.standard_normal((2, 4, 6, 6))
    forward = F.conv2d(tp.from_numpy(x), tp.from_numpy(w), padding=1)
    back = F.conv_transpose2d(tp.from_numpy(y), tp.from_numpy(w), padding=1)
    left = (forward * tp.from_numpy(y)).sum().item()
    assert left == pytest.approx((back * tp.from_numpy(x)).sum().item())


def test_unbatched_and_same():
    x, w = tp.ones(1, 5, 5), tp.ones(1, 1, 2, 2)
    assert F.conv2d(x, w, padding="same").shape == (1, 5, 5)
    assert F.conv2d(x, w, padding="valid").shape == (1, 4, 4)
    assert F.conv1d(tp.ones(2, 3, 9), tp.ones(4, 3, 3)).shape == (2, 4, 7)
    assert F.conv3d(tp.ones(2, 3, 5, 5, 5), tp.ones(4, 3, 3, 3, 3)).shape == (2, 4, 3, 3, 3)


def test_no_images():
    assert F.conv2d(tp.ones(0, 3, 5, 5), tp.ones(4, 3, 3, 3)).shape == (0, 4, 3, 3)


@pytest.mark.parametrize(
    "call",
    [
        lambda: F.conv2d(tp.ones(1, 3, 4, 4), tp.ones(2, 4, 3, 3)),
        lambda: F.conv2d(tp.ones(1, 3, 2, 2), tp.ones(2, 3, 3, 3)),
        lambda: F.conv2d(tp.ones(3, 4), tp.ones(2, 3, 3, 3)),
        lambda: F.conv2d(tp.ones(1, 3, 4, 4), tp.ones(2, 3, 3, 3), stride=0),
        lambda: F.conv2d(tp.ones(1, 3, 4, 4), tp.ones(2, 3, 3, 3), padding="other"),
        lambda: F.conv2d(tp.ones(1, 3, 4, 4), tp.ones(2, 3, 3, 3), tp.ones(3)),
        lambda: F.max_pool2d(tp.ones(1, 1, 3, 3), 2, padding=2),
        lambda: F.avg_pool2d(tp.ones(1, 1, 3, 3), 4),
    ],
)
def test_bad_input(call):
    with pytest.raises(RuntimeError):
        call()


@pytest.mark.parametrize(("kernel", "stride", "padding"), [(2, None, 0), (3, 2, 1), (3, 1, 0), ((2, 3), (1, 2), 0)])
def test_max_pool(kernel, stride, padding):
    x = rng.standard_normal((2, 3, 7, 8))
    t = tp.from_numpy(x)
    values, indices = F.max_pool2d(t, kernel, stride, padding, return_indices=True)
    planes = t.flatten(2) if hasattr(t, "flatten") else t.reshape(2, 3, -1)
    picked = np.take_along_axis(np.array(planes.tolist()), np.array(indices.tolist()).reshape(2, 3, -1), 2)
    np.testing.assert_array_equal(picked, np.array(values.tolist()).reshape(2, 3, -1))
    kh, kw = (kernel, kernel) if isinstance(kernel, int) else kernel
    sh, sw = (kh, kw) if stride is None else (stride, stride) if isinstance(stride, int) else stride
    padded = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)), constant_values=-np.inf)
    for y, z in np.ndindex(*values.shape[2:]):
        window = padded[:, :, y * sh : y * sh + kh, z * sw : z * sw + kw]
        np.testing.assert_array_equal(np.array(values[:, :, y, z].tolist()), window.max((2, 3)))


def test_pool_gradients():
    x = rng.standard_normal((1, 2, 6, 6))
    check_gradients(lambda t: F.max_pool2d(t, 3, 2, 1) ** 2, x, tolerance=1e-4)
    check_gradients(lambda t: F.avg_pool2d(t, 3, 2, 1) ** 2, x, tolerance=1e-4)
    check_gradients(lambda t: F.adaptive_avg_pool2d(t, (4, 5)) ** 2, x, tolerance=1e-4)


@pytest.mark.parametrize("width", [8, 11, 16, 24])
@pytest.mark.parametrize("groups", [1, 2])
def test_small_float32_images(width, groups):
    """The kernels that keep sums in registers against those of float64, which unfold."""
    shapes = ((5, 4, 6, width), (6, 4 // groups, 3, 3), (6,))
    arrays = [rng.standard_normal(s) for s in shapes]
    results = []
    for dtype in (np.float32, np.float64):
        tensors = [tp.from_numpy(a.astype(dtype)).requires_grad_() for a in arrays]
        out = tp.conv2d(*tensors, padding=1, groups=groups)
        (out * out).sum().backward()
        results.append([np.array(t.tolist()) for t in (out, *(t.grad for t in tensors))])
    for single, double in zip(*results, strict=True):
        np.testing.assert_allclose(single, double, rtol=1e-3, atol=1e-3)


def test_long_products_are_cut() -> None:
    """By columns, so that a signal is heard; all three products, against those of a part of the channels each."""
    x, w = tp.rand(1, 64, 68, 68), tp.rand(4096, 64, 5, 5)
    grad = tp.rand(1, 4096, 64, 64)
    parts = [slice(i, i + 2048) for i in (0, 2048)]

    def run(weight: tp.Tensor, g: tp.Tensor) -> list[tp.Tensor]:
        a, b = x.clone().requires_grad_(), weight.clone().requires_grad_()
        y = tp.nn.functional.conv2d(a, b)
        return [y.detach(), *tp.autograd.grad(y, (a, b), g)]

    y, dx, dw = run(w, grad)
    cut = [run(w[p], grad[:, p]) for p in parts]
    for whole, expected in (
        (y, tp.cat([c[0] for c in cut], 1)),
        (dx, sum(c[1] for c in cut)),
        (dw, tp.cat([c[2] for c in cut])),
    ):
        assert (whole - expected).abs().max().item() < 1e-4 * expected.abs().max().item()
