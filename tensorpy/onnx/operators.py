"""Shapes as tensors, as programs write them that are to be exported."""

from __future__ import annotations

from tensorpy import _C
from tensorpy._C import Tensor


def shape_as_tensor(x: Tensor) -> Tensor:
    """The sizes of a tensor, as one of int64."""
    return _C.tensor(list(x.shape), dtype=_C.int64)


def reshape_from_tensor_shape(x: Tensor, shape: Tensor) -> Tensor:
    """The tensor in a shape that is given as a tensor."""
    return x.reshape(shape.tolist())
