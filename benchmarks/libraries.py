"""The libraries that are compared; torch is None where it is not installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tensorpy as tp

try:
    import threadpoolctl
except ImportError:
    threadpoolctl = None
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


def training_step(model: Any, optimizer: Any, loss_of: Callable[[Any], Any]) -> Callable[[], object]:
    """A step as a program in any of the libraries has it; `loss_of(model)` is what it makes smaller."""

    def step() -> object:
        optimizer.zero_grad()
        loss = loss_of(model)
        loss.backward()
        optimizer.step()
        return loss

    return step


def set_threads(n: int) -> None:
    """For all of them, NumPy's BLAS too where threadpoolctl is installed."""
    tp.set_num_threads(n)
    if threadpoolctl is not None:
        for library in threadpoolctl.ThreadpoolController().lib_controllers:
            if "numpy" in library.filepath:
                library.set_num_threads(n)
    if torch is not None:
        torch.set_num_threads(n)
