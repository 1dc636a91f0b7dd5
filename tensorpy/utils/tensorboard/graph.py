"""A model as TensorBoard's graph: its calls as tensorpy.fx sees them, or else the tree of its modules."""

from __future__ import annotations

import importlib
import json
from typing import Any

from tensorpy._C import Tensor

__all__ = ["graph_of"]


def _node(name: str, op: str, inputs: list[str], about: dict[str, Any]) -> Any:
    proto = importlib.import_module("tensorboard.compat.proto.node_def_pb2")
    made = proto.NodeDef(name=name, op=op, input=inputs)
    for key, value in about.items():
        made.attr[key].s = value.encode() if isinstance(value, str) else json.dumps(value).encode()
    return made


def _path(node: Any) -> str:
    """A name in the folders of the modules that the node is called for."""
    if node.op == "call_module":
        return f"{str(node.target).replace('.', '/')}/{node.name}"
    return str(node.name)


def _traced(model: Any, inputs: tuple[Any, ...]) -> list[Any]:
    fx = importlib.import_module("tensorpy.fx")
    traced = fx.symbolic_trace(model)
    shapes = importlib.import_module("tensorpy.fx.passes.shape_prop")
    shapes.ShapeProp(traced).propagate(*inputs)
    nodes = []
    for node in traced.graph.nodes:
        target = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", str(node.target))
        op = type(traced.get_submodule(node.target)).__name__ if node.op == "call_module" else str(target)
        about: dict[str, Any] = {"kind": node.op}
        if (shape := getattr(node.meta.get("tensor_meta"), "shape", None)) is not None:
            about["shape"] = list(shape)
        nodes.append(_node(_path(node), op, [_path(n) for n in node.all_input_nodes], about))
    return nodes


def _tree(model: Any) -> list[Any]:
    nodes = []
    for name, module in model.named_modules():
        shapes = {key: list(p.shape) for key, p in module.named_parameters(recurse=False)}
        path = "/".join(["model", *name.split(".")]) if name else "model"
        nodes.append(_node(f"{path}/{type(module).__name__}", type(module).__name__, [], {"parameters": shapes}))
    return nodes


def graph_of(model: Any, inputs: Any) -> Any:
    """The bytes' message: a GraphDef. Without inputs, or for a model that cannot be traced, its modules alone."""
    proto = importlib.import_module("tensorboard.compat.proto.graph_pb2")
    versions = importlib.import_module("tensorboard.compat.proto.versions_pb2")
    given = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs or ())
    nodes = None
    if given:
        try:
            nodes = _traced(model, given)
        except Exception:  # what stops a tracer is the model's own
            nodes = None
    return proto.GraphDef(node=_tree(model) if nodes is None else nodes, versions=versions.VersionDef(producer=22))
