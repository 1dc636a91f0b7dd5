"""Modules that compute with integers, and `dynamic` ones, which quantize their input."""

from __future__ import annotations

from tensorpy.ao.nn.quantized import dynamic
from tensorpy.ao.nn.quantized.modules import (
    Conv1d,
    Conv2d,
    Conv3d,
    DeQuantize,
    Dropout,
    FloatFunctional,
    FXFloatFunctional,
    Linear,
    QFunctional,
    Quantize,
)

__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "DeQuantize", "Dropout", "FXFloatFunctional", "FloatFunctional", "Linear",
    "QFunctional", "Quantize", "dynamic",
]  # fmt: skip
