"""Modules of quantization: `intrinsic` (joined), `qat` (fake quantization), `quantizable` (in parts), `quantized`."""

from __future__ import annotations

from tensorpy.ao.nn import intrinsic, qat, quantizable, quantized

__all__ = ["intrinsic", "qat", "quantizable", "quantized"]
