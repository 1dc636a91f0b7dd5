"""torch._native_multi_head_attention: the module's attention as a function of its weights."""

from __future__ import annotations

from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.func import functional_call
from tensorpy.nn import MultiheadAttention


def native_multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Tensor, Tensor | None]:
    """What an `nn.MultiheadAttention` with these weights and `batch_first` gives, nested tensors included.

    `mask_type` says what the mask is: 0 for one of queries and keys, 1 for one of keys that are padding.
    """
    if mask is not None and mask_type not in (0, 1):
        raise RuntimeError("_native_multi_head_attention: mask_type is 0 or 1 where there is a mask")
    module = MultiheadAttention(embed_dim, num_head, batch_first=True, device=_C.device("meta")).eval()
    weights = {
        "in_proj_weight": qkv_weight,
        "in_proj_bias": qkv_bias,
        "out_proj.weight": proj_weight,
        "out_proj.bias": proj_bias,
    }
    how: dict[str, Any] = {"need_weights": need_weights, "average_attn_weights": average_attn_weights}
    how["attn_mask" if mask_type == 0 else "key_padding_mask"] = mask
    made: tuple[Tensor, Tensor | None] = functional_call(module, weights, (query, key, value), how)
    return made
