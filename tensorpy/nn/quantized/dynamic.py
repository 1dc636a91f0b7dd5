"""`ao.nn.quantized.dynamic` by the name that older programs have for it."""

from __future__ import annotations

from tensorpy.ao.nn.quantized.dynamic import *  # noqa: F403
from tensorpy.ao.nn.quantized.dynamic import __all__ as __all__
