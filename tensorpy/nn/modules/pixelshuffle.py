"""Channels as pixels, pixels as channels, channels in another order."""

from __future__ import annotations

from tensorpy._C import Tensor
from tensorpy.nn import functional as F
from tensorpy.nn.modules.module import Module

__all__ = ["ChannelShuffle", "PixelShuffle", "PixelUnshuffle"]


class PixelShuffle(Module):
    """Groups of channels as the pixels of a larger image.

    Input (*, C * r * r, H, W), output (*, C, H * r, W * r) for the factor r.

    Arguments:
        upscale_factor: how many times larger height and width get

    Example:
        >>> nn.PixelShuffle(2)(tp.ones(1, 4, 2, 2)).shape
        tensorpy.Size([1, 1, 4, 4])
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Blocks of pixels as channels of a smaller image.

    Input (*, C, H * r, W * r), output (*, C * r * r, H, W) for the factor r.

    Arguments:
        downscale_factor: how many times smaller height and width get

    Example:
        >>> nn.PixelUnshuffle(2)(tp.ones(1, 1, 4, 4)).shape
        tensorpy.Size([1, 4, 2, 2])
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """The channels of several groups in turn.

    Input (N, C, *), output of the same shape.

    Example:
        >>> nn.ChannelShuffle(2)(tp.arange(4.0).view(1, 4, 1, 1)).flatten()
        tensor([0., 2., 1., 3.])
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
