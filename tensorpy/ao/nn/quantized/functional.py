"""Functions of quantized tensors, as `nn.functional` has them of dense ones. Where a function takes a scale and a zero
point, its result is quantized by these; else as its input is."""

from __future__ import annotations

from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.ao.nn.quantized import packed, packed_conv, single
from tensorpy.nn import functional as F

__all__ = [
    "adaptive_avg_pool2d", "adaptive_avg_pool3d", "avg_pool2d", "avg_pool3d", "celu", "clamp", "conv1d", "conv2d",
    "conv3d", "elu", "hardsigmoid", "hardswish", "hardtanh", "interpolate", "leaky_relu", "linear", "max_pool1d",
    "max_pool2d", "threshold", "upsample", "upsample_bilinear", "upsample_nearest",
]  # fmt: skip


def _check(name: str, input: Tensor) -> None:
    if not input.is_quantized:
        raise ValueError(f"Input to 'quantized.{name}' must be quantized!")


def _numbers(value: Any, n: int) -> Any:
    return (value,) * n if isinstance(value, int) else tuple(value)


def avg_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window, as integers again.

    Arguments:
        input: a quantized tensor
        kernel_size: the window's size
        stride: how far it moves, its size for None
        padding: how many elements stand around
        ceil_mode: whether sizes are rounded up
        count_include_pad: whether what stands around counts
        divisor_override: what sums are divided by, for None how many elements there are

    Raises ValueError for a tensor that is not quantized.

    Example:
        >>> x = tp.quantize_per_tensor(tp.arange(16.0).view(1, 4, 4), 1.0, 0, tp.quint8)
        >>> tp.ao.nn.quantized.functional.avg_pool2d(x, 2).int_repr().flatten()
        tensor([ 2,  4, 10, 12], dtype=tensorpy.uint8)
    """
    _check("avg_pool2d", input)
    return F.avg_pool2d(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Means of windows as many as a size has.

    Arguments:
        input: a quantized tensor
        output_size: the result's size

    Raises ValueError for a tensor that is not quantized.

    Example:
        >>> x = tp.quantize_per_tensor(tp.arange(16.0).view(1, 4, 4), 1.0, 0, tp.quint8)
        >>> tp.ao.nn.quantized.functional.adaptive_avg_pool2d(x, (2, 1)).int_repr().flatten()
        tensor([ 4, 12], dtype=tensorpy.uint8)
    """
    _check("adaptive_avg_pool2d", input)
    return F.adaptive_avg_pool2d(input, output_size)


def avg_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window, as integers again.

    Arguments:
        input: a quantized tensor
        kernel_size: the window's size
        stride: how far it moves, its size for None
        padding: how many elements stand around
        ceil_mode: whether sizes are rounded up
        count_include_pad: whether what stands around counts
        divisor_override: what sums are divided by, for None how many elements there are

    Raises ValueError for a tensor that is not quantized.

    Example:
        >>> x = tp.quantize_per_tensor(tp.arange(16.0).view(1, 1, 4, 4), 1.0, 0, tp.quint8)
        >>> tp.ao.nn.quantized.functional.avg_pool3d(x, (1, 2, 2)).int_repr().flatten()
        tensor([ 2,  4, 10, 12], dtype=tensorpy.uint8)
    """
    _check("avg_pool3d", input)
    return F.avg_pool3d(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Means of windows as many as a size has.

    Arguments:
        input: a quantized tensor
        output_size: the result's size

    Raises ValueError for a tensor that is not quantized.

    Example:
        >>> x = tp.quantize_per_tensor(tp.arange(16.0).view(1, 1, 4, 4), 1.0, 0, tp.quint8)
        >>> tp.ao.nn.quantized.functional.adaptive_avg_pool3d(x, (1, 2, 1)).int_repr().flatten()
        tensor([ 4, 12], dtype=tensorpy.uint8)
    """
    _check("adaptive_avg_pool3d", input)
    return F.adaptive_avg_pool3d(input, output_size)


def max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    """The largest number of each window.

    Arguments:
        input: a quantized tensor
        kernel_size: the window's size
        stride: how far it moves, its size for None
        padding: how many elements stand around
        dilation: how far a window's elements are apart
        ceil_mode: whether sizes are rounded up
        return_indices: whether places are wanted: no kernel has them

    Raises NotImplementedError for indices.

    Example:
        >>> x = tp.quantize_per_tensor(tp.arange(16.0).view(1, 4, 4), 1.0, 0, tp.quint8)
        >>> tp.ao.nn.quantized.functional.max_pool1d(x, 4).int_repr().flatten()
        tensor([ 3,  7, 11, 15], dtype=tensorpy.uint8)
    """
    if return_indices:
        raise NotImplementedError("quantized.max_pool1d: return_indices is not there, as in PyTorch")
    return F.max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    """The largest number of each window.

    Arguments:
        input: a quantized tensor
        kernel_size: the window's size
        stride: how far it moves, its size for None
        padding: how many elements stand around
        dilation: how far a window's elements are apart
        ceil_mode: whether sizes are rounded up
        return_indices: whether places are wanted: no kernel has them

    Raises NotImplementedError for indices.

    Example:
        >>> x = tp.quantize_per_tensor(tp.arange(16.0).view(1, 1, 4, 4), 1.0, 0, tp.quint8)
        >>> tp.ao.nn.quantized.functional.max_pool2d(x, 4).int_repr().flatten()
        tensor([15], dtype=tensorpy.uint8)
    """
    if return_indices:
        raise NotImplementedError("quantized.max_pool2d: return_indices is not there, as in PyTorch")
    return F.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode)


def _check_convolution(n: int, input: Tensor, weight: Tensor, padding_mode: str, dtype: Any) -> None:
    if padding_mode != "zeros":
        raise NotImplementedError("Only zero-padding is supported!")
    if input.dtype != _C.quint8 or dtype != _C.quint8:
        raise NotImplementedError("Only torch.quint8 is supported for activation tensor!")
    if weight.dtype != _C.qint8:
        raise NotImplementedError("Only torch.qint8 is supported for weight tensor!")
    packed.check_images(n, input)


def _convolution(
    n: int, input: Tensor, weight: Tensor, bias: Tensor | None, shape: tuple[Any, Any, Any, int], said: tuple[Any, ...]
) -> Tensor:
    """The convolution over n dimensions; shape: stride, padding, dilation, groups; said: the rest of its arguments."""
    padding_mode, scale, zero_point, dtype = said
    _check_convolution(n, input, weight, padding_mode, dtype)
    *sizes, groups = shape
    prepack, run = getattr(packed_conv, f"conv{n}d_prepack"), getattr(packed_conv, f"conv{n}d")
    made: Tensor = run(input, prepack(weight, bias, *(_numbers(size, n) for size in sizes), groups), scale, zero_point)
    return made


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    padding_mode: str = "zeros",
    scale: float = 1.0,
    zero_point: int = 0,
    dtype: Any = _C.quint8,
) -> Tensor:
    """A convolution of integers.

    Arguments:
        input: a quantized tensor
        weight: a quantized weight
        bias: a bias in floating point, or None
        stride: how far it moves, its size for None
        padding: how many elements stand around
        dilation: how far a window's elements are apart
        groups: how many groups channels are in
        padding_mode: zeros
        scale: the result's scale
        zero_point: the result's zero point
        dtype: quint8

    Raises NotImplementedError for another padding, dtype or dimensions.

    Example:
        >>> x = tp.quantize_per_tensor(tp.ones(1, 2, 2), 1.0, 0, tp.quint8)
        >>> w = tp.quantize_per_tensor(tp.ones(1, 2, 1), 1.0, 0, tp.qint8)
        >>> tp.ao.nn.quantized.functional.conv1d(x, w, None).int_repr().flatten()
        tensor([2, 2], dtype=tensorpy.uint8)
    """
    shape, said = (stride, padding, dilation, groups), (padding_mode, scale, zero_point, dtype)
    return _convolution(1, input, weight, bias, shape, said)


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    padding_mode: str = "zeros",
    scale: float = 1.0,
    zero_point: int = 0,
    dtype: Any = _C.quint8,
) -> Tensor:
    """A convolution of integers.

    Arguments:
        input: a quantized tensor
        weight: a quantized weight
        bias: a bias in floating point, or None
        stride: how far it moves, its size for None
        padding: how many elements stand around
        dilation: how far a window's elements are apart
        groups: how many groups channels are in
        padding_mode: zeros
        scale: the result's scale
        zero_point: the result's zero point
        dtype: quint8

    Raises NotImplementedError for another padding, dtype or dimensions.

    Example:
        >>> x = tp.quantize_per_tensor(tp.ones(1, 2, 2, 2), 1.0, 0, tp.quint8)
        >>> w = tp.quantize_per_tensor(tp.ones(1, 2, 1, 1), 1.0, 0, tp.qint8)
        >>> tp.ao.nn.quantized.functional.conv2d(x, w, None).int_repr().flatten()
        tensor([2, 2, 2, 2], dtype=tensorpy.uint8)
    """
    shape, said = (stride, padding, dilation, groups), (padding_mode, scale, zero_point, dtype)
    return _convolution(2, input, weight, bias, shape, said)


def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    padding_mode: str = "zeros",
    scale: float = 1.0,
    zero_point: int = 0,
    dtype: Any = _C.quint8,
) -> Tensor:
    """A convolution of integers.

    Arguments:
        input: a quantized tensor
        weight: a quantized weight
        bias: a bias in floating point, or None
        stride: how far it moves, its size for None
        padding: how many elements stand around
        dilation: how far a window's elements are apart
        groups: how many groups channels are in
        padding_mode: zeros
        scale: the result's scale
        zero_point: the result's zero point
        dtype: quint8

    Raises NotImplementedError for another padding, dtype or dimensions.

    Example:
        >>> x = tp.quantize_per_tensor(tp.ones(1, 2, 2, 2, 2), 1.0, 0, tp.quint8)
        >>> w = tp.quantize_per_tensor(tp.ones(1, 2, 1, 1, 1), 1.0, 0, tp.qint8)
        >>> tp.ao.nn.quantized.functional.conv3d(x, w, None).int_repr().flatten()
        tensor([2, 2, 2, 2, 2, 2, 2, 2], dtype=tensorpy.uint8)
    """
    shape, said = (stride, padding, dilation, groups), (padding_mode, scale, zero_point, dtype)
    return _convolution(3, input, weight, bias, shape, said)


def linear(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, scale: float | None = None, zero_point: int | None = None
) -> Tensor:
    """A linear map of integers.

    Arguments:
        input: a quantized tensor
        weight: a quantized weight
        bias: a bias in floating point, or None
        scale: the result's scale
        zero_point: the result's zero point

    Raises RuntimeError for a weight that is not of integers.

    Example:
        >>> x = tp.quantize_per_tensor(tp.ones(1, 3), 1.0, 0, tp.quint8)
        >>> tp.ao.nn.quantized.functional.linear(x, tp.quantize_per_tensor(tp.ones(2, 3), 1.0, 0, tp.qint8)).int_repr()
        tensor([[3, 3]], dtype=tensorpy.uint8)
    """
    scale = input.q_scale() if scale is None else scale
    zero_point = input.q_zero_point() if zero_point is None else zero_point
    return packed.linear(input, packed.linear_prepack(weight, bias), scale, zero_point)


def celu(input: Tensor, scale: float, zero_point: int, alpha: float = 1.0) -> Tensor:
    """Negative numbers as alpha * (exp(x / alpha) - 1).

    Arguments:
        input: a quantized tensor
        scale: the result's scale
        zero_point: the result's zero point
        alpha: what negative numbers come to at most

    Raises ValueError for a tensor that is not quantized.

    Example:
        >>> x = tp.quantize_per_tensor(tp.tensor([-1.0, 2.0]), 0.5, 4, tp.quint8)
        >>> tp.ao.nn.quantized.functional.celu(x, 0.5, 4).int_repr()
        tensor([3, 8], dtype=tensorpy.uint8)
    """
    _check("celu", input)
    return single.celu(input, scale, zero_point, alpha)


def elu(input: Tensor, scale: float, zero_point: int, alpha: float = 1.0) -> Tensor:
    """Negative numbers as alpha * (exp(x) - 1).

    Arguments:
        input: a quantized tensor
        scale: the result's scale
        zero_point: the result's zero point
        alpha: what negative numbers come to at most

    Raises ValueError for a tensor that is not quantized.

    Example:
        >>> x = tp.quantize_per_tensor(tp.tensor([-1.0, 2.0]), 0.5, 4, tp.quint8)
        >>> tp.ao.nn.quantized.functional.elu(x, 0.5, 4).int_repr()
        tensor([3, 8], dtype=tensorpy.uint8)
    """
    _check("elu", input)
    return single.elu(input, scale, zero_point, alpha)


def hardswish(input: Tensor, scale: float, zero_point: int) -> Tensor:
    """Each number times its hardsigmoid.

    Arguments:
        input: a quantized tensor
        scale: the result's scale
        zero_point: the result's zero point

    Raises ValueError for a tensor that is not quantized.

    Example:
        >>> x = tp.quantize_per_tensor(tp.tensor([-1.0, 2.0]), 0.5, 4, tp.quint8)
        >>> tp.ao.nn.quantized.functional.hardswish(x, 0.5, 4).int_repr()
        tensor([3, 7], dtype=tensorpy.uint8)
    """
    _check("hardswish", input)
    return single.hardswish(input, scale, zero_point)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """x / 6 + 1 / 2, from 0 to 1.

    Arguments:
        input: a quantized tensor
        inplace: whether it is in place

    Raises ValueError for a tensor that is not quantized.

    Example:
        >>> x = tp.quantize_per_tensor(tp.tensor([-1.0, 2.0]), 0.5, 4, tp.quint8)
        >>> tp.ao.nn.quantized.functional.hardsigmoid(x).int_repr()
        tensor([ 85, 213], dtype=tensorpy.uint8)
    """
    _check("hardsigmoid", input)
    return F.hardsigmoid(input, inplace)


def leaky_relu(
    input: Tensor,
    negative_slope: float = 0.01,
    inplace: bool = False,
    scale: float | None = None,
    zero_point: int | None = None,
) -> Tensor:
    """Negative numbers times a factor.

    Arguments:
        input: a quantized tensor
        negative_slope: the factor of negative numbers
        inplace: whether it is in place
        scale: the result's scale
        zero_point: the result's zero point

    Raises AssertionError for a scale in place.

    Example:
        >>> x = tp.quantize_per_tensor(tp.tensor([-1.0, 2.0]), 0.5, 4, tp.quint8)
        >>> tp.ao.nn.quantized.functional.leaky_relu(x, 0.5).int_repr()
        tensor([3, 8], dtype=tensorpy.uint8)
    """
    if scale is None or zero_point is None:
        return F.leaky_relu(input, negative_slope, inplace)
    if inplace:
        raise AssertionError("Cannot rescale with `inplace`")
    return single.leaky_relu(input, negative_slope, inplace, scale, zero_point)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Numbers cut off at a least and a greatest one.

    Arguments:
        input: a quantized tensor
        min_val: the least number
        max_val: the greatest number
        inplace: whether it is in place

    Raises ValueError for a tensor that is not quantized.

    Example:
        >>> x = tp.quantize_per_tensor(tp.tensor([-1.0, 2.0]), 0.5, 4, tp.quint8)
        >>> tp.ao.nn.quantized.functional.hardtanh(x).int_repr()
        tensor([2, 6], dtype=tensorpy.uint8)
    """
    _check("hardtanh", input)
    return F.hardtanh(input, min_val, max_val, inplace)


def threshold(input: Tensor, threshold: float, value: float) -> Tensor:
    """Another number where one is not greater than a threshold.

    Arguments:
        input: a quantized tensor
        threshold: numbers up to this are replaced
        value: what by

    Raises ValueError for a tensor that is not quantized.

    Example:
        >>> x = tp.quantize_per_tensor(tp.tensor([-1.0, 2.0]), 0.5, 4, tp.quint8)
        >>> tp.ao.nn.quantized.functional.threshold(x, 0.0, 1.0).int_repr()
        tensor([6, 8], dtype=tensorpy.uint8)
    """
    _check("threshold", input)
    return F.threshold(input, threshold, value)


def clamp(input: Tensor, min_: float, max_: float) -> Tensor:
    """Numbers cut off at a least and a greatest one.

    Arguments:
        input: a quantized tensor
        min_: the least number
        max_: the greatest number

    Raises ValueError for a tensor that is not quantized.

    Example:
        >>> x = tp.quantize_per_tensor(tp.tensor([-1.0, 2.0]), 0.5, 4, tp.quint8)
        >>> tp.ao.nn.quantized.functional.clamp(x, 0.0, 1.0).int_repr()
        tensor([4, 6], dtype=tensorpy.uint8)
    """
    _check("clamp", input)
    return _C.clamp(input, min_, max_)


def interpolate(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    """Resized by the nearest number, or by lines between numbers.

    Arguments:
        input: a quantized tensor
        size: the result's size
        scale_factor: or how much larger it is
        mode: nearest or bilinear
        align_corners: whether corners keep their place

    Raises ValueError for a tensor that is not quantized.

    Example:
        >>> x = tp.quantize_per_tensor(tp.arange(2.0).view(1, 1, 1, 2), 1.0, 0, tp.quint8)
        >>> tp.ao.nn.quantized.functional.interpolate(x, (1, 4)).int_repr().flatten()
        tensor([0, 0, 1, 1], dtype=tensorpy.uint8)
    """
    _check("interpolate", input)
    return F.interpolate(input, size, scale_factor, mode, align_corners)


def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    """`interpolate` by its older name.

    Arguments:
        input: a quantized tensor
        size: the result's size
        scale_factor: or how much larger it is
        mode: nearest or bilinear
        align_corners: whether corners keep their place

    Raises ValueError for a tensor that is not quantized.

    Example:
        >>> x = tp.quantize_per_tensor(tp.arange(2.0).view(1, 1, 1, 2), 1.0, 0, tp.quint8)
        >>> tp.ao.nn.quantized.functional.upsample(x, (1, 4)).int_repr().flatten()
        tensor([0, 0, 1, 1], dtype=tensorpy.uint8)
    """
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Resized by lines between numbers, with corners in their place.

    Arguments:
        input: a quantized tensor
        size: the result's size
        scale_factor: or how much larger it is

    Raises ValueError for a tensor that is not quantized.

    Example:
        >>> x = tp.quantize_per_tensor(tp.tensor([[[[0.0, 3.0]]]]), 1.0, 0, tp.quint8)
        >>> tp.ao.nn.quantized.functional.upsample_bilinear(x, (1, 4)).int_repr().flatten()
        tensor([0, 1, 2, 3], dtype=tensorpy.uint8)
    """
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Resized by the nearest number.

    Arguments:
        input: a quantized tensor
        size: the result's size
        scale_factor: or how much larger it is

    Raises ValueError for a tensor that is not quantized.

    Example:
        >>> x = tp.quantize_per_tensor(tp.tensor([[[[0.0, 3.0]]]]), 1.0, 0, tp.quint8)
        >>> tp.ao.nn.quantized.functional.upsample_nearest(x, (1, 4)).int_repr().flatten()
        tensor([0, 0, 3, 3], dtype=tensorpy.uint8)
    """
    return interpolate(input, size, scale_factor, mode="nearest")
