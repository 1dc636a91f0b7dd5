"""AdamW, by the path that PyTorch has for it."""

from tensorpy.optim._functional import adamw as adamw
from tensorpy.optim.adam import AdamW as AdamW

__all__ = ["AdamW", "adamw"]
