"""Programs as their users write them, the same text for each library: a GPT, a ResNet-18 on small images, an MLP."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import tensorpy as tp

from .harness import Case
from .libraries import torch, training_step

# A GPT of 6 layers, 6 heads, 384 wide, over 256 tokens of 65 kinds.
LAYERS, HEADS, WIDTH, TOKENS, KINDS = 6, 6, 384, 256, 65


def gpt(t: Any) -> Any:
    """A GPT written with a library's nn."""
    nn, F = t.nn, t.nn.functional

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.ln1, self.ln2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.attn, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x: Any, cache: Any = None) -> Any:
            b, n, _ = x.shape
            q, k, v = self.attn(self.ln1(x)).split(WIDTH, dim=2)
            q, k, v = (h.view(b, n, HEADS, WIDTH // HEADS).transpose(1, 2) for h in (q, k, v))
            if cache is not None:
                k, v = t.cat([cache[0], k], 2), t.cat([cache[1], v], 2)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=cache is None)
            x = x + self.proj(y.transpose(1, 2).reshape(b, n, WIDTH))
            x = x + self.down(F.gelu(self.up(self.ln2(x))))
            return x, (k, v)

    class GPT(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(KINDS, WIDTH), nn.Embedding(2 * TOKENS, WIDTH)
            self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
            self.ln, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, KINDS, bias=False)

        def forward(self, ids: Any, caches: Any = None, start: int = 0) -> Any:
            x = self.tokens(ids) + self.places(t.arange(start, start + ids.shape[1]))
            kept = []
            for i, block in enumerate(self.blocks):
                x, cache = block(x, None if caches is None else caches[i])
                kept.append(cache)
            return self.head(self.ln(x)), kept

    return GPT()


def gpt_step(t: Any, wrap: Callable[[Any], Any] = lambda model: model) -> Callable[[], object]:
    model = wrap(gpt(t))
    optimizer = t.optim.AdamW(model.parameters(), lr=1e-4)
    ids = t.randint(KINDS, (8, TOKENS))

    def loss_of(model: Any) -> Any:
        logits, _ = model(ids)
        return t.nn.functional.cross_entropy(logits.view(-1, KINDS), ids.view(-1))

    return training_step(model, optimizer, loss_of)


def gpt_token(t: Any) -> Callable[[], object]:
    """One more token after 128, with the keys and values of those kept."""
    model = gpt(t).eval()
    with t.no_grad():
        _, caches = model(t.randint(KINDS, (1, 128)))
    one = t.randint(KINDS, (1, 1))

    def token() -> object:
        with t.no_grad():
            logits, _ = model(one, caches, 128)
            return logits[0, -1].argmax().item()

    return token


def resnet18(t: Any) -> Any:
    """ResNet-18 as for 32x32 images (He et al., 2016): a first convolution 3x3, no pooling before the blocks."""
    nn = t.nn

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, inside: int, outside: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
            self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
            self.bn1, self.bn2 = nn.BatchNorm2d(outside), nn.BatchNorm2d(outside)
            self.short = nn.Sequential()
            if stride != 1 or inside != outside:
                self.short = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

        def forward(self, x: Any) -> Any:
            y = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu()))
            return (y + self.short(x)).relu()

    layers = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    inside = 64
    for outside, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Block(inside, outside, stride), Block(outside, outside, 1)]
        inside = outside
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def mlp(t: Any) -> Any:
    nn = t.nn
    return nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))


def step_of(t: Any, model: Any, x: Any, y: Any) -> Callable[[], object]:
    optimizer = t.optim.AdamW(model.parameters(), lr=1e-3)
    return training_step(model, optimizer, lambda model: t.nn.functional.cross_entropy(model(x), y))


def resnet_step(t: Any, wrap: Callable[[Any], Any] = lambda model: model) -> Callable[[], object]:
    return step_of(t, wrap(resnet18(t)), t.randn(32, 3, 32, 32), t.randint(10, (32,)))


def mlp_step(t: Any) -> Callable[[], object]:
    return step_of(t, mlp(t), t.randn(64, 256), t.randint(10, (64,)))


def one_row(t: Any) -> Callable[[], object]:
    linear, x = t.nn.Linear(64, 64), t.randn(1, 64)
    assert math.isfinite(linear(x).sum().item())

    def call() -> object:
        with t.no_grad():
            return linear(x)

    return call


def cases(device: str) -> Iterator[Case]:
    for name, make, bar in (
        ("GPT, 6 layers, 384 wide, 256 tokens, batch 8: training step", gpt_step, 0.9),
        ("the same GPT: one token with a cache", gpt_token, 0.4),
        ("ResNet-18, 3x32x32, batch 32: training step", resnet_step, 0.9),
        ("MLP of three layers, 256 wide, batch 64: training step", mlp_step, 0.4),
        ("nn.Linear of one row", one_row, 0.35),
    ):
        calls = {"tensorpy": make(tp)}
        if torch is not None:
            calls["torch"] = make(torch)
        yield Case(name, calls, {"torch": bar})
