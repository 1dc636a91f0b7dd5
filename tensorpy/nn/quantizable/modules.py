"""`ao.nn.quantizable.modules` by the name that older programs have for it."""

from __future__ import annotations

from tensorpy.ao.nn.quantizable.modules import *  # noqa: F403
from tensorpy.ao.nn.quantizable.modules import __all__ as __all__
