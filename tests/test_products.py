"""Matrix products against NumPy, their gradients against finite differences."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import tensorpy as tp

rng = np.random.default_rng(0)


def numeric_gradient(f, arrays, i, step=1e-6):
    """Central differences of the sum of f's result in array i."""
    gradient = np.zeros_like(arrays[i])
    for at in np.ndindex(*arrays[i].shape):
        values = []
        for sign in (1, -1):
            moved = [a.copy() for a in arrays]
            moved[i][at] += sign * step
            values.append(float(f(*(tp.from_numpy(a) for a in moved)).sum().item()))
        gradient[at] = (values[0] - values[1]) / (2 * step)
    return gradient


def check_gradients(f, *arrays, tolerance=1e-6):
    tensors = [tp.from_numpy(a.copy()).requires_grad_() for a in arrays]
    f(*tensors).sum().backward()
    for i, t in enumerate(tensors):
        np.testing.assert_allclose(np.array(t.grad.tolist()), numeric_gradient(f, list(arrays), i), atol=tolerance)


SHAPES = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (3, 4)),
    ((5, 2, 3), (3,)),
    ((3,), (5, 3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((2, 3), (5, 3, 4)),
    ((6, 1, 2, 3), (5, 3, 4)),
    ((2, 0), (0, 3)),
    ((0, 2, 3), (0, 3, 4)),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128, np.int64])
@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_matmul(a, b, dtype):
    x, y = ((rng.standard_normal(s) * 4).astype(dtype) for s in (a, b))
    result = tp.matmul(tp.from_numpy(x), tp.from_numpy(y))
    np.testing.assert_allclose(np.array(result.tolist()).reshape(np.matmul(x, y).shape), np.matmul(x, y), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("a", "b"), SHAPES[:10])
def test_matmul_gradient(a, b):
    check_gradients(tp.matmul, rng.standard_normal(a), rng.standard_normal(b))


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_bmm_takes_any_strides(order):
    x, y = rng.standard_normal((3, 3, 3)), rng.standard_normal((3, 3, 3))
    result = tp.bmm(tp.from_numpy(x).permute(*order), tp.from_numpy(y).permute(*order))
    np.testing.assert_allclose(np.array(result.tolist()), np.matmul(x.transpose(order), y.transpose(order)))


@pytest.mark.parametrize(("alpha", "beta"), [(1, 1), (2, 0), (0.5, 3)])
@pytest.mark.parametrize("addend", [(2, 4), (4,), (2, 1), ()])
def test_addmm(alpha, beta, addend):
    c, a, b = rng.standard_normal(addend), rng.standard_normal((2, 3)), rng.standard_normal((3, 4))
    result = tp.addmm(tp.from_numpy(np.asarray(c)), tp.from_numpy(a), tp.from_numpy(b), alpha=alpha, beta=beta)
    np.testing.assert_allclose(np.array(result.tolist()), beta * c + alpha * (a @ b))


def test_addmm_gradient():
    check_gradients(
        lambda c, a, b: tp.addmm(c, a, b, alpha=2, beta=3),
        rng.standard_normal((4,)),
        rng.standard_normal((2, 3)),
        rng.standard_normal((3, 4)),
    )


def test_nan_behind_beta_zero_does_not_count():
    c = tp.full((2, 2), float("nan"))
    assert tp.addmm(c, tp.ones(2, 2), tp.ones(2, 2), beta=0).tolist() == [[2, 2], [2, 2]]


def test_out_may_be_an_operand():
    a = rng.standard_normal((3, 3))
    t = tp.from_numpy(a.copy())
    tp.mm(t, t, out=t)
    np.testing.assert_allclose(np.array(t.tolist()), a @ a)


@pytest.mark.parametrize(
    "call",
    [
        lambda: tp.mm(tp.ones(2, 3), tp.ones(2, 3)),
        lambda: tp.matmul(tp.ones(()), tp.ones(2)),
        lambda: tp.bmm(tp.ones(2, 3, 4), tp.ones(3, 4, 5)),
        lambda: tp.dot(tp.ones(2), tp.ones(3)),
        lambda: tp.mm(tp.ones(2, 2), tp.ones(2, 2, dtype=tp.float64)),
        lambda: tp.addmm(tp.ones(3), tp.ones(2, 2), tp.ones(2, 2)),
    ],
)
def test_operands_that_do_not_fit(call):
    with pytest.raises(RuntimeError):
        call()
