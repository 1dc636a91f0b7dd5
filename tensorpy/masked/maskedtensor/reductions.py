"""Reductions of MaskedTensors, by the names of PyTorch's module."""

from __future__ import annotations

import tensorpy as tp
from tensorpy.masked.maskedtensor.core import _FUNCTIONS, _all, _reduced

REDUCE_NAMES = [name for name, rule in _FUNCTIONS.items() if rule in (_reduced, _all)]
NATIVE_REDUCE_FNS = [getattr(tp.ops.aten, name) for name in REDUCE_NAMES]
TORCH_REDUCE_FNS = [getattr(tp, name) for name in REDUCE_NAMES]
TENSOR_REDUCE_FNS = [getattr(tp.Tensor, name) for name in REDUCE_NAMES]
