"""Tensors of other libraries through DLPack, without a copy: the capsules' side of tensorpy.from_dlpack."""

from __future__ import annotations

from typing import Any

from tensorpy import from_dlpack
from tensorpy._C import Tensor

__all__ = ["from_dlpack", "to_dlpack"]


def to_dlpack(tensor: Tensor) -> Any:
    """A capsule of the tensor's memory, to be taken over once.

    Example:
        >>> tp.utils.dlpack.from_dlpack(tp.utils.dlpack.to_dlpack(tp.ones(2)))
        tensor([1., 1.])
    """
    return tensor.__dlpack__()
