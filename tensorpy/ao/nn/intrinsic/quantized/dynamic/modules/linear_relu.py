"""A linear map and a ReLU whose input is quantized by its range at each call."""

from __future__ import annotations

from tensorpy._C import Tensor
from tensorpy.ao.nn import intrinsic as nni
from tensorpy.ao.nn.quantized import packed
from tensorpy.ao.nn.quantized.dynamic.modules import linear as dynamic

__all__ = ["LinearReLU"]


class LinearReLU(dynamic.Linear):
    """A linear map of float32 with nothing below 0, computed with integers."""

    _FLOAT_MODULE = (nni.LinearReLU,)

    def forward(self, x: Tensor) -> Tensor:
        """The map of a tensor, in its dtype."""
        return packed.linear_relu_dynamic(x.float(), self._packed_params._packed_params, reduce_range=True).to(x.dtype)

    def _get_name(self) -> str:
        return "DynamicQuantizedLinearReLU"
