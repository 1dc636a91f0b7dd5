"""Pooling.

Each max_ function has a form with indices, which its `return_indices` asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tensorpy.nn._common import Size, nn, ops

if TYPE_CHECKING:
    from tensorpy import Tensor

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "lp_pool1d",
    "lp_pool2d",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
]

OutputSize = int | Sequence[int | None]


def _max_pool(name: str, dims: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    plain = getattr(ops, name)
    indexed = getattr(ops if dims == 1 else nn, f"{name}_with_indices")

    def with_indices(
        input: Tensor,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        dilation: Size = 1,
        ceil_mode: bool = False,
        return_indices: bool = True,
    ) -> tuple[Tensor, Tensor]:
        """The largest element of each window, and its place in the plane."""
        return indexed(input, kernel_size, _stride(stride), padding, dilation, ceil_mode)

    def pool(
        input: Tensor,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        dilation: Size = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        """The largest element of each window; with `return_indices` also its place in the plane."""
        function = indexed if return_indices else plain
        return function(input, kernel_size, _stride(stride), padding, dilation, ceil_mode)

    pool.__name__, with_indices.__name__ = name, f"{name}_with_indices"
    return pool, with_indices


def _stride(stride: Size | None) -> Size:
    return [] if stride is None else stride


max_pool1d, max_pool1d_with_indices = _max_pool("max_pool1d", 1)
max_pool2d, max_pool2d_with_indices = _max_pool("max_pool2d", 2)
max_pool3d, max_pool3d_with_indices = _max_pool("max_pool3d", 3)


def avg_pool1d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window of a signal."""
    return ops.avg_pool1d(input, kernel_size, _stride(stride), padding, ceil_mode, count_include_pad)


def avg_pool2d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window."""
    return nn.avg_pool2d(input, kernel_size, _stride(stride), padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each box."""
    return nn.avg_pool3d(input, kernel_size, _stride(stride), padding, ceil_mode, count_include_pad, divisor_override)


def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: int, stride: Size | None = None, ceil_mode: bool = False
) -> Tensor:
    """The norm of each window of a signal."""
    mean = avg_pool1d(input**norm_type, kernel_size, stride, 0, ceil_mode)
    return (mean.sign() * mean.abs().relu() * kernel_size) ** (1.0 / norm_type)


def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: Size, stride: Size | None = None, ceil_mode: bool = False
) -> Tensor:
    """The norm of each window."""
    high, wide = (kernel_size, kernel_size) if isinstance(kernel_size, int) else kernel_size
    mean = avg_pool2d(input**norm_type, kernel_size, stride, 0, ceil_mode)
    return (mean.sign() * mean.abs().relu() * (high * wide)) ** (1.0 / norm_type)


# ---- to a given size ----


def _output_size(input: Tensor, output_size: OutputSize, dims: int) -> Size:
    """None keeps a dimension."""
    if isinstance(output_size, int):
        return output_size
    if len(output_size) > input.dim():
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    sizes = input.shape[-len(output_size) :] if output_size else ()
    return [size if wanted is None else wanted for wanted, size in zip(output_size, sizes, strict=True)]


def adaptive_avg_pool1d(input: Tensor, output_size: Size) -> Tensor:
    """Means over windows that divide each signal into `output_size` parts."""
    return ops.adaptive_avg_pool1d(input, output_size)


def adaptive_avg_pool2d(input: Tensor, output_size: OutputSize) -> Tensor:
    """Means over windows that divide each plane into `output_size` parts; None keeps a dimension."""
    return nn.adaptive_avg_pool2d(input, _output_size(input, output_size, 2))


def adaptive_avg_pool3d(input: Tensor, output_size: OutputSize) -> Tensor:
    """Means over boxes that divide each volume into `output_size` parts; None keeps a dimension."""
    return nn.adaptive_avg_pool3d(input, _output_size(input, output_size, 3))


def _adaptive_max_pool(name: str, dims: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    function = getattr(ops if dims == 1 else nn, name)

    def with_indices(input: Tensor, output_size: OutputSize, return_indices: bool = True) -> tuple[Tensor, Tensor]:
        """The largest elements of windows that divide the input into `output_size` parts, and their places."""
        return function(input, _output_size(input, output_size, dims))

    def pool(input: Tensor, output_size: OutputSize, return_indices: bool = False) -> Any:
        """The largest elements of windows that divide the input into `output_size` parts."""
        both = function(input, _output_size(input, output_size, dims))
        return both if return_indices else both[0]

    pool.__name__, with_indices.__name__ = name, f"{name}_with_indices"
    return pool, with_indices


adaptive_max_pool1d, adaptive_max_pool1d_with_indices = _adaptive_max_pool("adaptive_max_pool1d", 1)
adaptive_max_pool2d, adaptive_max_pool2d_with_indices = _adaptive_max_pool("adaptive_max_pool2d", 2)
adaptive_max_pool3d, adaptive_max_pool3d_with_indices = _adaptive_max_pool("adaptive_max_pool3d", 3)
