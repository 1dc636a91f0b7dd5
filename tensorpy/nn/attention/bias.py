"""Biases of attention that are known by a rule, for `scaled_dot_product_attention(attn_mask=)`."""

from __future__ import annotations

import warnings
from enum import IntEnum
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(IntEnum):
    """In which corner the triangle of what a query sees ends, where there are other numbers of queries and keys.

    Example:
        >>> tp.nn.attention.bias.CausalVariant.LOWER_RIGHT.name
        'LOWER_RIGHT'
    """

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """A bias by which queries see no later keys.

    Arguments:
        variant: in which corner the triangle ends
        seq_len_q: how many queries there are
        seq_len_kv: how many keys there are

    Raises: AssertionError where variant is none.

    Example:
        >>> tp.nn.attention.bias.CausalBias(tp.nn.attention.bias.CausalVariant.LOWER_RIGHT, 1, 3)
        tensor([[True, True, True]])
    """

    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv
        if variant == CausalVariant.LOWER_RIGHT and seq_len_q > seq_len_kv:
            warnings.warn(
                "Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv!", stacklevel=2
            )

    def _materialize(self, device: Any = None) -> Tensor:
        """The mask itself."""
        offset = self.seq_len_kv - self.seq_len_q if self.variant == CausalVariant.LOWER_RIGHT else 0
        seen = _C.ones(self.seq_len_q, self.seq_len_kv, dtype=_C.bool, device=device or "cpu")
        return _C.tril(seen, offset)

    @staticmethod
    def _attend(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: CausalBias,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        usual = attn_mask.variant == CausalVariant.UPPER_LEFT or attn_mask.seq_len_q == attn_mask.seq_len_kv
        mask = None if usual else attn_mask._materialize(query.device)
        return _C._nn.scaled_dot_product_attention(
            query, key, value, mask, dropout_p, usual, scale=scale, enable_gqa=enable_gqa
        )

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is _C._nn.scaled_dot_product_attention:
            return cls._attend(*args, **kwargs)
        return super().__torch_function__(func, types, args, kwargs)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return repr(self._materialize())


def causal_upper_left(*size: int) -> CausalBias:
    """The bias by which query i sees the keys up to key i.

    Arguments:
        *size: how many queries, and how many keys

    Returns: CausalBias.

    Raises: AssertionError where these are not two.

    Example:
        >>> tp.nn.attention.bias.causal_upper_left(2, 3)
        tensor([[ True, False, False],
                [ True,  True, False]])
    """
    return _of_size("causal_upper_left", CausalVariant.UPPER_LEFT, size)


def causal_lower_right(*size: int) -> CausalBias:
    """The bias by which the last query sees all keys, and each one before it a key less.

    Arguments:
        *size: how many queries, and how many keys

    Returns: CausalBias.

    Raises: AssertionError where these are not two.

    Example:
        >>> tp.nn.attention.bias.causal_lower_right(2, 3)
        tensor([[ True,  True, False],
                [ True,  True,  True]])
    """
    return _of_size("causal_lower_right", CausalVariant.LOWER_RIGHT, size)


def _of_size(name: str, variant: CausalVariant, size: tuple[int, ...]) -> CausalBias:
    if len(size) != 2:
        raise AssertionError(f"{name} only supports 2D tensors")
    return CausalBias(variant, *size)
