"""The Transformer of Vaswani et al. 2017, and its layers."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.nn import functional as F
from tensorpy.nn import init
from tensorpy.nn.modules.activation import MultiheadAttention
from tensorpy.nn.modules.container import ModuleList
from tensorpy.nn.modules.dropout import Dropout
from tensorpy.nn.modules.linear import Linear
from tensorpy.nn.modules.module import Module
from tensorpy.nn.modules.normalization import LayerNorm

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]

Activation = str | Callable[[Tensor], Tensor]

# Layers of other packages take _generate_square_subsequent_mask, _get_activation_fn and _get_clones from here.


def _generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
    return _C.full((sz, sz), float("-inf"), device=device, dtype=dtype or _C.get_default_dtype()).triu(1)


def _is_causal(mask: Tensor | None, hint: bool | None, size: int) -> bool:
    """Whether a mask hides what comes later, and nothing else."""
    if hint is not None or mask is None:
        return bool(hint)
    if tuple(mask.shape[-2:]) != (size, size) or mask.dim() != 2:
        return False
    later = _C.ones(size, size, dtype=_C.bool, device=mask.device).triu(1)
    hidden = mask if mask.dtype == _C.bool else mask == float("-inf")
    return bool((hidden == later).all()) and (mask.dtype == _C.bool or bool((mask.masked_fill(later, 0.0) == 0).all()))


def _get_activation_fn(activation: Activation) -> Any:
    if not isinstance(activation, str):
        return activation
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return F.relu if activation == "relu" else F.gelu


def _get_clones(module: Module, N: int) -> ModuleList:
    return ModuleList([copy.deepcopy(module) for _ in range(N)])


class _Layer(Module):
    """What both kinds of layers have: attention to themselves, two linear maps, norms before or after."""

    activation: Any
    dropout: Any
    dropout1: Any
    dropout2: Any
    dropout3: Any
    linear1: Any
    linear2: Any

    def _make(
        self,
        attentions: tuple[str, ...],
        d_model: int,
        nhead: int,
        dim_feedforward: int,
        dropout: float,
        activation: Activation,
        layer_norm_eps: float,
        batch_first: bool,
        norm_first: bool,
        bias: bool,
        device: Any,
        dtype: Any,
    ) -> None:
        how: dict[str, Any] = {"device": device, "dtype": dtype}
        for name in attentions:
            made = MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, bias=bias, **how)
            self.add_module(name, made)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **how)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **how)
        self.norm_first = norm_first
        parts = range(1, len(attentions) + 2)
        for i in parts:
            self.add_module(f"norm{i}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **how))
        for i in parts:
            self.add_module(f"dropout{i}", Dropout(dropout))
        self.activation = _get_activation_fn(activation)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("activation", F.relu)

    def _attended(
        self, name: str, dropout: Any, x: Tensor, source: Tensor, mask: Any, padding: Any, is_causal: bool
    ) -> Tensor:
        attention = getattr(self, name)
        hint = is_causal and mask is not None
        found = attention(
            x, source, source, attn_mask=mask, key_padding_mask=padding, is_causal=hint, need_weights=False
        )
        return dropout(found[0])

    def _fed(self, dropout: Any, x: Tensor) -> Tensor:
        return dropout(self.linear2(self.dropout(self.activation(self.linear1(x)))))

    # The parts of a layer, by the names under which subclasses write their own.

    def _sa_block(self, x: Tensor, attn_mask: Any, key_padding_mask: Any, is_causal: bool = False) -> Tensor:
        return self._attended("self_attn", self.dropout1, x, x, attn_mask, key_padding_mask, is_causal)

    def _residual(self, x: Tensor, norm: Any, part: Callable[[Tensor], Tensor]) -> Tensor:
        return x + part(norm(x)) if self.norm_first else norm(x + part(x))


class TransformerEncoderLayer(_Layer):
    """Self-attention and two linear maps, each with a residual and a norm.

    src (S, N, E), with batch_first (N, S, E); output of the same shape.

    Arguments:
        d_model: how many features each element has
        nhead: how many heads there are
        dim_feedforward: how many features the inner layer has
        dropout: the probability of a zero
        activation: 'relu', 'gelu', or a function
        layer_norm_eps: eps of the layer normalisations
        batch_first: whether the batch is the first dimension, and the sequence the second
        norm_first: whether normalisation comes before attention and feed-forward, not behind
        bias: whether there is a bias
        device: where the elements are: a device or its name; None takes the default
        dtype: the dtype; None takes the usual one

    Raises: AssertionError for a d_model that nhead does not divide, RuntimeError for an unknown activation.

    Example:
        >>> nn.TransformerEncoderLayer(8, 2, 16)(tp.ones(5, 2, 8)).shape
        tensorpy.Size([5, 2, 8])
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self._make(
            ("self_attn",),
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            activation,
            layer_norm_eps,
            batch_first,
            norm_first,
            bias,
            device,
            dtype,
        )

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            return self._sa_block(x, src_mask, src_key_padding_mask, is_causal=is_causal)

        return self._residual(self._residual(src, self.norm1, attend), self.norm2, self._ff_block)

    def _ff_block(self, x: Tensor) -> Tensor:
        return self._fed(self.dropout2, x)


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to the encoder's output, and two linear maps.

    tgt (T, N, E) and memory (S, N, E), with batch_first (N, T, E) and (N, S, E); output as tgt.

    Arguments:
        d_model: how many features each element has
        nhead: how many heads there are
        dim_feedforward: how many features the inner layer has
        dropout: the probability of a zero
        activation: 'relu', 'gelu', or a function
        layer_norm_eps: eps of the layer normalisations
        batch_first: whether the batch is the first dimension, and the sequence the second
        norm_first: whether normalisation comes before attention and feed-forward, not behind
        bias: whether there is a bias
        device: where the elements are: a device or its name; None takes the default
        dtype: the dtype; None takes the usual one

    Raises: AssertionError for a d_model that nhead does not divide, RuntimeError for an unknown activation.

    Example:
        >>> nn.TransformerDecoderLayer(8, 2, 16)(tp.ones(3, 2, 8), tp.ones(5, 2, 8)).shape
        tensorpy.Size([3, 2, 8])
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self._make(
            ("self_attn", "multihead_attn"),
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            activation,
            layer_norm_eps,
            batch_first,
            norm_first,
            bias,
            device,
            dtype,
        )

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            return self._sa_block(x, tgt_mask, tgt_key_padding_mask, tgt_is_causal)

        def attend_memory(x: Tensor) -> Tensor:
            return self._mha_block(x, memory, memory_mask, memory_key_padding_mask, memory_is_causal)

        x = self._residual(tgt, self.norm1, attend)
        x = self._residual(x, self.norm2, attend_memory)
        return self._residual(x, self.norm3, self._ff_block)

    def _mha_block(
        self, x: Tensor, mem: Tensor, attn_mask: Any, key_padding_mask: Any, is_causal: bool = False
    ) -> Tensor:
        return self._attended("multihead_attn", self.dropout2, x, mem, attn_mask, key_padding_mask, is_causal)

    def _ff_block(self, x: Tensor) -> Tensor:
        return self._fed(self.dropout3, x)


def _why_no_nested(layer: Any) -> str:
    """What of an encoder's layer keeps PyTorch from packing padded batches; empty: nothing."""
    if not isinstance(layer, TransformerEncoderLayer):
        return "encoder_layer was not TransformerEncoderLayer"
    if layer.norm_first:
        return "encoder_layer.norm_first was True"
    attention: Any = layer.self_attn
    if not attention.batch_first:
        return "encoder_layer.self_attn.batch_first was not True (use batch_first for better inference performance)"
    if attention.in_proj_bias is None:
        return "encoder_layer.self_attn was passed bias=False"
    if attention.num_heads % 2 == 1:
        return "encoder_layer.self_attn.num_heads is odd"
    if layer.activation not in (F.relu, F.gelu):
        return "encoder_layer.activation_relu_or_gelu was not True"
    if layer.norm1.eps != layer.norm2.eps:
        return "encoder_layer.norm1.eps was not equal to encoder_layer.norm2.eps"
    return ""


class TransformerEncoder(Module):
    """A stack of encoder layers: copies of one.

    src (S, N, E), with batch_first (N, S, E); output of the same shape.

    Arguments:
        encoder_layer: the layer, which is copied
        num_layers: how many layers stand on each other
        norm: a normalisation behind the last layer, or None
        enable_nested_tensor: whether, without gradients in evaluation, a batch whose src_key_padding_mask hides the
            ends of sequences is computed as a nested tensor; what is hidden is then zero in the output
        mask_check: whether it is looked at that the mask hides ends only

    Example:
        >>> encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), num_layers=2)
        >>> encoder(tp.ones(5, 2, 8)).shape
        tensorpy.Size([5, 2, 8])
    """

    enable_nested_tensor: bool
    layers: Any
    mask_check: bool
    norm: Module | None
    num_layers: int

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm
        self.enable_nested_tensor, self.mask_check = enable_nested_tensor, mask_check
        why = _why_no_nested(encoder_layer)
        self.use_nested_tensor = enable_nested_tensor and not why
        if enable_nested_tensor and why:
            warnings.warn(
                f"enable_nested_tensor is True, but self.use_nested_tensor is False because {why}", stacklevel=2
            )

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        layers: Any = self.layers
        time = 1 if src.dim() == 3 and len(layers) and layers[0].self_attn.batch_first else 0
        causal = bool(is_causal) if mask is None else _is_causal(mask, is_causal, src.shape[time])
        kept = self._kept(src, mask, src_key_padding_mask)
        output, padding = (src, src_key_padding_mask) if kept is None else (_packed(src, kept), None)
        for layer in layers:
            output = layer(output, src_mask=mask, is_causal=causal, src_key_padding_mask=padding)
        if kept is not None:
            output = output.to_padded_tensor(0.0, src.shape)
        return output if self.norm is None else self.norm(output)

    def _kept(self, src: Tensor, mask: Tensor | None, padding: Tensor | None) -> Tensor | None:
        """Where a padded batch has elements, if it is to be computed without the rest."""
        if padding is None or mask is not None or not self.use_nested_tensor or self.training or src.dim() != 3:
            return None
        if _C._autocast_get(src.device.type)[0] or (
            _C.is_grad_enabled() and (src.requires_grad or any(p.requires_grad for p in self.parameters()))
        ):
            return None
        kept = padding.logical_not()
        return kept if not self.mask_check or _C._nested_tensor_from_mask_left_aligned(src, kept) else None


def _packed(src: Tensor, kept: Tensor) -> Tensor:
    return _C._nested_tensor_from_mask(src, kept, False)


class TransformerDecoder(Module):
    """A stack of decoder layers: copies of one.

    tgt (T, N, E) and memory (S, N, E), with batch_first (N, T, E) and (N, S, E); output as tgt.

    Arguments:
        decoder_layer: the layer, which is copied
        num_layers: how many layers stand on each other
        norm: a normalisation behind the last layer, or None

    Example:
        >>> decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16), num_layers=2)
        >>> decoder(tp.ones(3, 2, 8), tp.ones(5, 2, 8)).shape
        tensorpy.Size([3, 2, 8])
    """

    layers: Any
    norm: Module | None
    num_layers: int

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        layers: Any = self.layers
        time = 1 if tgt.dim() == 3 and len(layers) and layers[0].self_attn.batch_first else 0
        causal = _is_causal(tgt_mask, tgt_is_causal, tgt.shape[time])
        output = tgt
        for layer in layers:
            output = layer(
                output,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )
        return output if self.norm is None else self.norm(output)


class Transformer(Module):
    """An encoder and a decoder.

    src (S, N, E) and tgt (T, N, E), with batch_first (N, S, E) and (N, T, E); output as tgt.

    Arguments:
        d_model: how many features each element has
        nhead: how many heads there are
        num_encoder_layers: how many layers the encoder has
        num_decoder_layers: how many layers the decoder has
        dim_feedforward: how many features the inner layer has
        dropout: the probability of a zero
        activation: 'relu', 'gelu', or a function
        custom_encoder: a module instead of the encoder
        custom_decoder: a module instead of the decoder
        layer_norm_eps: eps of the layer normalisations
        batch_first: whether the batch is the first dimension, and the sequence the second
        norm_first: whether normalisation comes before attention and feed-forward, not behind
        bias: whether there is a bias
        device: where the elements are: a device or its name; None takes the default
        dtype: the dtype; None takes the usual one

    Raises: AssertionError for a d_model that nhead does not divide, RuntimeError for an unknown activation.

    Example:
        >>> model = nn.Transformer(8, 2, 1, 1, dim_feedforward=16, batch_first=True)
        >>> model(tp.ones(2, 5, 8), tp.ones(2, 3, 8)).shape
        tensorpy.Size([2, 3, 8])
    """

    batch_first: bool
    d_model: int
    decoder: Any
    encoder: Any
    nhead: int

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        layer = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)
        how: dict[str, Any] = {"device": device, "dtype": dtype}

        def norm() -> LayerNorm:
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **how)

        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*layer, **how), num_encoder_layers, norm()
        )
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*layer, **how), num_decoder_layers, norm()
        )
        self._reset_parameters()
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        batch = 0 if self.batch_first else 1
        if src.dim() == 3 and src.shape[batch] != tgt.shape[batch]:
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """The mask that hides what comes later: -inf above the diagonal, zero elsewhere."""
        return _generate_square_subsequent_mask(sz, device, dtype)

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.dim() > 1:
                init.xavier_uniform_(parameter)
