"""Adagrad, by the path that PyTorch has for it."""

from tensorpy.optim._functional import adagrad as adagrad
from tensorpy.optim.adaptive import Adagrad as Adagrad

__all__ = ["Adagrad", "adagrad"]
