"""Convolutions whose weights are fake-quantized."""

from __future__ import annotations

from typing import Any

from tensorpy import nn
from tensorpy._C import Tensor
from tensorpy.ao.nn import intrinsic as nni
from tensorpy.ao.nn.qat.modules.weight import FakeQuantizedWeight

__all__ = ["Conv1d", "Conv2d", "Conv3d"]


def sizes_of(conv: Any) -> tuple[Any, ...]:
    """The arguments that make a convolution like another one."""
    return (
        conv.in_channels, conv.out_channels, conv.kernel_size, conv.stride, conv.padding, conv.dilation, conv.groups,
        conv.bias is not None, conv.padding_mode,
    )  # fmt: skip


class _FakeQuantized(FakeQuantizedWeight):
    """What convolutions with a fake-quantized weight have, beside one of nn's."""

    weight: Any
    bias: Any

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Makes one of a convolution with a qconfig; the parameters are the same ones."""
        conv = cls._checked(mod)
        make: Any = cls
        made = make(*sizes_of(conv), qconfig=mod.qconfig)
        made.weight, made.bias = conv.weight, conv.bias
        return made

    def forward(self, input: Tensor) -> Tensor:
        """The convolution, by the weight as it would be after quantization."""
        layer: Any = self
        return layer._conv_forward(input, layer.weight_fake_quant(layer.weight), layer.bias)

    def to_float(self) -> Any:
        """The convolution without fake quantization."""
        made = next(kind for kind in type(self).__mro__ if kind.__module__ == nn.Conv1d.__module__)(*sizes_of(self))
        made.weight = nn.Parameter(self.weight.detach())
        if self.bias is not None:
            made.bias = nn.Parameter(self.bias.detach())
        return made


class Conv1d(_FakeQuantized, nn.Conv1d):
    """A convolution of signals whose weight is fake-quantized at each call.

    Arguments:
        arguments: nn.Conv1d's
        qconfig: the configuration
        more: nn.Conv1d's

    Raises: AssertionError without a qconfig.

    Example:
        >>> qconfig = tp.ao.quantization.get_default_qat_qconfig()
        >>> tp.ao.nn.qat.Conv1d(2, 3, 3, qconfig=qconfig)(tp.ones(1, 2, 8)).shape
        tensorpy.Size([1, 3, 6])
    """

    _FLOAT_MODULE: Any = (nn.Conv1d, nni.ConvReLU1d)


class Conv2d(_FakeQuantized, nn.Conv2d):
    """A convolution of images whose weight is fake-quantized at each call.

    Arguments:
        arguments: nn.Conv2d's
        qconfig: the configuration
        more: nn.Conv2d's

    Raises: AssertionError without a qconfig.

    Example:
        >>> qconfig = tp.ao.quantization.get_default_qat_qconfig()
        >>> tp.ao.nn.qat.Conv2d(2, 3, 3, qconfig=qconfig)(tp.ones(1, 2, 8, 8)).shape
        tensorpy.Size([1, 3, 6, 6])
    """

    _FLOAT_MODULE: Any = (nn.Conv2d, nni.ConvReLU2d)


class Conv3d(_FakeQuantized, nn.Conv3d):
    """A convolution of volumes whose weight is fake-quantized at each call.

    Arguments:
        arguments: nn.Conv3d's
        qconfig: the configuration
        more: nn.Conv3d's

    Raises: AssertionError without a qconfig.

    Example:
        >>> qconfig = tp.ao.quantization.get_default_qat_qconfig()
        >>> tp.ao.nn.qat.Conv3d(2, 3, 2, qconfig=qconfig)(tp.ones(1, 2, 4, 4, 4)).shape
        tensorpy.Size([1, 3, 3, 3, 3])
    """

    _FLOAT_MODULE: Any = (nn.Conv3d, nni.ConvReLU3d)
