"""Tensors of other libraries through DLPack, without a copy: the capsules' side of tensorpy.from_dlpack."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from tensorpy import from_dlpack
from tensorpy._C import Tensor

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]


class DLDeviceType(IntEnum):
    """What DLPack's header numbers devices by: the first number that `__dlpack_device__` gives.

    Example:
        >>> tp.utils.dlpack.DLDeviceType(tp.ones(2).__dlpack_device__()[0]).name
        'kDLCPU'
    """

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17


def to_dlpack(tensor: Tensor) -> Any:
    """A capsule of the tensor's memory, to be taken over once.

    Returns: a capsule.

    Raises: BufferError for a tensor that requires a gradient, TypeError for what is no tensor.

    Example:
        >>> tp.utils.dlpack.from_dlpack(tp.utils.dlpack.to_dlpack(tp.ones(2)))
        tensor([1., 1.])
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"to_dlpack(): argument 'tensor' must be Tensor, not {type(tensor).__name__}")
    return tensor.__dlpack__()
