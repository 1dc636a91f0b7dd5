"""Sobol' points are PyTorch's, where they are not scrambled."""

from __future__ import annotations

from typing import Any

import pytest
from side_by_side import torch

import tensorpy as tp
from tensorpy.quasirandom import SobolEngine

pytest.importorskip("scipy")


def drawn(t: Any) -> list[Any]:
    engine = t.quasirandom.SobolEngine(5)
    made = [
        engine.draw(3),
        engine.fast_forward(4).draw(2),
        engine.reset().draw_base2(3),
        engine.draw(1, dtype=t.float64),
    ]
    return [m.tolist() for m in made] + [repr(engine), str(made[0].dtype).split(".")[1], engine.num_generated]


@pytest.mark.skipif(torch is None, reason="PyTorch is not installed")
def test_as_in_pytorch() -> None:
    ours, theirs = (drawn(t) for t in (tp, torch))
    assert ours == theirs


def test_scrambled_points() -> None:
    a, b = (SobolEngine(3, scramble=True, seed=7).draw(64) for _ in range(2))
    assert tp.equal(a, b) and not tp.equal(a, SobolEngine(3, scramble=True, seed=8).draw(64))
    assert 0 <= a.min().item() and a.max().item() < 1
    assert abs(a.mean().item() - 0.5) < 0.02  # evenly: 64 random ones are off by 0.02 in the mean of squares alone
    tp.manual_seed(3)
    c = SobolEngine(2, scramble=True).draw(4)
    tp.manual_seed(3)
    assert tp.equal(c, SobolEngine(2, scramble=True).draw(4))


def test_what_is_refused() -> None:
    for dimension in (0, 21202):
        with pytest.raises(ValueError, match="dimensionality"):
            SobolEngine(dimension)
    engine = SobolEngine(1)
    engine.draw(3)
    with pytest.raises(ValueError, match="power of two"):
        engine.draw_base2(2)
    out = tp.empty(0)
    assert engine.draw(2, out=out) is out and out.shape == (2, 1)
