"""Norms of windows: PyTorch's values and gradients, also of infinite powers."""

import math

import numpy as np
import pytest

import tensorpy as tp

SHAPES = {1: (2, 3, 9), 2: (2, 6, 7), 3: (1, 2, 4, 5, 6)}


@pytest.mark.parametrize("power", [1, 2, 3.0, 2.5, math.inf, -math.inf])
@pytest.mark.parametrize("options", [{}, {"stride": 1}, {"stride": 2, "ceil_mode": True}])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_norms_of_windows_are_torchs(dims: int, options: dict, power: float) -> None:
    torch = pytest.importorskip("torch")
    values = np.random.default_rng(dims).normal(size=SHAPES[dims])
    values = np.abs(values) if power == 2.5 else values

    def outcome(lib):
        x = lib.from_numpy(values).requires_grad_()
        result = getattr(lib.nn.functional, f"lp_pool{dims}d")(x, power, 2, **options)
        result.sum().backward()
        return result.detach().numpy(), x.grad.numpy()

    for ours, theirs in zip(outcome(tp), outcome(torch), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_a_power_of_zero_is_refused() -> None:
    with pytest.raises(ZeroDivisionError):
        tp.nn.functional.lp_pool1d(tp.ones(3, 4), 0, 2)
