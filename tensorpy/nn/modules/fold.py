"""Windows of images as columns, and back."""

from __future__ import annotations

from typing import Any

from tensorpy._C import Tensor
from tensorpy.nn import functional as F
from tensorpy.nn.modules.module import Module

__all__ = ["Fold", "Unfold"]


class Fold(Module):
    """Columns added up as the windows of an image.

    Input (N, C * window, windows), or without N, output (N, C, *output_size).

    Arguments:
        output_size: the sizes of the output: one number for all dimensions, or one for each
        kernel_size: the size of the window: one number for all dimensions, or one for each
        dilation: the distance between elements of the window
        padding: how many elements are added at both sides of each dimension
        stride: how far the window moves: one number for all dimensions, or one for each

    Example:
        >>> nn.Fold((3, 3), 2)(tp.ones(1, 4, 4))
        tensor([[[[1., 2., 1.],
                  [2., 4., 2.],
                  [1., 2., 1.]]]])
    """

    dilation: Any
    kernel_size: Any
    output_size: Any
    padding: Any
    stride: Any

    def __init__(
        self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__()
        self.output_size, self.kernel_size = output_size, kernel_size
        self.dilation, self.padding, self.stride = dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, dilation={self.dilation}, "
            f"padding={self.padding}, stride={self.stride}"
        )


class Unfold(Module):
    """The windows of an image as columns.

    Input (N, C, H, W) or (C, H, W), output (N, C * window, windows), or without N.

    Arguments:
        kernel_size: the size of the window: one number for all dimensions, or one for each
        dilation: the distance between elements of the window
        padding: how many elements are added at both sides of each dimension
        stride: how far the window moves: one number for all dimensions, or one for each

    Example:
        >>> nn.Unfold(2)(tp.ones(1, 1, 3, 3)).shape
        tensorpy.Size([1, 4, 4])
    """

    dilation: Any
    kernel_size: Any
    padding: Any
    stride: Any

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}"
