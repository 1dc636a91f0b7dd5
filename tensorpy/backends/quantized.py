"""Which library computes with quantized tensors: a name that programs set; tensorpy has kernels of its own for all."""

from __future__ import annotations

# As a program says it; every engine's products are exact here.
engine: str = "x86"
supported_engines: list[str] = ["qnnpack", "none", "onednn", "x86", "fbgemm"]
