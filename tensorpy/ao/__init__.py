"""What makes models smaller and faster: `ao.quantization` and the modules that it makes, `ao.nn`."""

from __future__ import annotations

from tensorpy.ao import nn, quantization

__all__ = ["nn", "quantization"]
