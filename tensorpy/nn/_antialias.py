"""Smaller images without aliases: each output averages the inputs under a filter as wide as the step.

Resizing is linear and separable: one matrix of weights for each side of the image, and a product with each. The filters
are Pillow's: a triangle, and Keys' cubic with a = -1/2; where the image grows they are those of plain interpolation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import tensorpy as tp

if TYPE_CHECKING:
    from tensorpy import Tensor

_CUBIC = -0.5


def _triangle(x: Tensor) -> Tensor:
    return (1 - x.abs()).clamp_(min=0)


def _cubic(x: Tensor) -> Tensor:
    x, a = x.abs(), _CUBIC
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = (((x - 5) * x + 8) * x - 4) * a
    return tp.where(x < 1, near, tp.where(x < 2, far, 0.0))


_FILTERS = {"bilinear": (_triangle, 1.0), "bicubic": (_cubic, 2.0)}  # and half their widths


def _weights(old: int, new: int, mode: str, align_corners: bool, factor: float | None, like: Tensor) -> Tensor:
    """What each input counts for each output: (new, old), the rows' sums are 1."""
    if align_corners:
        step = (old - 1) / (new - 1) if new > 1 else 0.0
    else:
        step = old / new if factor is None else 1 / factor
    function, reach = _FILTERS[mode]
    wide = max(step, 1.0)
    options: dict[str, Any] = {"dtype": like.dtype, "device": like.device}
    centre = ((tp.arange(new, **options) + 0.5) * step)[:, None]
    first = (centre - reach * wide + 0.5).trunc().clamp_(min=0)
    last = (centre + reach * wide + 0.5).trunc()
    inputs = tp.arange(old, **options)
    weights = function((inputs - centre + 0.5) / wide)
    weights = tp.where((inputs >= first) & (inputs < last), weights, 0.0)
    return weights / weights.sum(1, keepdim=True)


def _channels_lie_last(x: Tensor) -> bool:
    """Whether the strides grow from the channels over the columns and rows to the images; gaps do not matter."""
    least = 0
    for d in (1, 3, 2, 0):
        if x.stride(d) < least or (d == 0 and least == x.stride(1)):
            return False
        least = x.stride(d) * max(x.shape[d], 1)
    return True


def resize(
    input: Tensor, sizes: Sequence[int] | None, mode: str, align_corners: bool, factors: Sequence[float] | None
) -> Tensor:
    """The images (N, C, H, W) of another height and width, given as sizes or as factors."""
    if sizes is None:
        assert factors is not None
        sizes = [int(n * f) for n, f in zip(input.shape[2:], factors, strict=True)]
    if min(*sizes, *input.shape[1:]) <= 0:
        raise RuntimeError(
            "Input and output sizes should be greater than 0, but got input "
            f"(H: {input.shape[2]}, W: {input.shape[3]}) output (H: {sizes[0]}, W: {sizes[1]})"
        )
    if not input.is_floating_point() and input.dtype != tp.uint8:
        raise NotImplementedError(f"interpolate: antialias is not implemented for {input.dtype}")
    wide = input.dtype in (tp.float32, tp.float64)
    x: Any = input if wide else input.to(tp.float32)
    height, width = (
        _weights(x.shape[2 + i], sizes[i], mode, align_corners, None if factors is None else factors[i], x)
        for i in (0, 1)
    )
    x = x @ width.t()
    if input.dtype == tp.uint8:
        x = x.clamp(0, 255)  # as between two passes over bytes
    x = x.flatten(0, 1)
    x = tp.bmm(height.expand(len(x), -1, -1), x).unflatten(0, input.shape[:2])
    if input.dtype == tp.uint8:
        x = x.round().clamp(0, 255).to(tp.uint8)
    if _channels_lie_last(input):
        x = x.contiguous(memory_format=tp.channels_last)
    return x if wide else x.to(input.dtype)
