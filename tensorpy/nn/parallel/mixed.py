"""Mixed precision of DistributedDataParallel: forward computes with copies of parameters in another dtype.

The copies are made by operators that record gradients, so each parameter's gradient comes in the parameter's own dtype;
on its way to the other processes it is of the reduced one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tensorpy._C import Tensor
from tensorpy.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook, compressed_hook
from tensorpy.nn.modules.module import Module
from tensorpy.nn.utils.stateless import _functional_call
from tensorpy.utils._pytree import tree_map


@dataclass
class _MixedPrecision:
    """Which dtypes a DistributedDataParallel computes and sends in; None leaves them as they are.

    Arguments:
        param_dtype: of parameters in forward and backward, and of what forward is given
        reduce_dtype: of gradients on their way; param_dtype if nothing is said
        buffer_dtype: of buffers
    """

    param_dtype: Any = None
    reduce_dtype: Any = None
    buffer_dtype: Any = None

    def __post_init__(self) -> None:
        for name in ("param_dtype", "reduce_dtype", "buffer_dtype"):
            dtype = getattr(self, name)
            if dtype is not None and not getattr(dtype, "is_floating_point", False):
                raise ValueError(f"_MixedPrecision: {name} is a dtype of real numbers, not {dtype}")


def _cast(value: Any, dtype: Any) -> Any:
    floats = isinstance(value, Tensor) and value.is_floating_point()
    return value.to(dtype) if floats else value


def cast_inputs(precision: _MixedPrecision, inputs: Any, kwargs: Any) -> Any:
    """What forward is given, in the dtype that parameters have there."""
    if precision.param_dtype is None:
        return inputs, kwargs
    return tree_map(lambda x: _cast(x, precision.param_dtype), (inputs, kwargs))


def cast_buffers(precision: _MixedPrecision, buffers: dict[str, Tensor]) -> None:
    """Gives buffers of real numbers their dtype."""
    if precision.buffer_dtype is None:
        return
    for buffer in buffers.values():
        buffer.data = _cast(buffer.data, precision.buffer_dtype)


def call(precision: _MixedPrecision, module: Module, ignored: set[str], inputs: Any, kwargs: Any) -> Any:
    """Calls the module with copies of its parameters in their dtype of computing."""
    dtype = precision.param_dtype
    if dtype is None:
        return module(*inputs, **kwargs)
    named = {n: p for n, p in module.named_parameters() if n not in ignored and p.is_floating_point()}
    return _functional_call(module, {n: p.to(dtype) for n, p in named.items()}, inputs, kwargs)


def hook(precision: _MixedPrecision) -> Callable[..., Any]:
    """A communication hook that sends gradients in their dtype."""
    dtype = precision.reduce_dtype or precision.param_dtype
    return allreduce_hook if dtype is None else compressed_hook(dtype)
