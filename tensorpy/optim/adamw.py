"""AdamW, by the path that PyTorch has for it."""

from tensorpy.optim.adam import AdamW as AdamW

__all__ = ["AdamW"]
