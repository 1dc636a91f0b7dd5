"""The libraries that are compared; torch is None where it is not installed."""

from __future__ import annotations

from typing import Any

import numpy as np

import tensorpy as tp

try:
    import torch as _torch
except ImportError:
    _torch = None
torch: Any = _torch


def tensors(*arrays: np.ndarray[Any, Any]) -> dict[str, tuple[Any, ...]]:
    """The same values for each library."""
    made: dict[str, tuple[Any, ...]] = {"tensorpy": tuple(tp.tensor(a) for a in arrays), "numpy": arrays}
    if torch is not None:
        made["torch"] = tuple(torch.tensor(a) for a in arrays)
    return made


def set_threads(n: int) -> None:
    tp.set_num_threads(n)
    if torch is not None:
        torch.set_num_threads(n)
