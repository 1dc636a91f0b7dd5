"""Joined layers whose weights are fake-quantized."""

from __future__ import annotations

from tensorpy.ao.nn.intrinsic.qat.modules import *  # noqa: F403
from tensorpy.ao.nn.intrinsic.qat.modules import __all__ as __all__
