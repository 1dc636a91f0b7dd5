"""Recurrent layers and cells whose weights are float tensors, which are rounded to integers and read again at each
call."""

from __future__ import annotations

from typing import Any

from tensorpy import _C, nn
from tensorpy._C import Tensor
from tensorpy._tensor.quantized import per_channel_affine, per_channel_affine_float_qparams, per_tensor_affine
from tensorpy.nn.utils.stateless import _reparametrize_module

__all__ = ["GRU", "LSTM", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase", "get_quantized_weight"]

BY_CHANNEL = (per_channel_affine, per_channel_affine_float_qparams)
_USUAL = {"qscheme": per_tensor_affine, "dtype": _C.quint8, "scale": 1.0, "zero_point": 0}


def rounded(weight: Tensor, scheme: Any, dtype: Any, scale: Tensor, zero_point: Tensor, axis: int) -> Tensor:
    """A weight of a reference layer, rounded to integers."""
    if scheme in BY_CHANNEL:
        return _C.quantize_per_channel(weight.detach(), scale, zero_point, axis, dtype)
    return _C.quantize_per_tensor(weight.detach(), scale.item(), int(zero_point.item()), dtype)


def get_quantized_weight(module: Any, wn: str) -> Any:
    """A weight of a reference layer by its name, rounded to integers; None where there is no such weight.

    Arguments:
        module: a reference layer or cell
        wn: the weight's name

    Example:
        >>> cell = tp.ao.nn.quantized.reference.GRUCell(2, 3)
        >>> tp.ao.nn.quantized.reference.modules.rnn.get_quantized_weight(cell, "weight_ih").dtype
        tensorpy.quint8
    """
    weight = getattr(module, wn, None)
    if weight is None:
        return None
    scheme, dtype = getattr(module, f"{wn}_qscheme"), getattr(module, f"{wn}_dtype")
    if scheme is None:
        return weight.to(dtype)
    scale, zero_point = getattr(module, f"{wn}_scale"), getattr(module, f"{wn}_zero_point")
    return rounded(weight, scheme, dtype, scale, zero_point, getattr(module, f"{wn}_axis_int"))


class _Rounded(nn.Module):
    """A layer that computes as the class in floating point does, with rounded weights."""

    is_decomposed: bool
    _IS_REFERENCE = True
    _FLOAT: Any

    def _weights(self) -> list[str]:
        return [name for name, _ in self.named_parameters() if name.startswith("weight")]

    def _init_weight_qparams_dict(self, weight_qparams_dict: Any, device: Any) -> None:
        given = weight_qparams_dict or {**dict.fromkeys(self._weights(), _USUAL), "is_decomposed": False}
        self.is_decomposed = given["is_decomposed"]
        for name, how in given.items():
            if name == "is_decomposed":
                continue
            scheme = how["qscheme"]
            if scheme not in (None, per_tensor_affine, per_channel_affine):
                raise AssertionError(f"qscheme: {scheme} is not supported in {self._get_name()}")
            setattr(self, f"{name}_qscheme", scheme)
            setattr(self, f"{name}_dtype", how["dtype"])
            if scheme is None:
                continue
            axis = how["axis"] if scheme is per_channel_affine else 0
            for of, value, dtype in (
                ("scale", how["scale"], _C.float32),
                ("zero_point", how["zero_point"], _C.int32),
                ("axis", axis, _C.int32),
            ):
                self.register_buffer(f"{name}_{of}", _C.asarray(value, dtype=dtype, device=device, copy=True))
            setattr(self, f"{name}_axis_int", int(axis))

    def _read(self, name: str) -> Tensor:
        """A weight as its integers are read."""
        weight = get_quantized_weight(self, name)
        read: Tensor = weight.dequantize() if weight.is_quantized else getattr(self, name)
        return read

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}(Reference)"

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the layer in floating point gives with the rounded weights."""
        with _reparametrize_module(self, {name: self._read(name) for name in self._weights()}):
            return self._FLOAT.forward(self, *args, **kwargs)

    @classmethod
    def _of(cls, mod: Any, made: Any) -> Any:
        for name, parameter in mod.named_parameters():
            setattr(made, name, parameter)
        return made


class RNNCellBase(_Rounded, nn.RNNCellBase):
    """What the cells are: one step, with weights that are rounded to integers.

    Arguments:
        args: what nn.RNNCellBase is made with
        weight_qparams_dict: qscheme, dtype, scale, zero_point and axis of weight_ih and weight_hh; and is_decomposed
        kwargs: what nn.RNNCellBase is made with

    Example:
        >>> cell = tp.ao.nn.quantized.reference.RNNCell(2, 3)
        >>> cell.get_quantized_weight_ih().shape
        tensorpy.Size([3, 2])
    """

    _FLOAT: Any = nn.RNNCellBase

    def __init__(self, *args: Any, weight_qparams_dict: Any = None, **kwargs: Any) -> None:
        self._FLOAT.__init__(self, *args, **kwargs)
        if weight_qparams_dict is not None and len(weight_qparams_dict) != 3:
            raise AssertionError(
                f"weight_qparams_dict has two weights and is_decomposed, not {len(weight_qparams_dict)}"
            )
        self._init_weight_qparams_dict(weight_qparams_dict, kwargs.get("device"))

    def get_quantized_weight_ih(self) -> Any:
        """The weight of the input, rounded to integers."""
        return get_quantized_weight(self, "weight_ih")

    def get_quantized_weight_hh(self) -> Any:
        """The weight of the state, rounded to integers."""
        return get_quantized_weight(self, "weight_hh")

    def get_weight_ih(self) -> Tensor:
        """The weight of the input as its integers are read."""
        return self._read("weight_ih")

    def get_weight_hh(self) -> Tensor:
        """The weight of the state as its integers are read."""
        return self._read("weight_hh")

    @classmethod
    def from_float(cls, mod: Any, weight_qparams_dict: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Makes one of a cell."""
        more = {"nonlinearity": mod.nonlinearity} if hasattr(mod, "nonlinearity") else {}
        place = {"device": mod.weight_ih.device, "dtype": mod.weight_ih.dtype}
        sizes = (mod.input_size, mod.hidden_size, mod.bias)
        return cls._of(mod, cls(*sizes, weight_qparams_dict=weight_qparams_dict, **more, **place))


_WORDS = """nn.{name} with weights that are rounded to integers.

    Arguments:
        args: what nn.{name} is made with
        weight_qparams_dict: for each weight by its name qscheme, dtype, scale, zero_point and axis; and is_decomposed
        kwargs: what nn.{name} is made with

    Example:
        >>> tp.ao.nn.quantized.reference.{name}(2, 3)
        Quantized{name}(Reference)(2, 3)
    """


class RNNCell(RNNCellBase, nn.RNNCell):
    __doc__ = _WORDS.format(name="RNNCell")
    _FLOAT = nn.RNNCell


class LSTMCell(RNNCellBase, nn.LSTMCell):
    __doc__ = _WORDS.format(name="LSTMCell")
    _FLOAT = nn.LSTMCell


class GRUCell(RNNCellBase, nn.GRUCell):
    __doc__ = _WORDS.format(name="GRUCell")
    _FLOAT = nn.GRUCell


class RNNBase(_Rounded, nn.RNNBase):
    """What LSTM and GRU are: layers with weights that are rounded to integers.

    Arguments:
        args: what nn.RNNBase is made with
        weight_qparams_dict: for each weight by its name qscheme, dtype, scale, zero_point and axis; and is_decomposed
        kwargs: what nn.RNNBase is made with

    Example:
        >>> tp.ao.nn.quantized.reference.LSTM(2, 3)(tp.ones(4, 1, 2))[0].shape
        tensorpy.Size([4, 1, 3])
    """

    _FLOAT: Any = nn.RNNBase

    def __init__(self, *args: Any, weight_qparams_dict: Any = None, **kwargs: Any) -> None:
        self._FLOAT.__init__(self, *args, **kwargs)
        self._init_weight_qparams_dict(weight_qparams_dict, kwargs.get("device"))

    def get_quantized_weight_bias_dict(self) -> dict[str, Any]:
        """The quantized weights and the biases by name."""
        names = self._flat_weights_names
        return {n: get_quantized_weight(self, n) if n.startswith("weight") else getattr(self, n) for n in names}

    @classmethod
    def from_float(cls, mod: Any, weight_qparams_dict: Any) -> Any:
        """Makes one of a layer."""
        names = ("num_layers", "bias", "batch_first", "dropout", "bidirectional", *["proj_size"] * (mod.mode == "LSTM"))
        options = {name: getattr(mod, name) for name in names}
        return cls._of(mod, cls(mod.input_size, mod.hidden_size, weight_qparams_dict=weight_qparams_dict, **options))


class LSTM(RNNBase, nn.LSTM):
    __doc__ = _WORDS.format(name="LSTM")
    _FLOAT = nn.LSTM

    def get_weight_bias_dict(self) -> dict[str, Any]:
        """The weights as their integers are read and the biases by name."""
        names = self._flat_weights_names
        return {n: self._read(n) if n.startswith("weight") else getattr(self, n) for n in names}


class GRU(RNNBase, nn.GRU):
    __doc__ = _WORDS.format(name="GRU")
    _FLOAT = nn.GRU
