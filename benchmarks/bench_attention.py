"""Scaled dot-product attention: what a GPT of 6 heads does in training, and for one token with a cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import tensorpy as tp

from .harness import Case
from .libraries import torch

BATCH, LENGTH, HEADS, FEATURES = 8, 256, 6, 64


def _heads(t: Any) -> Any:
    return t.view(BATCH, LENGTH, HEADS, FEATURES).transpose(1, 2)


def _training(library: Any, backward: bool) -> Callable[[], object]:
    attention = library.nn.functional.scaled_dot_product_attention
    x = library.randn(BATCH, LENGTH, 3 * HEADS * FEATURES, requires_grad=backward)
    slope = library.ones(BATCH, LENGTH, HEADS * FEATURES)

    def run() -> object:
        q, k, v = (_heads(t) for t in x.split(HEADS * FEATURES, 2))
        out = attention(q, k, v, is_causal=True).transpose(1, 2).reshape(BATCH, LENGTH, -1)
        if backward:
            x.grad = None
            out.backward(slope)
        return out

    return run


def _one_token(library: Any, keys: int) -> Callable[[], object]:
    attention = library.nn.functional.scaled_dot_product_attention
    q, k, v = (library.randn(1, HEADS, n, FEATURES) for n in (1, keys, keys))
    return lambda: attention(q, k, v)


def cases(device: str) -> Iterator[Case]:
    makers: list[tuple[str, Callable[[Any], Callable[[], object]]]] = [
        (f"attention, {LENGTH} tokens: forward", lambda library: _training(library, False)),
        (f"attention, {LENGTH} tokens: forward and backward", lambda library: _training(library, True)),
        ("attention, one token, 64 keys", lambda library: _one_token(library, 64)),
        (f"attention, one token, {LENGTH} keys", lambda library: _one_token(library, LENGTH)),
    ]
    for name, make in makers:
        calls = {"tensorpy": make(tp)}
        if torch is not None:
            calls["torch"] = make(torch)
        yield Case(name, calls)
