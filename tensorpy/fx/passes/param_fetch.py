"""Puts what a module of tensorpy.nn is made of at the nodes that call it."""

from __future__ import annotations

from typing import Any

from tensorpy.fx.graph_module import GraphModule
from tensorpy.nn import Module

__all__ = ["extract_attrs_for_lowering", "lift_lowering_attrs_to_nodes"]

_CONVOLUTION = ["weight", "bias", "kernel_size", "stride", "padding", "dilation", "groups", "padding_mode"]
_NORMALIZATION = ["weight", "bias", "running_mean", "running_var", "eps"]
_POOLING = ["kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"]
_ATTRIBUTES = {
    "Linear": ["weight", "bias"], "Conv2d": _CONVOLUTION, "BatchNorm2d": _NORMALIZATION, "ReLU": ["inplace"],
    "MaxPool2d": _POOLING, "AdaptiveAvgPool2d": ["output_size"],
}  # fmt: skip


def extract_attrs_for_lowering(mod: Module) -> dict[str, Any]:
    """The class and the attributes of a module; RuntimeError for a class that is not known."""
    kind = type(mod)
    if kind.__name__ not in _ATTRIBUTES:
        raise RuntimeError(f"{kind.__name__} is not supported: its attributes are not known")
    return {"name": f"{kind.__module__}.{kind.__qualname__}"} | {n: getattr(mod, n) for n in _ATTRIBUTES[kind.__name__]}


def lift_lowering_attrs_to_nodes(fx_module: Any) -> None:
    """Sets `attrs_for_lowering` of the nodes that call modules, in modules of graphs as well."""
    modules = dict(fx_module.named_modules())
    node: Any
    for node in fx_module.graph.nodes:
        if node.op == "call_module":
            if isinstance(modules[node.target], GraphModule):
                lift_lowering_attrs_to_nodes(modules[node.target])
            else:
                node.attrs_for_lowering = extract_attrs_for_lowering(modules[node.target])
