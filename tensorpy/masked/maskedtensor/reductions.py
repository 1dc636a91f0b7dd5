"""Reductions of masked tensors, as PyTorch lists them: operators, functions, methods."""

from __future__ import annotations

import tensorpy
from tensorpy import Tensor, ops

__all__ = ["NATIVE_REDUCE_FNS", "REDUCE_NAMES", "TENSOR_REDUCE_FNS", "TORCH_REDUCE_FNS"]

REDUCE_NAMES = ["sum", "mean", "amin", "amax", "argmin", "argmax", "prod", "all", "norm", "var", "std"]
NATIVE_REDUCE_FNS = [getattr(ops.aten, name) for name in REDUCE_NAMES]
TORCH_REDUCE_FNS = [getattr(tensorpy, name) for name in REDUCE_NAMES]
TENSOR_REDUCE_FNS = [getattr(Tensor, name) for name in REDUCE_NAMES]
