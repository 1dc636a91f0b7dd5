"""Quantized tensors in Python: their schemes, what pickle and files write of them, and how they are made again."""

from __future__ import annotations

import math
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
    by = scales.to(_C.float32 if in_floats else _C.float64)
    at = zero_points.to(_C.float32 if in_floats else _C.int64)
    _C._check_channels(by, at, *_LIMITS[dtype])
    return _C._quantized_channels(integers, dtype, by, at, axis)
