"""Modules whose weights are integers, and whose input is quantized by its range at each call."""

from __future__ import annotations

from tensorpy.ao.nn.quantized.dynamic.modules import (
    GRU,
    LSTM,
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    GRUCell,
    Linear,
    LSTMCell,
    PackedParameter,
    RNNBase,
    RNNCell,
    RNNCellBase,
)

__all__ = [
    "GRU", "LSTM", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "GRUCell",
    "LSTMCell", "Linear", "PackedParameter", "RNNBase", "RNNCell", "RNNCellBase",
]  # fmt: skip
