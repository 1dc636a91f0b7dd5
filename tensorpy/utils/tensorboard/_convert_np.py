"""What is logged as arrays of NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorpy._C import Tensor

__all__ = ["make_np"]


def array_of(value: Any) -> Any:
    """A tensor, an array or a number as an array; NumPy has no bfloat16."""
    if isinstance(value, Tensor):
        value = value.detach().cpu()
        value = (value.float() if value.dtype.itemsize == 2 and value.is_floating_point() else value).numpy()
    return np.asarray(value)


def make_np(x: Any) -> Any:
    """A tensor, an array or a number as an array of at least one dimension.

    Raises: NotImplementedError for anything else.
    """
    if not isinstance(x, (Tensor, np.ndarray)) and not np.isscalar(x):
        raise NotImplementedError(f"make_np: {type(x).__name__} is no tensor, no array and no number")
    array = array_of(x)
    return array if isinstance(x, (Tensor, np.ndarray)) else array.reshape(1)
