"""Layers whose weight is a float tensor, which is rounded to integers and read again at each call."""

from __future__ import annotations

from typing import Any

from tensorpy import _C, nn
from tensorpy._C import Tensor
from tensorpy._tensor.quantized import per_channel_affine_float_qparams, per_tensor_affine
from tensorpy.ao.nn.quantized.reference.modules.rnn import BY_CHANNEL, GRU, LSTM, GRUCell, LSTMCell, RNNCell, rounded
from tensorpy.nn import functional as F

__all__ = [
    "GRU",
    "LSTM",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "Embedding",
    "EmbeddingBag",
    "GRUCell",
    "LSTMCell",
    "Linear",
    "RNNCell",
]  # fmt: skip

_FACTS = ("weight_qscheme", "weight_dtype")
_NUMBERS = ("weight_scale", "weight_zero_point", "weight_axis")


class ReferenceQuantizedModule(nn.Module):
    """A module with a weight, and how it is quantized: a scheme, a dtype, a scale, a zero point and an axis."""

    weight: Any
    bias: Any
    weight_qscheme: Any
    weight_dtype: Any
    weight_scale: Tensor
    weight_zero_point: Tensor
    weight_axis: Tensor

    _IS_REFERENCE = True
    _FLOAT: Any  # the class of the layer in floating point

    def __init__(self, *sizes: Any, weight_qparams: Any = None, **options: Any) -> None:
        self._FLOAT.__init__(self, *sizes, **options)
        self._init_weight_qparams(weight_qparams, options.get("device"))

    def _get_name(self) -> str:
        return f"Quantized{self._FLOAT.__name__}(Reference)"

    def _init_weight_qparams(self, weight_qparams: dict[str, Any] | None, device: Any = None) -> None:
        given = {"qscheme": per_tensor_affine, "dtype": _C.quint8, "scale": 1.0, "zero_point": 0, "axis": 0}
        given.update(weight_qparams or {})
        self.weight_qscheme, self.weight_dtype = given["qscheme"], given["dtype"]
        if self.weight_qscheme not in (None, per_tensor_affine, *BY_CHANNEL):
            raise Exception(
                f"a reference {type(self).__name__} has a weight per tensor or per channel, not {self.weight_qscheme}"
            )
        kinds = (_C.float32, _C.float32 if self.weight_qscheme is per_channel_affine_float_qparams else None, _C.int32)
        for name, kind in zip(_NUMBERS, kinds, strict=True):
            value = given[name.removeprefix("weight_")]
            kind = kind or (value.dtype if isinstance(value, Tensor) else _C.int32)
            self.register_buffer(name, _C.asarray(value, dtype=kind, device=device, copy=True))

    def get_quantized_weight(self) -> Tensor:
        """The weight, rounded to integers."""
        if self.weight_qscheme is None:
            return self.weight.to(self.weight_dtype)
        scale, zero_point = self.weight_scale, self.weight_zero_point
        axis = int(self.weight_axis.item())
        return rounded(self.weight, self.weight_qscheme, self.weight_dtype, scale, zero_point, axis)

    def get_weight(self) -> Tensor:
        """The weight as its integers are read."""
        return self.weight if self.weight_qscheme is None else self.get_quantized_weight().dequantize()

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for name in _FACTS:
            destination[prefix + name] = getattr(self, name)

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        for name in _FACTS:
            if prefix + name in state_dict:
                setattr(self, name, state_dict.pop(prefix + name))
        for name in _NUMBERS:  # of as many channels as the state has
            if prefix + name in state_dict:
                setattr(self, name, state_dict[prefix + name].clone())
        rest = (local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    @classmethod
    def _of(cls, mod: Any, made: Any) -> Any:
        """`made` with the weight and the bias of a module."""
        made.weight = nn.Parameter(mod.weight.detach())
        if getattr(mod, "bias", None) is not None:
            made.bias = nn.Parameter(mod.bias.detach())
        return made


class Linear(ReferenceQuantizedModule, nn.Linear):
    """nn.Linear with a weight that is rounded to integers.

    Arguments:
        sizes: what nn.Linear is made with
        weight_qparams: qscheme, dtype, scale, zero_point and axis of the weight
        options: what nn.Linear is made with

    Example:
        >>> how = {"qscheme": tp.per_tensor_affine, "dtype": tp.qint8, "scale": 0.5, "zero_point": 0}
        >>> layer = tp.ao.nn.quantized.reference.Linear(2, 3, weight_qparams=how)
        >>> layer.get_quantized_weight().shape
        tensorpy.Size([3, 2])
    """

    _FLOAT = nn.Linear

    def forward(self, input: Tensor) -> Tensor:
        """The map by the rounded weight."""
        return F.linear(input, self.get_weight(), self.bias)

    @classmethod
    def from_float(cls, float_linear: Any, weight_qparams: Any) -> Any:
        """Makes one of a linear map."""
        bias = float_linear.bias is not None
        made = cls(float_linear.in_features, float_linear.out_features, bias, weight_qparams=weight_qparams)
        return cls._of(float_linear, made)


class _Conv(ReferenceQuantizedModule):
    """A convolution, beside one of nn's."""

    def forward(self, input: Tensor) -> Tensor:
        """The convolution by the rounded weight."""
        own: Any = self
        return own._conv_forward(input, self.get_weight(), self.bias)

    @classmethod
    def from_float(cls, float_conv: Any, weight_qparams: Any) -> Any:
        """Makes one of a convolution."""
        names = ("stride", "padding", "dilation", "groups", "padding_mode")
        options = {name: getattr(float_conv, name) for name in names}
        if float_conv.transposed:
            options["output_padding"] = float_conv.output_padding
        sizes = (float_conv.in_channels, float_conv.out_channels, float_conv.kernel_size)
        made = cls(*sizes, bias=float_conv.bias is not None, weight_qparams=weight_qparams, **options)
        return cls._of(float_conv, made)


class _ConvTranspose(_Conv):
    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        """The convolution by the rounded weight."""
        own: Any = self
        n = len(own.kernel_size)
        padding = own._output_padding(input, output_size)
        convolve: Any = getattr(F, f"conv_transpose{n}d")
        moves = (own.stride, own.padding, padding, own.groups, own.dilation)
        return convolve(input, self.get_weight(), self.bias, *moves)


_WORDS = """nn.{name} with a weight that is rounded to integers.

    Arguments:
        sizes: what nn.{name} is made with
        weight_qparams: qscheme, dtype, scale, zero_point and axis of the weight
        options: what nn.{name} is made with

    Example:
        >>> tp.ao.nn.quantized.reference.{name}(2, 3, 1).get_quantized_weight().dtype
        tensorpy.quint8
    """


class Conv1d(_Conv, nn.Conv1d):
    __doc__ = _WORDS.format(name="Conv1d")
    _FLOAT = nn.Conv1d


class Conv2d(_Conv, nn.Conv2d):
    __doc__ = _WORDS.format(name="Conv2d")
    _FLOAT = nn.Conv2d


class Conv3d(_Conv, nn.Conv3d):
    __doc__ = _WORDS.format(name="Conv3d")
    _FLOAT = nn.Conv3d


class ConvTranspose1d(_ConvTranspose, nn.ConvTranspose1d):
    __doc__ = _WORDS.format(name="ConvTranspose1d")
    _FLOAT = nn.ConvTranspose1d


class ConvTranspose2d(_ConvTranspose, nn.ConvTranspose2d):
    __doc__ = _WORDS.format(name="ConvTranspose2d")
    _FLOAT = nn.ConvTranspose2d


class ConvTranspose3d(_ConvTranspose, nn.ConvTranspose3d):
    __doc__ = _WORDS.format(name="ConvTranspose3d")
    _FLOAT = nn.ConvTranspose3d


class Embedding(ReferenceQuantizedModule, nn.Embedding):
    """nn.Embedding with a table that is rounded to integers.

    Arguments:
        sizes: what nn.Embedding is made with
        weight_qparams: qscheme, dtype, scale, zero_point and axis of the table
        options: what nn.Embedding is made with

    Example:
        >>> tp.ao.nn.quantized.reference.Embedding(5, 2)(tp.tensor([0, 4])).shape
        tensorpy.Size([2, 2])
    """

    _FLOAT = nn.Embedding

    def forward(self, input: Tensor) -> Tensor:
        """The rows of the rounded table."""
        rest = (self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse)
        return F.embedding(input, self.get_weight(), *rest)

    @classmethod
    def from_float(cls, mod: Any, weight_qparams: Any) -> Any:
        """Makes one of a table."""
        rest = (mod.padding_idx, mod.max_norm, mod.norm_type, mod.scale_grad_by_freq, mod.sparse)
        return cls._of(mod, cls(mod.num_embeddings, mod.embedding_dim, *rest, weight_qparams=weight_qparams))


class EmbeddingBag(ReferenceQuantizedModule, nn.EmbeddingBag):
    """nn.EmbeddingBag with a table that is rounded to integers.

    Arguments:
        sizes: what nn.EmbeddingBag is made with
        weight_qparams: qscheme, dtype, scale, zero_point and axis of the table
        options: what nn.EmbeddingBag is made with

    Example:
        >>> tp.ao.nn.quantized.reference.EmbeddingBag(5, 2)(tp.tensor([[0, 4]])).shape
        tensorpy.Size([1, 2])
    """

    _FLOAT = nn.EmbeddingBag

    def forward(self, input: Tensor, offsets: Any = None, per_sample_weights: Any = None) -> Tensor:
        """The bags of the rounded table's rows."""
        rest = (self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse)
        more = (per_sample_weights, self.include_last_offset, self.padding_idx)
        return F.embedding_bag(input, self.get_weight(), offsets, *rest, *more)

    def _get_name(self) -> str:
        return "QuantizedEmbedding(Reference)"

    @classmethod
    def from_float(cls, mod: Any, weight_qparams: Any) -> Any:
        """Makes one of a table whose rows are added up in bags."""
        rest = (mod.max_norm, mod.norm_type, mod.scale_grad_by_freq, mod.mode, mod.sparse)
        more = {"include_last_offset": mod.include_last_offset, "padding_idx": mod.padding_idx}
        made = cls(mod.num_embeddings, mod.embedding_dim, *rest, weight_qparams=weight_qparams, **more)
        return cls._of(mod, made)
