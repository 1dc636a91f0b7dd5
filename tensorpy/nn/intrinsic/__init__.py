"""`ao.nn.intrinsic` by the name that older programs have for it."""

from __future__ import annotations

from tensorpy.ao.nn.intrinsic import *  # noqa: F403
from tensorpy.ao.nn.intrinsic import __all__ as __all__
from tensorpy.nn.intrinsic import modules as modules
from tensorpy.nn.intrinsic import qat as qat
from tensorpy.nn.intrinsic import quantized as quantized
