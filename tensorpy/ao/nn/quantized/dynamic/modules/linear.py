"""Linear maps whose input is quantized by its range at each call."""

from __future__ import annotations

from typing import Any

from tensorpy import _C, nn
from tensorpy._C import Tensor
from tensorpy.ao.nn import intrinsic as nni
from tensorpy.ao.nn.quantized import packed
from tensorpy.ao.nn.quantized.modules import linear as quantized
from tensorpy.ao.nn.quantized.modules.utils import _quantize_weight
from tensorpy.nn.modules.linear import NonDynamicallyQuantizableLinear

__all__ = ["Linear"]


class Linear(quantized.Linear):
    """x @ weight.T + bias of float32, computed with integers that are chosen by the input's range.

    Arguments:
        in_features: how many features the input has
        out_features: how many features the output has
        bias_: whether there is a bias
        dtype: qint8, or float16, whose products are those of float32

    Raises: RuntimeError for another dtype than qint8 or float16.

    Example:
        >>> tp.ao.nn.quantized.dynamic.Linear(2, 3)(tp.ones(5, 2)).shape
        tensorpy.Size([5, 3])
    """

    _version = 4
    _FLOAT_MODULE = (nn.Linear, NonDynamicallyQuantizableLinear, nni.LinearReLU)

    def __init__(self, in_features: int, out_features: int, bias_: bool = True, dtype: Any = _C.qint8) -> None:
        super().__init__(in_features, out_features, bias_, dtype=dtype)
        self.version: Any = 4

    def forward(self, x: Tensor) -> Tensor:
        """The map of a tensor, in its dtype."""
        half = self.version is not None and self.version >= 4
        return packed.linear_dynamic(x.float(), self._packed_params._packed_params, reduce_range=half).to(x.dtype)

    def _get_name(self) -> str:
        return "DynamicQuantizedLinear"

    def extra_repr(self) -> str:
        """What `repr` shows between the parentheses."""
        shown = f"in_features={self.in_features}, out_features={self.out_features}, dtype={self._packed_params.dtype}"
        return shown if self._packed_params.dtype == _C.float16 else f"{shown}, qscheme={self.weight().qscheme()}"

    def _load_from_state_dict(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any
    ) -> None:
        self.version = local_metadata.get("version")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Linear:
        """Makes one of a linear map with a qconfig."""
        if type(mod) not in cls._FLOAT_MODULE or not hasattr(mod, "qconfig"):
            names = [kind.__name__ for kind in cls._FLOAT_MODULE]
            raise AssertionError(f"{cls.__name__}.from_float is of {names} with a qconfig, not of {type(mod)}")
        watching = mod.qconfig.weight()
        mod = mod[0] if isinstance(mod, nni.LinearReLU) else mod
        if watching.dtype not in (_C.qint8, _C.float16):
            raise AssertionError(f"the weight of a dynamic linear map is of qint8 or float16, not of {watching.dtype}")
        watching(mod.weight)
        made = cls(mod.in_features, mod.out_features, dtype=watching.dtype)
        bias = None if mod.bias is None else mod.bias.detach()
        weight = mod.weight.detach().float()
        made.set_weight_bias(weight if watching.dtype == _C.float16 else _quantize_weight(weight, watching), bias)
        return made
