"""Variable, from before tensors recorded gradients themselves: a tensor of the same memory without history."""

from __future__ import annotations

from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor

__all__ = ["Variable"]


class _Engine:
    """The engine by the methods that PyTorch's has for it."""

    def run_backward(
        self,
        tensors: Any,
        grad_tensors: Any,
        keep_graph: bool,
        create_graph: bool,
        inputs: Any = (),
        allow_unreachable: bool = False,
        accumulate_grad: bool = False,
    ) -> Any:
        """Goes back from tensors with the gradients given: those of `inputs`, or into the leaves' `.grad`."""
        wanted = tuple(inputs) if inputs else None
        return _C._run_backward(
            tuple(tensors), tuple(grad_tensors), keep_graph, create_graph, wanted, accumulate_grad or wanted is None
        )

    def queue_callback(self, callback: Any) -> None:
        """Has a function called when the backward pass that runs is done."""
        _C._queue_callback(callback)

    def is_checkpoint_valid(self) -> bool:
        """Whether a checkpoint may run backward now: always."""
        return True


class VariableMeta(type):
    """Every tensor is a Variable."""

    def __instancecheck__(cls, other: object) -> bool:
        return isinstance(other, Tensor)


class Variable(metaclass=VariableMeta):
    """`Variable(x, requires_grad=True)`: x's elements as a leaf of a graph, a Tensor like any other.

    Arguments:
        data: the data
        requires_grad: whether autograd records what is done with the tensor
        volatile: is taken, and changes nothing

    Example:
        >>> tp.autograd.Variable(tp.ones(2), requires_grad=True).requires_grad
        True
    """

    _execution_engine = _Engine()

    def __new__(cls, data: Any = None, requires_grad: bool = False, volatile: Any = None) -> Any:
        if data is None:
            return _C._want_gradient(_C.empty(0), requires_grad)
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        return _C._want_gradient(data.detach(), requires_grad)
