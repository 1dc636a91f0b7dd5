"""Recurrent networks and attention made of parts that are observed and quantized one by one."""

from __future__ import annotations

from tensorpy.ao.nn.quantizable.modules.activation import MultiheadAttention
from tensorpy.ao.nn.quantizable.modules.rnn import LSTM, LSTMCell

__all__ = ["LSTM", "LSTMCell", "MultiheadAttention"]
