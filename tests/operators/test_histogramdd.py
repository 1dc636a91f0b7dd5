"""Histograms of points in several dimensions: PyTorch's values and the beginnings of its messages."""

import math
from importlib.util import find_spec

import numpy as np
import pytest

import tensorpy as tp


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "bins, options",
    [
        ([2, 3], {}),
        (4, {"density": True}),
        ([3, 2], {"range": [0.0, 1.0, -1.0, 0.5]}),
        ([3, 1], {"weight": True, "density": True}),
        ("edges", {"weight": True}),
        ("edges", {}),
        ([2], {}),
        ([2, 0], {}),
        ([2, 2], {"range": [0.0, 1.0]}),
        ([2, 2], {"range": [0.0, 1.0, 3.0, 1.0]}),
        ([2, 2], {"range": [0.0, math.nan, 0.0, 1.0]}),
    ],
)
def test_histograms_of_points_are_torchs(bins, options, dtype):
    import torch

    values = np.random.default_rng(1).normal(size=(4, 5, 2)).astype(dtype)

    def outcome(lib):
        given = dict(options)
        if given.get("weight"):
            given["weight"] = lib.arange(20, dtype=getattr(lib, dtype)).reshape(4, 5)
        edges = [[-1.0, 0.0, 0.5], [-2.0, 2.0]]
        chosen = [lib.tensor(e, dtype=getattr(lib, dtype)) for e in edges] if bins == "edges" else bins
        try:
            hist, edges = lib.histogramdd(lib.from_numpy(values), chosen, **given)
        except RuntimeError as error:
            return str(error)[:40]
        return [hist.numpy(), *(e.numpy() for e in edges)]

    ours, theirs = outcome(tp), outcome(torch)
    if isinstance(theirs, str):
        assert ours == theirs
        return
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("overload", ["default", "int_bins", "TensorList_bins"])
def test_operators(overload: str) -> None:
    """By their full names: a tensor and a list of tensors."""
    torch = pytest.importorskip("torch")
    points = np.random.RandomState(0).uniform(-1, 1, (20, 2))
    found = []
    for t in (tp, torch):
        edges = [t.linspace(-1, 1, 4, dtype=t.float64), t.linspace(-1, 1, 3, dtype=t.float64)]
        bins = {"default": [3, 2], "int_bins": 4, "TensorList_bins": edges}[overload]
        hist, ends = getattr(t.ops.aten.histogramdd, overload)(t.tensor(points), bins, density=True)
        assert isinstance(ends, (list, tuple))
        found.append([hist.numpy(), *(end.numpy() for end in ends)])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs)


def test_points_without_coordinates_are_in_no_bin() -> None:
    assert tp.histogramdd(tp.ones(3, 0), bins=2).hist.equal(tp.tensor(0.0))
