"""Modules that compute with integers, and `dynamic` ones, which quantize their input."""

from __future__ import annotations

from tensorpy.ao.nn.quantized import dynamic, reference
from tensorpy.ao.nn.quantized.modules import (
    ELU,
    LSTM,
    BatchNorm2d,
    BatchNorm3d,
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    DeQuantize,
    Dropout,
    Embedding,
    EmbeddingBag,
    EmbeddingPackedParams,
    FloatFunctional,
    FXFloatFunctional,
    GroupNorm,
    Hardswish,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    LayerNorm,
    LeakyReLU,
    Linear,
    MultiheadAttention,
    PReLU,
    QFunctional,
    Quantize,
    ReLU6,
    Sigmoid,
    Softmax,
)

__all__ = [
    "ELU", "LSTM", "BatchNorm2d", "BatchNorm3d", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d",
    "ConvTranspose3d", "DeQuantize", "Dropout", "Embedding", "EmbeddingBag", "EmbeddingPackedParams",
    "FXFloatFunctional", "FloatFunctional", "GroupNorm", "Hardswish", "InstanceNorm1d", "InstanceNorm2d",
    "InstanceNorm3d", "LayerNorm", "LeakyReLU", "Linear", "MultiheadAttention", "PReLU", "QFunctional", "Quantize",
    "ReLU6", "Sigmoid", "Softmax", "dynamic", "reference",
]  # fmt: skip
