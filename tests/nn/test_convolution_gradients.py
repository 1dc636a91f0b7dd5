"""nn.grad: the gradients of the convolutions as functions, beside what autograd gives."""

from __future__ import annotations

from typing import Any

import pytest

import tensorpy as tp
from tensorpy.nn import functional as F
from tensorpy.nn import grad

SETTINGS: list[dict[str, Any]] = [
    {},
    {"stride": 2, "padding": 1},
    {"padding": 2, "dilation": 2},
    {"stride": 3, "padding": 1, "groups": 2},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_they_are_autograds(n: int, settings: dict[str, Any]) -> None:
    groups = settings.get("groups", 1)
    x = tp.randn(2, 4, *(9, 8, 7)[:n], dtype=tp.float64, requires_grad=True)
    weight = tp.randn(6, 4 // groups, *(3, 2, 3)[:n], dtype=tp.float64, requires_grad=True)
    y = getattr(F, f"conv{n}d")(x, weight, None, **settings)
    seed = tp.randn(*y.shape, dtype=tp.float64)
    by_input, by_weight = tp.autograd.grad(y, (x, weight), seed)
    assert tp.allclose(getattr(grad, f"conv{n}d_input")(x.shape, weight, seed, **settings), by_input)
    assert tp.allclose(getattr(grad, f"conv{n}d_weight")(x, weight.shape, seed, **settings), by_weight)


def test_sizes_by_dimension() -> None:
    x, weight = tp.randn(1, 2, 8, 9), tp.randn(3, 2, 3, 3)
    y = F.conv2d(x, weight, stride=(2, 1), padding=(1, 0))
    got = grad.conv2d_input(x.shape, weight, tp.ones_like(y), stride=(2, 1), padding=(1, 0))
    x.requires_grad_()
    F.conv2d(x, weight, stride=(2, 1), padding=(1, 0)).sum().backward()
    assert tp.allclose(got, x.grad, atol=1e-5)


def test_sizes_that_do_not_fit() -> None:
    x, weight = tp.randn(1, 2, 8, 8), tp.randn(3, 2, 3, 3)
    with pytest.raises(RuntimeError):
        grad.conv2d_weight(x, weight.shape, tp.ones(1, 3, 7, 7))
    with pytest.raises(RuntimeError):
        grad.conv2d_input((1, 5, 8, 8), weight, tp.ones(1, 3, 6, 6))
