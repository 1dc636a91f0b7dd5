"""Normalisation, embedding and attention against NumPy, their gradients against finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from test_products import check_gradients

import tensorpy as tp
import tensorpy.nn.functional as F

rng = np.random.default_rng(0)


def standardised(x, axes):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)


def test_layer_norm():
    x, w, b = rng.standard_normal((3, 4, 5)), rng.standard_normal((4, 5)), rng.standard_normal((4, 5))
    result = F.layer_norm(*(tp.from_numpy(x), (4, 5), tp.from_numpy(w), tp.from_numpy(b)))
    np.testing.assert_allclose(np.array(result.tolist()), standardised(x, (1, 2)) * w + b)
    check_gradients(lambda t, v, c: F.layer_norm(t, (4, 5), v, c) ** 2, x, w, b, tolerance=1e-4)


def test_group_norm():
    x, w, b = rng.standard_normal((2, 6, 3)), rng.standard_normal(6), rng.standard_normal(6)
    result = F.group_norm(tp.from_numpy(x), 2, tp.from_numpy(w), tp.from_numpy(b))
    expected = standardised(x.reshape(2, 2, 9), 2).reshape(2, 6, 3) * w[:, None] + b[:, None]
    np.testing.assert_allclose(np.array(result.tolist()), expected)
    check_gradients(lambda t, v, c: F.group_norm(t, 2, v, c) ** 2, x, w, b, tolerance=1e-4)


def test_batch_norm():
    x = rng.standard_normal((4, 3, 5))
    mean, var = tp.zeros(3, dtype=tp.float64), tp.ones(3, dtype=tp.float64)
    result = F.batch_norm(tp.from_numpy(x), mean, var, training=True)
    np.testing.assert_allclose(np.array(result.tolist()), standardised(x, (0, 2)))
    np.testing.assert_allclose(mean.tolist(), 0.1 * x.mean((0, 2)))
    np.testing.assert_allclose(var.tolist(), 0.9 + 0.1 * x.var((0, 2), ddof=1))
    check_gradients(lambda t: F.batch_norm(t, None, None, training=True) ** 3, x, tolerance=1e-4)


def test_rms_norm():
    x, w = rng.standard_normal((3, 5)), rng.standard_normal(5)
    expected = x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-3) * w
    result = F.rms_norm(tp.from_numpy(x), (5,), tp.from_numpy(w), 1e-3)
    np.testing.assert_allclose(np.array(result.tolist()), expected)


def test_embedding():
    table, index = rng.standard_normal((7, 3)), np.array([[1, 2], [2, 6]])
    t = tp.from_numpy(table).requires_grad_()
    result = F.embedding(tp.from_numpy(index), t, padding_idx=6)
    np.testing.assert_array_equal(np.array(result.tolist()), table[index])
    result.sum().backward()
    assert [row[0] for row in t.grad.tolist()] == [0, 1, 2, 0, 0, 0, 0]
    with pytest.raises(IndexError):
        F.embedding(tp.tensor([7]), t)


@pytest.mark.parametrize("causal", [False, True])
def test_attention(causal):
    q, k, v = (rng.standard_normal(s) for s in ((2, 4, 3), (2, 5, 3), (2, 5, 6)))
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(3)
    if causal:
        scores = np.where(np.tril(np.ones((4, 5), dtype=bool)), scores, -np.inf)
    e = np.exp(scores)
    expected = e / e.sum(-1, keepdims=True) @ v
    result = F.scaled_dot_product_attention(*(tp.from_numpy(a) for a in (q, k, v)), is_causal=causal)
    np.testing.assert_allclose(np.array(result.tolist()), expected)
