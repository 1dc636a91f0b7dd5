"""Convolutions of integers: the windows of an image are rows of a product of integers (packed.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._tensor.quantized import per_tensor_affine
from tensorpy.ao.nn.quantized.packed import PackedParamsBase, check_bias, check_dtype, check_scales, quantized_by_range

__all__ = [
    f"conv{n}d{what}"
    for n in (1, 2, 3)
    for what in ("", "_relu", "_dynamic", "_prepack", "_unpack", "_stride", "_padding", "_dilation", "_groups")
    if n > 1 or what in ("", "_relu", "_dynamic", "_prepack", "_unpack")
] + ["conv2d_add", "conv2d_add_relu"]


def _panels(weight: Tensor, groups: int, joined: bool, centred: bool) -> Tensor:
    """The integers [out, in / groups, *window] as prim::convolution.int8 takes them."""
    rows = weight.movedim(1, -1)  # channels lie beside each other in an input's memory
    if groups == weight.shape[0] and rows.shape[-1] == 1 and centred:
        rows = _C.constant_pad_nd(rows.reshape(groups, -1), [0, 0, 0, -groups % 16])
        return rows.reshape(-1, 16, rows.shape[1]).transpose(1, 2)[None, ..., None].contiguous()
    rows = rows.flatten(-2) if joined else rows  # a window's line is one run
    rows = _C.constant_pad_nd(rows, [0, -rows.shape[-1] % 4]).reshape(groups, weight.shape[0] // groups, -1)
    return _C.stack([_C._int8_panels(each) for each in rows])


class ConvPackedParamsBase(PackedParamsBase):
    """A quantized weight [out, in / groups, *window] with a bias, in panels for each group, and how its window moves.

    Pickled, it is the weight, the bias and these numbers.
    """

    stride: Any
    padding: Any
    dilation: Any
    groups: int
    window: Any
    features: int
    channels: int
    arguments: Any

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor | None,
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        groups: int,
    ) -> None:
        super().__init__(weight, bias)
        self.stride, self.padding, self.dilation = tuple(stride), tuple(padding), tuple(dilation)
        self.groups, self.window = groups, tuple(weight.shape[2:])
        self.features, self.channels = weight.shape[0], weight.shape[1] * groups
        scales, zero_points, numbers = self._numbers()
        joined = groups == 1 and self.dilation[-1] == 1
        panels = _panels(weight.int_repr(), groups, joined, not zero_points.any())
        moves = zip((self.window, self.stride, self.padding, self.dilation), (1, 1, 0, 1), strict=True)
        each = [(plain,) * (3 - len(numbers)) + numbers for numbers, plain in moves]
        self.arguments = (panels, scales, zero_points, numbers, *each, groups, self.features)

    def __reduce__(self) -> Any:
        arguments = self._weight, self._bias, self.stride, self.padding, self.dilation, self.groups
        return ConvPackedParamsBase, arguments

    def _spread(self, integers: Tensor, zero_point: int) -> Tensor:
        return integers  # a transposed convolution's lie apart

    def __call__(self, x: Tensor, scale: float, zero_point: int, relu: bool) -> Tensor:
        """The convolution of a quantized tensor."""
        n = len(self.window)
        name = f"quantized::conv{n}d"
        if not x.is_quantized or x.dtype != _C.quint8 or x.qscheme() is not per_tensor_affine:
            raise RuntimeError(f"{name}: the input is one of quint8 that is quantized per tensor, not of {x.dtype}")
        if x.dim() != n + 2 or x.shape[1] != self.channels:
            raise RuntimeError(f"{name}: the input has {tuple(x.shape)}, the weight is of {self.channels} channels")
        integers = self._spread(_C._layout_part(x, 0), x.q_zero_point()).movedim(1, -1)  # read where they are
        for _ in range(3 - n):
            integers = integers.unsqueeze(1)
        arguments: Any = (integers, *self.arguments, x.q_scale(), x.q_zero_point(), scale, zero_point, relu)
        made = _C._convolution_int8(*arguments)
        for _ in range(3 - n):
            made = made.squeeze(1)
        return _C._quantized(made.movedim(-1, 1), _C.quint8, scale, zero_point)  # which nobody else has

    def dynamic(self, x: Tensor, reduce_range: bool) -> Tensor:
        """The convolution of numbers, which are quantized by their range. As in PyTorch the result is rounded to the
        input's scale and zero point, and cut off where that range ends."""
        given = quantized_by_range(x, reduce_range)
        return self(given, given.q_scale(), given.q_zero_point(), False).dequantize()


def check_weight(name: str, n: int, weight: Tensor) -> None:
    """That a weight is one of integers for windows of n dimensions."""
    check_dtype(name, weight)
    if weight.dim() != n + 2 or 0 in weight.shape:
        raise RuntimeError(f"{name}: the weight has {n + 2} dimensions, none of 0, not {tuple(weight.shape)}")


def check_moves(name: str, n: int, stride: Any, padding: Any, dilation: Any, **more: Any) -> None:
    """That there is a number for each dimension, from 1 on for stride and dilation, from 0 on for the others."""
    moves = {"stride": stride, "padding": padding, "dilation": dilation, **more}
    for what, given in moves.items():
        least = int(what in ("stride", "dilation"))
        if len(given) != n or any(number < least for number in given):
            raise RuntimeError(f"{name}: {what} is {n} numbers from {least} on, not {list(given)}")


def _prepack(
    n: int,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> ConvPackedParamsBase:
    name = f"quantized::conv{n}d_prepack"
    check_weight(name, n, weight)
    check_scales(name, weight)
    check_moves(name, n, stride, padding, dilation)
    if groups < 1 or weight.shape[0] % groups:
        raise RuntimeError(f"{name}: {weight.shape[0]} outputs are not {groups} groups")
    check_bias(name, weight.shape[0], bias)
    return ConvPackedParamsBase(weight, bias, stride, padding, dilation, groups)


def _packed(n: int, packed_weight: Any) -> ConvPackedParamsBase:
    if isinstance(packed_weight, ConvPackedParamsBase) and len(packed_weight.window) == n:
        return packed_weight
    raise RuntimeError(f"quantized::conv{n}d: a weight from conv{n}d_prepack, not {type(packed_weight).__name__}")


def conv1d_prepack(
    weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, groups: int
) -> ConvPackedParamsBase:
    """A weight of qint8 [out, in / groups, width] and a bias, laid out for conv1d."""
    return _prepack(1, weight, bias, stride, padding, dilation, groups)


def conv2d_prepack(
    weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, groups: int
) -> ConvPackedParamsBase:
    """A weight of qint8 [out, in / groups, height, width] and a bias, laid out for conv2d."""
    return _prepack(2, weight, bias, stride, padding, dilation, groups)


def conv3d_prepack(
    weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, groups: int
) -> ConvPackedParamsBase:
    """A weight of qint8 [out, in / groups, depth, height, width] and a bias, laid out for conv3d."""
    return _prepack(3, weight, bias, stride, padding, dilation, groups)


def conv1d(qx: Tensor, packed_weight: Any, output_scale: float, output_zero_point: int) -> Tensor:
    """The convolution of quint8 [N, channels, width], with the scale and the zero point of the result."""
    return _packed(1, packed_weight)(qx, output_scale, output_zero_point, False)


def conv1d_relu(qx: Tensor, packed_weight: Any, output_scale: float, output_zero_point: int) -> Tensor:
    """The same, and nothing below 0."""
    return _packed(1, packed_weight)(qx, output_scale, output_zero_point, True)


def conv2d(qx: Tensor, packed_weight: Any, output_scale: float, output_zero_point: int) -> Tensor:
    """The convolution of quint8 [N, channels, height, width], with the scale and the zero point of the result."""
    return _packed(2, packed_weight)(qx, output_scale, output_zero_point, False)


def conv2d_relu(qx: Tensor, packed_weight: Any, output_scale: float, output_zero_point: int) -> Tensor:
    """The same, and nothing below 0."""
    return _packed(2, packed_weight)(qx, output_scale, output_zero_point, True)


def _added(qx: Tensor, qaccum: Tensor, packed_weight: Any) -> Tensor:
    """A convolution and another tensor, in float32."""
    packed = _packed(2, packed_weight)
    weight, bias = packed.unpack()
    moves = (packed.stride, packed.padding, packed.dilation, packed.groups)
    found = _C.conv2d(qx.dequantize(), weight.dequantize(), bias, *moves)
    if found.shape != qaccum.shape:
        raise RuntimeError(f"quantized::conv2d_add: {tuple(found.shape)} and {tuple(qaccum.shape)} are not added")
    return found + qaccum.dequantize()


def conv2d_add(qx: Tensor, qaccum: Tensor, packed_weight: Any, output_scale: float, output_zero_point: int) -> Tensor:
    """conv2d plus another quantized tensor, computed in float32 and rounded once."""
    return _C.quantize_per_tensor(_added(qx, qaccum, packed_weight), output_scale, output_zero_point, qx.dtype)


def conv2d_add_relu(
    qx: Tensor, qaccum: Tensor, packed_weight: Any, output_scale: float, output_zero_point: int
) -> Tensor:
    """The same, and nothing below 0."""
    made = _added(qx, qaccum, packed_weight).relu()
    return _C.quantize_per_tensor(made, output_scale, output_zero_point, qx.dtype)


def conv3d(qx: Tensor, packed_weight: Any, output_scale: float, output_zero_point: int) -> Tensor:
    """The convolution of quint8 [N, channels, depth, height, width], with the result's scale and zero point."""
    return _packed(3, packed_weight)(qx, output_scale, output_zero_point, False)


def conv3d_relu(qx: Tensor, packed_weight: Any, output_scale: float, output_zero_point: int) -> Tensor:
    """The same, and nothing below 0."""
    return _packed(3, packed_weight)(qx, output_scale, output_zero_point, True)


def conv1d_dynamic(qx: Tensor, packed_weight: Any, reduce_range: bool = False) -> Tensor:
    """The convolution of float32 [N, channels, width], with integers that are chosen by its range."""
    return _packed(1, packed_weight).dynamic(qx, reduce_range)


def conv2d_dynamic(qx: Tensor, packed_weight: Any, reduce_range: bool = False) -> Tensor:
    """The convolution of float32 [N, channels, height, width], with integers that are chosen by its range."""
    return _packed(2, packed_weight).dynamic(qx, reduce_range)


def conv3d_dynamic(qx: Tensor, packed_weight: Any, reduce_range: bool = False) -> Tensor:
    """The convolution of float32 [N, channels, depth, height, width], with integers that are chosen by its range."""
    return _packed(3, packed_weight).dynamic(qx, reduce_range)


def conv1d_unpack(packed_weights: Any) -> tuple[Tensor, Tensor | None]:
    """The weight and the bias that conv1d_prepack got."""
    return _packed(1, packed_weights).unpack()


def conv2d_unpack(packed_weights: Any) -> tuple[Tensor, Tensor | None]:
    """The weight and the bias that conv2d_prepack got."""
    return _packed(2, packed_weights).unpack()


def conv3d_unpack(packed_weights: Any) -> tuple[Tensor, Tensor | None]:
    """The weight and the bias that conv3d_prepack got."""
    return _packed(3, packed_weights).unpack()


def conv2d_stride(packed_weights: Any) -> list[int]:
    """How far the window moves, along each dimension."""
    return list(_packed(2, packed_weights).stride)


def conv3d_stride(packed_weights: Any) -> list[int]:
    """How far the window moves, along each dimension."""
    return list(_packed(3, packed_weights).stride)


def conv2d_padding(packed_weights: Any) -> list[int]:
    """How wide the border is, along each dimension."""
    return list(_packed(2, packed_weights).padding)


def conv3d_padding(packed_weights: Any) -> list[int]:
    """How wide the border is, along each dimension."""
    return list(_packed(3, packed_weights).padding)


def conv2d_dilation(packed_weights: Any) -> list[int]:
    """How far the window's elements are apart, along each dimension."""
    return list(_packed(2, packed_weights).dilation)


def conv3d_dilation(packed_weights: Any) -> list[int]:
    """How far the window's elements are apart, along each dimension."""
    return list(_packed(3, packed_weights).dilation)


def conv2d_groups(packed_weights: Any) -> int:
    """How many groups of channels are convolved apart."""
    return _packed(2, packed_weights).groups


def conv3d_groups(packed_weights: Any) -> int:
    """How many groups of channels are convolved apart."""
    return _packed(3, packed_weights).groups
