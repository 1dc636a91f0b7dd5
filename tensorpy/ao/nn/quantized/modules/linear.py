"""Linear maps of integers."""

from __future__ import annotations

from typing import Any

from tensorpy import _C, nn
from tensorpy._C import Tensor
from tensorpy.ao.nn import intrinsic as nni
from tensorpy.ao.nn.quantized import packed
from tensorpy.ao.nn.quantized.modules.utils import WeightedQuantizedModule, _quantize_weight, load_range, save_range
from tensorpy.nn.modules.linear import NonDynamicallyQuantizableLinear
from tensorpy.nn.utils.fusion import fuse_linear_bn_weights

__all__ = ["Linear", "LinearPackedParams"]


class LinearPackedParams(nn.Module):
    """A quantized weight and a bias, which a state dict has as they are."""

    dtype: Any

    _version = 3
    _packed_params: packed.LinearPackedParamsBase

    def __init__(self, dtype: Any = _C.qint8) -> None:
        super().__init__()
        self.dtype = dtype
        integers = _C._empty_affine_quantized([1, 1], scale=1.0, zero_point=0, dtype=_C.qint8)
        self.set_weight_bias(_C.zeros(1, 1) if dtype == _C.float16 else integers, None)

    def set_weight_bias(self, weight: Tensor, bias: Tensor | None) -> None:
        """Lays out a weight."""
        if self.dtype not in (_C.qint8, _C.float16):
            raise RuntimeError(f"Unsupported dtype on dynamic quantized linear! {self.dtype}")
        lay_out = packed.linear_prepack if self.dtype == _C.qint8 else packed.linear_prepack_fp16
        self._packed_params = lay_out(weight, bias)

    def _weight_bias(self) -> Any:
        return packed.linear_unpack(self._packed_params)

    def forward(self, x: Tensor) -> Tensor:
        """Returns the tensor."""
        return x

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "dtype"] = self.dtype
        destination[prefix + "_packed_params"] = self._weight_bias()

    def _load_from_state_dict(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, *rest: Any
    ) -> None:
        version = local_metadata.get("version")
        self.dtype = _C.qint8 if version is None or version < 2 else state_dict.pop(prefix + "dtype")
        if version is None or version < 3:
            weight, bias = state_dict.pop(prefix + "weight"), state_dict.pop(prefix + "bias")
        else:
            weight, bias = state_dict.pop(prefix + "_packed_params")
        self.set_weight_bias(weight, bias)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, *rest)

    def __repr__(self) -> str:
        return repr(self._weight_bias())


class Linear(WeightedQuantizedModule):
    """x @ weight.T + bias of quantized tensors, computed with integers.

    Arguments:
        in_features: how many features the input has
        out_features: how many features the output has
        bias_: whether there is a bias
        dtype: qint8; float16 for the weight of a dynamic one

    Raises: RuntimeError for another dtype than qint8 or float16.

    Example:
        >>> layer = tp.ao.nn.quantized.Linear(2, 3)
        >>> layer(tp.quantize_per_tensor(tp.ones(5, 2), 0.5, 0, tp.quint8)).shape
        tensorpy.Size([5, 3])
    """

    in_features: int
    out_features: int
    scale: float
    zero_point: int

    _version = 3
    _FLOAT_MODULE: Any = (nn.Linear, NonDynamicallyQuantizableLinear)

    def __init__(self, in_features: int, out_features: int, bias_: bool = True, dtype: Any = _C.qint8) -> None:
        super().__init__()
        if dtype not in (_C.qint8, _C.float16):
            raise RuntimeError(f"Unsupported dtype specified for quantized Linear! {dtype}")
        self.in_features, self.out_features = in_features, out_features
        zeros = _C.zeros(out_features, in_features, dtype=_C.int8 if dtype == _C.qint8 else _C.float32)
        self._packed_params = LinearPackedParams(dtype)
        weight = _C._make_per_tensor_quantized_tensor(zeros, 1.0, 0) if dtype == _C.qint8 else zeros
        self.set_weight_bias(weight, _C.zeros(out_features) if bias_ else None)
        self.scale, self.zero_point = 1.0, 0

    def _get_name(self) -> str:
        return "QuantizedLinear"

    def extra_repr(self) -> str:
        """What `repr` shows between the parentheses."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, scale={self.scale}, "
            f"zero_point={self.zero_point}, qscheme={self.weight().qscheme()}"
        )

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"  # without the packed weight

    def forward(self, x: Tensor) -> Tensor:
        """The map of a quantized tensor."""
        return packed.linear(x, self._packed_params._packed_params, self.scale, self.zero_point)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        save_range(self, destination, prefix)

    def _load_from_state_dict(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, *rest: Any
    ) -> None:
        load_range(self, state_dict, prefix)
        if local_metadata.get("version") in (None, 1):
            for name in ("weight", "bias"):
                state_dict[f"{prefix}_packed_params.{name}"] = state_dict.pop(prefix + name)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, *rest)

    def weight(self) -> Tensor:
        """The quantized weight."""
        return self._packed_params._weight_bias()[0]

    def bias(self) -> Tensor | None:
        """The bias, in numbers."""
        return self._packed_params._weight_bias()[1]

    def set_weight_bias(self, w: Tensor, b: Tensor | None) -> None:
        """Takes a quantized weight and a bias."""
        self._packed_params.set_weight_bias(w, b)

    @classmethod
    def _more_of(cls, fused: Any) -> tuple[Any, ...]:
        """What the type is made with, beside the sizes."""
        return ()

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Linear:
        """Makes one of a linear map that was observed, or trained with fake quantization."""
        watching, more = mod.activation_post_process, ()
        if not hasattr(mod, "weight_fake_quant"):
            if type(mod) not in cls._FLOAT_MODULE or not hasattr(mod, "qconfig"):
                names = [kind.__name__ for kind in cls._FLOAT_MODULE]
                raise AssertionError(f"{cls.__name__}.from_float is of {names} with a qconfig, not of {type(mod)}")
            fused, mod = mod, mod[0] if isinstance(mod, nni._FusedModule) else mod
            more = cls._more_of(fused)
        weight_watching = mod.weight_fake_quant if hasattr(mod, "weight_fake_quant") else mod.qconfig.weight()
        weight, bias = mod.weight, mod.bias
        if (bn := getattr(mod, "bn", None)) is not None:
            weight, bias = fuse_linear_bn_weights(
                weight, bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
            )
        if not use_precomputed_fake_quant:
            weight_watching(weight)
        if weight_watching.dtype != _C.qint8:
            raise AssertionError(f"Weight observer must have dtype torch.qint8, got {weight_watching.dtype}")
        scale, zero_point = watching.calculate_qparams()
        made = cls(mod.in_features, mod.out_features, *more)
        bias = None if bias is None else bias.detach()
        made.set_weight_bias(_quantize_weight(weight.detach().float(), weight_watching), bias)
        made.scale, made.zero_point = float(scale), int(zero_point)
        return made

    @classmethod
    def from_reference(cls, ref_module: Any, output_scale: Any, output_zero_point: Any) -> Linear:
        """Makes one of a module that computes the same in floating point."""
        made = cls(ref_module.in_features, ref_module.out_features)
        made.set_weight_bias(ref_module.get_quantized_weight(), ref_module.bias)
        made.scale, made.zero_point = float(output_scale), int(output_zero_point)
        return made
