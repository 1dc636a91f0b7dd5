"""Convolutions whose input is quantized by its range at each call."""

from __future__ import annotations

from typing import Any

from tensorpy._C import Tensor
from tensorpy.ao.nn.quantized.modules import conv as quantized
from tensorpy.ao.nn.quantized.packed import check_images
from tensorpy.nn import functional as F
from tensorpy.nn.modules.utils import _reverse_repeat_tuple

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]


class _Dynamic:
    """A convolution of float32, beside one of ao.nn.quantized."""

    def __init__(self, *arguments: Any, reduce_range: bool = True, **more: Any) -> None:
        super().__init__(*arguments, **more)

    def forward(self, input: Tensor, reduce_range: bool = True) -> Tensor:
        """The convolution of numbers; `reduce_range` takes half of the integers for the input."""
        layer: Any = self
        check_images(layer._dims, input)
        if layer.padding_mode != "zeros" and any(layer.padding):
            input = F.pad(input, _reverse_repeat_tuple(layer.padding, 2), mode=layer.padding_mode)
        return layer._packed_params.dynamic(input, reduce_range)

    def _get_name(self) -> str:
        layer: Any = super()
        return "Dynamic" + layer._get_name()

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Makes one of a convolution with a qconfig."""
        make: Any = cls
        return make._from_float(mod, use_precomputed_fake_quant)


class Conv1d(_Dynamic, quantized.Conv1d):
    """A convolution of signals (N, C, L) of float32, with integers chosen by the input's range.

    Arguments:
        arguments: ao.nn.quantized.Conv1d's
        reduce_range: is taken, and changes nothing here: forward has one
        more: ao.nn.quantized.Conv1d's

    Raises: ValueError for groups that do not divide the channels, or an unknown padding_mode.

    Example:
        >>> tp.ao.nn.quantized.dynamic.Conv1d(2, 3, 3)(tp.ones(1, 2, 8)).shape
        tensorpy.Size([1, 3, 6])
    """


class Conv2d(_Dynamic, quantized.Conv2d):
    """A convolution of images (N, C, H, W) of float32, with integers chosen by the input's range.

    Arguments:
        arguments: ao.nn.quantized.Conv2d's
        reduce_range: is taken, and changes nothing here: forward has one
        more: ao.nn.quantized.Conv2d's

    Raises: ValueError for groups that do not divide the channels, or an unknown padding_mode.

    Example:
        >>> tp.ao.nn.quantized.dynamic.Conv2d(2, 3, 3)(tp.ones(1, 2, 8, 8)).shape
        tensorpy.Size([1, 3, 6, 6])
    """


class Conv3d(_Dynamic, quantized.Conv3d):
    """A convolution of volumes (N, C, D, H, W) of float32, with integers chosen by the input's range.

    Arguments:
        arguments: ao.nn.quantized.Conv3d's
        reduce_range: is taken, and changes nothing here: forward has one
        more: ao.nn.quantized.Conv3d's

    Raises: ValueError for groups that do not divide the channels, or an unknown padding_mode.

    Example:
        >>> tp.ao.nn.quantized.dynamic.Conv3d(2, 3, 2)(tp.ones(1, 2, 4, 4, 4)).shape
        tensorpy.Size([1, 3, 3, 3, 3])
    """


class ConvTranspose1d(_Dynamic, quantized.ConvTranspose1d):
    """A transposed convolution of signals (N, C, L) of float32, with integers chosen by the input's range.

    Arguments:
        arguments: ao.nn.quantized.ConvTranspose1d's
        reduce_range: is taken, and changes nothing here: forward has one
        more: ao.nn.quantized.ConvTranspose1d's

    Raises: ValueError for groups that do not divide the channels, or another padding_mode than 'zeros'.

    Example:
        >>> tp.ao.nn.quantized.dynamic.ConvTranspose1d(2, 3, 3)(tp.ones(1, 2, 8)).shape
        tensorpy.Size([1, 3, 10])
    """


class ConvTranspose2d(_Dynamic, quantized.ConvTranspose2d):
    """A transposed convolution of images (N, C, H, W) of float32, with integers chosen by the input's range.

    Arguments:
        arguments: ao.nn.quantized.ConvTranspose2d's
        reduce_range: is taken, and changes nothing here: forward has one
        more: ao.nn.quantized.ConvTranspose2d's

    Raises: ValueError for groups that do not divide the channels, or another padding_mode than 'zeros'.

    Example:
        >>> tp.ao.nn.quantized.dynamic.ConvTranspose2d(2, 3, 3)(tp.ones(1, 2, 8, 8)).shape
        tensorpy.Size([1, 3, 10, 10])
    """


class ConvTranspose3d(_Dynamic, quantized.ConvTranspose3d):
    """A transposed convolution of volumes (N, C, D, H, W) of float32, with integers chosen by the input's range.

    Arguments:
        arguments: ao.nn.quantized.ConvTranspose3d's
        reduce_range: is taken, and changes nothing here: forward has one
        more: ao.nn.quantized.ConvTranspose3d's

    Raises: ValueError for groups that do not divide the channels, or another padding_mode than 'zeros'.

    Example:
        >>> tp.ao.nn.quantized.dynamic.ConvTranspose3d(2, 3, 2)(tp.ones(1, 2, 4, 4, 4)).shape
        tensorpy.Size([1, 3, 5, 5, 5])
    """
