"""Transposed convolutions of integers: convolutions of an input whose elements lie apart, by the weight turned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._tensor.quantized import per_tensor_affine
from tensorpy.ao.nn.quantized.packed import check_bias
from tensorpy.ao.nn.quantized.packed_conv import ConvPackedParamsBase, check_moves, check_weight

__all__ = [
    f"conv_transpose{n}d{what}"
    for n in (1, 2, 3)
    for what in (
        "", "_dynamic", "_prepack", "_unpack", "_stride", "_padding", "_output_padding", "_dilation", "_groups",
        "_transpose",
    )
    if n > 1 or what in ("", "_dynamic", "_prepack", "_unpack")
]  # fmt: skip


def _turned(weight: Tensor, groups: int) -> Tensor:
    """A weight [in, out / groups, *window] as that of a convolution, [out, in / groups, *window] from the other end."""
    integers = weight.int_repr().reshape(groups, -1, *weight.shape[1:]).transpose(1, 2).flatten(0, 1)
    integers = integers.flip(list(range(2, integers.dim())))
    return _C._make_per_tensor_quantized_tensor(integers, weight.q_scale(), weight.q_zero_point())


class ConvTransposePackedParams(ConvPackedParamsBase):
    """A quantized weight [in, out / groups, *window] with a bias, and what a transposed convolution is given.

    Pickled, it is these.
    """

    given: dict[str, Any]

    def __init__(
        self, weight: Tensor, bias: Tensor | None, stride: Sequence[int], padding: Sequence[int],
        output_padding: Sequence[int], dilation: Sequence[int], groups: int,
    ) -> None:  # fmt: skip
        n = weight.dim() - 2
        super().__init__(_turned(weight, groups), bias, (1,) * n, (0,) * n, tuple(dilation), groups)
        names = ("stride", "padding", "output_padding", "dilation")
        self.given = dict(zip(names, map(tuple, (stride, padding, output_padding, dilation)), strict=True))
        self._whole = weight

    def unpack(self) -> tuple[Tensor, Tensor | None]:
        """The weight and the bias."""
        return self._whole, self._bias

    def __reduce__(self) -> Any:
        return ConvTransposePackedParams, (*self.unpack(), *self.given.values(), self.groups)

    def _spread(self, integers: Tensor, zero_point: int) -> Tensor:
        """The integers with as many zeros between them as the stride has steps, and at the border."""
        moves = self.given
        border: list[int] = []
        places = [(n - 1) * s + 1 for n, s in zip(integers.shape[2:], moves["stride"], strict=True)]
        if min(integers.shape[2:]) < 1:
            raise RuntimeError(f"quantized::conv_transpose: an input without elements, {tuple(integers.shape)}")
        apart = _C.full([*integers.shape[:2], *places], zero_point, dtype=integers.dtype, device=integers.device)
        at: Any = (Ellipsis, *(slice(None, None, s) for s in moves["stride"]))
        apart[at] = integers
        for w, p, more, d in zip(self.window, *list(moves.values())[1:], strict=True):
            border[:0] = [d * (w - 1) - p, d * (w - 1) - p + more]
        return _C.constant_pad_nd(apart, border, zero_point)


def _prepack(
    n: int, weight: Tensor, bias: Tensor | None, stride: Sequence[int], padding: Sequence[int],
    output_padding: Sequence[int], dilation: Sequence[int], groups: int,
) -> ConvTransposePackedParams:  # fmt: skip
    name = f"quantized::conv_transpose{n}d_prepack"
    check_weight(name, n, weight)
    if weight.qscheme() is not per_tensor_affine:
        raise RuntimeError(f"{name}: the weight has one scale")
    check_moves(name, n, stride, padding, dilation, output_padding=output_padding)
    if any(more >= max(s, d) for more, s, d in zip(output_padding, stride, dilation, strict=True)):
        raise RuntimeError(f"{name}: output padding must be smaller than either stride or dilation")
    if groups < 1 or weight.shape[0] % groups:
        raise RuntimeError(f"{name}: {weight.shape[0]} inputs are not {groups} groups")
    check_bias(name, weight.shape[1] * groups, bias)
    return ConvTransposePackedParams(weight, bias, stride, padding, output_padding, dilation, groups)


def _packed(n: int, packed_weight: Any) -> ConvTransposePackedParams:
    if isinstance(packed_weight, ConvTransposePackedParams) and len(packed_weight.window) == n:
        return packed_weight
    raise RuntimeError(
        f"quantized::conv_transpose{n}d: a weight from conv_transpose{n}d_prepack, not {type(packed_weight).__name__}"
    )


def conv_transpose1d_prepack(
    weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, output_padding: Any, dilation: Any, groups: int
) -> ConvTransposePackedParams:
    """A weight of qint8 [in, out / groups, width] and a bias, laid out for conv_transpose1d."""
    return _prepack(1, weight, bias, stride, padding, output_padding, dilation, groups)


def conv_transpose1d(qx: Tensor, packed_weight: Any, output_scale: float, output_zero_point: int) -> Tensor:
    """The transposed convolution of quint8 [N, channels, width], with the result's scale and zero point."""
    return _packed(1, packed_weight)(qx, output_scale, output_zero_point, False)


def conv_transpose1d_dynamic(qx: Tensor, packed_weight: Any, reduce_range: bool = False) -> Tensor:
    """The transposed convolution of float32 [N, channels, width], with integers that are chosen by its range."""
    return _packed(1, packed_weight).dynamic(qx, reduce_range)


def conv_transpose2d_dynamic(qx: Tensor, packed_weight: Any, reduce_range: bool = False) -> Tensor:
    """The transposed convolution of float32 [N, channels, height, width], with integers chosen by its range."""
    return _packed(2, packed_weight).dynamic(qx, reduce_range)


def conv_transpose3d_dynamic(qx: Tensor, packed_weight: Any, reduce_range: bool = False) -> Tensor:
    """The transposed convolution of float32 [N, channels, depth, height, width], with integers chosen by its range."""
    return _packed(3, packed_weight).dynamic(qx, reduce_range)


def conv_transpose1d_unpack(packed_weights: Any) -> tuple[Tensor, Tensor | None]:
    """The weight and the bias that conv_transpose1d_prepack got."""
    return _packed(1, packed_weights).unpack()


def conv_transpose2d_prepack(
    weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, output_padding: Any, dilation: Any, groups: int
) -> ConvTransposePackedParams:
    """A weight of qint8 [in, out / groups, height, width] and a bias, laid out for conv_transpose2d."""
    return _prepack(2, weight, bias, stride, padding, output_padding, dilation, groups)


def conv_transpose2d(qx: Tensor, packed_weight: Any, output_scale: float, output_zero_point: int) -> Tensor:
    """The transposed convolution of quint8 [N, channels, height, width], with the result's scale and zero point."""
    return _packed(2, packed_weight)(qx, output_scale, output_zero_point, False)


def conv_transpose2d_unpack(packed_weights: Any) -> tuple[Tensor, Tensor | None]:
    """The weight and the bias that conv_transpose2d_prepack got."""
    return _packed(2, packed_weights).unpack()


def conv_transpose3d_prepack(
    weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, output_padding: Any, dilation: Any, groups: int
) -> ConvTransposePackedParams:
    """A weight of qint8 [in, out / groups, depth, height, width] and a bias, laid out for conv_transpose3d."""
    return _prepack(3, weight, bias, stride, padding, output_padding, dilation, groups)


def conv_transpose3d(qx: Tensor, packed_weight: Any, output_scale: float, output_zero_point: int) -> Tensor:
    """The transposed convolution of quint8 [N, channels, depth, height, width], with the scale given."""
    return _packed(3, packed_weight)(qx, output_scale, output_zero_point, False)


def conv_transpose3d_unpack(packed_weights: Any) -> tuple[Tensor, Tensor | None]:
    """The weight and the bias that conv_transpose3d_prepack got."""
    return _packed(3, packed_weights).unpack()


def conv_transpose2d_stride(packed_weights: Any) -> list[int]:
    """How far the window moves in the result, along each dimension."""
    return list(_packed(2, packed_weights).given["stride"])


def conv_transpose2d_padding(packed_weights: Any) -> list[int]:
    """How much of the border is cut off, along each dimension."""
    return list(_packed(2, packed_weights).given["padding"])


def conv_transpose2d_output_padding(packed_weights: Any) -> list[int]:
    """How much is added at the end, along each dimension."""
    return list(_packed(2, packed_weights).given["output_padding"])


def conv_transpose2d_dilation(packed_weights: Any) -> list[int]:
    """How far the window's elements are apart, along each dimension."""
    return list(_packed(2, packed_weights).given["dilation"])


def conv_transpose2d_groups(packed_weights: Any) -> int:
    """How many groups of channels are convolved apart."""
    return _packed(2, packed_weights).groups


def conv_transpose2d_transpose(packed_weights: Any) -> int:
    """1: the convolution is a transposed one."""
    _packed(2, packed_weights)
    return 1


def conv_transpose3d_stride(packed_weights: Any) -> list[int]:
    """How far the window moves in the result, along each dimension."""
    return list(_packed(3, packed_weights).given["stride"])


def conv_transpose3d_padding(packed_weights: Any) -> list[int]:
    """How much of the border is cut off, along each dimension."""
    return list(_packed(3, packed_weights).given["padding"])


def conv_transpose3d_output_padding(packed_weights: Any) -> list[int]:
    """How much is added at the end, along each dimension."""
    return list(_packed(3, packed_weights).given["output_padding"])


def conv_transpose3d_dilation(packed_weights: Any) -> list[int]:
    """How far the window's elements are apart, along each dimension."""
    return list(_packed(3, packed_weights).given["dilation"])


def conv_transpose3d_groups(packed_weights: Any) -> int:
    """How many groups of channels are convolved apart."""
    return _packed(3, packed_weights).groups


def conv_transpose3d_transpose(packed_weights: Any) -> int:
    """1: the convolution is a transposed one."""
    _packed(3, packed_weights)
    return 1
