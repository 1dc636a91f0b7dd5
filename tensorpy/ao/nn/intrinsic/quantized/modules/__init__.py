"""Quantized modules that were joined with a ReLU."""

from __future__ import annotations

from tensorpy.ao.nn.intrinsic.quantized.modules.bn_relu import BNReLU2d, BNReLU3d
from tensorpy.ao.nn.intrinsic.quantized.modules.conv_add import ConvAdd2d, ConvAddReLU2d
from tensorpy.ao.nn.intrinsic.quantized.modules.conv_relu import ConvReLU1d, ConvReLU2d, ConvReLU3d
from tensorpy.ao.nn.intrinsic.quantized.modules.linear_relu import LinearLeakyReLU, LinearReLU, LinearTanh

__all__ = [
    "BNReLU2d", "BNReLU3d", "ConvAdd2d", "ConvAddReLU2d", "ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "LinearLeakyReLU",
    "LinearReLU", "LinearTanh",
]  # fmt: skip
