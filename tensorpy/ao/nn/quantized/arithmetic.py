"""Sums, products and joins of quantized tensors: operators of `ops.quantized`, whose results have a scale given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor

__all__ = [
    "add", "add_out", "add_relu", "add_relu_out", "add_scalar", "add_scalar_out", "add_scalar_relu",
    "add_scalar_relu_out", "cat", "cat_out", "cat_relu", "cat_relu_out", "matmul", "mul", "mul_out", "mul_relu",
    "mul_relu_out", "mul_scalar", "mul_scalar_out", "mul_scalar_relu", "mul_scalar_relu_out",
]  # fmt: skip

_RANGES = {_C.quint8: (0, 255), _C.qint8: (-128, 127), _C.qint32: (-(2**31), 2**31 - 1)}


def _range(name: str, tensor: Any) -> tuple[int, int]:
    """The least and the greatest integer of a tensor that is quantized per tensor."""
    if not isinstance(tensor, Tensor) or tensor.dtype not in _RANGES:
        raise RuntimeError(f"quantized::{name}: a quantized tensor, not {getattr(tensor, 'dtype', type(tensor))}")
    return _RANGES[tensor.dtype]


def _numbers(name: str, tensors: Sequence[Any]) -> list[Tensor]:
    for tensor in tensors:
        _range(name, tensor)
        if tensor.dtype != tensors[0].dtype:
            raise RuntimeError(f"quantized::{name}: tensors of {tensors[0].dtype} and {tensor.dtype}")
    return [tensor.dequantize() for tensor in tensors]


def _is_number(value: Any) -> bool:
    return not isinstance(value, Tensor) or not value.is_quantized


# ---- of two tensors ----


def add(qa: Any, qb: Any, scale: Any = None, zero_point: Any = None) -> Tensor:
    """The sum of two tensors, read by the scale and the zero point given, or of a tensor and a number."""
    if _is_number(qa) or _is_number(qb):
        return add_scalar(qb, qa) if _is_number(qa) else add_scalar(qa, qb)
    a, b = _numbers("add", (qa, qb))
    return _C.quantize_per_tensor(a + b, scale, zero_point, qa.dtype)


def add_relu(qa: Any, qb: Any, scale: Any = None, zero_point: Any = None) -> Tensor:
    """The same, and nothing below 0."""
    if _is_number(qa) or _is_number(qb):
        return add(qa, qb).relu()
    a, b = _numbers("add_relu", (qa, qb))
    return _C.quantize_per_tensor((a + b).relu(), scale, zero_point, qa.dtype)


def mul(qa: Any, qb: Any, scale: Any = None, zero_point: Any = None) -> Tensor:
    """The product of two tensors element by element, as add, or of a tensor and a number."""
    if _is_number(qa) or _is_number(qb):
        return mul_scalar(qb, qa) if _is_number(qa) else mul_scalar(qa, qb)
    a, b = _numbers("mul", (qa, qb))
    return _C.quantize_per_tensor(a * b, scale, zero_point, qa.dtype)


def mul_relu(qa: Any, qb: Any, scale: Any = None, zero_point: Any = None) -> Tensor:
    """The same, and nothing below 0."""
    if _is_number(qa) or _is_number(qb):
        return mul(qa, qb).relu()
    a, b = _numbers("mul_relu", (qa, qb))
    return _C.quantize_per_tensor((a * b).relu(), scale, zero_point, qa.dtype)


def matmul(qa: Tensor, qb: Tensor, scale: float, zero_point: int) -> Tensor:
    """The matrix product, of the numbers that the integers stand for."""
    a, b = _numbers("matmul", (qa, qb))
    return _C.quantize_per_tensor(a @ b, scale, zero_point, qa.dtype)


def _joined(qx: Sequence[Tensor], dim: int, scale: float | None, zero_point: int | None, relu: bool) -> Tensor:
    if not qx:
        raise RuntimeError("quantized::cat: a list without tensors")
    if any(isinstance(t, Tensor) and t.is_quantized and _C._qscheme(t) for t in qx):
        raise RuntimeError("quantized::cat: tensors per tensor are supported by cat, not those per channel")
    whole = _C.cat(_numbers("cat", qx), dim)
    scale = qx[0].q_scale() if scale is None else scale
    zero_point = qx[0].q_zero_point() if zero_point is None else zero_point
    return _C.quantize_per_tensor(whole.relu() if relu else whole, scale, zero_point, qx[0].dtype)


def cat(qx: Sequence[Tensor], dim: int, scale: float | None, zero_point: int | None) -> Tensor:
    """The tensors one after the other along a dimension; without a scale that of the first."""
    return _joined(qx, dim, scale, zero_point, False)


def cat_relu(qx: Sequence[Tensor], dim: int, scale: float | None, zero_point: int | None) -> Tensor:
    """The same, and nothing below 0."""
    return _joined(qx, dim, scale, zero_point, True)


# ---- of a tensor and a number ----


def _plain(b: Any) -> float:
    return float(b.item() if isinstance(b, Tensor) else b)


def add_scalar(qa: Tensor, b: Any) -> Tensor:
    """Another zero point; where it would be no integer of the dtype, other integers with a larger scale."""
    low, high = _range("add_scalar", qa)
    scale = qa.q_scale()
    zero_point = qa.q_zero_point() - round(_plain(b) / scale)
    if low <= zero_point <= high:
        return _C._make_per_tensor_quantized_tensor(qa.int_repr(), scale, zero_point)
    end = low if zero_point < low else high
    wide = abs((high + low - end) - zero_point) / (high - low) * scale
    by = _C.tensor(scale, dtype=_C.float32) * _C.tensor(wide, dtype=_C.float32).reciprocal()
    integers = qa.int_repr()
    moved = ((integers.to(_C.float32) - zero_point) * by).round() + end
    return _C._make_per_tensor_quantized_tensor(moved.clamp(low, high).to(integers.dtype), wide, end)


def add_scalar_relu(qa: Tensor, b: Any) -> Tensor:
    """The same, and nothing below 0."""
    return add_scalar(qa, b).relu()


def mul_scalar(qa: Tensor, b: Any) -> Tensor:
    """Another scale; a number below 0 turns the integers round, and 0 leaves none."""
    low, high = _range("mul_scalar", qa)
    number, integers, zero_point = _plain(b), qa.int_repr(), qa.q_zero_point()
    scale = qa.q_scale() * abs(number)
    if number < 0:
        return _C._make_per_tensor_quantized_tensor((high + low) - integers, scale, high + low - zero_point)
    if number == 0:
        return _C._make_per_tensor_quantized_tensor(_C.zeros_like(integers), 1.0, 0)
    return _C._make_per_tensor_quantized_tensor(integers.clone(), scale, zero_point)


def mul_scalar_relu(qa: Tensor, b: Any) -> Tensor:
    """The same, and nothing below 0."""
    return mul_scalar(qa, b).relu()


# ---- into a tensor that is there, whose scale and zero point hold ----


def add_out(qa: Tensor, qb: Tensor, out: Tensor) -> Tensor:
    """The sum of two tensors, as `out` is quantized."""
    return out.copy_(add(qa, qb, out.q_scale(), out.q_zero_point()))


def add_relu_out(qa: Tensor, qb: Tensor, out: Tensor) -> Tensor:
    """The same, and nothing below 0."""
    return out.copy_(add_relu(qa, qb, out.q_scale(), out.q_zero_point()))


def mul_out(qa: Tensor, qb: Tensor, out: Tensor) -> Tensor:
    """The product of two tensors element by element, as `out` is quantized."""
    return out.copy_(mul(qa, qb, out.q_scale(), out.q_zero_point()))


def mul_relu_out(qa: Tensor, qb: Tensor, out: Tensor) -> Tensor:
    """The same, and nothing below 0."""
    return out.copy_(mul_relu(qa, qb, out.q_scale(), out.q_zero_point()))


def cat_out(qx: Sequence[Tensor], dim: int, out: Tensor) -> Tensor:
    """The tensors one after the other, as `out` is quantized."""
    return out.copy_(cat(qx, dim, out.q_scale(), out.q_zero_point()))


def cat_relu_out(qx: Sequence[Tensor], dim: int, out: Tensor) -> Tensor:
    """The same, and nothing below 0."""
    return out.copy_(cat_relu(qx, dim, out.q_scale(), out.q_zero_point()))


def add_scalar_out(qa: Tensor, b: Any, out: Tensor) -> Tensor:
    """A tensor and a number; `out` takes over how the result is quantized."""
    return out.copy_(add_scalar(qa, b))


def add_scalar_relu_out(qa: Tensor, b: Any, out: Tensor) -> Tensor:
    """The same, and nothing below 0."""
    return out.copy_(add_scalar_relu(qa, b))


def mul_scalar_out(qa: Tensor, b: Any, out: Tensor) -> Tensor:
    """A tensor times a number; `out` takes over how the result is quantized."""
    return out.copy_(mul_scalar(qa, b))


def mul_scalar_relu_out(qa: Tensor, b: Any, out: Tensor) -> Tensor:
    """The same, and nothing below 0."""
    return out.copy_(mul_scalar_relu(qa, b))
