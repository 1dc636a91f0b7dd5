"""Layers whose weights are fake-quantized."""

from __future__ import annotations

from tensorpy.ao.nn.qat.modules.conv import Conv1d, Conv2d, Conv3d
from tensorpy.ao.nn.qat.modules.embedding_ops import Embedding, EmbeddingBag
from tensorpy.ao.nn.qat.modules.linear import Linear

__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "Embedding", "EmbeddingBag", "Linear",
]  # fmt: skip
