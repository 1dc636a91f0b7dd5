"""Windows of images, and images of other sizes."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tensorpy._C import channel_shuffle as channel_shuffle
from tensorpy._C import pixel_shuffle as pixel_shuffle
from tensorpy._C import pixel_unshuffle as pixel_unshuffle
from tensorpy.nn import _pooling
from tensorpy.nn._common import Size, listed, nn, ops

if TYPE_CHECKING:
    from tensorpy import Tensor

__all__ = [
    "affine_grid",
    "channel_shuffle",
    "fold",
    "grid_sample",
    "interpolate",
    "pixel_shuffle",
    "pixel_unshuffle",
    "unfold",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]


def unfold(input: Tensor, kernel_size: Size, dilation: Size = 1, padding: Size = 0, stride: Size = 1) -> Tensor:
    """The windows of an image as columns.

    Arguments:
        input: the tensor
        kernel_size: the size of the window: one number for all dimensions, or one for each
        dilation: the distance between elements of the window
        padding: how many elements are added at both sides of each dimension
        stride: how far the window moves: one number for all dimensions, or one for each

    Returns: a tensor (*, C * window, windows).

    Example:
        >>> F.unfold(tp.ones(1, 1, 3, 3), 2).shape
        tensorpy.Size([1, 4, 4])
    """
    return nn.im2col(input, listed(kernel_size, 2), listed(dilation, 2), listed(padding, 2), listed(stride, 2))


def fold(
    input: Tensor,
    output_size: Size,
    kernel_size: Size,
    dilation: Size = 1,
    padding: Size = 0,
    stride: Size = 1,
) -> Tensor:
    """Columns added up as the windows of an image of `output_size`.

    Arguments:
        input: the tensor
        output_size: the sizes of the output: one number for all dimensions, or one for each
        kernel_size: the size of the window: one number for all dimensions, or one for each
        dilation: the distance between elements of the window
        padding: how many elements are added at both sides of each dimension
        stride: how far the window moves: one number for all dimensions, or one for each

    Returns: a tensor (*, C, *output_size).

    Raises: RuntimeError for columns that do not fit the windows.

    Example:
        >>> F.fold(tp.ones(1, 4, 4), (3, 3), 2)
        tensor([[[[1., 2., 1.],
                  [2., 4., 2.],
                  [1., 2., 1.]]]])
    """
    sizes = (listed(value, 2) for value in (output_size, kernel_size, dilation, padding, stride))
    return nn.col2im(input, *sizes)


# (mode, spatial dimensions) -> the operator
_RESIZERS = {
    **{("nearest", n): f"upsample_nearest{n}d" for n in (1, 2, 3)},
    **{("nearest-exact", n): f"_upsample_nearest_exact{n}d" for n in (1, 2, 3)},
    ("linear", 1): "upsample_linear1d",
    ("bilinear", 2): "upsample_bilinear2d",
    ("trilinear", 3): "upsample_trilinear3d",
    ("bicubic", 2): "upsample_bicubic2d",
}
_MODES = ("nearest", "linear", "bilinear", "bicubic", "trilinear", "area", "nearest-exact", "lanczos")
_ANTIALIASED = ("bilinear", "bicubic", "lanczos")


def interpolate(
    input: Tensor,
    size: Size | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resized to a size or by a factor.

    Arguments:
        input: (N, C, L), (N, C, H, W) or (N, C, D, H, W); floats
        size: the sizes of the output; or scale_factor
        scale_factor: how many times larger each dimension gets; instead of size
        mode: 'nearest', 'nearest-exact', 'linear', 'bilinear', 'bicubic', 'trilinear' or 'area'
        align_corners: whether the centres of the corner elements, not their edges, are what input and output share
        recompute_scale_factor: whether the scale is computed anew from the sizes
        antialias: whether a smaller output is smoothed

    Returns: a tensor (N, C, *size).

    Raises: ValueError for both size and scale_factor, or neither, and for options that do not go with the mode;
        NotImplementedError for an unknown mode.

    Example:
        >>> F.interpolate(tp.tensor([[[1.0, 2.0]]]), scale_factor=2)
        tensor([[[1., 1., 2., 2.]]])
    """
    dims = input.dim() - 2
    if mode not in _MODES:
        raise NotImplementedError(f"interpolate: the mode {mode!r} is none of {', '.join(_MODES)}")
    if align_corners is not None and mode in ("nearest", "area", "nearest-exact"):
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    if antialias and (mode not in _ANTIALIASED or dims != 2):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )
    if mode == "lanczos" and not antialias:
        raise ValueError("Lanczos mode requires antialias=True")
    sizes, factors = _target(input, size, scale_factor, dims, recompute_scale_factor)
    if antialias:
        return getattr(nn, f"_upsample_{mode}2d_aa")(input, sizes, bool(align_corners), factors)
    if mode == "area":
        target = sizes if sizes is not None else [int(n * f) for n, f in zip(input.shape[2:], factors, strict=True)]
        return getattr(_pooling, f"adaptive_avg_pool{dims}d")(input, target)
    name = _RESIZERS.get((mode, dims))
    if name is None:
        raise NotImplementedError(
            "Input Error: Only 3D, 4D and 5D input Tensors supported "
            f"(got {input.dim()}D) for the modes: {' | '.join(_MODES)} (got {mode})"
        )
    function: Any = getattr(nn, name, None) or getattr(ops, name)
    if "nearest" in mode:
        return function(input, sizes, factors)
    return function(input, sizes, bool(align_corners), factors)


def _target(
    input: Tensor,
    size: Size | None,
    scale_factor: float | Sequence[float] | None,
    dims: int,
    recompute: bool | None,
) -> tuple[Any, Any]:
    """The sizes wanted, or the factors."""
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        sizes = listed(size, dims)
        if len(sizes) != dims:
            raise ValueError(f"Input and output must have the same number of spatial dimensions, got {dims} and {size}")
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        return sizes, None
    assert scale_factor is not None
    factors = [float(scale_factor)] * dims if isinstance(scale_factor, (int, float)) else [*map(float, scale_factor)]
    if len(factors) != dims:
        raise ValueError(
            "Input and scale_factor must have the same number of spatial dimensions, but got input with spatial "
            f"dimensions of {[*input.shape[2:]]} and scale_factor of shape {scale_factor}."
        )
    if recompute:
        return [math.floor(n * f) for n, f in zip(input.shape[2:], factors, strict=True)], None
    return None, factors


def upsample(
    input: Tensor,
    size: Size | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """An older name of interpolate.

    Arguments:
        input: the tensor
        size: the sizes of the output; or scale_factor
        scale_factor: how many times larger each dimension gets; instead of size
        mode: the mode, by name
        align_corners: whether the centres of the corner elements, not their edges, are what input and output share

    Returns: a tensor (N, C, *size).

    Example:
        >>> F.upsample(tp.tensor([[[1.0, 2.0]]]), scale_factor=2)
        tensor([[[1., 1., 2., 2.]]])
    """
    warnings.warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(
    input: Tensor, size: Size | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """An older name of interpolate(mode="nearest").

    Arguments:
        input: the tensor
        size: the sizes of the output; or scale_factor
        scale_factor: how many times larger each dimension gets; instead of size

    Returns: a tensor (N, C, *size).

    Example:
        >>> F.upsample_nearest(tp.ones(1, 1, 2, 2), scale_factor=2).shape
        tensorpy.Size([1, 1, 4, 4])
    """
    warnings.warn(
        "`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2
    )
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(
    input: Tensor, size: Size | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """An older name of interpolate(mode="bilinear", align_corners=True).

    Arguments:
        input: the tensor
        size: the sizes of the output; or scale_factor
        scale_factor: how many times larger each dimension gets; instead of size

    Returns: a tensor (N, C, H, W).

    Example:
        >>> F.upsample_bilinear(tp.ones(1, 1, 2, 2), scale_factor=2).shape
        tensorpy.Size([1, 1, 4, 4])
    """
    warnings.warn(
        "`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2
    )
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


# ---- images at places that a grid names ----


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The grid for grid_sample that moves images by matrices (N, 2, 3), or volumes by (N, 3, 4).

    Arguments:
        theta: the affine maps, (N, 2, 3) or (N, 3, 4)
        size: the sizes of the output; or scale_factor
        align_corners: whether the centres of the corner elements, not their edges, are what input and output share

    Returns: a tensor (N, H, W, 2), or (N, D, H, W, 3).

    Raises: ValueError for a theta that is not of floats or not of these shapes, NotImplementedError for a size of other
        than 4 or 5 numbers.

    Example:
        >>> F.affine_grid(tp.eye(2, 3)[None], (1, 1, 4, 4), align_corners=False).shape
        tensorpy.Size([1, 4, 4, 2])
    """
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    dims = len(size) - 2
    if dims not in (2, 3):
        raise NotImplementedError("affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms")
    if theta.dim() != 3 or tuple(theta.shape[1:]) != (dims, dims + 1):
        raise ValueError(f"Expected a batch of {dims}D affine matrices of shape Nx{dims}x{dims + 1}, got {theta.shape}")
    if align_corners and min(size[2:]) == 1:
        warnings.warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True: the "
            "one place along such a dimension is its middle, 0.",
            stacklevel=2,
        )
    elif min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    return ops.affine_grid_generator(theta, size, _aligned(align_corners))


def _aligned(align_corners: bool | None) -> bool:
    """Whether the corners are aligned; they are not where nothing is said, which once was otherwise."""
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please "
            "specify align_corners=True if the old behavior is desired.",
            stacklevel=3,
        )
    return bool(align_corners)


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """The input at the places of a grid, which go from -1 to 1 and name the last dimension first.

    Arguments:
        input: (N, C, H, W) or (N, C, D, H, W); floats
        grid: where each output element is read: (N, H, W, 2) or (N, D, H, W, 3), from -1 to 1
        mode: 'bilinear', 'nearest' or 'bicubic'
        padding_mode: 'zeros', 'border' or 'reflection': what is read outside
        align_corners: whether the centres of the corner elements, not their edges, are what input and output share

    Returns: a tensor (N, C, *grid.shape[1:-1]).

    Raises: ValueError for an unknown mode or padding_mode.

    Example:
        >>> F.grid_sample(tp.arange(4.0).view(1, 1, 2, 2), tp.zeros(1, 1, 1, 2), align_corners=True)
        tensor([[[[1.5000]]]])
    """
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    how, border = ("bilinear", "nearest", "bicubic").index(mode), ("zeros", "border", "reflection").index(padding_mode)
    return ops.grid_sampler(input, grid, how, border, _aligned(align_corners))
