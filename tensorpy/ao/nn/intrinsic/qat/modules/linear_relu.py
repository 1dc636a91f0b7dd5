"""A linear map with a ReLU, whose weight is fake-quantized."""

from __future__ import annotations

from tensorpy import nn
from tensorpy._C import Tensor
from tensorpy.ao.nn import intrinsic as nni
from tensorpy.ao.nn import qat
from tensorpy.nn import functional as F

__all__ = ["LinearReLU"]


class LinearReLU(qat.Linear):
    """A linear map with nothing below 0, whose weight is fake-quantized at each call."""

    _FLOAT_MODULE = (nni.LinearReLU,)

    def forward(self, input: Tensor) -> Tensor:
        """The map, by the weight as it would be after quantization."""
        return F.relu(super().forward(input))

    def to_float(self) -> nni.LinearReLU:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        """A linear map and a ReLU without fake quantization."""
        return nni.LinearReLU(super().to_float(), nn.ReLU())
