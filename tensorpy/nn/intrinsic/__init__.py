"""`ao.nn.intrinsic` by the name that older programs have for it."""

from __future__ import annotations

from tensorpy.ao.nn.intrinsic import *  # noqa: F403
from tensorpy.ao.nn.intrinsic import __all__ as __all__
