"""Modules that compute in floating point what quantized ones compute in integers."""

from __future__ import annotations

from tensorpy.ao.nn.quantized.reference.modules import *  # noqa: F403
from tensorpy.ao.nn.quantized.reference.modules import __all__ as __all__
