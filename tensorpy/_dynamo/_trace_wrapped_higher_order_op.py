"""A mode for masks that look things up by tensors of one number, under PyTorch's name."""

from __future__ import annotations

from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.overrides import TorchFunctionMode


class TransformGetItemToIndex(TorchFunctionMode):
    """`x[i]` with tensors alone is the operator `index`: a tensor of one number is a place, which nobody reads.

    Example:
        >>> from tensorpy._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
        >>> documents = tp.tensor([0, 0, 1])
        >>> with TransformGetItemToIndex():
        ...     tp.vmap(lambda i: documents[i] == 1)(tp.arange(3))
        tensor([False, False,  True])
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is Tensor.__getitem__:
            places = args[1] if isinstance(args[1], (tuple, list)) else (args[1],)
            if places and all(isinstance(place, Tensor) for place in places):
                return _C._op_overload("index.Tensor")(args[0], list(places))
        return func(*args, **(kwargs or {}))


__all__ = ["TransformGetItemToIndex"]
