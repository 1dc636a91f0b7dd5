"""Layers whose weights are fake-quantized."""

from __future__ import annotations

from tensorpy.ao.nn.qat.modules.linear import Linear

__all__ = ["Linear"]
