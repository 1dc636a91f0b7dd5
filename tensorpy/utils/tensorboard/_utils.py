"""Pictures as arrays (height, width, channels)."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["convert_to_HWC", "make_grid"]


def make_grid(I: Any, ncols: int = 8) -> Any:  # noqa: E741  PyTorch's name of the argument
    """Images (N, C, H, W) side by side in rows."""
    n, channels, height, width = I.shape
    columns = min(n, ncols)
    rows = -(-n // columns)
    made = np.zeros((channels, rows * height, columns * width), I.dtype)
    for i, image in enumerate(I):
        y, x = i // columns * height, i % columns * width
        made[:, y : y + height, x : x + width] = image
    return made


def convert_to_HWC(tensor: Any, input_format: str) -> Any:
    """An array whose dimensions the letters name as (H, W, C); one channel becomes three, and N images a grid."""
    letters = input_format.upper()
    if len(set(letters)) != len(letters):
        raise AssertionError(f"the letters of {input_format} have to differ")
    if tensor.ndim != len(letters):
        raise AssertionError(f"size of input tensor and input format are different: {tensor.shape}, {input_format}")
    values = tensor.transpose([letters.index(c) for c in "NCHW" if c in letters])
    if "N" in letters:
        values = make_grid(values if "C" in letters else values[:, None])
    elif "C" not in letters:
        values = values[None]
    values = np.moveaxis(values, 0, -1)
    return np.repeat(values, 3, -1) if values.shape[-1] == 1 else values


def filled_up(values: Any, count: int) -> Any:
    """As many pictures, or videos, as `count`: the rest are black."""
    return np.concatenate([values, np.zeros((count - len(values), *values.shape[1:]), values.dtype)])


def _prepare_video(V: Any) -> Any:
    """Videos (N, T, C, H, W) side by side, as frames (T, H, W, C) of floats; there are as many as a power of two."""
    values = V / np.float32(255) if V.dtype == np.uint8 else V
    whole = 1 << (len(values) - 1).bit_length()
    values = filled_up(values, whole)
    columns = whole >> ((whole.bit_length() - 1) // 2)
    return np.stack([np.moveaxis(make_grid(frame, columns), 0, -1) for frame in values.swapaxes(0, 1)])
