"""NAdam, by the path that PyTorch has for it."""

from tensorpy.optim._functional import nadam as nadam
from tensorpy.optim.adam import NAdam as NAdam

__all__ = ["NAdam", "nadam"]
