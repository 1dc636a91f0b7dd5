"""Variable, from before tensors recorded gradients themselves: a tensor of the same memory without history."""

from __future__ import annotations

from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor

__all__ = ["Variable"]


class VariableMeta(type):
    """Every tensor is a Variable."""

    def __instancecheck__(cls, other: object) -> bool:
        return isinstance(other, Tensor)


class Variable(metaclass=VariableMeta):
    """`Variable(x, requires_grad=True)`: x's elements as a leaf of a graph, a Tensor like any other."""

    def __new__(cls, data: Any = None, requires_grad: bool = False, volatile: Any = None) -> Any:
        if data is None:
            return _C._want_gradient(_C.empty(0), requires_grad)
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        return _C._want_gradient(data.detach(), requires_grad)
