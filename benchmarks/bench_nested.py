"""Attention of sequences of different lengths: one nested tensor, beside the same padded to the longest and masked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import tensorpy as tp

from .harness import Case
from .libraries import torch

SEQUENCES, SHORTEST, LONGEST, HEADS, FEATURES = 32, 20, 500, 8, 64


def _lengths() -> list[int]:
    """Lengths from the shortest to the longest, at equal distances."""
    return [SHORTEST + (LONGEST - SHORTEST) * i // (SEQUENCES - 1) for i in range(SEQUENCES)]


def _sequences(library: Any) -> list[Any]:
    return [library.randn(length, HEADS, FEATURES) for length in _lengths()]


def _nested(library: Any) -> Callable[[], object]:
    attention = library.nn.functional.scaled_dot_product_attention
    q, k, v = (
        library.nested.nested_tensor(_sequences(library), layout=library.jagged).transpose(1, 2) for _ in range(3)
    )
    return lambda: attention(q, k, v)


def _padded(library: Any) -> Callable[[], object]:
    attention = library.nn.functional.scaled_dot_product_attention
    pad = library.nn.utils.rnn.pad_sequence
    q, k, v = (pad(_sequences(library), batch_first=True).transpose(1, 2) for _ in range(3))
    counts = library.arange(LONGEST) < library.tensor(_lengths()).unsqueeze(1)
    mask = counts[:, None, None, :]
    return lambda: attention(q, k, v, attn_mask=mask)


def cases(device: str) -> Iterator[Case]:
    calls = {"tensorpy": _nested(tp), "padded": _padded(tp)}
    if torch is not None:
        calls["torch"] = _padded(torch)
    name = f"nested attention, {SEQUENCES} sequences of {SHORTEST} to {LONGEST}; torch's padded"
    yield Case(name, calls, {"padded": 0.7})
