"""The modules of quantization: `intrinsic` (joined ones), `qat` (with fake quantization), `quantized`."""

from __future__ import annotations

from tensorpy.ao.nn import intrinsic, qat, quantized

__all__ = ["intrinsic", "qat", "quantized"]
