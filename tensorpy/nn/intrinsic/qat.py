"""`ao.nn.intrinsic.qat` by the name that older programs have for it."""

from __future__ import annotations

from tensorpy.ao.nn.intrinsic.qat import *  # noqa: F403
from tensorpy.ao.nn.intrinsic.qat import __all__ as __all__
