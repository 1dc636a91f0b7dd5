"""Recurrent networks and attention made of parts that are observed and quantized one by one."""

from __future__ import annotations

from tensorpy.ao.nn.quantizable.modules import *  # noqa: F403
from tensorpy.ao.nn.quantizable.modules import __all__ as __all__
