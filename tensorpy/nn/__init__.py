"""tensorpy.nn: the functions of neural networks."""

from __future__ import annotations

from tensorpy.nn import functional

__all__ = ["functional"]
