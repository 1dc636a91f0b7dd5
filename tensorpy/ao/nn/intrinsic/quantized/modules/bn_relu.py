"""Batch norms and ReLU of integers, computed as one."""

from __future__ import annotations

from tensorpy.ao.nn import intrinsic as nni
from tensorpy.ao.nn import quantized as nnq

__all__ = ["BNReLU2d", "BNReLU3d"]


class BNReLU2d(nnq.BatchNorm2d):
    """nn.BatchNorm2d and nn.ReLU of quantized images.

    Example:
        >>> layer = tp.ao.nn.intrinsic.quantized.BNReLU2d(1)
        >>> layer(tp.quantize_per_tensor(tp.tensor([-2.0, 3.0]).reshape(1, 1, 1, 2), 1.0, 9, tp.quint8)).int_repr()
        tensor([[[[0, 3]]]], dtype=tensorpy.uint8)
    """

    _FLOAT_MODULE = nni.BNReLU2d
    _relu = True

    def _get_name(self) -> str:
        return "QuantizedBNReLU2d"


class BNReLU3d(nnq.BatchNorm3d):
    """nn.BatchNorm3d and nn.ReLU of quantized volumes.

    Example:
        >>> layer = tp.ao.nn.intrinsic.quantized.BNReLU3d(1)
        >>> layer(tp.quantize_per_tensor(tp.tensor([-2.0, 3.0]).reshape(1, 1, 1, 1, 2), 1.0, 9, tp.quint8)).int_repr()
        tensor([[[[[0, 3]]]]], dtype=tensorpy.uint8)
    """

    _FLOAT_MODULE = nni.BNReLU3d
    _relu = True

    def _get_name(self) -> str:
        return "QuantizedBNReLU3d"
