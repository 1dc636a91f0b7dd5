"""Norms and activations of a quantized tensor: operators of `ops.quantized`, whose results have a scale given."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.nn import functional as F

if TYPE_CHECKING:
    Scale = float | Tensor  # the modules' are tensors
    Place = int | Tensor

__all__ = [
    "batch_norm", "batch_norm1d", "batch_norm1d_relu", "batch_norm2d", "batch_norm2d_relu", "batch_norm3d",
    "batch_norm3d_relu", "batch_norm_relu", "celu", "clamp", "dropout", "elu", "group_norm", "hardswish",
    "instance_norm", "layer_norm", "leaky_relu", "max_pool1d", "max_pool2d", "prelu", "relu6", "sigmoid", "softmax",
    "threshold",
]  # fmt: skip


def _numbers(name: str, qx: Any) -> Tensor:
    if not isinstance(qx, Tensor) or qx.dtype not in (_C.quint8, _C.qint8):
        found = getattr(qx, "dtype", type(qx).__name__)
        raise RuntimeError(f"quantized::{name}: the input is one of quint8 or qint8, not of {found}")
    return qx.dequantize()


def _read(qx: Tensor, numbers: Tensor, scale: Scale, zero_point: Place) -> Tensor:
    return _C.quantize_per_tensor(numbers, float(scale), int(zero_point), qx.dtype)


# ---- norms ----


def _batch_norm(
    name: str, dims: Sequence[int], relu: bool, qx: Any, weight: Any, bias: Any, mean: Any, var: Any, eps: float,
    scale: Any, zero_point: Any,
) -> Tensor:  # fmt: skip
    """Integers less their zero point, by a factor and with a shift for each channel, both in steps of the result."""
    _numbers(name, qx)
    if qx.dim() not in dims or any(
        part.shape != qx.shape[1:2] for part in (mean, var, weight, bias) if part is not None
    ):
        raise RuntimeError(f"quantized::{name}: statistics of {tuple(mean.shape)} for an input of {tuple(qx.shape)}")
    if not isfinite(scale) or scale == 0:
        raise RuntimeError(f"quantized::{name}: the scale {scale} is no finite number other than 0")
    made = _C.quantized_batch_norm(qx, weight, bias, mean, var, eps, float(scale), int(zero_point)).detach()
    return made.relu() if relu else made


def batch_norm(
    qx: Tensor, weight: Any, bias: Any, mean: Tensor, var: Tensor, eps: float, output_scale: Scale,
    output_zero_point: Place,
) -> Tensor:  # fmt: skip
    """(x - mean) / sqrt(var + eps) * weight + bias for each channel, of [N, C, ...]."""
    return _batch_norm(
        "batch_norm", (2, 3, 4, 5), False, qx, weight, bias, mean, var, eps, output_scale, output_zero_point
    )


def batch_norm_relu(
    qx: Tensor, weight: Any, bias: Any, mean: Tensor, var: Tensor, eps: float, output_scale: Scale,
    output_zero_point: Place,
) -> Tensor:  # fmt: skip
    """The same, and nothing below 0."""
    rest = (weight, bias, mean, var, eps, output_scale, output_zero_point)
    return _batch_norm("batch_norm_relu", (4, 5), True, qx, *rest)


def batch_norm1d(qx: Tensor, *rest: Any, **named: Any) -> Tensor:
    """batch_norm of [N, C] or [N, C, width]."""
    return _batch_norm("batch_norm1d", (2, 3), False, qx, *rest, **_named(named))


def batch_norm1d_relu(qx: Tensor, *rest: Any, **named: Any) -> Tensor:
    """The same, and nothing below 0."""
    return _batch_norm("batch_norm1d_relu", (2, 3), True, qx, *rest, **_named(named))


def batch_norm2d(qx: Tensor, *rest: Any, **named: Any) -> Tensor:
    """batch_norm of [N, C, height, width]."""
    return _batch_norm("batch_norm2d", (4,), False, qx, *rest, **_named(named))


def batch_norm2d_relu(qx: Tensor, *rest: Any, **named: Any) -> Tensor:
    """The same, and nothing below 0."""
    return _batch_norm("batch_norm2d_relu", (4,), True, qx, *rest, **_named(named))


def batch_norm3d(qx: Tensor, *rest: Any, **named: Any) -> Tensor:
    """batch_norm of [N, C, depth, height, width]."""
    return _batch_norm("batch_norm3d", (5,), False, qx, *rest, **_named(named))


def batch_norm3d_relu(qx: Tensor, *rest: Any, **named: Any) -> Tensor:
    """The same, and nothing below 0."""
    return _batch_norm("batch_norm3d_relu", (5,), True, qx, *rest, **_named(named))


def _named(given: dict[str, Any]) -> dict[str, Any]:
    return {name.removeprefix("output_"): value for name, value in given.items()}


def layer_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Any, bias: Any, eps: float, output_scale: Scale,
    output_zero_point: Place,
) -> Tensor:  # fmt: skip
    """F.layer_norm of the numbers, quantized again."""
    made = F.layer_norm(_numbers("layer_norm", input), list(normalized_shape), weight, bias, eps)
    return _read(input, made.detach(), output_scale, output_zero_point)


def group_norm(
    input: Tensor, num_groups: int, weight: Any, bias: Any, eps: float, output_scale: Scale, output_zero_point: Place
) -> Tensor:
    """F.group_norm of the numbers, quantized again."""
    made = F.group_norm(_numbers("group_norm", input), num_groups, weight, bias, eps)
    return _read(input, made.detach(), output_scale, output_zero_point)


def instance_norm(
    input: Tensor, weight: Any, bias: Any, eps: float, output_scale: Scale, output_zero_point: Place
) -> Tensor:
    """Each channel of each example normalized, quantized again."""
    numbers = _numbers("instance_norm", input)
    if numbers.dim() < 3:
        raise RuntimeError(f"quantized::instance_norm: an input of three dimensions at least, not {numbers.dim()}")
    made = F.group_norm(numbers, numbers.shape[1], weight, bias, eps)
    return _read(input, made.detach(), output_scale, output_zero_point)


# ---- activations ----


def leaky_relu(
    qx: Tensor, negative_slope: float, inplace: bool, output_scale: Scale, output_zero_point: Place
) -> Tensor:
    """F.leaky_relu of the numbers, quantized again."""
    return _read(qx, F.leaky_relu(_numbers("leaky_relu", qx), negative_slope), output_scale, output_zero_point)


def prelu(qx: Tensor, weight: Tensor, output_scale: Scale, output_zero_point: Place) -> Tensor:
    """F.prelu of the numbers, whose slopes are quantized as well, quantized again."""
    slopes = weight.dequantize() if weight.is_quantized else weight
    return _read(qx, F.prelu(_numbers("prelu", qx), slopes), output_scale, output_zero_point)


def elu(
    self: Tensor, output_scale: Scale, output_zero_point: Place, alpha: float = 1, scale: float = 1,
    input_scale: float = 1,
) -> Tensor:  # fmt: skip
    """F.elu of the numbers, quantized again; what is below 0 is read by input_scale, and all is multiplied by scale."""
    numbers = _numbers("elu", self)
    made = _C.where(numbers <= 0, ((numbers * input_scale).exp() - 1) * (alpha * scale), numbers * scale)
    return _read(self, made, output_scale, output_zero_point)


def celu(self: Tensor, output_scale: Scale, output_zero_point: Place, alpha: float = 1) -> Tensor:
    """F.celu of the numbers, quantized again."""
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return elu(self, output_scale, output_zero_point, alpha, 1, 1 / alpha)


def hardswish(input: Tensor, output_scale: Scale, output_zero_point: Place) -> Tensor:
    """F.hardswish of the numbers, quantized again."""
    return _read(input, F.hardswish(_numbers("hardswish", input)), output_scale, output_zero_point)


def sigmoid(qx: Tensor, output_scale: Scale, output_zero_point: Place) -> Tensor:
    """The sigmoid of the numbers, quantized again."""
    return _read(qx, _numbers("sigmoid", qx).sigmoid(), output_scale, output_zero_point)


def softmax(qx: Tensor, dim: int, output_scale: Scale, output_zero_point: Place) -> Tensor:
    """The softmax of the numbers along a dimension, quantized again."""
    return _read(qx, _numbers("softmax", qx).softmax(dim), output_scale, output_zero_point)


def relu6(qx: Tensor, inplace: bool = False) -> Tensor:
    """Numbers from 0 to 6, quantized as they were."""
    _numbers("relu6", qx)
    return qx.clamp_(0, 6) if inplace else qx.clamp(0, 6)


def clamp(qx: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """Numbers between two bounds, quantized as they were."""
    _numbers("clamp", qx)
    return qx.clamp(min, max)


def threshold(qx: Tensor, threshold: float, value: float) -> Tensor:
    """A value in place of numbers that are not above the threshold, quantized as they were."""
    _numbers("threshold", qx)
    return F.threshold(qx, threshold, value)


def dropout(
    self: Tensor, output_scale: Scale, output_zero_point: Place, p: float = 0.5, training: bool = False
) -> Tensor:
    """F.dropout of the numbers, quantized again."""
    return _read(self, F.dropout(_numbers("dropout", self), p, training), output_scale, output_zero_point)


def max_pool1d(qx: Tensor, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Tensor:
    """The largest integers of windows."""
    _numbers("max_pool1d", qx)
    return F.max_pool1d(qx, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(qx: Tensor, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Tensor:
    """The largest integers of windows."""
    _numbers("max_pool2d", qx)
    return F.max_pool2d(qx, kernel_size, stride, padding, dilation, ceil_mode)
