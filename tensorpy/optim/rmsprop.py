"""RMSprop, by the path that PyTorch has for it."""

from tensorpy.optim.adaptive import RMSprop as RMSprop

__all__ = ["RMSprop"]
