"""Adafactor, by the path that PyTorch has for it."""

from tensorpy.optim.adaptive import Adafactor as Adafactor

__all__ = ["Adafactor"]
