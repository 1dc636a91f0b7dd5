"""ASGD, by the path that PyTorch has for it."""

from tensorpy.optim._functional import asgd as asgd
from tensorpy.optim.averaging import ASGD as ASGD

__all__ = ["ASGD", "asgd"]
