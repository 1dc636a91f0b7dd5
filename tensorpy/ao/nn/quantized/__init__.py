"""Modules that compute with integers, and `dynamic` ones, which quantize their input."""

from __future__ import annotations

from tensorpy.ao.nn.quantized import dynamic, functional, modules, reference
from tensorpy.ao.nn.quantized.modules import *  # noqa: F403

__all__ = ["dynamic", "functional", "reference"]
__all__ += modules.__all__
