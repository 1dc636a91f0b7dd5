"""tensorpy.nn: modules, their parameters, layers and losses; the functions of neural networks."""

from __future__ import annotations

from tensorpy.nn import functional, init, modules, parameter
from tensorpy.nn import utils as utils
from tensorpy.nn.modules import *  # noqa: F403
from tensorpy.nn.modules import Module
from tensorpy.nn.modules import __all__ as _layers
from tensorpy.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter


def factory_kwargs(kwargs: dict[str, object] | None) -> dict[str, object]:
    """The arguments of a factory among those of a layer: device, dtype, memory_format, and `factory_kwargs` itself."""
    if kwargs is None:
        return {}
    known = {"device", "dtype", "memory_format"}
    if unexpected := kwargs.keys() - {*known, "factory_kwargs"}:
        raise TypeError(f"unexpected kwargs {unexpected}")
    found = dict(kwargs.get("factory_kwargs", {}))  # type: ignore[call-overload]
    for name in known & kwargs.keys():
        if name in found:
            raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
        found[name] = kwargs[name]
    return found


__all__ = [
    *_layers,
    "Buffer",
    "Module",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "factory_kwargs",
    "functional",
    "init",
    "modules",
    "parameter",
]
