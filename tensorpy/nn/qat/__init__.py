"""`ao.nn.qat` by the name that older programs have for it."""

from __future__ import annotations

from tensorpy.ao.nn.qat import *  # noqa: F403
from tensorpy.ao.nn.qat import __all__ as __all__
from tensorpy.nn.qat import modules as modules
