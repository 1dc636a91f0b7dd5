"""Modules that are computed as one, before they are quantized."""

from __future__ import annotations

from tensorpy.ao.nn.intrinsic.modules import *  # noqa: F403
from tensorpy.ao.nn.intrinsic.modules import __all__ as __all__
from tensorpy.ao.nn.intrinsic.modules.fused import _FusedModule as _FusedModule
