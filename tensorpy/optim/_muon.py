"""Muon, by the path that PyTorch has for it."""

from tensorpy.optim.averaging import Muon as Muon

__all__ = ["Muon"]
