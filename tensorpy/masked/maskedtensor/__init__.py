"""MaskedTensor (core.py); unary, binary and reductions list which operators programs may ask it for."""

from __future__ import annotations

from tensorpy.masked.maskedtensor import core, creation
from tensorpy.masked.maskedtensor.core import MaskedTensor, as_masked_tensor, is_masked_tensor, masked_tensor

__all__ = ["MaskedTensor", "as_masked_tensor", "core", "creation", "is_masked_tensor", "masked_tensor"]
