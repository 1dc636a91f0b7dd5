"""Tensors that oneDNN lays out: images in blocks of channels, which its convolutions read without reordering.

`pack(x)` gives a `Packed`, whose elements nobody but onednn.c can read; `unpack()` gives a dense tensor. A model needs
no change: `model(pack(x)).unpack()`. What has no kernel here is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import tensorpy as tp
from tensorpy.utils.extension import load

load("onednn", Path(__file__).with_name("onednn.c"), extra_ldflags=["-ldnnl"])
ops, aten = tp.ops.onednn, tp.ops.aten
KERNELS: dict[Any, Callable[..., Any]] = {}


class Packed(tp.Tensor):
    """Sizes, and a line of numbers in oneDNN's order."""

    __torch_function__ = tp._C._disabled_torch_function_impl  # results are what the kernels make
    line: tp.Tensor

    @staticmethod
    def __new__(cls, line: tp.Tensor, sizes: Sequence[int]) -> Packed:
        return tp.Tensor._make_wrapper_subclass(cls, tuple(sizes), dtype=line.dtype)

    def __init__(self, line: tp.Tensor, sizes: Sequence[int]) -> None:
        self.line = line

    def __repr__(self) -> str:
        return f"Packed(size={tuple(self.shape)})"

    def unpack(self) -> tp.Tensor:
        """A dense tensor of the same elements."""
        return ops.unpack(self.line, self.shape)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func not in KERNELS:
            raise NotImplementedError(f"{func}: no kernel for packed tensors; unpack() gives a dense one")
        return KERNELS[func](*args, **kwargs or {})


def pack(x: tp.Tensor) -> Packed:
    """A tensor of float32 with 2 or 4 dimensions, as oneDNN lays it out."""
    return Packed(ops.pack(x), x.shape)


def kernel(overload: Any) -> Callable[[Any], Any]:
    def register(function: Any) -> Any:
        KERNELS[overload] = function
        return function

    return register


def _weight(weight: Any) -> tp.Tensor:
    """A weight in blocks, packed once, and again after it was written."""
    kept = getattr(weight, "_packed_weight", None)
    if kept is None or kept[0] != weight._version:
        kept = weight._packed_weight = (weight._version, ops.pack_weight(weight.detach()))
    return kept[1]


def _moved(size: Any, window: Any, stride: Any, padding: Any, dilation: Any = (1, 1)) -> list[int]:
    each = zip(size, window, stride, padding, dilation, strict=True)
    return [(n + 2 * p - d * (w - 1) - 1) // s + 1 for n, w, s, p, d in each]


def _pair(numbers: Any) -> list[int]:
    return list(numbers) * (3 - len(numbers)) if len(numbers) < 2 else list(numbers)


@kernel(aten.convolution.default)
def _convolution(
    x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, *rest: Any
) -> Any:
    _, groups = rest
    if transposed or groups != 1 or weight.dim() != 4:
        raise NotImplementedError("packed images: convolutions of one group that are not transposed")
    stride, padding, dilation = _pair(stride), _pair(padding), _pair(dilation)
    line = ops.conv2d(x.line, x.shape, _weight(weight), weight.shape, bias, stride, padding, dilation)
    sizes = _moved(x.shape[2:], weight.shape[2:], stride, padding, dilation)
    return Packed(line, (x.shape[0], weight.shape[0], *sizes))


@kernel(aten.native_batch_norm.default)
def _batch_norm(x: Any, weight: Any, bias: Any, mean: Any, variance: Any, training: bool, _: float, eps: float) -> Any:
    if training or mean is None:
        raise NotImplementedError("packed images: batch norm in evaluation")
    weight = tp.ones_like(mean) if weight is None else weight
    bias = tp.zeros_like(mean) if bias is None else bias
    none = tp.empty(0)
    return Packed(ops.batch_norm(x.line, x.shape, weight, bias, mean, variance, eps), x.shape), none, none


@kernel(aten.relu.default)
def _relu(x: Any) -> Any:
    return Packed(ops.relu(x.line, x.shape), x.shape)


@kernel(aten.relu_.default)
def _relu_(x: Any) -> Any:
    x.line = ops.relu(x.line, x.shape)
    return x


def _sum(a: Any, b: Any, alpha: Any) -> Any:
    if not isinstance(b, Packed) or a.shape != b.shape or alpha != 1:
        raise NotImplementedError("packed tensors: sums of two that have the same sizes")
    return ops.add(a.line, b.line, a.shape)


@kernel(aten.add.Tensor)
def _add(a: Any, b: Any, *, alpha: Any = 1) -> Any:
    return Packed(_sum(a, b, alpha), a.shape)


@kernel(aten.add_.Tensor)
def _add_(a: Any, b: Any, *, alpha: Any = 1) -> Any:
    a.line = _sum(a, b, alpha)
    return a


def _pooled(x: Any, window: Any, stride: Any, padding: Any, largest: bool, counts_border: bool = True) -> Any:
    window, padding = _pair(window), _pair(padding)
    stride = _pair(stride) if len(stride) else window
    line = ops.pool2d(x.line, x.shape, window, stride, padding, largest, counts_border)
    return Packed(line, (*x.shape[:2], *_moved(x.shape[2:], window, stride, padding)))


@kernel(aten.max_pool2d_with_indices.default)
def _max_pool2d(
    x: Any, window: Any, stride: Any = (), padding: Any = (0, 0), dilation: Any = (1, 1), ceil_mode: bool = False
) -> Any:
    if ceil_mode or set(dilation) != {1}:
        raise NotImplementedError("packed images: max_pool2d without dilation and ceil_mode")
    return _pooled(x, window, stride, padding, True), tp.empty(0, dtype=tp.int64)


@kernel(aten.avg_pool2d.default)
def _avg_pool2d(
    x: Any, window: Any, stride: Any = (), padding: Any = (0, 0), ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: Any = None,
) -> Any:  # fmt: skip
    if ceil_mode or divisor_override is not None:
        raise NotImplementedError("packed images: avg_pool2d without ceil_mode and divisor_override")
    return _pooled(x, window, stride, padding, False, count_include_pad)


@kernel(aten._adaptive_avg_pool2d.default)
def _adaptive_avg_pool2d(x: Any, sizes: Any) -> Any:
    if list(sizes) != [1, 1]:
        raise NotImplementedError("packed images: adaptive_avg_pool2d to one element")
    return _pooled(x, x.shape[2:], x.shape[2:], (0, 0), False)


@kernel(aten.view.default)
def _view(x: Any, sizes: Any) -> Any:
    return pack(x.unpack().view(sizes))


@kernel(aten.detach.default)
def _detach(x: Any) -> Any:
    return Packed(x.line, x.shape)


@kernel(aten.t.default)
def _t(x: Any) -> Any:
    raise NotImplementedError("packed matrices are not turned")


@kernel(aten.addmm.default)
def _addmm(bias: Any, x: Any, turned: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    if beta != 1 or alpha != 1 or bias.dim() != 1:
        raise NotImplementedError("packed matrices: what linear needs of addmm")
    weight = turned.t().contiguous()
    return Packed(ops.linear(x.line, x.shape, weight, bias), (x.shape[0], weight.shape[0]))


@kernel(aten.mm.default)
def _mm(x: Any, turned: Any) -> Any:
    weight = turned.t().contiguous()
    return Packed(ops.linear(x.line, x.shape, weight, None), (x.shape[0], weight.shape[0]))
