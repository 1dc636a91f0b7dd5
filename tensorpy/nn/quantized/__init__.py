"""`ao.nn.quantized` by the name that older programs have for it."""

from __future__ import annotations

from tensorpy.ao.nn.quantized import *  # noqa: F403
from tensorpy.ao.nn.quantized import __all__ as __all__
from tensorpy.ao.nn.quantized import functional as functional
from tensorpy.nn.quantized import modules as modules
