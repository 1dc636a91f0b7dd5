"""Divides a graph module by tags: `node.tag` names the part."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Any

from tensorpy.fx.graph import Graph, attribute_of
from tensorpy.fx.graph_module import GraphModule, _assign_attr
from tensorpy.fx.node import Node
from tensorpy.fx.passes.split_module import split_module

__all__ = ["Component", "getattr_recursive", "setattr_recursive", "split_by_tags"]


def getattr_recursive(obj: Any, name: str) -> Any:
    """What is at a path; None: nothing."""
    for part in name.split("."):
        if not hasattr(obj, part):
            return None
        obj = getattr(obj, part)
    return obj


def setattr_recursive(obj: Any, attr: str, value: Any) -> None:
    """Puts something at a path whose owner is there."""
    owner, _, name = attr.rpartition(".")
    setattr(getattr_recursive(obj, owner) if owner else obj, name, value)


@dataclass
class Component:
    """One part of a graph."""

    graph: Graph
    order: int
    name: str
    input_placeholders: list[Node] = field(default_factory=list)
    orig_inputs: list[Node] = field(default_factory=list)
    orig_outputs: list[Node] = field(default_factory=list)
    getattr_maps: dict[Node, Node] = field(default_factory=dict)
    constructor_args: list[str] = field(default_factory=list)
    gm: GraphModule | None = None


def split_by_tags(
    gm: GraphModule,
    tags: list[str],
    return_fqn_mapping: bool = False,
    return_tuple: bool = False,
    GraphModuleCls: type[GraphModule] = GraphModule,
) -> Any:
    """A graph module that calls a module for each of the tags, in their order. A part has itself what it needs of the
    module's tensors, under the same path. With `return_fqn_mapping` also where what the graph names is from then on."""
    places = {tag: i for i, tag in enumerate(tags)}
    for node in gm.graph.nodes:
        if node.op in ("get_attr", "placeholder", "output"):
            continue
        if getattr(node, "tag", None) not in places:
            raise AssertionError(f"the node {node} has no tag of {tags}")
    paths: dict[str, str] = {}
    made = split_module(gm, gm, operator.attrgetter("tag"), paths, tuple_return=return_tuple)
    for tag in tags:
        if hasattr(made, f"submod_{tag}"):
            paths |= _own_attributes(gm, made, f"submod_{tag}")
            made.add_module(tag, getattr(made, f"submod_{tag}"))
            delattr(made, f"submod_{tag}")
            type(getattr(made, tag)).__name__ = tag
    for node in list(made.graph.nodes):
        if node.op == "call_module":
            node.target = node.target.removeprefix("submod_")
            node._rename(node.target)
        if node.op == "get_attr" and not node.users:
            made.graph.erase_node(node)
    made.recompile()
    result = GraphModuleCls(made, made.graph)
    return (result, {v: k.removeprefix("submod_") for k, v in paths.items()}) if return_fqn_mapping else result


def _own_attributes(gm: GraphModule, made: GraphModule, name: str) -> dict[str, str]:
    """A part reads the tensors that it was given as inputs; their new paths and their old ones."""
    part = getattr(made, name)
    call = next(node for node in made.graph.nodes if node.op == "call_module" and node.target == name)
    inputs = [node for node in part.graph.nodes if node.op == "placeholder"]
    kept, paths = [], {}
    for given, placeholder in zip(call.args, inputs, strict=True):
        if given.op != "get_attr":
            kept.append(given)
            continue
        _assign_attr(attribute_of(gm, given.target), part, given.target)
        paths[f"{name}.{given.target}"] = given.target
        with part.graph.inserting_before(placeholder):
            read = part.graph.get_attr(given.target)
        placeholder.replace_all_uses_with(read)
        part.graph.erase_node(placeholder)
    call.args = tuple(kept)
    part.recompile()
    return paths
