"""A linear map of integers and what follows it."""

from __future__ import annotations

from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.ao.nn import intrinsic as nni
from tensorpy.ao.nn.quantized import packed
from tensorpy.ao.nn.quantized.modules import linear as quantized

__all__ = ["LinearLeakyReLU", "LinearReLU", "LinearTanh"]


class LinearReLU(quantized.Linear):
    """A linear map of quantized tensors with nothing below 0."""

    _FLOAT_MODULE = (nni.LinearReLU,)

    def forward(self, x: Tensor) -> Tensor:
        """The map of a quantized tensor."""
        return packed.linear_relu(x, self._packed_params._packed_params, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return "QuantizedLinearReLU"


class LinearLeakyReLU(quantized.Linear):
    """A linear map of quantized tensors, and what is below 0 times a slope.

    Arguments:
        in_features: how many features the input has
        out_features: how many features the output has
        negative_slope: the slope
        bias: whether there is a bias
        dtype: qint8

    Example:
        >>> layer = tp.ao.nn.intrinsic.quantized.LinearLeakyReLU(2, 3, 0.1)
        >>> layer(tp.quantize_per_tensor(tp.ones(5, 2), 0.5, 0, tp.quint8)).shape
        tensorpy.Size([5, 3])
    """

    negative_slope: float

    _FLOAT_MODULE = (nni.LinearLeakyReLU,)

    def __init__(
        self, in_features: int, out_features: int, negative_slope: float, bias: bool = True, dtype: Any = _C.qint8
    ) -> None:
        super().__init__(in_features, out_features, bias, dtype)
        self.negative_slope = negative_slope

    def forward(self, x: Tensor) -> Tensor:
        """The map of a quantized tensor."""
        given = self._packed_params._packed_params
        return packed.linear_leaky_relu(x, given, self.scale, self.zero_point, self.negative_slope)

    def _get_name(self) -> str:
        return "QuantizedLinearLeakyReLU"

    @classmethod
    def _more_of(cls, fused: Any) -> tuple[Any, ...]:
        return (fused[1].negative_slope,)


class LinearTanh(quantized.Linear):
    """A linear map of quantized tensors and tanh.

    Example:
        >>> layer = tp.ao.nn.intrinsic.quantized.LinearTanh(2, 3)
        >>> layer(tp.quantize_per_tensor(tp.ones(5, 2), 0.5, 0, tp.quint8)).shape
        tensorpy.Size([5, 3])
    """

    _FLOAT_MODULE = (nni.LinearTanh,)

    def forward(self, x: Tensor) -> Tensor:
        """The map of a quantized tensor."""
        return packed.linear_tanh(x, self._packed_params._packed_params, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return "QuantizedLinearTanh"
