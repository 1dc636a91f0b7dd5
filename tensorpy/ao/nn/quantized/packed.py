"""Weights that lie as products of integers read them, and the operators of `ops.quantized` on them."""

from __future__ import annotations

from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._tensor.quantized import _choose_qparams_per_tensor, per_channel_affine, per_tensor_affine
from tensorpy.nn import functional as F
from tensorpy.serialization.names import ScriptObject

# What ops.quantized has: operators whose weights are objects, which no schema speaks of.
__all__ = [
    "linear", "linear_dynamic", "linear_dynamic_fp16", "linear_leaky_relu", "linear_prepack", "linear_prepack_fp16",
    "linear_relu", "linear_relu_dynamic", "linear_relu_dynamic_fp16", "linear_tanh", "linear_unpack",
    "linear_unpack_fp16",
]  # fmt: skip


class PackedParamsBase:
    """A quantized weight with a bias, laid out for products of integers."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self._weight, self._bias = weight, bias

    def unpack(self) -> tuple[Tensor, Tensor | None]:
        """The weight and the bias."""
        return self._weight, self._bias

    def bias(self) -> Tensor | None:
        """The bias."""
        return self._bias

    def __deepcopy__(self, memo: Any) -> Any:
        return self  # nobody changes it

    def _numbers(self) -> tuple[Tensor, Tensor, Tensor | None]:
        """Scales, zero points and bias as prim::product.int8 takes them."""
        weight, bias = self._weight, self._bias
        if weight.qscheme() is per_tensor_affine:
            scales, zero_points = _C.tensor([weight.q_scale()]), _C.tensor([weight.q_zero_point()])
        else:
            scales, zero_points = weight.q_per_channel_scales(), weight.q_per_channel_zero_points()
        return (
            scales.to(device=weight.device, dtype=_C.float32),
            zero_points.to(device=weight.device, dtype=_C.int32),
            None if bias is None else bias.detach().to(_C.float32).contiguous(),
        )


_SPATIAL = ("L", "H, W", "D, H, W")


def check_images(dims: int, input: Tensor) -> None:
    """That an input has a batch, channels and so many spatial dimensions."""
    if input.dim() != dims + 2:
        raise ValueError(f"Input shape must be `(N, C, {_SPATIAL[dims - 1]})`!")


def check_dtype(name: str, weight: Tensor) -> None:
    """That a weight can be laid out."""
    if not weight.is_quantized or weight.dtype != _C.qint8:
        raise RuntimeError(f"{name}: the weight is of qint8, not of {weight.dtype}")


def check_scales(name: str, weight: Tensor) -> None:
    """That a weight has one scale, or one for each output."""
    scheme = weight.qscheme()
    if scheme is not per_tensor_affine and (scheme is not per_channel_affine or weight.q_per_channel_axis() != 0):
        raise RuntimeError(f"{name}: the weight has one scale, or one for each output")


def check_bias(name: str, features: int, bias: Tensor | None) -> None:
    """That a bias has a number for each output."""
    if bias is not None and (bias.dim() != 1 or bias.shape[0] != features or bias.is_quantized):
        raise RuntimeError(f"{name}: bias should be a vector of {features} numbers")


class LinearPackedParamsBase(PackedParamsBase):
    """A quantized weight with a bias, in panels for products of integers.

    Pickled, it is the weight and the bias themselves.
    """

    features: int
    columns: int
    arguments: Any

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__(weight, bias)
        self.features, self.columns = weight.shape
        self.arguments = (_C._int8_panels(weight.int_repr()), *self._numbers(), self.features)

    def __reduce__(self) -> Any:
        return linear_prepack, (self._weight, self._bias)

    def _check(self, x: Tensor) -> None:
        if x.dim() == 0 or x.shape[-1] != self.columns:
            raise RuntimeError(f"quantized::linear: the input has {tuple(x.shape)}, the weight {self.columns} columns")

    def linear(self, x: Tensor, scale: float, zero_point: int, relu: bool) -> Tensor:
        """The map of a quantized tensor."""
        self._check(x)
        panels, scales, zero_points, bias, features = self.arguments
        return _C._quantized_linear(x, panels, scales, zero_points, bias, features, scale, zero_point, relu)

    def linear_dynamic(self, x: Tensor, relu: bool, reduce_range: bool) -> Tensor:
        """The map of numbers, which are quantized by their range."""
        self._check(x)
        panels, scales, zero_points, bias, features = self.arguments
        return _C._quantized_linear_dynamic(x, panels, scales, zero_points, bias, features, relu, reduce_range)


class LinearPackedParamsFp16(LinearPackedParamsBase):
    """A weight of float16 with a bias: half of float32's memory, and products in float32.

    Pickled, it is the weight and the bias themselves.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        PackedParamsBase.__init__(self, weight.detach().clamp(-65504.0, 65504.0).to(_C.float16), bias)
        self.features, self.columns = weight.shape

    def __reduce__(self) -> Any:
        return linear_prepack_fp16, self.unpack()

    def unpack(self) -> tuple[Tensor, Tensor | None]:
        """The weight in float32, and the bias."""
        return self._weight.float(), self._bias

    def linear(self, x: Tensor, scale: float, zero_point: int, relu: bool) -> Tensor:
        """A weight of float16 has no map of integers."""
        raise RuntimeError("quantized::linear: the weight is of float16, whose map is linear_dynamic")

    def linear_dynamic(self, x: Tensor, relu: bool, reduce_range: bool) -> Tensor:
        """The map of numbers."""
        self._check(x)
        made = F.linear(x.float(), self._weight.float(), None if self._bias is None else self._bias.float())
        return made.relu() if relu else made


def quantized_by_range(x: Tensor, reduce_range: bool) -> Tensor:
    """Numbers as quint8 whose scale and zero point are chosen by the range of all; of half the integers or of all."""
    scale, zero_point = _choose_qparams_per_tensor(x, reduce_range)
    return _C.quantize_per_tensor(x, scale, zero_point, _C.quint8)


def linear_prepack(W: Tensor, B: Tensor | None = None) -> LinearPackedParamsBase:
    """A weight of qint8, [out_features, in_features], and a bias, laid out for linear and linear_dynamic."""
    name = "quantized::linear_prepack"
    check_dtype(name, W)
    if W.dim() != 2:
        raise RuntimeError("The weight tensor for quantized::linear_prepack (fbgemm) should be 2-dimensional.")
    check_scales(name, W)
    check_bias(name, W.shape[0], B)
    return LinearPackedParamsBase(W, B)


def linear_prepack_fp16(W: Tensor, B: Tensor | None = None) -> LinearPackedParamsFp16:
    """A weight of numbers, [out_features, in_features], and a bias, kept in float16 for linear_dynamic_fp16."""
    name = "quantized::linear_prepack_fp16"
    if W.dim() != 2 or not W.is_floating_point():
        raise RuntimeError(f"{name}: the weight is a matrix of floating point, not {W.dim()}-dimensional {W.dtype}")
    check_bias(name, W.shape[0], B)
    return LinearPackedParamsFp16(W, B)


def laid_out(weight: Tensor, bias: Tensor | None) -> LinearPackedParamsBase:
    """A weight of integers or of numbers, for linear_dynamic."""
    return linear_prepack(weight, bias) if weight.is_quantized else linear_prepack_fp16(weight, bias)


def _packed(W_prepack: Any) -> LinearPackedParamsBase:
    if not isinstance(W_prepack, LinearPackedParamsBase):
        raise RuntimeError(f"quantized::linear: a weight from linear_prepack, not {type(W_prepack).__name__}")
    return W_prepack


# ---- in state dicts, as PyTorch has them there ----

_WEIGHTS = "__torch__.torch.classes.quantized.LinearPackedParamsBase"
_CELL = "__torch__.torch.classes.rnn.CellParamsBase"


def for_state(weight: LinearPackedParamsBase) -> ScriptObject:
    """A packed weight as a state dict has it."""
    return ScriptObject(_WEIGHTS, weight.unpack())


def cell_for_state(of_input: LinearPackedParamsBase, of_state: LinearPackedParamsBase) -> ScriptObject:
    """The two weights of one direction of a layer as a state dict has them."""
    both = [for_state(of_input), for_state(of_state)]
    if isinstance(of_input, LinearPackedParamsFp16):
        return ScriptObject(_CELL, ("quantized_fp16", [], [], [], both))
    return ScriptObject(_CELL, ("quantized_dynamic", [of_input.unpack()[1], of_state.unpack()[1]], [], [1], both))


def _of_kind(name: str, given: Any, kind: str, count: int) -> Any:
    state = given.state if isinstance(given, ScriptObject) and given.kind == kind else given
    if not isinstance(state, (tuple, list)) or len(state) != count:
        shown = given.kind if isinstance(given, ScriptObject) else type(given).__name__
        raise RuntimeError(f"{name}: packed weights of PyTorch's {kind.rpartition('.')[2]}, not {shown}")
    return state


def of_state(name: str, given: Any) -> tuple[Tensor, Tensor | None]:
    """The weight and the bias of what a state dict has: a packed weight, or the two themselves."""
    weight, bias = given.unpack() if isinstance(given, LinearPackedParamsBase) else _of_kind(name, given, _WEIGHTS, 2)
    if not isinstance(weight, Tensor) or not (bias is None or isinstance(bias, Tensor)):
        raise RuntimeError(f"{name}: a packed weight whose parts are no tensors")
    return weight, bias


def cell_of_state(name: str, given: Any) -> tuple[Any, Any]:
    """The weights and biases of one direction of a layer: of PyTorch's object, or the four themselves."""
    if not isinstance(given, ScriptObject):
        four = _of_kind(name, given, _CELL, 4)
        return of_state(name, four[:2]), of_state(name, four[2:])
    kind, *_, both = _of_kind(name, given, _CELL, 5)
    if kind not in ("quantized_dynamic", "quantized_fp16") or not isinstance(both, (tuple, list)) or len(both) != 2:
        raise RuntimeError(f"{name}: weights of a layer that are packed otherwise")
    return of_state(name, both[0]), of_state(name, both[1])


def linear_unpack(W_prepack: Any) -> tuple[Tensor, Tensor | None]:
    """The weight and the bias that linear_prepack got."""
    return _packed(W_prepack).unpack()


def linear(X: Tensor, W_prepack: Any, Y_scale_i: float, Y_zero_point_i: int) -> Tensor:
    """x @ weight.T + bias of integers, with the scale and the zero point of the result."""
    return _packed(W_prepack).linear(X, Y_scale_i, Y_zero_point_i, False)


def linear_relu(X: Tensor, W_prepack: Any, Y_scale_i: float, Y_zero_point_i: int) -> Tensor:
    """The same, and nothing below 0."""
    return _packed(W_prepack).linear(X, Y_scale_i, Y_zero_point_i, True)


def linear_dynamic(X: Tensor, W_prepack: Any, reduce_range: bool = False) -> Tensor:
    """x @ weight.T + bias in float32, with integers for x that are chosen by its range."""
    return _packed(W_prepack).linear_dynamic(X, False, reduce_range)


def linear_relu_dynamic(X: Tensor, W_prepack: Any, reduce_range: bool = False) -> Tensor:
    """The same, and nothing below 0."""
    return _packed(W_prepack).linear_dynamic(X, True, reduce_range)


linear_unpack_fp16 = linear_unpack


def linear_dynamic_fp16(X: Tensor, W_prepack: Any) -> Tensor:
    """x @ weight.T + bias in float32, of a weight that is kept in float16."""
    return _packed(W_prepack).linear_dynamic(X, False, False)


def linear_relu_dynamic_fp16(X: Tensor, W_prepack: Any) -> Tensor:
    """The same, and nothing below 0."""
    return _packed(W_prepack).linear_dynamic(X, True, False)


def _mapped(X: Tensor, W_prepack: Any) -> Tensor:
    """The map of a quantized tensor, in float32."""
    packed = _packed(W_prepack)
    packed._check(X)
    weight, bias = packed.unpack()
    return _C._nn.linear(X.dequantize(), weight.dequantize(), bias)


def linear_leaky_relu(
    X: Tensor, W_prepack: Any, Y_scale_i: float, Y_zero_point_i: int, negative_slope: float
) -> Tensor:
    """linear, and what is below 0 times a slope, computed in float32 and rounded once."""
    made = _C._nn.leaky_relu(_mapped(X, W_prepack), negative_slope)
    return _C.quantize_per_tensor(made, Y_scale_i, Y_zero_point_i, X.dtype)


def linear_tanh(X: Tensor, W_prepack: Any, Y_scale_i: float, Y_zero_point_i: int) -> Tensor:
    """linear and tanh, computed in float32 and rounded once."""
    return _C.quantize_per_tensor(_mapped(X, W_prepack).tanh(), Y_scale_i, Y_zero_point_i, X.dtype)
