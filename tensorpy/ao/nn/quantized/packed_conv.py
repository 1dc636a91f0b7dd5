"""Convolutions of integers: the windows of an image are rows of a product of integers (packed.py)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._tensor.quantized import per_tensor_affine
from tensorpy.ao.nn.quantized.packed import PackedParamsBase, check_bias, check_dtype, check_scales

__all__ = [
    f"conv{n}d{what}"
    for n in (1, 2, 3)
    for what in ("", "_relu", "_prepack", "_unpack", "_stride", "_padding", "_dilation", "_groups")
    if n > 1 or what in ("", "_relu", "_prepack", "_unpack")
]


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
    panels: Any

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
        scales, zero_points, numbers = self._numbers()
        features = weight.shape[0] // groups
        self.features, self.channels = features, weight.shape[1] * groups
        # The input's channels are the last of a window: they lie beside each other in its memory.
        rows = weight.int_repr().movedim(1, -1).reshape(groups, features, -1)
        each = scales.numel() > 1

        def of(every: Tensor, group: int) -> Tensor:
            return every[group * features : (group + 1) * features]

        self.panels = [
            (
                _C._int8_panels(rows[g]),
                of(scales, g) if each else scales,
                of(zero_points, g) if each else zero_points,
                None if numbers is None else of(numbers, g),
            )
            for g in range(groups)
        ]

    def __reduce__(self) -> Any:
        arguments = self._weight, self._bias, self.stride, self.padding, self.dilation, self.groups
        return ConvPackedParamsBase, arguments

    def _windows(self, x: Tensor, zero_point: int) -> Tensor:
        """[N, *places, *window, channels] of [N, channels, *sizes]: a view of the integers and their border."""
        n = len(self.window)
        if any(self.padding):
            x = _C.constant_pad_nd(x, [p for p in reversed(self.padding) for _ in range(2)], zero_point)
        x = x.movedim(1, -1).contiguous()
        sizes = x.shape[1:-1]
        reach = [d * (w - 1) + 1 for d, w in zip(self.dilation, self.window, strict=True)]
        places = [(size - r) // s + 1 for size, r, s in zip(sizes, reach, self.stride, strict=True)]
        if any(size < r for size, r in zip(sizes, reach, strict=True)):
            raise RuntimeError(
                f"quantized::conv{n}d: a window of {tuple(reach)} is larger than an input of {tuple(sizes)} with its "
                "padding"
            )
        steps = x.stride()
        strides = [
            steps[0],
            *(a * b for a, b in zip(steps[1:-1], self.stride, strict=True)),
            *(a * b for a, b in zip(steps[1:-1], self.dilation, strict=True)),
            steps[-1],
        ]
        return x.as_strided([x.shape[0], *places, *self.window, x.shape[-1]], strides)

    def __call__(self, x: Tensor, scale: float, zero_point: int, relu: bool) -> Tensor:
        """The convolution of a quantized tensor."""
        n = len(self.window)
        name = f"quantized::conv{n}d"
        if not x.is_quantized or x.dtype != _C.quint8 or x.qscheme() is not per_tensor_affine:
            raise RuntimeError(f"{name}: the input is one of quint8 that is quantized per tensor, not of {x.dtype}")
        if x.dim() != n + 2 or x.shape[1] != self.channels:
            raise RuntimeError(f"{name}: the input has {tuple(x.shape)}, the weight is of {self.channels} channels")
        windows = self._windows(x.int_repr(), x.q_zero_point())
        places, width = windows.shape[: n + 1], self.channels // self.groups
        made = []
        for g, (panels, scales, zero_points, bias) in enumerate(self.panels):
            rows = windows[..., g * width : (g + 1) * width].reshape(prod(places), -1)
            made.append(
                _C._product_int8(
                    rows, panels, scales, zero_points, bias, self.features, x.q_scale(), x.q_zero_point(), scale,
                    zero_point, relu, _C.uint8,
                )
            )  # fmt: skip
        integers = made[0] if len(made) == 1 else _C.cat(made, 1)
        integers = integers.reshape(*places, self.features * self.groups).movedim(-1, 1)
        return _C._make_per_tensor_quantized_tensor(integers, scale, zero_point)


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
    check_dtype(name, weight)
    if weight.dim() != n + 2 or 0 in weight.shape:
        raise RuntimeError(f"{name}: the weight has {n + 2} dimensions, none of 0, not {tuple(weight.shape)}")
    check_scales(name, weight)
    for what, given, least in (("stride", stride, 1), ("padding", padding, 0), ("dilation", dilation, 1)):
        if len(given) != n or any(number < least for number in given):
            raise RuntimeError(f"{name}: {what} is {n} numbers from {least} on, not {list(given)}")
    if groups < 1 or weight.shape[0] % groups:
        raise RuntimeError(f"{name}: {weight.shape[0]} outputs are not {groups} groups")
    check_bias(name, weight, bias)
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


def conv3d(qx: Tensor, packed_weight: Any, output_scale: float, output_zero_point: int) -> Tensor:
    """The convolution of quint8 [N, channels, depth, height, width], with the result's scale and zero point."""
    return _packed(3, packed_weight)(qx, output_scale, output_zero_point, False)


def conv3d_relu(qx: Tensor, packed_weight: Any, output_scale: float, output_zero_point: int) -> Tensor:
    """The same, and nothing below 0."""
    return _packed(3, packed_weight)(qx, output_scale, output_zero_point, True)


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
