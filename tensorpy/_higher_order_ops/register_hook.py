"""A hook on a tensor's gradient that has arguments of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorpy._C import Tensor


def register_hook_op(tensor: Tensor, hook_body: Callable[..., Any], *freevars: Any) -> Tensor:
    """Has a tensor's gradient be what a function makes of it.

    Arguments:
        tensor: the tensor
        hook_body: takes the gradient and `freevars`; gives the new one, or None
        freevars: its other arguments

    Returns: the tensor.

    Example:
        >>> from tensorpy._higher_order_ops.register_hook import register_hook_op
        >>> x = tp.ones(2, requires_grad=True)
        >>> register_hook_op(x, tp.mul, 3.0).sum().backward()
        >>> x.grad
        tensor([3., 3.])
    """
    tensor.register_hook(lambda grad: hook_body(grad, *freevars))
    return tensor


__all__ = ["register_hook_op"]
