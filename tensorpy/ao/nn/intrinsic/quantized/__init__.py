"""Quantized modules that were joined with a ReLU."""

from __future__ import annotations

from tensorpy.ao.nn.intrinsic.quantized.modules import *  # noqa: F403
from tensorpy.ao.nn.intrinsic.quantized.modules import __all__ as __all__
