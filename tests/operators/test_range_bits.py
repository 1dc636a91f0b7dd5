"""linspace: PyTorch's bits. Ends and step are numbers of the dtype, from both ends, with one rounding an element."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

import tensorpy as tp


def by_the_definition(start: float, end: float, steps: int, dtype: type[np.floating]) -> list[float]:
    """In exact arithmetic between roundings."""
    a, b = dtype(start), dtype(end)
    step = dtype(b - a) / dtype(max(steps - 1, 1))
    near = [Fraction(float(a)) + i * Fraction(float(step)) for i in range(steps)]
    far = [Fraction(float(b)) - (steps - 1 - i) * Fraction(float(step)) for i in range(steps)]
    half = steps // 2 if steps > 1 else 1
    return [float(dtype(float(x))) for x in near[:half] + far[half:]]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_linspace_is_the_definition(dtype: str) -> None:
    rng = random.Random(4)
    for _ in range(200):
        start, end, steps = rng.uniform(-10, 10), rng.uniform(-10, 10), rng.randint(0, 90)
        got = tp.linspace(start, end, steps, dtype=getattr(tp, dtype)).tolist()
        assert got == by_the_definition(start, end, steps, getattr(np, dtype)), (start, end, steps)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_linspace_has_torchs_bits(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    rng = random.Random(5)
    for _ in range(200):
        start, end, steps = rng.uniform(-10, 10), rng.uniform(-1e4, 1e4), rng.randint(0, 300)
        got = tp.linspace(start, end, steps, dtype=getattr(tp, dtype)).tolist()
        assert got == torch.linspace(start, end, steps, dtype=getattr(torch, dtype)).tolist(), (start, end, steps)


@pytest.mark.parametrize("name", ["linspace", "logspace"])
def test_a_number_of_steps_is_no_bool(name: str) -> None:
    with pytest.raises(TypeError):
        getattr(tp, name)(0, 1, True)
    assert getattr(tp, name)(False, True, 2).tolist() == getattr(tp, name)(0, 1, 2).tolist()
    assert tp.arange(True).tolist() == [0] and tp.arange(0, 2, True).tolist() == [0, 1]


@pytest.mark.parametrize(
    "call",
    [
        lambda: tp.zeros(2, 2).select(True, 0),
        lambda: tp.zeros(2).unsqueeze(True),
        lambda: tp.eye(True),
        lambda: tp.zeros(3, 3).narrow(0, True, 1),
        lambda: tp.ones(2, 2).tril(True),
        lambda: tp.zeros(3).topk(True),
        lambda: tp.hann_window(True),
    ],
)
def test_an_int_is_no_bool(call: object) -> None:
    assert callable(call)
    with pytest.raises(TypeError):
        call()
