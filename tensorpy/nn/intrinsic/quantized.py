"""`ao.nn.intrinsic.quantized` by the name that older programs have for it."""

from __future__ import annotations

from tensorpy.ao.nn.intrinsic.quantized import *  # noqa: F403
from tensorpy.ao.nn.intrinsic.quantized import __all__ as __all__
from tensorpy.ao.nn.intrinsic.quantized import dynamic as dynamic
