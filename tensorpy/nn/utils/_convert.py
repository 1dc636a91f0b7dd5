"""Parameters as one vector, modules without starting values, weights in another memory format."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.nn.modules.conv import _ConvNd
from tensorpy.nn.modules.module import Module


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements of the parameters, one after the other.

    Returns: a tensor of one dimension.

    Raises: TypeError for parameters on different devices.

    Example:
        >>> nn.utils.parameters_to_vector(nn.Linear(2, 3).parameters()).shape
        tensorpy.Size([9])
    """
    flat = [p.reshape(-1) for p in parameters]
    if len({p.device for p in flat}) > 1:
        raise TypeError("Found two parameters on different devices, this is currently not supported.")
    return _C.cat(flat)


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Makes the parameters views of parts of a vector.

    Arguments:
        vec: all elements in one dimension
        parameters: a parameter or several

    Example:
        >>> x = nn.Parameter(tp.zeros(2))
        >>> nn.utils.vector_to_parameters(tp.tensor([1.0, 2.0]), [x])
        >>> x.tolist()
        [1.0, 2.0]
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected a Tensor, but got: {type(vec)}")
    begin = 0
    for p in parameters:
        p.data = vec[begin : begin + p.numel()].view_as(p).data
        begin += p.numel()


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """A module whose parameters have no starting values: made on the meta device, then given memory.

    Arguments:
        module_cls: the class of the module

    Returns: a module.

    Raises: RuntimeError for what is no class of modules, or takes no device.

    Example:
        >>> nn.utils.skip_init(nn.Linear, 2, 3).weight.shape
        tensorpy.Size([3, 2])
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, device="meta", **kwargs).to_empty(device=device)


def _convert_weights(module: Any, memory_format: Any, dims: int) -> Any:
    for m in module.modules():
        if isinstance(m, _ConvNd) and m._dims == dims:
            m.weight.data = m.weight.detach().clone().contiguous(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """The weights of all Conv2d and ConvTranspose2d in a memory format.

    Arguments:
        module: the module
        memory_format: how the result lies in memory

    Returns: the module.

    Example:
        >>> conv = nn.utils.convert_conv2d_weight_memory_format(nn.Conv2d(3, 4, 2), tp.channels_last)
        >>> conv.weight.stride()
        (12, 1, 6, 3)
    """
    return _convert_weights(module, memory_format, 2)


def convert_conv3d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """The weights of all Conv3d and ConvTranspose3d in a memory format.

    Arguments:
        module: the module
        memory_format: how the result lies in memory

    Returns: the module.

    Example:
        >>> conv = nn.utils.convert_conv3d_weight_memory_format(nn.Conv3d(3, 4, 2), tp.channels_last_3d)
        >>> conv.weight.stride()
        (24, 1, 12, 6, 3)
    """
    return _convert_weights(module, memory_format, 3)
