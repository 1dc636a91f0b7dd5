"""Convolution and pooling against loops, their gradients against finite differences."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from programs import LESSER, on_lesser_cpu
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


# ---- float32 in registers, against float64, which unfolds and multiplies ----

# (input, weight, options): what decides between the ways of csrc/cpu/convolution_*.h, and where their loops end.
IN_REGISTERS = {
    "rows of one, two and some vectors": [((2, 4, 6, w), (6, 4, 3, 3), {"padding": 1}) for w in (8, 11, 16, 24, 35)],
    "rows taken as one": [((3, 5, h, w), (9, 5, 3, 3), {"padding": 1}) for h, w in ((7, 7), (14, 14), (5, 4), (9, 30))],
    "strides": [((2, 3, 33, 34), (10, 3, 7, 7), {"stride": s, "padding": 3}) for s in (2, 3, (1, 2), (4, 1))],
    "dilation": [((2, 3, 20, 21), (4, 3, 3, 2), {"dilation": d, "stride": s}) for d in (2, 3, (1, 4)) for s in (1, 2)],
    "a kernel that jumps over pixels": [((2, 8, 32, 32), (16, 8, 1, 1), {"stride": s}) for s in (2, 3)],
    "one channel, few and many": [
        ((2, 6, 18, 18), (o, 6 // g, 3, 3), {"groups": g, "padding": 2})
        for o, g in ((6, 6), (12, 6), (2, 1), (4, 2), (16, 1), (33, 1), (49, 1), (70, 1))
    ],
    "pieces of an image": [((1, 40, 70, 64), (20, 40, 5, 5), {"padding": 2}), ((2, 24, 90, 90), (3, 24, 3, 3), {})],
    "one dimension and three": [
        ((2, 3, 100), (4, 3, 5), {"stride": 2}),
        ((2, 3, 9, 10, 11), (5, 3, 3, 2, 3), {"padding": 1}),
        ((1, 8, 20, 30, 30), (4, 8, 3, 3, 3), {"stride": (2, 1, 2)}),
    ],
    "Winograd, even and odd sizes": [
        ((n, 24, h, w), (24, 24, 3, 3), {"padding": p})
        for n, h, w, p in ((1, 8, 8, 1), (3, 9, 11, 1), (2, 17, 14, 0), (1, 12, 10, 2), (2, 8, 40, (3, 0)))
    ],
    "Winograd, channels": [
        ((2, i * g, 14, 15), (o * g, i, 3, 3), {"padding": 1, "groups": g})
        for i, o, g in ((24, 25, 1), (31, 40, 2), (65, 24, 1), (130, 67, 1))
    ],
    "Winograd, lots of small images and blocks of a large one": [
        ((37, 32, 8, 9), (32, 32, 3, 3), {"padding": 1}),
        ((1, 32, 61, 70), (48, 32, 3, 3), {"padding": 1}),
    ],
}
SETTINGS = [
    pytest.param(*case, id=f"{name} {i}") for name, cases in IN_REGISTERS.items() for i, case in enumerate(cases)
]


def convolve(dtype, x, w, b, grad, options):
    """The convolution and its three gradients."""
    tensors = [tp.from_numpy(a.astype(dtype)).requires_grad_() for a in (x, w, b)]
    call = {3: tp.conv1d, 4: tp.conv2d, 5: tp.conv3d}[x.ndim]
    y = call(*tensors, **options)
    return [y.detach().numpy(), *(g.numpy() for g in tp.autograd.grad(y, tensors, tp.from_numpy(grad.astype(dtype))))]


def numbers_for(x_shape, w_shape, options):
    x, w, b = (rng.standard_normal(s).astype(np.float32) for s in (x_shape, w_shape, w_shape[:1]))
    call = {3: tp.conv1d, 4: tp.conv2d, 5: tp.conv3d}[x.ndim]
    shape = call(tp.from_numpy(x), tp.from_numpy(w), **options).shape
    return x, w, b, rng.standard_normal(tuple(shape)).astype(np.float32)


@pytest.mark.parametrize(("x_shape", "w_shape", "options"), SETTINGS)
def test_in_registers(x_shape, w_shape, options):
    """Rounding is a small part of the largest sum of magnitudes: 2**-19, 32 halves of the last place of 1."""
    operands = numbers_for(x_shape, w_shape, options)
    found, wanted = (convolve(dtype, *operands, options) for dtype in (np.float32, np.float64))
    sizes = convolve(np.float64, *map(np.abs, operands), options)
    for single, double, size in zip(found, wanted, sizes, strict=True):
        assert np.abs(single - double).max() <= 2**-19 * size.max()


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, 1e38])
@pytest.mark.parametrize("where", ["x", "w", "grad"])
def test_what_is_no_number_stays_where_it_is(where, odd):
    """Where pixels are subtracted from each other first, one that is none would reach its neighbours' sums."""
    options = {"padding": 1}
    x, w, b, grad = numbers_for((2, 24, 12, 13), (24, 24, 3, 3), options)
    {"x": x, "w": w, "grad": grad}[where][1, 3, 2, 2] = odd
    found, wanted = (convolve(dtype, x, w, b, grad, options) for dtype in (np.float32, np.float64))
    for single, double in zip(found, wanted, strict=True):
        expected = double.astype(np.float32)
        np.testing.assert_array_equal(np.isnan(single), np.isnan(expected))
        np.testing.assert_array_equal(np.isinf(single), np.isinf(expected))
        usual = np.abs(double) < 1e6
        np.testing.assert_allclose(single[usual], double[usual], atol=1e-3)


@pytest.mark.parametrize(("x_shape", "w_shape", "options"), [IN_REGISTERS[name][-1] for name in IN_REGISTERS])
def test_threads_change_nothing(x_shape, w_shape, options):
    operands, before = numbers_for(x_shape, w_shape, options), tp.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 5):
            tp.set_num_threads(threads)
            results.append(convolve(np.float32, *operands, options))
    finally:
        tp.set_num_threads(before)
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("capability", LESSER)
def test_in_registers_of_lesser_cpus(capability):
    on_lesser_cpu(capability, __file__, "(in_registers or no_number) and not lesser")


@pytest.mark.parametrize(("size", "stride", "groups"), [(7, 1, 1), (28, 2, 1), (7, 1, 2)])
def test_many_weights(size: int, stride: int, groups: int) -> None:
    """Whose images share products; against those of a part of the output channels each, which do not."""
    x, w = tp.rand(5, 128 * groups, size, size), tp.rand(320 * groups, 128, 3, 3) - 0.5
    part = slice(0, 320 * groups, 5)
    options = {"padding": 1, "stride": stride, "groups": groups}
    results = []
    for weight in (w, w[part].contiguous()):
        a, b = x.clone().requires_grad_(), weight.requires_grad_()
        y = tp.nn.functional.conv2d(a, b, **options)
        y = y if y.shape[1] < w.shape[0] else y[:, part]
        results.append((y.detach(), *tp.autograd.grad(y, (a, b), tp.ones_like(y) * 0.5)))
    (y, dx, dw), (y_part, dx_part, dw_part) = results
    for whole, expected in ((y, y_part), (dx, dx_part), (dw[part], dw_part)):
        tp.testing.assert_close(whole, expected, rtol=1e-4, atol=1e-4)


def test_long_products_are_cut() -> None:
    """By columns, so that a signal is heard; all three products, against those of a part of the channels each."""
    x, w = tp.rand(1, 64, 60, 60), tp.rand(4096, 64, 5, 5)  # a little more than are not cut
    grad = tp.rand(1, 4096, 56, 56)
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


# (batch, in channels, out channels, size, kernel, stride): direct, by Winograd, few channels on either side.
LONG_SUMS = (
    (1, 512, 512, 4, 3, 1),
    (1, 512, 512, 7, 3, 1),
    (2, 256, 256, 8, 3, 1),
    (1, 128, 128, 28, 3, 1),
    (1, 512, 3, 16, 3, 1),
    (4, 3, 512, 16, 3, 1),
    (1, 512, 64, 8, 5, 1),
    (1, 256, 64, 9, 3, 2),
    (1, 1024, 64, 6, 1, 1),
)


def by_a_plain_sum(x: np.ndarray, w: np.ndarray, stride: int) -> np.ndarray:
    """The definition, in the arrays' dtype: windows times weights."""
    k = w.shape[-1]
    around = np.pad(x, ((0, 0), (0, 0), (k // 2, k // 2), (k // 2, k // 2)))
    windows = np.lib.stride_tricks.sliding_window_view(around, (k, k), axis=(2, 3))[:, :, ::stride, ::stride]
    rows = windows.transpose(0, 2, 3, 1, 4, 5).reshape(*windows.shape[:1], *windows.shape[2:4], -1)
    return (rows @ w.reshape(len(w), -1).T).transpose(0, 3, 1, 2)


def off(got: np.ndarray, exact: np.ndarray) -> float:
    return float(np.abs(got.astype(np.float64) - exact).max() / np.abs(exact).max())


@pytest.mark.parametrize("case", LONG_SUMS, ids=str)
def test_long_sums_are_as_exact_as_a_matrix_product(case: tuple[int, ...]) -> None:
    """Whichever kernel computes: results and both gradients are at most three times as far off."""
    batch, channels, out_channels, size, kernel, stride = case
    rng = np.random.RandomState(1)
    x = rng.standard_normal((batch, channels, size, size)).astype(np.float32)
    w = rng.standard_normal((out_channels, channels, kernel, kernel)).astype(np.float32)
    exact = by_a_plain_sum(x.astype(np.float64), w.astype(np.float64), stride)
    plain = off(by_a_plain_sum(x, w, stride), exact)
    a, b = tp.from_numpy(x).requires_grad_(), tp.from_numpy(w).requires_grad_()
    result = tp.nn.functional.conv2d(a, b, padding=kernel // 2, stride=stride)
    assert off(result.detach().numpy(), exact) <= 3 * max(plain, 1e-7)
    grad = rng.standard_normal(exact.shape).astype(np.float32)
    result.backward(tp.from_numpy(grad))
    wide = [tp.from_numpy(v.astype(np.float64)).requires_grad_() for v in (x, w)]
    tp.nn.functional.conv2d(*wide, padding=kernel // 2, stride=stride).backward(tp.from_numpy(grad).double())
    terms = {"input": out_channels * kernel * kernel, "weight": batch * exact.shape[2] * exact.shape[3]}
    for (name, n), mine, right in zip(terms.items(), (a, b), wide, strict=True):
        assert mine.grad is not None and right.grad is not None
        p, q = rng.standard_normal((64, n)).astype(np.float32), rng.standard_normal((n, 64)).astype(np.float32)
        product = off(p @ q, p.astype(np.float64) @ q.astype(np.float64))
        assert off(mine.grad.numpy(), right.grad.numpy()) <= 3 * max(product, 2e-7), f"the gradient of the {name}"
