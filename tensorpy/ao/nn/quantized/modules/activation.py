"""Activations of quantized tensors, as modules."""

from __future__ import annotations

from typing import Any

from tensorpy import _C, nn
from tensorpy._C import Tensor
from tensorpy.ao.nn.quantized import single
from tensorpy.ao.nn.quantized.modules.utils import _quantize_weight, add_range

__all__ = ["ELU", "Hardswish", "LeakyReLU", "PReLU", "ReLU6", "Sigmoid", "Softmax"]


class _Ranged(nn.Module):
    """What has a scale and a zero point for its results, and is made of a module that was observed."""

    _kept: tuple[str, ...] = ()  # what of that module is given on

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}"

    @classmethod
    def from_reference(cls, mod: Any, scale: Any, zero_point: Any) -> Any:
        """Makes one of a module that computes the same in floating point."""
        return cls(float(scale), int(zero_point), *(getattr(mod, name) for name in cls._kept))

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Makes one of a module that was observed."""
        return cls.from_reference(mod, *mod.activation_post_process.calculate_qparams())


class ReLU6(nn.ReLU):
    """Numbers from 0 to 6, quantized as they were.

    Arguments:
        inplace: whether it is in place

    Example:
        >>> tp.ao.nn.quantized.ReLU6()(tp.quantize_per_tensor(tp.tensor([5.0, 7.0]), 1.0, 0, tp.quint8)).int_repr()
        tensor([5, 6], dtype=tensorpy.uint8)
    """

    def forward(self, input: Tensor) -> Tensor:
        """The tensor, cut off."""
        return single.relu6(input, self.inplace)

    def _get_name(self) -> str:
        return "QuantizedReLU6"

    @staticmethod
    def from_float(mod: Any, use_precomputed_fake_quant: bool = False) -> ReLU6:
        """Makes one of a ReLU6."""
        return ReLU6(mod.inplace)


class Hardswish(_Ranged):
    """nn.Hardswish of quantized tensors.

    Arguments:
        scale: the scale of the result
        zero_point: its zero point
        device: where they are
        dtype: not read

    Example:
        >>> layer = tp.ao.nn.quantized.Hardswish(1.0, 0)
        >>> layer(tp.quantize_per_tensor(tp.tensor([3.0, 7.0]), 1.0, 0, tp.quint8)).int_repr()
        tensor([3, 7], dtype=tensorpy.uint8)
    """

    scale: Tensor
    zero_point: Tensor

    def __init__(self, scale: float, zero_point: int, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        add_range(self, scale, zero_point, device)

    def forward(self, input: Tensor) -> Tensor:
        """The function of a quantized tensor."""
        return single.hardswish(input, self.scale, self.zero_point)


class ELU(_Ranged):
    """nn.ELU of quantized tensors.

    Arguments:
        scale: the scale of the result
        zero_point: its zero point
        alpha: the limit below, with the other sign

    Example:
        >>> layer = tp.ao.nn.quantized.ELU(0.5, 10)
        >>> layer(tp.quantize_per_tensor(tp.tensor([-9.0, 7.0]), 1.0, 10, tp.quint8)).int_repr()
        tensor([ 8, 24], dtype=tensorpy.uint8)
    """

    _kept = ("alpha",)

    scale: float
    zero_point: int
    alpha: float

    def __init__(self, scale: float, zero_point: int, alpha: float = 1.0) -> None:
        super().__init__()
        self.scale, self.zero_point, self.alpha = scale, zero_point, alpha

    def forward(self, input: Tensor) -> Tensor:
        """The function of a quantized tensor."""
        return single.elu(input, self.scale, self.zero_point, self.alpha)

    def extra_repr(self) -> str:
        """What `repr` shows between the parentheses."""
        return f"alpha={self.alpha}"


class LeakyReLU(_Ranged):
    """nn.LeakyReLU of quantized tensors.

    Arguments:
        scale: the scale of the result
        zero_point: its zero point
        negative_slope: what numbers below 0 are multiplied by
        inplace: not read
        device: where scale and zero point are
        dtype: not read

    Example:
        >>> layer = tp.ao.nn.quantized.LeakyReLU(1.0, 10, 0.5)
        >>> layer(tp.quantize_per_tensor(tp.tensor([-8.0, 7.0]), 1.0, 10, tp.quint8)).int_repr()
        tensor([ 6, 17], dtype=tensorpy.uint8)
    """

    negative_slope: float
    inplace: bool
    scale: Tensor
    zero_point: Tensor

    _kept = ("negative_slope", "inplace")

    def __init__(
        self, scale: float, zero_point: int, negative_slope: float = 1e-2, inplace: bool = False, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.negative_slope, self.inplace = negative_slope, inplace
        add_range(self, scale, zero_point, device)

    def forward(self, input: Tensor) -> Tensor:
        """The function of a quantized tensor."""
        return single.leaky_relu(input, self.negative_slope, self.inplace, self.scale, self.zero_point)

    def extra_repr(self) -> str:
        """What `repr` shows between the parentheses."""
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class Sigmoid(_Ranged):
    """nn.Sigmoid of quantized tensors.

    Arguments:
        output_scale: the scale of the result
        output_zero_point: its zero point

    Example:
        >>> layer = tp.ao.nn.quantized.Sigmoid(1 / 256, 0)
        >>> layer(tp.quantize_per_tensor(tp.tensor([0.0]), 1.0, 10, tp.quint8)).int_repr()
        tensor([128], dtype=tensorpy.uint8)
    """

    output_scale: float
    output_zero_point: int

    def __init__(self, output_scale: float, output_zero_point: int) -> None:
        super().__init__()
        self.output_scale, self.output_zero_point = output_scale, output_zero_point

    def forward(self, input: Tensor) -> Tensor:
        """The function of a quantized tensor."""
        return single.sigmoid(input, self.output_scale, self.output_zero_point)


class Softmax(_Ranged, nn.Softmax):
    """nn.Softmax of quantized tensors.

    Arguments:
        dim: the dimension
        scale: the scale of the result
        zero_point: its zero point

    Example:
        >>> layer = tp.ao.nn.quantized.Softmax(0, 1 / 256, 0)
        >>> layer(tp.quantize_per_tensor(tp.tensor([1.0, 1.0]), 1.0, 10, tp.quint8)).int_repr()
        tensor([128, 128], dtype=tensorpy.uint8)
    """

    scale: float
    zero_point: int

    def __init__(self, dim: int | None = None, scale: float = 1.0, zero_point: int = 0) -> None:
        super().__init__(dim)
        self.scale, self.zero_point = scale, zero_point

    def forward(self, input: Tensor) -> Tensor:
        """The function of a quantized tensor."""
        dim = self.dim if self.dim is not None else 0 if input.dim() in (0, 1, 3) else 1
        return single.softmax(input, dim, self.scale, self.zero_point)

    @classmethod
    def from_reference(cls, mod: Any, scale: Any, zero_point: Any) -> Softmax:
        """Makes one of a module that computes the same in floating point."""
        return cls(mod.dim, float(scale), int(zero_point))


class PReLU(_Ranged):
    """nn.PReLU of quantized tensors, with slopes that are quantized.

    Arguments:
        output_scale: the scale of the result
        output_zero_point: its zero point
        num_parameters: how many slopes there are: 1, or one for each channel

    Example:
        >>> layer = tp.ao.nn.quantized.PReLU(1.0, 10)
        >>> layer.set_weight(tp.quantize_per_tensor(tp.tensor([0.5]), 0.5, 0, tp.quint8))
        >>> layer(tp.quantize_per_tensor(tp.tensor([-8.0, 7.0]), 1.0, 10, tp.quint8)).int_repr()
        tensor([ 6, 17], dtype=tensorpy.uint8)
    """

    num_parameters: int
    scale: float
    zero_point: int
    weight: Tensor

    def __init__(self, output_scale: float, output_zero_point: int, num_parameters: int = 1) -> None:
        super().__init__()
        self.num_parameters, self.scale, self.zero_point = num_parameters, output_scale, output_zero_point
        self.set_weight(_C.quantize_per_tensor(_C.randn(num_parameters), 1.0, 0, _C.quint8))

    def set_weight(self, w: Tensor) -> None:
        """Takes quantized slopes."""
        self.weight = w

    def forward(self, input: Tensor) -> Tensor:
        """The function of a quantized tensor."""
        return single.prelu(input, self.weight, self.scale, self.zero_point)

    @classmethod
    def from_reference(cls, mod: Any, scale: Any, zero_point: Any) -> PReLU:
        """Makes one of a module that computes the same in floating point."""
        made = cls(float(scale), int(zero_point), mod.num_parameters)
        slopes = mod.weight.detach().float()
        made.set_weight(_C.quantize_per_tensor_dynamic(slopes, _C.quint8, False))
        return made

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> PReLU:
        """Makes one of a module that was observed."""
        made = cls.from_reference(mod, *mod.activation_post_process.calculate_qparams())
        watching = mod.qconfig.weight()
        watching(mod.weight)
        if watching.dtype == _C.quint8:
            made.set_weight(_quantize_weight(mod.weight.detach().float(), watching))
        return made
