"""Operators' classes by PyTorch's path: `tensorpy.ops` has them."""

from __future__ import annotations

from typing import Any

from tensorpy import _C, ops
from tensorpy._C import OpOverload
from tensorpy._higher_order_ops.higher_order import HigherOrderOperator
from tensorpy.ops import OpOverloadPacket

__all__ = ["HigherOrderOperator", "OpOverload", "OpOverloadPacket", "ops"]


def __getattr__(name: str) -> Any:
    """The keys, where torch means tensorpy."""
    if name in ("DispatchKey", "DispatchKeySet") and name in vars(_C):
        return vars(_C)[name]
    raise AttributeError(f"module 'tensorpy._ops' has no attribute {name!r}", name=name)
