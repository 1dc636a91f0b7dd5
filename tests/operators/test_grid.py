"""grid_sample and affine_grid: values and gradients are PyTorch's; places that are no numbers read nothing."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tensorpy as tp
from tensorpy.nn import functional as F

rng = np.random.default_rng(1)
MODES = [(2, "bilinear"), (2, "nearest"), (2, "bicubic"), (3, "bilinear"), (3, "nearest")]


def pair(torch: Any, array: np.ndarray) -> tuple[Any, Any]:
    return tp.from_numpy(array.copy()).requires_grad_(), torch.tensor(array, requires_grad=True)


@pytest.mark.parametrize(("dims", "mode"), MODES)
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_values_and_gradients(dims: int, mode: str, padding: str) -> None:
    torch = pytest.importorskip("torch")
    for corners, sizes in itertools.product((False, True), ((4, 5, 3), (1, 2, 1), (7, 1, 3))):
        image = rng.standard_normal((2, 3, *sizes[:dims]))
        places = rng.uniform(-2.5, 2.5, (2, 5, 40, *(3,) * (dims - 2), dims))
        (x, y), (g, h) = pair(torch, image), pair(torch, places)
        ours = F.grid_sample(x, g, mode, padding, corners)
        theirs = torch.nn.functional.grid_sample(y, h, mode, padding, corners)
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), 1e-9, 1e-9)
        weights = rng.standard_normal(theirs.shape)
        (ours * tp.from_numpy(weights)).sum().backward()
        (theirs * torch.tensor(weights)).sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), 1e-8, 1e-8)
        np.testing.assert_allclose(g.grad.numpy(), h.grad.numpy(), 1e-8, 1e-8)


@pytest.mark.parametrize(("dims", "mode"), MODES)
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_places_that_are_no_numbers(dims: int, mode: str, padding: str) -> None:
    """Or far away: with zeros outside nothing is seen there, else something of the image; a place of a plane that is
    not finite gives NaN where its neighbours are weighed, as in PyTorch."""
    odd = [float("nan"), float("inf"), float("-inf"), 1e30, -1e10]
    grid = tp.tensor([[v] * dims for v in odd]).reshape(1, 5, *[1] * (dims - 1), dims).requires_grad_()
    image = tp.ones(1, 1, *[3] * dims, requires_grad=True)
    seen = F.grid_sample(image, grid, mode, padding)
    assert seen.shape[2] == 5
    if padding == "zeros":
        spread = 3 if dims == 2 and mode != "nearest" else 0
        assert seen.flatten()[:spread].isnan().all() and not seen.flatten()[spread:].any()
    seen.sum().backward()
    assert image.grad.shape == image.shape


def test_what_lies_outside_is_not_multiplied() -> None:
    """An infinite element does not make NaN of places that see nothing of it."""
    image = tp.tensor([[float("inf"), 1.0], [1.0, 1.0]]).reshape(1, 1, 2, 2)
    seen = F.grid_sample(image, tp.tensor([[[[5.0, 5.0], [1.0, 1.0]]]]), align_corners=True)
    assert seen.flatten().tolist() == [0, 1]


@pytest.mark.parametrize(
    ("sizes", "grid", "options", "says"),
    [
        ((1, 2, 4, 5), (2, 3, 3, 2), {}, "same batch size"),
        ((1, 2, 4, 5), (1, 3, 3, 3), {}, "size 2 in last dimension"),
        ((1, 2, 0, 5), (1, 3, 3, 2), {}, "non-empty spatial dimensions"),
        ((1, 2, 3, 4, 5), (1, 3, 3, 3, 3), {"mode": "bicubic"}, "only supports 4D"),
    ],
)
def test_mistakes(sizes: Any, grid: Any, options: Any, says: str) -> None:
    with pytest.raises(RuntimeError, match=says):
        F.grid_sample(tp.ones(sizes), tp.ones(grid), **options)


def test_dtypes_are_one() -> None:
    with pytest.raises(RuntimeError, match="expected scalar type Float but found Double"):
        F.grid_sample(tp.ones(1, 1, 2, 2), tp.ones(1, 2, 2, 2, dtype=tp.float64))


@pytest.mark.parametrize("size", [(2, 3, 4, 5), (2, 3, 1, 1), (2, 3, 4, 5, 6)])
@pytest.mark.parametrize("corners", [False, True])
def test_affine_grid(size: tuple[int, ...], corners: bool) -> None:
    torch = pytest.importorskip("torch")
    t, u = pair(torch, rng.standard_normal((2, len(size) - 2, len(size) - 1)))
    ours, theirs = F.affine_grid(t, size, corners), torch.nn.functional.affine_grid(u, size, corners)
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), 1e-9, 1e-9)
    ours.square().sum().backward()
    theirs.square().sum().backward()
    np.testing.assert_allclose(t.grad.numpy(), u.grad.numpy(), 1e-9, 1e-9)
