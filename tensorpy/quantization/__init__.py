"""`ao.quantization` by the name that older programs have for it."""

from __future__ import annotations

from tensorpy.ao.quantization import *  # noqa: F403
from tensorpy.ao.quantization import __all__ as __all__
