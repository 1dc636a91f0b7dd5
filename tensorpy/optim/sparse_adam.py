"""SparseAdam, by the path that PyTorch has for it."""

from tensorpy.optim.adam import SparseAdam as SparseAdam

__all__ = ["SparseAdam"]
