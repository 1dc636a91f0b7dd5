"""Operators' classes by PyTorch's path: `tensorpy.ops` has them."""

from __future__ import annotations

from tensorpy import ops
from tensorpy._C import OpOverload
from tensorpy.ops import OpOverloadPacket

__all__ = ["OpOverload", "OpOverloadPacket", "ops"]
