"""Modules whose weights are integers, and whose input is quantized by its range at each call."""

from __future__ import annotations

from tensorpy.ao.nn.quantized.dynamic.modules.linear import Linear

__all__ = ["Linear"]
