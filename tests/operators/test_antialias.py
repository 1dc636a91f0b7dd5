"""interpolate: antialias=True against torch's numbers, and many planes against few."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorpy as tp

F = tp.nn.functional
CASES: list[tuple[tuple[int, int], dict[str, Any]]] = [
    ((17, 23), {"size": (5, 7)}),
    ((17, 23), {"size": (30, 9)}),
    ((8, 8), {"size": 1}),
    ((8, 8), {"size": (8, 8)}),
    ((64, 48), {"scale_factor": 0.3}),
    ((10, 12), {"scale_factor": (1.7, 0.45)}),
    ((10, 12), {"scale_factor": (1.7, 0.45), "recompute_scale_factor": True}),
    ((5, 5), {"size": (1, 3), "align_corners": True}),
]


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize(("shape", "options"), CASES)
def test_values_and_gradients_are_torchs(shape: tuple[int, int], options: dict[str, Any], mode: str) -> None:
    torch = pytest.importorskip("torch")
    data = np.random.default_rng(0).standard_normal((2, 3, *shape))
    told = []
    for t in (tp, torch):
        for dtype in (t.float32, t.float64):
            x = t.from_numpy(data).to(dtype).requires_grad_()
            y = t.nn.functional.interpolate(x, mode=mode, antialias=True, **options)
            y.square().sum().backward()
            told.append((y.detach().numpy(), x.grad.numpy()))
    for mine, theirs in zip(told[:2], told[2:], strict=True):
        for a, b in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_bytes_are_rounded() -> None:
    x = tp.tensor([[0, 255], [255, 255]], dtype=tp.uint8).expand(1, 1, 2, 2)
    y = F.interpolate(x, (1, 1), mode="bilinear", antialias=True)
    assert y.dtype == tp.uint8 and abs(int(y.item()) - 191) <= 1


@pytest.mark.parametrize(("mode", "shape"), [("nearest", (1, 1, 4, 4)), ("trilinear", (1, 1, 4, 4, 4))])
def test_other_modes_are_errors(mode: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="Anti-alias option"):
        F.interpolate(tp.ones(shape), 2, mode=mode, antialias=True)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("dtype", [tp.float32, tp.float16, tp.uint8])
def test_many_planes_are_resized_as_few(mode: str, dtype: tp.dtype) -> None:
    """Many are resized in pieces: the same bits as plane by plane, the last piece too, and as another layout gives."""
    images = (tp.rand(3, 70, 23, 31) * 255).to(dtype)
    whole = F.interpolate(images, size=(61, 47), mode=mode)
    for n, c in ((0, 0), (1, 3), (2, 69)):
        alone = F.interpolate(images[n : n + 1, c : c + 1], size=(61, 47), mode=mode)
        assert whole[n, c].equal(alone[0, 0])
    last = F.interpolate(images.contiguous(memory_format=tp.channels_last), size=(61, 47), mode=mode)
    assert last.is_contiguous(memory_format=tp.channels_last) and last.equal(whole)
