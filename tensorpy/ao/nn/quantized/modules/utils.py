"""What quantized modules with weights share."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._tensor.quantized import (
    per_channel_affine,
    per_channel_affine_float_qparams,
    per_channel_symmetric,
    per_tensor_affine,
    per_tensor_symmetric,
)
from tensorpy.nn.modules.module import Module


class WeightedQuantizedModule(Module, metaclass=ABCMeta):
    """A quantized module with a weight, which a reference module may become."""

    @classmethod
    @abstractmethod
    def from_reference(cls, ref_module: Any, output_scale: Any, output_zero_point: Any) -> Any:
        """Makes one of a module that computes the same in floating point."""


def add_range(module: Any, scale: float, zero_point: int, device: Any) -> None:
    """The scale and the zero point of a module's results, as buffers."""
    module.register_buffer("scale", _C.tensor(float(scale), device=device))
    module.register_buffer("zero_point", _C.tensor(int(zero_point), device=device))


def save_range(module: Any, destination: Any, prefix: str) -> None:
    """The scale and the zero point of a module's results, in a state."""
    destination[prefix + "scale"] = _C.tensor(module.scale)
    destination[prefix + "zero_point"] = _C.tensor(module.zero_point)


def load_range(module: Any, state_dict: Any, prefix: str) -> None:
    """Takes them out of a state."""
    module.scale = float(state_dict.pop(prefix + "scale"))
    module.zero_point = int(state_dict.pop(prefix + "zero_point"))


def _clamped(qweight: Tensor, observer: Any, scale: Tensor, zero_point: Tensor) -> Tensor:
    """A weight whose integers are those that the observer uses."""
    low, high = {_C.qint8: (-128, 127), _C.quint8: (0, 255)}.get(qweight.dtype, (None, None))
    if low is None or high is None or (observer.quant_min <= low and observer.quant_max >= high):
        return qweight
    integers = qweight.int_repr().clamp(observer.quant_min, observer.quant_max)
    if observer.qscheme in (per_tensor_affine, per_tensor_symmetric):
        return _C._make_per_tensor_quantized_tensor(integers, scale.item(), int(zero_point.item()))
    return _C._make_per_channel_quantized_tensor(integers, scale, zero_point, observer.ch_axis)


def _quantize_weight(float_wt: Tensor, observer: Any) -> Tensor:
    """A weight as an observer says that has seen it."""
    scale, zero_point = observer.calculate_qparams()
    watching = getattr(observer, "activation_post_process", observer)
    if observer.qscheme in (per_tensor_affine, per_tensor_symmetric):
        made = _C.quantize_per_tensor(float_wt, scale.item(), int(zero_point.item()), _C.qint8)
    elif observer.qscheme in (per_channel_affine, per_channel_symmetric):
        by, at = scale.to(_C.float64), zero_point.to(_C.int64)
        made = _C.quantize_per_channel(float_wt, by, at, observer.ch_axis, _C.qint8)
    elif observer.qscheme is per_channel_affine_float_qparams:
        by, at = scale.to(_C.float32), zero_point.to(_C.float32)
        made = _C.quantize_per_channel(float_wt, by, at, observer.ch_axis, observer.dtype)
    else:
        raise ValueError(f"a weight has no scheme {observer.qscheme}")
    return _clamped(made, watching, scale, zero_point)
