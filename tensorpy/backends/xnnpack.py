"""Whether there is XNNPACK: tensorpy computes with kernels of its own."""

from __future__ import annotations

enabled: bool = False
