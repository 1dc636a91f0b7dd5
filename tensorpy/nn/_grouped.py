"""Products of matrices by group, and the convolution over sequences that has time first."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tensorpy._C import bfloat16
from tensorpy.nn._common import ops

if TYPE_CHECKING:
    from tensorpy import Tensor, dtype

__all__ = ["ScalingType", "SwizzleType", "conv_tbc", "grouped_mm", "scaled_grouped_mm", "scaled_mm"]


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """conv1d of an input (time, batch, channels) with a weight (time, channels, channels out).

    Arguments:
        input: the tensor
        weight: the weights, (time, channels, channels out)
        bias: what is added to each output channel or feature, or None
        pad: how many elements are added, from the last dimension: (left, right, top, bottom, ...)

    Returns: a tensor (time, batch, channels out).

    Example:
        >>> F.conv_tbc(tp.ones(5, 2, 3), tp.ones(3, 3, 4), tp.zeros(4), 1).shape
        tensorpy.Size([5, 2, 4])
    """
    moved = ops.conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
    return moved.permute(2, 0, 1)


def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: dtype | None = None,
) -> Tensor:
    """A product of matrices for each group, as in mixtures of experts.

    Two operands of three dimensions are a group for each first index. In an operand of two, group i ends at `offs[i]`:
    along the rows of mat_a if mat_b has a matrix for each group, along the columns of mat_b if mat_a has, and along the
    dimension that is summed over, with a matrix for each group as the result, if both have two dimensions.

    Arguments:
        mat_a: the first matrix
        mat_b: the second matrix
        offs: where each group ends
        bias: what is added to each output channel or feature, or None
        out_dtype: the dtype of the result

    Returns: a tensor: (groups, M, N), or (M, N) with the groups one after the other.

    Example:
        >>> F.grouped_mm(tp.ones(2, 4, 8, dtype=tp.bfloat16), tp.ones(2, 8, 8, dtype=tp.bfloat16)).shape
        tensorpy.Size([2, 4, 8])
    """
    return ops._grouped_mm(mat_a, mat_b, offs, bias, out_dtype)


class ScalingType(enum.Enum):
    """What of a matrix of 8-bit floats has a scale of its own.

    Example:
        >>> F.ScalingType.TensorWise.name
        'TensorWise'
    """

    TensorWise = 0
    RowWise = 1
    BlockWise1x16 = 2
    BlockWise1x32 = 3
    BlockWise1x128 = 4
    BlockWise128x128 = 5


class SwizzleType(enum.Enum):
    """In which order the scales of blocks lie.

    Example:
        >>> F.SwizzleType.NO_SWIZZLE.name
        'NO_SWIZZLE'
    """

    NO_SWIZZLE = 0
    SWIZZLE_32_4_4 = 1


def _listed(value: Any) -> list[Any]:
    return [] if value is None else list(value) if isinstance(value, (list, tuple)) else [value]


def _numbers(value: Any) -> list[int]:
    return [each.value for each in _listed(value)]


def scaled_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    scale_a: Tensor | list[Tensor],
    scale_recipe_a: ScalingType | list[ScalingType],
    scale_b: Tensor | list[Tensor],
    scale_recipe_b: ScalingType | list[ScalingType],
    swizzle_a: SwizzleType | list[SwizzleType] | None = None,
    swizzle_b: SwizzleType | list[SwizzleType] | None = None,
    bias: Tensor | None = None,
    output_dtype: dtype | None = bfloat16,
    contraction_dim: Sequence[int] = (),
    use_fast_accum: bool = False,
) -> Tensor:
    """The product of matrices of 8-bit floats that are multiples of scales, by one number or a number for each line.

    Arguments:
        mat_a: the first matrix
        mat_b: the second matrix
        scale_a: the scales of the first matrix
        scale_recipe_a: how they are spread over it
        scale_b: the scales of the second matrix
        scale_recipe_b: how they are spread over it
        swizzle_a: the order in which they lie
        swizzle_b: the order in which they lie
        bias: what is added to each output channel or feature, or None
        output_dtype: the dtype of the result
        contraction_dim: the dimensions that are summed over
        use_fast_accum: is taken, and changes nothing here

    Returns: a matrix (M, N) of output_dtype.

    Example:
        >>> x = tp.ones(16, 16).to(tp.float8_e4m3fn)
        >>> one = tp.ones(1)
        >>> how = F.ScalingType.TensorWise
        >>> F.scaled_mm(x, x.t(), one, how, one, how, output_dtype=tp.bfloat16).shape
        tensorpy.Size([16, 16])
    """
    return ops._scaled_mm_v2(
        mat_a,
        mat_b,
        _listed(scale_a),
        _numbers(scale_recipe_a),
        _numbers(swizzle_a),
        _listed(scale_b),
        _numbers(scale_recipe_b),
        _numbers(swizzle_b),
        bias,
        output_dtype,
        list(contraction_dim),
        use_fast_accum,
    )


def scaled_grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    scale_a: Tensor | list[Tensor],
    scale_recipe_a: ScalingType | list[ScalingType],
    scale_b: Tensor | list[Tensor],
    scale_recipe_b: ScalingType | list[ScalingType],
    swizzle_a: SwizzleType | list[SwizzleType] | None = None,
    swizzle_b: SwizzleType | list[SwizzleType] | None = None,
    bias: Tensor | None = None,
    offs: Tensor | None = None,
    output_dtype: dtype | None = bfloat16,
    contraction_dim: Sequence[int] = (),
    use_fast_accum: bool = False,
) -> Tensor:
    """grouped_mm of 8-bit floats with a scale for each row of mat_a and each column of mat_b, as bfloat16.

    Arguments:
        mat_a: the first matrix
        mat_b: the second matrix
        scale_a: the scales of the first matrix
        scale_recipe_a: how they are spread over it
        scale_b: the scales of the second matrix
        scale_recipe_b: how they are spread over it
        swizzle_a: the order in which they lie
        swizzle_b: the order in which they lie
        bias: what is added to each output channel or feature, or None
        offs: where each group ends
        output_dtype: the dtype of the result
        contraction_dim: the dimensions that are summed over
        use_fast_accum: is taken, and changes nothing here

    Returns: a tensor of bfloat16.

    Example:
        >>> y = F.scaled_grouped_mm(a, b, scale_a, recipe, scale_b, recipe, offs=ends)  # doctest: +SKIP
    """
    return ops._scaled_grouped_mm_v2(
        mat_a,
        mat_b,
        _listed(scale_a),
        _numbers(scale_recipe_a),
        _numbers(swizzle_a),
        _listed(scale_b),
        _numbers(scale_recipe_b),
        _numbers(swizzle_b),
        offs,
        bias,
        output_dtype,
        list(contraction_dim),
        use_fast_accum,
    )
