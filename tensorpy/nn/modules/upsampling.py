"""Images of other sizes."""

from __future__ import annotations

from typing import Any

from tensorpy._C import Tensor
from tensorpy.nn import functional as F
from tensorpy.nn.modules.module import Module

__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]


class Upsample(Module):
    """Resized to a size or by a factor.

    Input (N, C, L), (N, C, H, W) or (N, C, D, H, W), output with the new sizes.

    Arguments:
        size: the sizes of the output; or scale_factor
        scale_factor: how many times larger each dimension gets; instead of size
        mode: 'nearest', 'linear', 'bilinear', 'bicubic' or 'trilinear'
        align_corners: whether the centres of the corner elements, not their edges, are what input and output share
        recompute_scale_factor: whether the scale is computed anew from the sizes

    Example:
        >>> nn.Upsample(scale_factor=2)(tp.tensor([[[1.0, 2.0]]]))
        tensor([[[1., 1., 2., 2.]]])
    """

    align_corners: bool | None
    mode: str
    name: Any

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        if isinstance(scale_factor, tuple):
            self.scale_factor: Any = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode, self.align_corners = mode, align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )

    def extra_repr(self) -> str:
        target = f"size={self.size!r}" if self.scale_factor is None else f"scale_factor={self.scale_factor!r}"
        return f"{target}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """An image resized by the nearest pixels.

    Input (N, C, H, W), output with the new sizes.

    Arguments:
        size: the sizes of the output; or scale_factor
        scale_factor: how many times larger each dimension gets; instead of size

    Example:
        >>> nn.UpsamplingNearest2d(scale_factor=2)(tp.ones(1, 1, 2, 2)).shape
        tensorpy.Size([1, 1, 4, 4])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """An image resized by interpolation, its corners kept.

    Input (N, C, H, W), output with the new sizes.

    Arguments:
        size: the sizes of the output; or scale_factor
        scale_factor: how many times larger each dimension gets; instead of size

    Example:
        >>> nn.UpsamplingBilinear2d(scale_factor=2)(tp.ones(1, 1, 2, 2)).shape
        tensorpy.Size([1, 1, 4, 4])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
