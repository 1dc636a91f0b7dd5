"""MaskedTensor (core), and by the names of PyTorch's package which operators take one (unary, binary, reductions)."""

from __future__ import annotations

from tensorpy.masked.maskedtensor.core import MaskedTensor, as_masked_tensor, is_masked_tensor, masked_tensor

__all__ = ["MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"]
