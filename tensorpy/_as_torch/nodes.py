"""Nodes that programs put into a graph by hand: torch._C._functions.

y = torch._C._functions.DelayedError("not here", 1)(x)
"""

from __future__ import annotations

from typing import Any

from tensorpy._C import Tensor
from tensorpy.autograd import Function
from tensorpy.autograd.gradcheck_backward import _Undefined


class _Fails(Function):
    @staticmethod
    def forward(ctx: Any, message: str, *inputs: Tensor) -> tuple[Tensor, ...]:
        ctx.message = message
        return inputs

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(ctx.message)


def _one_or_all(outputs: tuple[Tensor, ...]) -> Any:
    return outputs[0] if len(outputs) == 1 else outputs


class DelayedError:
    """Hands tensors on, whose backward raises a RuntimeError with this message."""

    def __init__(self, msg: str, num_inputs: int) -> None:
        self.msg, self.num_inputs = msg, num_inputs

    def __call__(self, *inputs: Tensor) -> Any:
        return _one_or_all(_Fails.apply(self.msg, *inputs))


class UndefinedGrad:
    """Hands tensors on, whose gradients end here."""

    def __call__(self, *inputs: Tensor) -> Any:
        return _one_or_all(_Undefined.apply(*inputs))
