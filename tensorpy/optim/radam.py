"""RAdam, by the path that PyTorch has for it."""

from tensorpy.optim._functional import radam as radam
from tensorpy.optim.adam import RAdam as RAdam

__all__ = ["RAdam", "radam"]
