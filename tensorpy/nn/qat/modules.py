"""`ao.nn.qat.modules` by the name that older programs have for it."""

from __future__ import annotations

from tensorpy.ao.nn.qat.modules import *  # noqa: F403
from tensorpy.ao.nn.qat.modules import __all__ as __all__
