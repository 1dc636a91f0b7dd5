"""Modules whose weights are integers, and whose input is quantized by its range at each call."""

from __future__ import annotations

from tensorpy.ao.nn.quantized.dynamic.modules import (
    GRU,
    LSTM,
    GRUCell,
    Linear,
    LSTMCell,
    PackedParameter,
    RNNBase,
    RNNCell,
    RNNCellBase,
)

__all__ = [
    "GRU", "LSTM", "GRUCell", "LSTMCell", "Linear", "PackedParameter", "RNNBase", "RNNCell", "RNNCellBase",
]  # fmt: skip
