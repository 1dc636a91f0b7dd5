"""Convolutions of integers and a ReLU."""

from __future__ import annotations

from tensorpy._C import Tensor
from tensorpy.ao.nn import intrinsic as nni
from tensorpy.ao.nn.quantized.modules import conv

__all__ = ["ConvReLU1d", "ConvReLU2d", "ConvReLU3d"]


class ConvReLU1d(conv.Conv1d):
    """A convolution of quantized signals with nothing below 0."""

    _FLOAT_MODULE = (nni.ConvReLU1d,)

    def forward(self, input: Tensor) -> Tensor:
        """The convolution of a quantized tensor."""
        return self._convolved(input, True)

    def _get_name(self) -> str:
        return "QuantizedConvReLU1d"


class ConvReLU2d(conv.Conv2d):
    """A convolution of quantized images with nothing below 0."""

    _FLOAT_MODULE = (nni.ConvReLU2d,)

    def forward(self, input: Tensor) -> Tensor:
        """The convolution of a quantized tensor."""
        return self._convolved(input, True)

    def _get_name(self) -> str:
        return "QuantizedConvReLU2d"


class ConvReLU3d(conv.Conv3d):
    """A convolution of quantized volumes with nothing below 0."""

    _FLOAT_MODULE = (nni.ConvReLU3d,)

    def forward(self, input: Tensor) -> Tensor:
        """The convolution of a quantized tensor."""
        return self._convolved(input, True)

    def _get_name(self) -> str:
        return "QuantizedConvReLU3d"
