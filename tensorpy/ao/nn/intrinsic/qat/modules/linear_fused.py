"""Linear maps joined with batch norm, whose weights are fake-quantized."""

from __future__ import annotations

from typing import Any

from tensorpy import nn
from tensorpy._C import Tensor
from tensorpy.ao.nn import intrinsic as nni
from tensorpy.ao.nn import qat as nnqat
from tensorpy.ao.nn.intrinsic.qat.modules.conv_fused import _BeforeBatchNorm
from tensorpy.nn import functional as F
from tensorpy.nn.utils.fusion import fuse_linear_bn_weights

__all__ = ["LinearBn1d"]


class LinearBn1d(_BeforeBatchNorm, nnqat.Linear):
    """A linear map and a batch norm, whose weight is fake-quantized after it was scaled by the running statistics.

    Arguments:
        in_features: how many features the input has
        out_features: how many features the output has
        bias: whether the map has a bias
        eps: what the batch norm adds to the variance
        momentum: how much of a batch's statistics goes into the running ones
        freeze_bn: whether the batch norm's statistics stay as they are
        qconfig: the configuration

    Example:
        >>> qconfig = tp.ao.quantization.get_default_qat_qconfig()
        >>> tp.ao.nn.intrinsic.qat.LinearBn1d(2, 3, qconfig=qconfig)(tp.randn(5, 2)).shape
        tensorpy.Size([5, 3])
    """

    _FLOAT_MODULE: Any = (nni.LinearBn1d,)
    _BATCH_NORM = nn.BatchNorm1d

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        eps: float = 1e-5,
        momentum: float = 0.1,
        freeze_bn: bool = False,
        qconfig: Any = None,
    ) -> None:
        nnqat.Linear.__init__(self, in_features, out_features, bias, qconfig)
        self._join(out_features, eps, momentum, freeze_bn)

    def _by_weight(self, input: Tensor, weight: Tensor) -> Tensor:
        return F.linear(input, weight)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Makes one of a linear map and a batch norm with a qconfig; the parameters are the same ones."""
        linear, bn = cls._checked(mod), mod[1]
        has_bias = linear.bias is not None
        made = cls(linear.in_features, linear.out_features, has_bias, bn.eps, bn.momentum, qconfig=mod.qconfig)
        made.weight, made.bias = linear.weight, linear.bias
        made._take(bn)
        return made

    def to_float(self) -> nn.Linear:
        """A linear map that does what this and the batch norm do in evaluation, without fake quantization."""
        made, bn = super().to_float(), self.bn
        made.weight, made.bias = fuse_linear_bn_weights(
            self.weight, self.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
        )
        return made
