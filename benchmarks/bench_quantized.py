"""Products and convolutions of integers, beside PyTorch's, and a layer of BERT's shape with dynamic quantization."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import tensorpy as tp

from .harness import Case
from .libraries import torch

LIBRARIES = {"tensorpy": tp} if torch is None else {"tensorpy": tp, "torch": torch}
IMAGES, CHANNELS, SIZE, FEATURES, TOKENS = 8, 64, 56, 1024, 128


def _linear(library: Any, batch: int) -> Callable[[], object]:
    integers = partial(library.quantize_per_tensor, scale=0.05, zero_point=0, dtype=library.qint8)
    x = library.quantize_per_tensor(library.randn(batch, FEATURES), 0.05, 128, library.quint8)
    weight = library.ops.quantized.linear_prepack(integers(library.randn(FEATURES, FEATURES)), None)
    return lambda: library.ops.quantized.linear(x, weight, 0.5, 128)


def _convolution(library: Any) -> Callable[[], object]:
    images = library.randn(IMAGES, CHANNELS, SIZE, SIZE).to(memory_format=library.channels_last)
    x = library.quantize_per_tensor(images, 0.05, 128, library.quint8)
    window = library.quantize_per_tensor(library.randn(CHANNELS, CHANNELS, 3, 3), 0.05, 0, library.qint8)
    weight = library.ops.quantized.conv2d_prepack(window, None, [1, 1], [1, 1], [1, 1], 1)
    return lambda: library.ops.quantized.conv2d(x, weight, 0.5, 128)


def _layer(dynamic: bool) -> Callable[[], object]:
    layer: Any = tp.nn.Sequential(tp.nn.Linear(768, 3072), tp.nn.GELU(), tp.nn.Linear(3072, 768)).eval()
    if dynamic:
        layer = tp.ao.quantization.quantize_dynamic(layer, {tp.nn.Linear}, dtype=tp.qint8)
    x = tp.randn(TOKENS, 768)

    def run() -> object:
        with tp.no_grad():
            return layer(x)

    return run


def cases(device: str) -> Iterator[Case]:
    warnings.filterwarnings("ignore", "torch.ao.quantization is deprecated")
    for batch in (1, 64):
        calls = {name: _linear(library, batch) for name, library in LIBRARIES.items()}
        yield Case(f"int8 linear {FEATURES} x {FEATURES}, batch {batch}", calls, {"torch": 1.0})
    calls = {name: _convolution(library) for name, library in LIBRARIES.items()}
    name = f"int8 convolution 3x3, {CHANNELS} to {CHANNELS}, {IMAGES} images of {SIZE} x {SIZE}"
    yield Case(name, calls, {"torch": 1.0})
    calls = {"tensorpy": _layer(True), "float32": _layer(False)}
    yield Case(f"BERT's feed-forward, {TOKENS} tokens, dynamic", calls, {"float32": 0.6})
