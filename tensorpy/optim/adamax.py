"""Adamax, by the path that PyTorch has for it."""

from tensorpy.optim._functional import adamax as adamax
from tensorpy.optim.adam import Adamax as Adamax

__all__ = ["Adamax", "adamax"]
