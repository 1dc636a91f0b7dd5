"""Rprop, by the path that PyTorch has for it."""

from tensorpy.optim._functional import rprop as rprop
from tensorpy.optim.adaptive import Rprop as Rprop

__all__ = ["Rprop", "rprop"]
