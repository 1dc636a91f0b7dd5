"""Linear maps whose weights are fake-quantized."""

from __future__ import annotations

from typing import Any

from tensorpy import nn
from tensorpy._C import Tensor
from tensorpy.ao.nn.qat.modules.weight import FakeQuantizedWeight
from tensorpy.nn import functional as F
from tensorpy.nn.modules.linear import NonDynamicallyQuantizableLinear

__all__ = ["Linear"]


class Linear(FakeQuantizedWeight, nn.Linear):
    """A linear map whose weight is fake-quantized at each call.

    Arguments:
        in_features: how many features the input has
        out_features: how many features the output has
        bias: whether there is a bias
        qconfig: the configuration
        device: where the parameters are
        dtype: the dtype of the parameters

    Raises: AssertionError without a qconfig.

    Example:
        >>> qconfig = tp.ao.quantization.get_default_qat_qconfig()
        >>> tp.ao.nn.qat.Linear(2, 3, qconfig=qconfig)(tp.ones(5, 2)).shape
        tensorpy.Size([5, 3])
    """

    _FLOAT_MODULE: Any = (nn.Linear, NonDynamicallyQuantizableLinear)

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        qconfig: Any = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(in_features, out_features, bias, device=device, dtype=dtype, qconfig=qconfig)

    def forward(self, input: Tensor) -> Tensor:
        """The map, by the weight as it would be after quantization."""
        return F.linear(input, self.weight_fake_quant(self.weight), self.bias)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Linear:
        """Makes one of a linear map with a qconfig; the parameters are the same ones."""
        linear = cls._checked(mod)
        made = cls(linear.in_features, linear.out_features, linear.bias is not None, qconfig=mod.qconfig)
        made.weight, made.bias = linear.weight, linear.bias
        return made

    def to_float(self) -> nn.Linear:
        """A linear map without fake quantization."""
        made = nn.Linear(self.in_features, self.out_features, self.bias is not None)
        made.weight = nn.Parameter(self.weight.detach())
        if self.bias is not None:
            made.bias = nn.Parameter(self.bias.detach())
        return made
