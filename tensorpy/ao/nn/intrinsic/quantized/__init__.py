"""Quantized modules that were joined with a ReLU."""

from __future__ import annotations

from tensorpy.ao.nn.intrinsic.quantized.modules.linear_relu import LinearReLU

__all__ = ["LinearReLU"]
