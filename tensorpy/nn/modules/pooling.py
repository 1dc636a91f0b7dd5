"""Pooling: windows of a size, windows that give a size, and the way back."""

from __future__ import annotations

from typing import Any

from tensorpy._C import Tensor
from tensorpy.nn import functional as F
from tensorpy.nn.modules.module import Module
from tensorpy.nn.modules.utils import _ntuple, _single

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]


# ---- maxima ----


class _MaxPoolNd(Module):
    ceil_mode: bool
    dilation: Any
    kernel_size: Any
    padding: Any
    return_indices: bool
    stride: Any
    _function: Any

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.dilation = padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def forward(self, input: Tensor) -> Any:
        return self._function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPoolNd):
    """The largest element of each window of a signal.

    Input (N, C, L) or (C, L), output with a window for each place; floats.

    Arguments:
        kernel_size: the size of the window: one number for all dimensions, or one for each
        stride: how far the window moves: one number for all dimensions, or one for each
        padding: how many elements are added at both sides of each dimension
        dilation: the distance between elements of the window
        return_indices: whether the places of the values come too, as max_unpool takes them
        ceil_mode: whether a window that begins inside and ends outside of the input counts

    Example:
        >>> nn.MaxPool1d(2)(tp.tensor([[[1.0, 5.0, 3.0, 4.0]]]))
        tensor([[[5., 4.]]])
    """

    _function = staticmethod(F.max_pool1d)


class MaxPool2d(_MaxPoolNd):
    """The largest element of each window of an image.

    Input (N, C, H, W) or (C, H, W), output with a window for each place; floats.

    Arguments:
        kernel_size: the size of the window: one number for all dimensions, or one for each
        stride: how far the window moves: one number for all dimensions, or one for each
        padding: how many elements are added at both sides of each dimension
        dilation: the distance between elements of the window
        return_indices: whether the places of the values come too, as max_unpool takes them
        ceil_mode: whether a window that begins inside and ends outside of the input counts

    Example:
        >>> nn.MaxPool2d(2)(tp.arange(16.0).view(1, 1, 4, 4))
        tensor([[[[ 5.,  7.],
                  [13., 15.]]]])
    """

    _function = staticmethod(F.max_pool2d)


class MaxPool3d(_MaxPoolNd):
    """The largest element of each window of a volume.

    Input (N, C, D, H, W) or (C, D, H, W), output with a window for each place; floats.

    Arguments:
        kernel_size: the size of the window: one number for all dimensions, or one for each
        stride: how far the window moves: one number for all dimensions, or one for each
        padding: how many elements are added at both sides of each dimension
        dilation: the distance between elements of the window
        return_indices: whether the places of the values come too, as max_unpool takes them
        ceil_mode: whether a window that begins inside and ends outside of the input counts

    Example:
        >>> nn.MaxPool3d(2)(tp.ones(1, 3, 4, 4, 4)).shape
        tensorpy.Size([1, 3, 2, 2, 2])
    """

    _function = staticmethod(F.max_pool3d)


class _MaxUnpoolNd(Module):
    kernel_size: Any
    padding: Any
    stride: Any
    _dims: int

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        sized = _ntuple(self._dims)
        self.kernel_size = sized(kernel_size)
        self.stride = sized(kernel_size if stride is None else stride)
        self.padding = sized(padding)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        function = getattr(F, f"max_unpool{self._dims}d")
        return function(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    """The maxima of MaxPool1d back where they were, zero elsewhere.

    Input and indices (N, C, L) or (C, L), as MaxPool1d gives them, output with the L before.

    Arguments:
        kernel_size: the size of the window: one number for all dimensions, or one for each
        stride: how far the window moves: one number for all dimensions, or one for each
        padding: how many elements are added at both sides of each dimension

    Example:
        >>> y, at = nn.MaxPool1d(2, return_indices=True)(tp.tensor([[[1.0, 5.0, 3.0, 4.0]]]))
        >>> nn.MaxUnpool1d(2)(y, at)
        tensor([[[0., 5., 0., 4.]]])
    """

    _dims = 1


class MaxUnpool2d(_MaxUnpoolNd):
    """The maxima of MaxPool2d back where they were, zero elsewhere.

    Input and indices (N, C, H, W) or (C, H, W), as MaxPool2d gives them, output with the H and W before.

    Arguments:
        kernel_size: the size of the window: one number for all dimensions, or one for each
        stride: how far the window moves: one number for all dimensions, or one for each
        padding: how many elements are added at both sides of each dimension

    Example:
        >>> y, at = nn.MaxPool2d(2, return_indices=True)(tp.ones(1, 3, 4, 4))
        >>> nn.MaxUnpool2d(2)(y, at).shape
        tensorpy.Size([1, 3, 4, 4])
    """

    _dims = 2


class MaxUnpool3d(_MaxUnpoolNd):
    """The maxima of MaxPool3d back where they were, zero elsewhere.

    Input and indices (N, C, D, H, W) or (C, D, H, W), as MaxPool3d gives them, output with the sizes before.

    Arguments:
        kernel_size: the size of the window: one number for all dimensions, or one for each
        stride: how far the window moves: one number for all dimensions, or one for each
        padding: how many elements are added at both sides of each dimension

    Example:
        >>> y, at = nn.MaxPool3d(2, return_indices=True)(tp.ones(1, 3, 4, 4, 4))
        >>> nn.MaxUnpool3d(2)(y, at).shape
        tensorpy.Size([1, 3, 4, 4, 4])
    """

    _dims = 3


# ---- means and norms ----


class _AvgPoolNd(Module):
    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """The mean of each window of a signal.

    Input (N, C, L) or (C, L), output with a window for each place; floats.

    Arguments:
        kernel_size: the size of the window: one number for all dimensions, or one for each
        stride: how far the window moves: one number for all dimensions, or one for each
        padding: how many elements are added at both sides of each dimension
        ceil_mode: whether a window that begins inside and ends outside of the input counts
        count_include_pad: whether padding counts in an average

    Example:
        >>> nn.AvgPool1d(2)(tp.tensor([[[1.0, 5.0, 3.0, 4.0]]]))
        tensor([[[3.0000, 3.5000]]])
    """

    ceil_mode: bool
    count_include_pad: bool
    kernel_size: Any
    padding: Any
    stride: Any

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = _single(kernel_size)
        self.stride = _single(kernel_size if stride is None else stride)
        self.padding = _single(padding)
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class AvgPool2d(_AvgPoolNd):
    """The mean of each window of an image.

    Input (N, C, H, W) or (C, H, W), output with a window for each place; floats.

    Arguments:
        kernel_size: the size of the window: one number for all dimensions, or one for each
        stride: how far the window moves: one number for all dimensions, or one for each
        padding: how many elements are added at both sides of each dimension
        ceil_mode: whether a window that begins inside and ends outside of the input counts
        count_include_pad: whether padding counts in an average
        divisor_override: what sums are divided by instead of the size of the window

    Example:
        >>> nn.AvgPool2d(2)(tp.arange(16.0).view(1, 1, 4, 4))
        tensor([[[[ 2.5000,  4.5000],
                  [10.5000, 12.5000]]]])
    """

    ceil_mode: bool
    count_include_pad: bool
    divisor_override: int | None
    kernel_size: Any
    padding: Any
    stride: Any
    _function: Any = staticmethod(F.avg_pool2d)

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.ceil_mode = padding, ceil_mode
        self.count_include_pad, self.divisor_override = count_include_pad, divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return self._function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AvgPool3d(AvgPool2d):
    """The mean of each window of a volume.

    Input (N, C, D, H, W) or (C, D, H, W), output with a window for each place; floats.

    Arguments:
        kernel_size: the size of the window: one number for all dimensions, or one for each
        stride: how far the window moves: one number for all dimensions, or one for each
        padding: how many elements are added at both sides of each dimension
        ceil_mode: whether a window that begins inside and ends outside of the input counts
        count_include_pad: whether padding counts in an average
        divisor_override: what sums are divided by instead of the size of the window

    Example:
        >>> nn.AvgPool3d(2)(tp.ones(1, 3, 4, 4, 4)).shape
        tensorpy.Size([1, 3, 2, 2, 2])
    """

    _function = staticmethod(F.avg_pool3d)


class _LPPoolNd(Module):
    ceil_mode: bool
    kernel_size: Any
    norm_type: float
    stride: Any
    _function: Any

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        return self._function(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPoolNd):
    """The norm of each window of a signal.

    Input (N, C, L) or (C, L), output with a window for each place; floats.

    Arguments:
        norm_type: which norm: 2 the Euclidean one
        kernel_size: the size of the window: one number for all dimensions, or one for each
        stride: how far the window moves: one number for all dimensions, or one for each
        ceil_mode: whether a window that begins inside and ends outside of the input counts

    Example:
        >>> nn.LPPool1d(2, 2)(tp.tensor([[[3.0, 4.0, 0.0, 1.0]]]))
        tensor([[[5., 1.]]])
    """

    _function = staticmethod(F.lp_pool1d)


class LPPool2d(_LPPoolNd):
    """The norm of each window of an image.

    Input (N, C, H, W) or (C, H, W), output with a window for each place; floats.

    Arguments:
        norm_type: which norm: 2 the Euclidean one
        kernel_size: the size of the window: one number for all dimensions, or one for each
        stride: how far the window moves: one number for all dimensions, or one for each
        ceil_mode: whether a window that begins inside and ends outside of the input counts

    Example:
        >>> nn.LPPool2d(2, 2)(tp.ones(1, 3, 4, 4)).shape
        tensorpy.Size([1, 3, 2, 2])
    """

    _function = staticmethod(F.lp_pool2d)


class LPPool3d(_LPPoolNd):
    """The norm of each window of a volume.

    Input (N, C, D, H, W) or (C, D, H, W), output with a window for each place; floats.

    Arguments:
        norm_type: which norm: 2 the Euclidean one
        kernel_size: the size of the window: one number for all dimensions, or one for each
        stride: how far the window moves: one number for all dimensions, or one for each
        ceil_mode: whether a window that begins inside and ends outside of the input counts

    Example:
        >>> nn.LPPool3d(2, 2)(tp.ones(1, 3, 4, 4, 4)).shape
        tensorpy.Size([1, 3, 2, 2, 2])
    """

    _function = staticmethod(F.lp_pool3d)


# ---- windows that are drawn ----


class _FractionalMaxPoolNd(Module):
    kernel_size: Any
    output_ratio: Any
    output_size: Any
    return_indices: bool
    _dims: int

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        sized = _ntuple(self._dims)
        self.kernel_size, self.return_indices = sized(kernel_size), return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else sized(output_size)
        self.output_ratio = None if output_ratio is None else sized(output_ratio)
        if output_size is None and output_ratio is None:
            raise ValueError(f"{type(self).__name__} needs an output_size or an output_ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError(f"{type(self).__name__} takes an output_size or an output_ratio, not both")
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor) -> Any:
        function = getattr(F, f"fractional_max_pool{self._dims}d")
        return function(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """Maxima of windows at random places of an image (Graham 2014).

    Input (N, C, H, W) or (C, H, W), output with a window for each place; floats.

    Arguments:
        kernel_size: the size of the window: one number for all dimensions, or one for each
        output_size: the sizes of the output: one number for all dimensions, or one for each
        output_ratio: the output's sizes as parts of the input's; instead of output_size
        return_indices: whether the places of the values come too, as max_unpool takes them

    Raises: ValueError for both output_size and output_ratio, or neither, and for a ratio outside (0, 1).

    Example:
        >>> nn.FractionalMaxPool2d(2, output_size=5)(tp.ones(1, 3, 8, 8)).shape
        tensorpy.Size([1, 3, 5, 5])
    """

    _dims = 2


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """Maxima of windows at random places of a volume (Graham 2014).

    Input (N, C, D, H, W) or (C, D, H, W), output with a window for each place; floats.

    Arguments:
        kernel_size: the size of the window: one number for all dimensions, or one for each
        output_size: the sizes of the output: one number for all dimensions, or one for each
        output_ratio: the output's sizes as parts of the input's; instead of output_size
        return_indices: whether the places of the values come too, as max_unpool takes them

    Raises: ValueError for both output_size and output_ratio, or neither, and for a ratio outside (0, 1).

    Example:
        >>> nn.FractionalMaxPool3d(2, output_size=5)(tp.ones(1, 3, 8, 8, 8)).shape
        tensorpy.Size([1, 3, 5, 5, 5])
    """

    _dims = 3


# ---- to a given size ----


class _AdaptiveMaxPoolNd(Module):
    output_size: Any
    return_indices: bool
    _function: Any

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size, self.return_indices = output_size, return_indices

    def forward(self, input: Tensor) -> Any:
        return self._function(input, self.output_size, self.return_indices)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Maxima of windows that divide a signal into `output_size` parts.

    Input (N, C, L) or (C, L), output with a window for each place; floats.

    Arguments:
        output_size: the sizes of the output: one number for all dimensions, or one for each
        return_indices: whether the places of the values come too, as max_unpool takes them

    Example:
        >>> nn.AdaptiveMaxPool1d(2)(tp.ones(1, 3, 9)).shape
        tensorpy.Size([1, 3, 2])
    """

    _function = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Maxima of windows that divide an image into `output_size` parts.

    Input (N, C, H, W) or (C, H, W), output with a window for each place; floats.

    Arguments:
        output_size: the sizes of the output: one number for all dimensions, or one for each
        return_indices: whether the places of the values come too, as max_unpool takes them

    Example:
        >>> nn.AdaptiveMaxPool2d((2, 3))(tp.ones(1, 3, 9, 9)).shape
        tensorpy.Size([1, 3, 2, 3])
    """

    _function = staticmethod(F.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Maxima of windows that divide a volume into `output_size` parts.

    Input (N, C, D, H, W) or (C, D, H, W), output with a window for each place; floats.

    Arguments:
        output_size: the sizes of the output: one number for all dimensions, or one for each
        return_indices: whether the places of the values come too, as max_unpool takes them

    Example:
        >>> nn.AdaptiveMaxPool3d(2)(tp.ones(1, 3, 5, 5, 5)).shape
        tensorpy.Size([1, 3, 2, 2, 2])
    """

    _function = staticmethod(F.adaptive_max_pool3d)


class _AdaptiveAvgPoolNd(Module):
    _function: Any

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return self._function(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Means of windows that divide a signal into `output_size` parts.

    Input (N, C, L) or (C, L), output with a window for each place; floats.

    Example:
        >>> nn.AdaptiveAvgPool1d(2)(tp.ones(1, 3, 9)).shape
        tensorpy.Size([1, 3, 2])
    """

    _function = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Means of windows that divide an image into `output_size` parts.

    Input (N, C, H, W) or (C, H, W), output with a window for each place; floats.

    Example:
        >>> nn.AdaptiveAvgPool2d((2, 3))(tp.ones(1, 3, 9, 9)).shape
        tensorpy.Size([1, 3, 2, 3])
    """

    _function = staticmethod(F.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Means of windows that divide a volume into `output_size` parts.

    Input (N, C, D, H, W) or (C, D, H, W), output with a window for each place; floats.

    Example:
        >>> nn.AdaptiveAvgPool3d(2)(tp.ones(1, 3, 5, 5, 5)).shape
        tensorpy.Size([1, 3, 2, 2, 2])
    """

    _function = staticmethod(F.adaptive_avg_pool3d)
