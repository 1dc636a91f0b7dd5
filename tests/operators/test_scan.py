"""Scans against NumPy, and their gradients."""

from __future__ import annotations

import numpy as np
import pytest
from programs import LESSER, on_lesser_cpu
from test_reduce import check_gradient, layouts, sample

import tensorpy as tp

SHAPES = [(5,), (7, 5), (3, 1, 4), (2, 3, 4, 5), (33, 70), (130, 3), (2, 5000), (3, 700)]


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "float32", "float64", "complex64", "complex128"])
def test_running(name, dtype):
    rtol = 1e-4 if dtype in ("float32", "complex64") else 1e-10
    for shape in SHAPES:
        for x, t in layouts(sample(shape, dtype) if dtype != "bool" else sample(shape, "float32") > -1):
            for axis in range(-x.ndim, x.ndim):
                kwargs = {"dtype": np.int64} if x.dtype.kind in "biu" else {}
                mine, theirs = getattr(tp, name)(t, axis), getattr(np, name)(x, axis, **kwargs)
                np.testing.assert_allclose(mine.numpy(), theirs, rtol=rtol, atol=rtol)
                assert mine.numpy().dtype == theirs.dtype


@pytest.mark.parametrize("capability", LESSER)
def test_on_lesser_cpus(capability):
    on_lesser_cpu(capability, __file__, "running or exact")


def test_inplace_out_and_dtype():
    t = tp.tensor([[1.0, 2.0], [3.0, 4.0]])
    out = tp.empty(0)
    assert tp.cumsum(t, 1, out=out) is out and out.tolist() == [[1, 3], [3, 7]]
    assert t.cumsum_(0) is t and t.tolist() == [[1, 2], [4, 6]]
    assert tp.cumsum(tp.tensor([0.3, 2.0]), 0, dtype=tp.int64).tolist() == [0, 2]
    assert tp.cumsum(tp.tensor(3.0), 0).item() == 3 and tp.cumsum(tp.empty(0, 3), 1).shape == (0, 3)
    with pytest.raises(IndexError):
        tp.cumsum(t, 2)


def test_cumsum_is_exact_to_rounding():
    x = np.random.default_rng(0).random(1 << 18).astype(np.float32)
    exact = np.cumsum(x.astype(np.float64))
    assert np.abs(tp.cumsum(tp.tensor(x), 0).numpy() / exact - 1).max() < 1e-7


@pytest.mark.parametrize("name", ["cummax", "cummin"])
def test_extremes(name):
    ufunc = np.maximum if name == "cummax" else np.minimum
    for dtype in ("uint8", "int16", "int64", "float32", "float64"):
        for shape in SHAPES:
            for x, t in layouts(sample(shape, dtype)):
                for axis in range(x.ndim):
                    values, indices = getattr(tp, name)(t, axis)
                    np.testing.assert_array_equal(values.numpy(), ufunc.accumulate(x, axis))
                    np.testing.assert_array_equal(np.take_along_axis(x, indices.numpy(), axis), values.numpy())
    values, indices = getattr(tp, name)(tp.tensor([1.0, float("nan"), 5.0, 5.0]), 0)
    assert np.isnan(values.numpy()[1:]).all() and indices.tolist() == [0, 1, 1, 1]
    assert getattr(tp, name)(tp.tensor([2, 2, 2]), 0)[1].tolist() == [0, 1, 2]


def test_logcumsumexp_and_diff():
    x = sample((4, 30), "float64") * 300
    np.testing.assert_allclose(tp.logcumsumexp(tp.tensor(x), 1).numpy(), np.logaddexp.accumulate(x, 1), rtol=1e-12)
    np.testing.assert_array_equal(tp.diff(tp.tensor(x), 2, 0).numpy(), np.diff(x, 2, 0))
    assert tp.diff(tp.tensor([1, 4]), prepend=tp.tensor([0]), append=tp.tensor([9])).tolist() == [1, 3, 5]


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"])
@pytest.mark.parametrize("axis", [0, 1])
def test_gradients(name, axis):
    def f(t):
        r = getattr(tp, name)(t, axis)
        return r[0] if isinstance(r, tuple) else r

    check_gradient(f, np.random.default_rng(5).standard_normal((3, 4)))


def test_gradient_of_products_with_zeros():
    check_gradient(lambda t: t.cumprod(1), np.array([[0.0, 2, 3, 4], [1, 0, 2, 0], [1, 2, 0, 3]]))


def test_second_gradients_of_logcumsumexp_are_of_its_result_too():
    torch = pytest.importorskip("torch")

    def second(of, offset):
        x = (of.tensor([0.0, 0.1, 0.2, 0.05], dtype=of.float64) + offset).requires_grad_()
        g = of.tensor([0.3, -0.4, 0.8, 1.2], dtype=of.float64, requires_grad=True)
        (first,) = of.autograd.grad(x.logcumsumexp(0), x, g, create_graph=True)
        v = of.tensor([1.0, 2.0, -1.0, 0.5], dtype=of.float64)
        return [t.tolist() for t in (first, *of.autograd.grad(first, (x, g), v))]

    for offset in (0.0, 10000.0):
        np.testing.assert_allclose(second(tp, offset), second(torch, offset), rtol=1e-10)
    x = tp.rand(3, 4, dtype=tp.float64, requires_grad=True)
    assert tp.autograd.gradgradcheck(lambda t: t.logcumsumexp(1), x)
