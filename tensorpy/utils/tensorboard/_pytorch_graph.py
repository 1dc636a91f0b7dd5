"""A model as TensorBoard's graph: its calls as tensorpy.fx sees them, or else the tree of its modules."""

from __future__ import annotations

import contextlib
import importlib
import json
from collections.abc import Iterator
from typing import Any

from tensorpy._C import Tensor
from tensorpy.autograd.grad_mode import no_grad

__all__ = ["graph"]


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


@contextlib.contextmanager
def _at_rest(model: Any) -> Iterator[None]:
    """In its scope calls of a model change nothing of it."""
    modules = [m for m in model.modules() if m.training]
    try:
        for module in modules:
            module.training = False
        with no_grad():
            yield
    finally:
        for module in modules:
            module.training = True


def graph(model: Any, args: Any, verbose: bool = False, use_strict_trace: bool = True) -> tuple[Any, Any]:
    """A model's calls for these inputs; without any, or for a model that cannot be traced, its modules alone.

    Arguments:
        model: the model
        args: a tensor, or a tuple of inputs
        verbose: whether the graph is printed
        use_strict_trace: whether a result that is a dict is an error

    Returns: a GraphDef, and a RunMetadata of the device.

    Raises: RuntimeError for a dict; what the model raises for its inputs.
    """
    protos = [importlib.import_module(f"tensorboard.compat.proto.{n}_pb2") for n in ("graph", "versions", "config")]
    steps = importlib.import_module("tensorboard.compat.proto.step_stats_pb2")
    given, nodes = (args,) if isinstance(args, Tensor) else tuple(args or ()), None
    with _at_rest(model):
        if given and isinstance(model(*given), dict) and use_strict_trace:
            raise RuntimeError("graph: the model gives a dict, which use_strict_trace=False allows")
        with contextlib.suppress(Exception):  # what stops a tracer is the model's own
            nodes = _traced(model, given) if given else None
    made = protos[0].GraphDef(node=_tree(model) if nodes is None else nodes, versions=protos[1].VersionDef(producer=22))
    if verbose:
        print(made)
    device = steps.StepStats(dev_stats=[steps.DeviceStepStats(device="/device:CPU:0")])
    return made, protos[2].RunMetadata(step_stats=device)
