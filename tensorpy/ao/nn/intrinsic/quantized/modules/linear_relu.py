"""A linear map of integers and a ReLU."""

from __future__ import annotations

from tensorpy._C import Tensor
from tensorpy.ao.nn import intrinsic as nni
from tensorpy.ao.nn.quantized import packed
from tensorpy.ao.nn.quantized.modules import linear as quantized

__all__ = ["LinearReLU"]


class LinearReLU(quantized.Linear):
    """A linear map of quantized tensors with nothing below 0."""

    _FLOAT_MODULE = (nni.LinearReLU,)

    def forward(self, x: Tensor) -> Tensor:
        """The map of a quantized tensor."""
        return packed.linear_relu(x, self._packed_params._packed_params, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return "QuantizedLinearReLU"
