"""Convolutions of integers and a sum."""

from __future__ import annotations

from tensorpy._C import Tensor
from tensorpy.ao.nn import intrinsic as nni
from tensorpy.ao.nn.quantized import packed_conv
from tensorpy.ao.nn.quantized.modules import conv

__all__ = ["ConvAdd2d", "ConvAddReLU2d"]


class ConvAdd2d(conv.Conv2d):
    """A convolution of quantized images, plus others.

    Example:
        >>> layer, image = tp.ao.nn.intrinsic.quantized.ConvAdd2d(1, 2, 3), tp.zeros(1, 1, 3, 3)
        >>> x, y = (tp.quantize_per_tensor(t, 1.0, 0, tp.quint8) for t in (image, tp.ones(1, 2, 1, 1)))
        >>> layer(x, y).int_repr().flatten()
        tensor([1, 1], dtype=tensorpy.uint8)
    """

    _FLOAT_MODULE = (nni.ConvAdd2d,)

    def forward(  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        self, input: Tensor, extra_input: Tensor
    ) -> Tensor:
        """The convolution of a quantized tensor, plus another."""
        given = (self._bordered(input), extra_input, self._packed_params)
        return packed_conv.conv2d_add(*given, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return "QuantizedConvAdd2d"


class ConvAddReLU2d(conv.Conv2d):
    """A convolution of quantized images, plus others, with nothing below 0.

    Example:
        >>> layer, image = tp.ao.nn.intrinsic.quantized.ConvAddReLU2d(1, 2, 3), tp.zeros(1, 1, 3, 3)
        >>> x, y = (tp.quantize_per_tensor(t, 1.0, 9, tp.quint8) for t in (image, -tp.ones(1, 2, 1, 1)))
        >>> layer(x, y).int_repr().flatten()
        tensor([0, 0], dtype=tensorpy.uint8)
    """

    _FLOAT_MODULE = (nni.ConvAddReLU2d,)

    def forward(  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        self, input: Tensor, extra_input: Tensor
    ) -> Tensor:
        """The convolution of a quantized tensor, plus another, with nothing below 0."""
        given = (self._bordered(input), extra_input, self._packed_params)
        return packed_conv.conv2d_add_relu(*given, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return "QuantizedConvAddReLU2d"
