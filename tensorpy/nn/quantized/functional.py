"""`ao.nn.quantized.functional` by the name that older programs have for it."""

from __future__ import annotations

from tensorpy.ao.nn.quantized.functional import *  # noqa: F403
from tensorpy.ao.nn.quantized.functional import __all__ as __all__
