"""LSTM and attention of integers."""

from __future__ import annotations

from typing import Any

from tensorpy.ao.nn import quantizable, steps
from tensorpy.ao.nn.quantized import packed

__all__ = ["LSTM", "MultiheadAttention"]


class LSTM(quantizable.LSTM):
    """An LSTM of quantized tensors: `convert` makes it of one that was observed.

    Arguments:
        input_size: how many features the input has
        hidden_size: how many features the state has
        num_layers: how many layers there are
        bias: whether the maps have biases
        batch_first: whether the input is [N, L, features]
        dropout: not read
        bidirectional: whether there is a second direction
        device: where the parameters are
        dtype: the dtype of the parameters
        split_gates: whether each gate has maps of its own, with scales of their own

    Raises: ValueError for a dropout outside [0, 1].

    Example:
        >>> observed = tp.ao.nn.quantizable.LSTM(2, 3)
        >>> observed.qconfig = tp.ao.quantization.default_qconfig
        >>> type(tp.ao.nn.quantized.LSTM.from_observed(tp.ao.quantization.prepare(observed))).__name__
        'LSTM'
    """

    _FLOAT_MODULE = quantizable.LSTM

    def _get_name(self) -> str:
        return "QuantizedLSTM"

    @classmethod
    def from_float(cls, *arguments: Any, **more: Any) -> LSTM:
        """Nothing: an LSTM is observed first."""
        raise NotImplementedError("an LSTM is observed first: prepare() and data, then convert()")

    @classmethod
    def from_observed(cls, other: Any) -> LSTM:
        """Makes one of an LSTM that was observed."""
        if not isinstance(other, quantizable.LSTM):
            raise AssertionError(f"{cls.__name__}.from_observed is of a quantizable LSTM, not of {type(other)}")
        made = steps.convert(other, inplace=False, remove_qconfig=True)
        made.__class__ = cls
        return made


class MultiheadAttention(quantizable.MultiheadAttention):
    """Attention of quantized tensors: `convert` makes it of one that was observed.

    Arguments:
        embed_dim: how many features queries have
        num_heads: how many heads there are
        dropout: the probability of a zero
        bias: whether there is a bias
        add_bias_kv: whether keys and values have a bias as one more element
        add_zero_attn: whether a key of zeros is added
        kdim: how many features keys have; None takes embed_dim
        vdim: how many features values have; None takes embed_dim
        batch_first: whether the batch is the first dimension, and the sequence the second
        device: where the elements are: a device or its name; None takes the default
        dtype: the dtype; None takes the usual one

    Example:
        >>> attention = nn.MultiheadAttention(4, 2).eval()
        >>> attention.qconfig = tp.ao.quantization.default_qconfig
        >>> observed = tp.ao.nn.quantizable.MultiheadAttention.from_float(attention)
        >>> tp.ao.nn.quantized.MultiheadAttention.from_observed(observed).linear_Q.weight().dtype
        tensorpy.qint8
    """

    _FLOAT_MODULE = quantizable.MultiheadAttention

    def _get_name(self) -> str:
        return "QuantizedMultiheadAttention"

    @classmethod
    def from_float(cls, other: Any) -> MultiheadAttention:
        """Nothing: attention is observed first."""
        raise NotImplementedError("attention is observed first: prepare() and data, then convert()")

    @classmethod
    def from_observed(cls, other: Any) -> MultiheadAttention:
        """Makes one of attention that was observed."""
        made = steps.convert(other, inplace=False, remove_qconfig=True)
        made.__class__ = cls
        for name in ("in_proj_weight", "in_proj_bias"):
            made._parameters.pop(name, None)  # the maps have them
        for name in ("bias_k", "bias_v"):
            bias = made._parameters.pop(name)
            setattr(made, name, None if bias is None else packed.quantized_by_range(bias.detach(), False))
        return made
