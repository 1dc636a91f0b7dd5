"""What makes masked tensors."""

from __future__ import annotations

from tensorpy.masked.maskedtensor.core import MaskedTensor, as_masked_tensor, masked_tensor

__all__ = ["MaskedTensor", "as_masked_tensor", "masked_tensor"]
