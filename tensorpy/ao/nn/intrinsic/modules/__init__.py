"""Modules that are computed as one, before they are quantized."""

from __future__ import annotations

from tensorpy.ao.nn.intrinsic.modules.fused import *  # noqa: F403
from tensorpy.ao.nn.intrinsic.modules.fused import __all__ as __all__
