"""`ao.nn.quantizable` by the name that older programs have for it."""

from __future__ import annotations

from tensorpy.ao.nn.quantizable import *  # noqa: F403
from tensorpy.ao.nn.quantizable import __all__ as __all__
from tensorpy.nn.quantizable import modules as modules
