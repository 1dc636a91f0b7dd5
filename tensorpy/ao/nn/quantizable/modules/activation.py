"""Attention whose linear maps are modules that are observed and quantized; scores are of float32."""

from __future__ import annotations

from typing import Any

from tensorpy import _C, nn
from tensorpy._C import Tensor
from tensorpy.ao.nn import steps
from tensorpy.nn import functional as F

__all__ = ["MultiheadAttention"]


class MultiheadAttention(nn.MultiheadAttention):
    """nn.MultiheadAttention with maps of queries, keys, values and the output as modules.

    Arguments:
        arguments: nn.MultiheadAttention's

    Example:
        >>> y, weights = tp.ao.nn.quantizable.MultiheadAttention(8, 2)(*[tp.ones(3, 1, 8)] * 3)
        >>> y.shape, weights.shape
        (tensorpy.Size([3, 1, 8]), tensorpy.Size([1, 3, 3]))
    """

    _FLOAT_MODULE: Any = nn.MultiheadAttention

    linear_Q: Any
    linear_K: Any
    linear_V: Any
    out_proj: Any
    q_scaling_product: Any
    quant_attn_output: Any
    quant_attn_output_weights: Any
    dequant_q: Any
    dequant_k: Any
    dequant_v: Any

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        placed = {"device": device, "dtype": dtype}
        super().__init__(
            embed_dim, num_heads, dropout, bias, add_bias_kv, add_zero_attn, kdim, vdim, batch_first, **placed
        )
        self.linear_Q = nn.Linear(self.embed_dim, self.embed_dim, bias, **placed)
        self.linear_K = nn.Linear(self.kdim, self.embed_dim, bias, **placed)
        self.linear_V = nn.Linear(self.vdim, self.embed_dim, bias, **placed)
        self.out_proj = nn.Linear(self.embed_dim, self.embed_dim, bias, **placed)
        self.q_scaling_product = steps.FloatFunctional()
        self.quant_attn_output, self.quant_attn_output_weights = steps.QuantStub(), steps.QuantStub()
        self.dequant_q, self.dequant_k = steps.DeQuantStub(), steps.DeQuantStub()
        self.dequant_v = steps.DeQuantStub()

    def _get_name(self) -> str:
        return "QuantizableMultiheadAttention"

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """What nn.MultiheadAttention computes, of inputs [L, N, features], or [N, L, features] with `batch_first`."""
        if is_causal:
            raise AssertionError("a causal mask is given as attn_mask here")
        if self.batch_first:
            query, key, value = (t.transpose(0, 1) for t in (query, key, value))
        length, batch, _ = query.shape
        q = self.q_scaling_product.mul_scalar(self.linear_Q(query), float(self.head_dim) ** -0.5)
        k, v = self.linear_K(key), self.linear_V(value)
        if self.bias_k is not None:
            k, v = _C.cat([k, self.bias_k.repeat(1, batch, 1)]), _C.cat([v, self.bias_v.repeat(1, batch, 1)])
        q, k, v = (self._heads(t) for t in (self.dequant_q(q), self.dequant_k(k), self.dequant_v(v)))
        if self.add_zero_attn:
            k, v = F.pad(k, (0, 0, 0, 1)), F.pad(v, (0, 0, 0, 1))
        scores = self._masked(_C.bmm(q, k.transpose(1, 2)), batch, attn_mask, key_padding_mask)
        weights = F.dropout(F.softmax(scores, -1), self.dropout, self.training)
        joined = _C.bmm(weights, v).transpose(0, 1).reshape(length, batch, self.embed_dim)
        made = self.out_proj(self.quant_attn_output(joined))
        made = made.transpose(0, 1) if self.batch_first else made
        weights = self.quant_attn_output_weights(weights)
        if not need_weights:
            return made, None
        weights = weights.view(batch, self.num_heads, length, -1)
        return made, weights.mean(1) if average_attn_weights else weights

    def _heads(self, t: Tensor) -> Tensor:
        """[L, N, features] as [N * heads, L, features of one]."""
        return t.contiguous().view(t.shape[0], -1, self.head_dim).transpose(0, 1)

    def _masked(self, scores: Tensor, batch: int, mask: Tensor | None, padding: Tensor | None) -> Tensor:
        """Scores [N * heads, L, S] of which some are added to or left out: those of keys that were added are not."""
        infinity, keys = float("-inf"), scores.shape[2]
        if mask is not None:
            mask = F.pad(mask, (0, keys - mask.shape[-1]))
            scores = scores.masked_fill(mask, infinity) if mask.dtype == _C.bool else scores + mask
        if padding is not None:
            padding = F.pad(padding, (0, keys - padding.shape[-1]))[:, None, None]
            apart = scores.view(batch, self.num_heads, -1, keys)
            apart = apart.masked_fill(padding, infinity) if padding.dtype == _C.bool else apart + padding
            scores = apart.view(scores.shape)
        return scores

    @classmethod
    def from_float(cls, other: Any) -> Any:
        """Makes one of an nn.MultiheadAttention with a qconfig: observed, or in training with fake quantization."""
        if type(other) is not cls._FLOAT_MODULE:
            raise AssertionError(f"{cls.__name__}.from_float is of nn.MultiheadAttention, not of {type(other)}")
        if not hasattr(other, "qconfig"):
            raise AssertionError("The float module must have 'qconfig'")
        made = cls(
            other.embed_dim, other.num_heads, other.dropout, other.in_proj_bias is not None, other.bias_k is not None,
            other.add_zero_attn, other.kdim, other.vdim, other.batch_first,
        )  # fmt: skip
        made.bias_k, made.bias_v, made.qconfig = other.bias_k, other.bias_v, other.qconfig
        made.out_proj.weight, made.out_proj.bias = other.out_proj.weight, other.out_proj.bias
        separate = [other.q_proj_weight, other.k_proj_weight, other.v_proj_weight]
        weights = other.in_proj_weight.chunk(3) if other._qkv_same_embed_dim else separate
        biases = [None] * 3 if other.in_proj_bias is None else other.in_proj_bias.chunk(3)
        for layer, weight, bias in zip(made._maps(), weights, biases, strict=True):
            layer.weight = nn.Parameter(weight)
            layer.bias = None if bias is None else nn.Parameter(bias)
        return steps.prepared(made, other.training)

    def _maps(self) -> tuple[Any, Any, Any]:
        return self.linear_Q, self.linear_K, self.linear_V

    def dequantize(self) -> Any:
        """The nn.MultiheadAttention that does what this does, with the weights that the integers stand for."""
        made = nn.MultiheadAttention(
            self.embed_dim, self.num_heads, self.dropout, self._weight_bias(self.linear_Q)[1] is not None,
            self.bias_k is not None, self.add_zero_attn, self.kdim, self.vdim, self.batch_first,
        )  # fmt: skip
        weights, biases = zip(*map(self._weight_bias, self._maps()), strict=True)
        if made._qkv_same_embed_dim:
            made.in_proj_weight = nn.Parameter(_C.cat(weights))
        else:
            for name, weight in zip("qkv", weights, strict=True):
                setattr(made, f"{name}_proj_weight", nn.Parameter(weight))
        if made.in_proj_bias is not None:
            made.in_proj_bias = nn.Parameter(_C.cat(biases))
        weight, bias = self._weight_bias(self.out_proj)
        made.out_proj.weight, made.out_proj.bias = nn.Parameter(weight), None if bias is None else nn.Parameter(bias)
        for name in ("bias_k", "bias_v"):
            if getattr(self, name) is not None:
                setattr(made, name, nn.Parameter(getattr(self, name).dequantize()))
        return made

    @staticmethod
    def _weight_bias(layer: Any) -> tuple[Any, Any]:
        """Makes one of a linear map, quantized or not, in numbers."""
        weight: Any = layer.weight() if callable(layer.weight) else layer.weight
        bias: Any = layer.bias() if callable(layer.bias) else layer.bias
        return weight.dequantize(), bias

    @classmethod
    def from_observed(cls, other: Any) -> Any:
        """Nothing: ao.nn.quantized.MultiheadAttention is what an observed one becomes."""
        raise NotImplementedError("observed attention becomes ao.nn.quantized.MultiheadAttention: convert() makes it")
