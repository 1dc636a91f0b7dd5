"""Layers whose weights are fake-quantized: what training that knows of quantization uses."""

from __future__ import annotations

from tensorpy.ao.nn.qat.modules import *  # noqa: F403
from tensorpy.ao.nn.qat.modules import __all__ as __all__
