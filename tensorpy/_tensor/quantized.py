"""Quantized tensors in Python: their schemes, what pickle and files write of them, and how they are made again."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor


class qscheme:
    """How the integers of a quantized tensor are read: per_tensor_affine and its kin.

    Arguments:
        name: "per_tensor_affine", say

    Example:
        >>> tp.quantize_per_tensor(tp.ones(2), 0.5, 0, tp.quint8).qscheme()
        tensorpy.per_tensor_affine
    """

    __module__ = "tensorpy"
    __slots__ = ("name",)
    name: str

    def __init__(self, name: str) -> None:
        object.__setattr__(self, "name", name)

    def __setattr__(self, name: str, value: object) -> None:
        """Files name these objects, which all of a process share."""
        raise AttributeError(f"{self!r} cannot be changed")

    def __repr__(self) -> str:
        return f"{str(_C.quint8).rpartition('.')[0]}.{self.name}"

    def __reduce__(self) -> str:
        return self.name


per_tensor_affine: qscheme = qscheme("per_tensor_affine")
per_channel_affine: qscheme = qscheme("per_channel_affine")
per_tensor_symmetric: qscheme = qscheme("per_tensor_symmetric")
per_channel_symmetric: qscheme = qscheme("per_channel_symmetric")
per_channel_affine_float_qparams: qscheme = qscheme("per_channel_affine_float_qparams")
SCHEMES = (
    per_tensor_affine,
    per_channel_affine,
    per_tensor_symmetric,
    per_channel_symmetric,
    per_channel_affine_float_qparams,
)
_OF_TENSORS = (per_tensor_affine, per_channel_affine, per_channel_affine_float_qparams)

# What memory has the integers of a dtype as.
INTEGERS = {_C.quint8: _C.uint8, _C.qint8: _C.int8, _C.qint32: _C.int32, _C.quint4x2: _C.uint8, _C.quint2x4: _C.uint8}
# How many of the integers a byte of a file has, where it has more than one.
IN_A_BYTE = {_C.quint4x2: 2, _C.quint2x4: 4}
_LIMITS = {
    _C.quint8: (0, 255), _C.qint8: (-128, 127), _C.qint32: (-(2**31), 2**31 - 1), _C.quint4x2: (0, 15),
    _C.quint2x4: (0, 3),
}  # fmt: skip


def unpacked(packed: Tensor, bits: int) -> Tensor:
    """The integers of each byte, the one in its low bits first, along the last dimension."""
    return _C.stack([(packed >> at) & (2**bits - 1) for at in range(0, 8, bits)], -1).flatten(-2)


def scheme_of(tensor: Tensor) -> qscheme:
    """How the integers of a quantized tensor are read."""
    return _OF_TENSORS[_C._qscheme(tensor)]


def _choose_qparams_per_tensor(input: Tensor, reduce_range: bool = False) -> tuple[float, int]:
    """The scale and the zero point by which quint8 holds the range of the elements.

    Arguments:
        reduce_range: whether half of the integers are used

    Example:
        >>> tp._choose_qparams_per_tensor(tp.tensor([0.0, 255.0]))
        (1.0, 0)
    """
    chosen = _C.quantize_per_tensor_dynamic(input, _C.quint8, reduce_range)
    return chosen.q_scale(), chosen.q_zero_point()


def narrowed(
    error: Callable[[Tensor, Tensor], Tensor], least: Tensor, greatest: Tensor, steps: int, kept: int
) -> tuple[Tensor, Tensor]:
    """The ends of rows that give the least error, of those met on the way from both ends: at each step the one moves
    whose move leaves the smaller error, as long as a row is wider than `kept` of its `steps`."""
    step = (greatest - least) / steps
    narrowest = step * kept
    low, high, now = least, greatest, error(least, greatest)
    best = now
    for _ in range(steps):
        wide = low + narrowest < high
        if not wide.any():
            break
        of_low, of_high = error(low + step, high), error(low, high - step)
        better = wide & (now < of_low) & (now < of_high) & (now < best)
        best, least, greatest = (
            _C.where(better, new, old) for new, old in ((now, best), (low, least), (high, greatest))
        )
        first = of_low < of_high
        low = _C.where(wide & first, low + step, low)
        high = _C.where(wide & ~first, high - step, high)
        now = _C.where(wide, _C.where(first, of_low, of_high), now)
    return least, greatest


def choose_qparams_optimized(
    input: Tensor, numel: int, n_bins: int, ratio: float, bit_width: int
) -> tuple[Tensor, Tensor]:
    """The ends of a range that integers of some bits are best spread over, for the first elements of a tensor: the
    range is narrowed from both ends as long as the squared error falls.

    Arguments:
        input: a tensor of float32
        numel: how many elements count
        n_bins: into how many steps the range is cut
        ratio: the part of the steps that may go
        bit_width: of the integers

    Returns: the greatest and the least number of the range.

    Raises: RuntimeError for a tensor that is not float32 or has fewer elements, for fewer than 1 step, a ratio outside
        of 0 to 1, and bits outside of 1 to 31.

    Example:
        >>> greatest, least = tp.choose_qparams_optimized(tp.tensor([0.0, 1.0, 2.0]), 3, 200, 0.16, 8)
        >>> greatest, least
        (tensor([2.]), tensor([0.]))
    """
    if input.dtype != _C.float32 or not 0 < numel <= input.numel():
        raise RuntimeError(
            f"choose_qparams_optimized: {numel} elements of float32 are looked at, of {input.numel()} of {input.dtype}"
        )
    if n_bins < 1 or not 0 <= ratio <= 1 or not 1 <= bit_width <= 31:
        raise RuntimeError(
            "choose_qparams_optimized: at least 1 bin, a ratio from 0 to 1 and 1 to 31 bits, not "
            f"{n_bins}, {ratio} and {bit_width}"
        )
    numbers, most = input.detach().flatten()[:numel], 2**bit_width - 1

    def error(low: Tensor, high: Tensor) -> Tensor:
        scale = (high - low) / most
        scale = _C.where(scale == 0, _C.ones_like(scale), scale)
        integers = ((numbers - low) * (1 / scale)).round().clamp(0, most)
        return (integers * scale + low - numbers).square().sum(0, keepdim=True).sqrt()

    ends = numbers.amin(0, keepdim=True), numbers.amax(0, keepdim=True)
    least, greatest = narrowed(error, *ends, n_bins, int(n_bins * (1.0 - ratio)))
    return greatest, least


# ---- files and copies ----


def quantizer_of(tensor: Tensor) -> tuple[Any, ...]:
    """How the integers are read, in a file's words."""
    scheme = tensor.qscheme()
    if scheme is per_tensor_affine:
        return scheme, tensor.q_scale(), tensor.q_zero_point()
    return scheme, tensor.q_per_channel_scales(), tensor.q_per_channel_zero_points(), tensor.q_per_channel_axis()


def reduced(tensor: Tensor) -> Any:
    """What pickle writes of a quantized tensor."""
    return rebuild_of, (_C._layout_part(tensor, 0).clone(), tensor.dtype, quantizer_of(tensor))


def copied(tensor: Tensor) -> Tensor:
    """What deepcopy makes."""
    return tensor.clone()


def rebuild_of(integers: Any, dtype: Any, quantizer: Any) -> Tensor:
    """A quantized tensor of integers; what comes from a file is checked as what a program gives."""
    scheme, *rest = quantizer
    if dtype not in INTEGERS or not isinstance(integers, Tensor) or scheme not in _OF_TENSORS:
        raise RuntimeError("a quantized tensor has no integers, no quantized dtype, or a scheme that no tensor has")
    if dtype in IN_A_BYTE and integers.numel() and int(integers.max()) > _LIMITS[dtype][1]:
        raise RuntimeError(f"a tensor of {dtype} has integers above {_LIMITS[dtype][1]}")
    if len(rest) != (2 if scheme is per_tensor_affine else 3):
        raise RuntimeError(f"a quantizer of {len(rest)} parts is none of {scheme}")
    if scheme is per_tensor_affine:
        scale, zero_point = rest
        if type(scale) is not float or type(zero_point) is not int or not math.isfinite(scale):
            raise RuntimeError("a quantized tensor's scale is no finite number, or its zero point no int")
        return _C._quantized(integers, dtype, scale, zero_point)
    scales, zero_points, axis = rest
    if not isinstance(scales, Tensor) or not isinstance(zero_points, Tensor) or type(axis) is not int:
        raise RuntimeError("a quantized tensor has no scales, zero points or axis")
    if scales.dim() != 1 or scales.shape != zero_points.shape:
        raise RuntimeError("a quantized tensor has one scale and one zero point for each channel")
    in_floats = zero_points.is_floating_point()  # PyTorch's files call both schemes per_channel_affine
    if in_floats and not bool(zero_points.isfinite().all()):
        raise RuntimeError("a quantized tensor's zero points in floating point are finite numbers")
    by = scales.to(_C.float32 if in_floats else _C.float64)
    at = zero_points.to(_C.float32 if in_floats else _C.int64)
    _C._check_channels(by, at, *_LIMITS[dtype])
    return _C._quantized_channels(integers, dtype, by, at, axis)
