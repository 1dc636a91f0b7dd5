"""Adadelta, by the path that PyTorch has for it."""

from tensorpy.optim.adaptive import Adadelta as Adadelta

__all__ = ["Adadelta"]
