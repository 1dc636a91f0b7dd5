"""Modules that compute with integers, and `dynamic` ones, which quantize their input."""

from __future__ import annotations

from tensorpy.ao.nn.quantized import dynamic
from tensorpy.ao.nn.quantized.modules import DeQuantize, Dropout, Linear, Quantize

__all__ = ["DeQuantize", "Dropout", "Linear", "Quantize", "dynamic"]
