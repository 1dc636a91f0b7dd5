"""torch._prims: what programs take from it are the questions of `_prims_common`, by the name `utils`."""

from __future__ import annotations

from tensorpy import _prims_common as utils

__all__ = ["utils"]
