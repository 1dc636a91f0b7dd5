"""Adadelta, by the path that PyTorch has for it."""

from tensorpy.optim._functional import adadelta as adadelta
from tensorpy.optim.adaptive import Adadelta as Adadelta

__all__ = ["Adadelta", "adadelta"]
