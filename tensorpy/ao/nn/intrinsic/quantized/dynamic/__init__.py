"""Joined modules whose input is quantized by its range at each call."""

from __future__ import annotations

from tensorpy.ao.nn.intrinsic.quantized.dynamic.modules.linear_relu import LinearReLU

__all__ = ["LinearReLU"]
