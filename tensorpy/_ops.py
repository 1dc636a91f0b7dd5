"""Operators' classes by PyTorch's path: `tensorpy.ops` has them."""

from __future__ import annotations

from tensorpy import ops
from tensorpy._C import OpOverload
from tensorpy._higher_order_ops.operators import HigherOrderOperator
from tensorpy.ops import OpOverloadPacket

__all__ = ["HigherOrderOperator", "OpOverload", "OpOverloadPacket", "ops"]
