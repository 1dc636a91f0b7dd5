"""RMSprop, by the path that PyTorch has for it."""

from tensorpy.optim._functional import rmsprop as rmsprop
from tensorpy.optim.adaptive import RMSprop as RMSprop

__all__ = ["RMSprop", "rmsprop"]
