"""Attention with several heads."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

from tensorpy.nn._common import nn, ops

if TYPE_CHECKING:
    from tensorpy import Tensor

__all__ = ["multi_head_attention_forward"]


def _check_shapes(
    query: Tensor, key: Tensor, value: Tensor, padding: Tensor | None, mask: Tensor | None, num_heads: int
) -> bool:
    """Whether there is a batch."""
    dims = query.dim()
    if dims not in (2, 3):
        raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {dims}-D query tensor")
    kind = "batched (3-D)" if dims == 3 else "unbatched (2-D)"
    if key.dim() != dims or value.dim() != dims:
        raise AssertionError(
            f"For {kind} `query`, expected `key` and `value` to be {dims}-D but found {key.dim()}-D and "
            f"{value.dim()}-D tensors respectively"
        )
    if padding is not None and padding.dim() != dims - 1:
        raise AssertionError(
            f"For {kind} `query`, expected `key_padding_mask` to be `None` or {dims - 1}-D but found "
            f"{padding.dim()}-D tensor instead"
        )
    if mask is not None and mask.dim() not in (2, 3):
        raise AssertionError(
            f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found {mask.dim()}-D tensor instead"
        )
    heads = (num_heads, query.shape[0], key.shape[0])
    if mask is not None and dims == 2 and mask.dim() == 3 and mask.shape != heads:
        raise AssertionError(f"Expected `attn_mask` shape to be {heads} but got {mask.shape}")
    return dims == 3


def _as_addend(mask: Tensor | None, name: str, dtype: Any) -> Tensor | None:
    """-inf where a mask of truth values hides; other masks are added as they are."""
    if mask is None:
        return None
    if mask.dtype == ops.bool:
        return ops.zeros_like(mask, dtype=dtype).masked_fill_(mask, -math.inf)
    if not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {name} are supported")
    return mask


def _none_or_dtype(input: Tensor | None) -> Any:
    """The dtype of a mask; None: there is none. With the names below it is what layers of other packages call."""
    return None if input is None else input.dtype


def _canonical_mask(
    mask: Tensor | None,
    mask_name: str,
    other_type: Any,
    other_name: str,
    target_type: Any,
    check_other: bool = True,
) -> Tensor | None:
    """A mask as it is added to scores; masks of two kinds in one call are warned of."""
    if mask is not None and check_other and other_type is not None and mask.dtype != other_type:
        warnings.warn(f"{mask_name} and {other_name} of two dtypes are deprecated: give both one dtype", stacklevel=2)
    return _as_addend(mask, mask_name, target_type)


def _projected(
    query: Tensor, key: Tensor, value: Tensor, weights: Any, bias: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """weights is one tensor for all three, or three."""
    if isinstance(weights, tuple):
        biases = (None, None, None) if bias is None else bias.chunk(3)
        q, k, v = (nn.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True))
        return q, k, v
    if query is key and key is value:  # one product instead of three
        q, k, v = nn.linear(query, weights, bias).chunk(3, -1)
        return q, k, v
    return _projected(query, key, value, tuple(weights.chunk(3)), bias)


def _in_projection_packed(q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Tensor | None = None) -> list[Tensor]:
    return list(_projected(q, k, v, w, b))


def _in_projection(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    b_q: Tensor | None = None,
    b_k: Tensor | None = None,
    b_v: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    return nn.linear(q, w_q, b_q), nn.linear(k, w_k, b_k), nn.linear(v, w_v, b_v)


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """The output of (time, batch, features) and, if wanted, the attention weights, averaged over the heads or not.

    Arguments:
        query: the queries, (L, N, E)
        key: the keys, (S, N, E)
        value: the values, (S, N, E)
        embed_dim_to_check: E, which is checked
        num_heads: how many heads there are
        in_proj_weight: the weights of the three projections, (3E, E)
        in_proj_bias: their biases, (3E,)
        bias_k: a key that is added, or None
        bias_v: a value that is added, or None
        add_zero_attn: whether a key of zeros is added
        dropout_p: the probability that a weight is dropped
        out_proj_weight: the weights of the last projection
        out_proj_bias: its biases
        training: whether the module is in training
        key_padding_mask: bool, (N, S): which keys nobody sees
        need_weights: whether the weights of attention come too
        attn_mask: bool, or what is added to the scores, (L, S): True keeps a key from being seen
        use_separate_proj_weight: whether the projections have weights of their own
        q_proj_weight: the weights of the queries
        k_proj_weight: the weights of the keys
        v_proj_weight: the weights of the values
        static_k: keys that are taken as they are
        static_v: values that are taken as they are
        average_attn_weights: whether weights are averaged over the heads
        is_causal: whether attn_mask is causal

    Returns: the output, of the shape of query, and the weights (N, L, S), (N, num_heads, L, S) or None.

    Raises: AssertionError for sizes that do not fit, RuntimeError for is_causal without a mask.

    Example:
        >>> x, w, b = tp.ones(5, 2, 8), tp.ones(24, 8), tp.zeros(24)
        >>> output, weights = F.multi_head_attention_forward(
        ...     x, x, x, 8, 2, w, b, None, None, False, 0.0, tp.eye(8), tp.zeros(8)
        ... )
        >>> output.shape, weights.shape
        (tensorpy.Size([5, 2, 8]), tensorpy.Size([2, 5, 5]))
    """
    batched = _check_shapes(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        same_key, same_value = key is query, value is key
        query = query.unsqueeze(1)
        key = query if same_key else key.unsqueeze(1)
        value = key if same_value else value.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    steps, batch, features = query.shape
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    padding = _as_addend(key_padding_mask, "key_padding_mask", query.dtype)
    mask = _as_addend(attn_mask, "attn_mask", query.dtype)
    if features != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {features}")
    head = features // num_heads
    if head * num_heads != features:
        raise AssertionError(f"embed_dim {features} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight:
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(
                f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}"
            )
        weights: Any = (q_proj_weight, k_proj_weight, v_proj_weight)
    else:
        if key.shape != value.shape:
            raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
        weights = in_proj_weight
    q, k, v = _projected(query, key, value, weights, in_proj_bias)

    if mask is not None:
        mask = mask.unsqueeze(0) if mask.dim() == 2 else mask
        want = (batch * num_heads if mask.shape[0] != 1 else 1, steps, key.shape[0])
        if tuple(mask.shape) != want:
            assert attn_mask is not None
            shown = attn_mask.shape
            correct = want[1:] if len(shown) == 2 else (batch * num_heads, *want[1:])
            raise RuntimeError(f"The shape of the {len(shown)}D attn_mask is {shown}, but should be {correct}.")
    if bias_k is not None and bias_v is not None:
        if static_k is not None or static_v is not None:
            raise AssertionError("bias cannot be added to static key or value.")
        k, v = ops.cat([k, bias_k.expand(1, batch, -1)]), ops.cat([v, bias_v.expand(1, batch, -1)])
        mask, padding = _widened(mask), _widened(padding)

    def heads(t: Tensor) -> Tensor:
        return t.reshape(t.shape[0], batch * num_heads, t.shape[-1] // num_heads).transpose(0, 1)

    q = heads(q)
    k = heads(k) if static_k is None else static_k
    v = heads(v) if static_v is None else static_v
    if add_zero_attn:
        zeros = ops.zeros(batch * num_heads, 1, head, dtype=k.dtype, device=k.device)
        k, v = ops.cat([k, zeros], 1), ops.cat([v, zeros], 1)
        mask, padding = _widened(mask), _widened(padding)
    if padding is not None:
        for dim, size in enumerate((batch, k.shape[1])):
            if padding.shape[dim] != size:
                raise AssertionError(
                    f"Expected key_padded_mask.shape[{dim}] to be {size}, but got {padding.shape[dim]}"
                )
        wide = padding.reshape(batch, 1, 1, padding.shape[1]).expand(-1, num_heads, -1, -1)
        wide = wide.reshape(batch * num_heads, 1, padding.shape[1])
        mask = wide if mask is None else mask + wide
    dropout_p = dropout_p if training else 0.0
    found: Tensor | None = None
    if need_weights:
        scores = (q * math.sqrt(1.0 / head)) @ k.transpose(1, 2)
        shares: Any = ops.softmax(scores if mask is None else scores + mask, -1)
        if dropout_p:
            shares = ops.dropout(shares, dropout_p, True)
        result = shares @ v
        shares = shares.reshape(batch, num_heads, steps, k.shape[1])
        found = shares.mean(1) if average_attn_weights else shares
    else:
        q, k, v = (t.reshape(batch, num_heads, t.shape[1], head) for t in (q, k, v))
        if mask is not None:
            mask = mask.unsqueeze(0) if mask.shape[0] == 1 else mask.reshape(batch, num_heads, *mask.shape[1:])
        result = nn.scaled_dot_product_attention(q, k, v, mask, dropout_p).reshape(batch * num_heads, steps, head)
    output = result.transpose(0, 1).reshape(steps * batch, features)
    output = nn.linear(output, out_proj_weight, out_proj_bias).reshape(steps, batch, out_proj_weight.shape[0])
    if batched:
        return output, found
    return output.squeeze(1), None if found is None else found.squeeze(0)


def _widened(mask: Tensor | None) -> Tensor | None:
    """One more key, which nothing hides."""
    return None if mask is None else nn.pad(mask, [0, 1])
