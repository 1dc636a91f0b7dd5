"""Convolutions joined with batch norm and ReLU, whose weights are fake-quantized.

With a batch norm the weight is scaled as the running statistics say before it is fake-quantized, and the convolution's
result is scaled back for the batch norm, as Krishnamoorthi describes it (Quantizing deep convolutional networks for
efficient inference, 2018, section 3.2.2).
"""

from __future__ import annotations

from typing import Any

from tensorpy import _C, nn
from tensorpy._C import Tensor
from tensorpy.ao.nn import intrinsic as nni
from tensorpy.ao.nn.qat.modules import conv as qat
from tensorpy.nn import functional as F
from tensorpy.nn.utils.fusion import fuse_conv_bn_weights

__all__ = [
    "ConvBn1d", "ConvBn2d", "ConvBn3d", "ConvBnReLU1d", "ConvBnReLU2d", "ConvBnReLU3d", "ConvReLU1d", "ConvReLU2d",
    "ConvReLU3d", "freeze_bn_stats", "update_bn_stats",
]  # fmt: skip


class _BeforeBatchNorm:
    """A layer, beside one of ao.nn.qat, whose result a batch norm takes."""

    _BATCH_NORM: Any
    bn: Any

    def _join(self, features: int, eps: float, momentum: float, freeze_bn: bool) -> None:
        """Makes the batch norm."""
        layer: Any = self
        layer.bn = self._BATCH_NORM(features, eps, momentum, True, True)
        layer._modules["weight_fake_quant"] = layer._modules.pop("weight_fake_quant")  # after it, in states
        layer.freeze_bn = freeze_bn if layer.training else True
        layer.bn.training = layer.training and not layer.freeze_bn

    def _take(self, bn: Any) -> None:
        """Shares the parameters and statistics of a batch norm."""
        mine = self.bn
        mine.weight, mine.bias = bn.weight, bn.bias
        mine.running_mean, mine.running_var = bn.running_mean, bn.running_var
        mine.num_batches_tracked = bn.num_batches_tracked

    def update_bn_stats(self) -> Any:
        """The batch norm takes statistics of batches again."""
        layer: Any = self
        layer.freeze_bn, layer.bn.training = False, True
        return self

    def freeze_bn_stats(self) -> Any:
        """The batch norm's statistics stay as they are."""
        layer: Any = self
        layer.freeze_bn, layer.bn.training = True, False
        return self

    def train(self, mode: bool = True) -> Any:
        """Training or evaluation; a batch norm whose statistics are frozen stays in evaluation."""
        layer: Any = self
        layer.training = mode
        for name, child in layer.named_children():
            if name != "bn" or not layer.freeze_bn:
                child.train(mode)
        return self

    def forward(self, input: Tensor) -> Tensor:
        """The layer by the weight as it would be after quantization, and the batch norm."""
        layer: Any = self
        bn, rank = layer.bn, layer.weight.dim()
        factor = bn.weight / _C.sqrt(bn.running_var + bn.eps)
        weight = layer.weight_fake_quant(layer.weight * factor.reshape([-1] + [1] * (rank - 1)))
        made = layer._by_weight(input, weight) / factor.reshape([1, -1] + [1] * (rank - 2))
        if layer.bias is not None:
            made = made + layer.bias.reshape([1, -1] + [1] * (rank - 2))
        return bn(made)


class _ConvBn(_BeforeBatchNorm):
    """A convolution, beside one of ao.nn.qat, whose result a batch norm takes."""

    def __init__(
        self, *arguments: Any, eps: float = 1e-5, momentum: float = 0.1, freeze_bn: bool = False, **more: Any
    ) -> None:
        super().__init__(*arguments, **more)
        layer: Any = self
        self._join(layer.out_channels, eps, momentum, freeze_bn)

    def _by_weight(self, input: Tensor, weight: Tensor) -> Tensor:
        layer: Any = self
        return layer._conv_forward(input, weight, None)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Makes one of a convolution and a batch norm with a qconfig; the parameters are the same ones."""
        make: Any = cls
        conv, bn = make._checked(mod), mod[1]
        made = make(*qat.sizes_of(conv), eps=bn.eps, momentum=bn.momentum, qconfig=mod.qconfig)
        made.weight, made.bias = conv.weight, conv.bias
        made._take(bn)
        return made

    def to_float(self) -> Any:
        """A convolution that does what this and the batch norm do in evaluation, without fake quantization."""
        layer: Any = self
        made, bn = qat._FakeQuantized.to_float(layer), layer.bn
        made.weight, made.bias = fuse_conv_bn_weights(
            layer.weight, layer.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
        )
        return made


class ConvBn1d(_ConvBn, qat.Conv1d):
    """A convolution of signals and a batch norm, whose weight is fake-quantized."""

    _FLOAT_MODULE: Any = (nni.ConvBn1d,)
    _BATCH_NORM = nn.BatchNorm1d


class ConvBn2d(_ConvBn, qat.Conv2d):
    """A convolution of images and a batch norm, whose weight is fake-quantized."""

    _FLOAT_MODULE: Any = (nni.ConvBn2d,)
    _BATCH_NORM = nn.BatchNorm2d


class ConvBn3d(_ConvBn, qat.Conv3d):
    """A convolution of volumes and a batch norm, whose weight is fake-quantized."""

    _FLOAT_MODULE: Any = (nni.ConvBn3d,)
    _BATCH_NORM = nn.BatchNorm3d


class _ReLU:
    """Nothing below 0, of a layer beside it."""

    def forward(self, input: Tensor) -> Tensor:
        """The layer's result, and nothing below 0."""
        layer: Any = super()
        return F.relu(layer.forward(input))

    def to_float(self) -> Any:
        """A convolution and a ReLU without fake quantization."""
        layer: Any = super()
        made = layer.to_float()
        kinds = {nn.Conv1d: nni.ConvReLU1d, nn.Conv2d: nni.ConvReLU2d, nn.Conv3d: nni.ConvReLU3d}
        return kinds[type(made)](made, nn.ReLU())


class ConvBnReLU1d(_ReLU, ConvBn1d):
    """A convolution of signals, a batch norm and a ReLU, whose weight is fake-quantized."""

    _FLOAT_MODULE: Any = (nni.ConvBnReLU1d,)


class ConvBnReLU2d(_ReLU, ConvBn2d):
    """A convolution of images, a batch norm and a ReLU, whose weight is fake-quantized."""

    _FLOAT_MODULE: Any = (nni.ConvBnReLU2d,)


class ConvBnReLU3d(_ReLU, ConvBn3d):
    """A convolution of volumes, a batch norm and a ReLU, whose weight is fake-quantized."""

    _FLOAT_MODULE: Any = (nni.ConvBnReLU3d,)


class ConvReLU1d(_ReLU, qat.Conv1d):
    """A convolution of signals and a ReLU, whose weight is fake-quantized."""

    _FLOAT_MODULE: Any = (nni.ConvReLU1d,)


class ConvReLU2d(_ReLU, qat.Conv2d):
    """A convolution of images and a ReLU, whose weight is fake-quantized."""

    _FLOAT_MODULE: Any = (nni.ConvReLU2d,)


class ConvReLU3d(_ReLU, qat.Conv3d):
    """A convolution of volumes and a ReLU, whose weight is fake-quantized."""

    _FLOAT_MODULE: Any = (nni.ConvReLU3d,)


def update_bn_stats(mod: Any) -> None:
    """For `model.apply`: batch norms that are joined with convolutions take statistics of batches again."""
    if isinstance(mod, _ConvBn):
        mod.update_bn_stats()


def freeze_bn_stats(mod: Any) -> None:
    """For `model.apply`: statistics of batch norms that are joined with convolutions stay as they are."""
    if isinstance(mod, _ConvBn):
        mod.freeze_bn_stats()
