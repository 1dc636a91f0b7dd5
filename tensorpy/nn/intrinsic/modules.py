"""`ao.nn.intrinsic.modules` by the name that older programs have for it."""

from __future__ import annotations

from tensorpy.ao.nn.intrinsic.modules import *  # noqa: F403
from tensorpy.ao.nn.intrinsic.modules import __all__ as __all__
