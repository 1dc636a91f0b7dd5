"""Joined layers whose weights are fake-quantized."""

from __future__ import annotations

from tensorpy.ao.nn.intrinsic.qat.modules.linear_relu import LinearReLU

__all__ = ["LinearReLU"]
