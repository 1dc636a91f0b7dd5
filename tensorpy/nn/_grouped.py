"""Products of matrices by group, and the convolution over sequences that has time first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorpy.nn._common import ops

if TYPE_CHECKING:
    from tensorpy import Tensor, dtype

__all__ = ["conv_tbc", "grouped_mm"]


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """conv1d of an input (time, batch, channels) with a weight (time, channels, channels out)."""
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
    """
    if mat_a.ndim not in (2, 3) or mat_b.ndim not in (2, 3):
        raise RuntimeError(f"grouped_mm: operands have 2 or 3 dimensions, not {mat_a.ndim} and {mat_b.ndim}")
    if (offs is None) != (mat_a.ndim == mat_b.ndim == 3):
        raise RuntimeError("grouped_mm: offs is given if, and only if, an operand has 2 dimensions")
    if bias is not None:
        raise RuntimeError("grouped_mm: a bias is not supported")  # as in PyTorch
    if out_dtype is not None and out_dtype != mat_a.dtype:
        raise RuntimeError(f"grouped_mm: the result has the operands' dtype {mat_a.dtype}, not {out_dtype}")
    if offs is None:
        return mat_a @ mat_b
    ends = offs.tolist()
    sizes = [end - begin for begin, end in zip([0, *ends[:-1]], ends, strict=True)]
    whole = mat_b.shape[1] if mat_a.ndim == 3 else mat_a.shape[1 if mat_b.ndim == 2 else 0]
    if not sizes or min(sizes) < 0 or ends[-1] > whole:
        raise RuntimeError(f"grouped_mm: offs {ends} are no ends of groups of {whole}")
    rest = [*sizes, whole - ends[-1]]  # which belongs to no group: zeros
    if mat_a.ndim == mat_b.ndim == 2:
        return ops.stack([a @ b for a, b in zip(mat_a.split(rest, 1)[:-1], mat_b.split(rest)[:-1], strict=True)])
    if mat_a.ndim == 2:
        parts = [a @ b for a, b in zip(mat_a.split(rest)[:-1], mat_b, strict=True)]
        return ops.cat([*parts, parts[0].new_zeros(rest[-1], parts[0].shape[1])])
    parts = [a @ b for a, b in zip(mat_a, mat_b.split(rest, 1)[:-1], strict=True)]
    return ops.cat([*parts, parts[0].new_zeros(parts[0].shape[0], rest[-1])], 1)
