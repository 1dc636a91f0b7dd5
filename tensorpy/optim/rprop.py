"""Rprop, by the path that PyTorch has for it."""

from tensorpy.optim.adaptive import Rprop as Rprop

__all__ = ["Rprop"]
