"""Modules whose weights are integers, and whose input is quantized by its range at each call."""

from __future__ import annotations

from tensorpy.ao.nn.quantized.dynamic.modules import *  # noqa: F403
from tensorpy.ao.nn.quantized.dynamic.modules import __all__ as __all__
