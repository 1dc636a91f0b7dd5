"""A graph as plain values and back, for pickles and copies.

A graph becomes code when it is loaded, and may call any function that can be pickled: who loads one trusts it, so
`load` takes it with weights_only=False alone. What `encode` does not write is refused all the same, so that a damaged
graph is an error instead of other code.
"""

from __future__ import annotations

import operator
from collections import OrderedDict
from typing import Any

import tensorpy
from tensorpy import _C
from tensorpy.fx.graph import Graph
from tensorpy.fx.immutable_collections import immutable_dict, immutable_list
from tensorpy.fx.node import Node, OpOverload, at_path, overload, target_name
from tensorpy.utils._pytree import LeafSpec, TreeSpec

_FUNCTIONS: dict[str, Any] = {"getitem": operator.getitem, "grad_mode": _C._set_grad_enabled}
_PLAIN = (bool, int, float, str, bytes, type(None))
_CONTAINERS: dict[str, Any] = {"list": list, "tuple": tuple, "dict": dict, "OrderedDict": OrderedDict}
_NAMED: dict[str, Any] = {"dtype": _C.dtype, "layout": type(_C.strided), "memory_format": type(_C.preserve_format)}


def _encode_value(value: Any) -> tuple[Any, ...]:
    """A tag and plain values."""
    if isinstance(value, Node):
        return "node", value.name
    if type(value) in (tuple, list, immutable_list, _C.Size):
        return "list" if isinstance(value, list) else "tuple", [_encode_value(v) for v in value]
    if type(value) in (dict, immutable_dict):
        return "dict", [(_encode_value(k), _encode_value(v)) for k, v in value.items()]
    if isinstance(value, slice):
        return "slice", [_encode_value(v) for v in (value.start, value.stop, value.step)]
    if isinstance(value, complex):
        return "complex", [value.real, value.imag]
    if isinstance(value, _C.device):
        return "device", str(value)
    if value is ...:
        return ("ellipsis",)
    for tag, kind in _NAMED.items():
        if isinstance(value, kind):
            return tag, str(value).rpartition(".")[2]
    return "value" if type(value) in _PLAIN else "object", value


def _decode_value(state: Any, nodes: dict[str, Node]) -> Any:
    tag, rest = state[0], state[1:]
    if tag == "object":
        return rest[0]
    if tag == "node":
        return nodes[rest[0]]
    if tag in ("tuple", "list", "slice"):
        items = [_decode_value(s, nodes) for s in rest[0]]
        return slice(*items) if tag == "slice" else tuple(items) if tag == "tuple" else items
    if tag == "dict":
        return {_decode_value(k, nodes): _decode_value(v, nodes) for k, v in rest[0]}
    if tag == "complex":
        return complex(*rest[0])
    if tag == "device":
        return _C.device(rest[0])
    if tag == "ellipsis":
        return ...
    if tag in _NAMED:
        found = getattr(tensorpy, rest[0], None)
        if not isinstance(found, _NAMED[tag]):
            raise TypeError(f"a saved graph names {rest[0]!r} as a {tag}")
        return found
    if tag != "value" or type(rest[0]) not in _PLAIN:
        raise TypeError(f"a saved graph has a value of the kind {tag!r}")
    return rest[0]


def _encode_target(node: Node) -> tuple[Any, ...]:
    if isinstance(node.target, OpOverload):
        return "operator", node.target._own_name
    for tag, function in _FUNCTIONS.items():
        if node.target is function:
            return (tag,)
    if isinstance(node.target, str):
        return "name", node.target
    public = target_name(node.target)
    return ("public", public) if at_path(public) is node.target else ("function", node.target)


def _is_path(target: Any, op: str) -> bool:
    """Names with dots between them; modules in a list or a Sequential are numbers."""
    if not isinstance(target, str):
        return False
    return all(p.isidentifier() or (op != "placeholder" and p.isalnum()) for p in target.split("."))


def _decode_target(op: str, state: Any) -> Any:
    kind, *rest = state
    if kind in _FUNCTIONS:
        return _FUNCTIONS[kind]
    (target,) = rest
    if kind == "function" and callable(target):
        return target
    if kind == "operator":
        return overload(target)
    if kind == "public":
        return at_path(target)
    if kind != "name" or not _is_path(target.lstrip("*") if op == "placeholder" else target, op):
        raise TypeError(f"a saved graph has the target {target!r} of the kind {kind!r}")
    return target


def _encode_spec(spec: TreeSpec | None) -> Any:
    if spec is None or spec.type is None:
        return None if spec is None else ("leaf",)
    kind = next((name for name, cls in _CONTAINERS.items() if cls is spec.type), spec.type)
    return kind, spec.context, [_encode_spec(child) for child in spec.children_specs]


def _decode_spec(state: Any) -> TreeSpec | None:
    if state is None:
        return None
    if state[0] == "leaf":
        return LeafSpec()
    kind = _CONTAINERS[state[0]] if isinstance(state[0], str) else state[0]
    children = [_decode_spec(child) for child in state[2]]
    return TreeSpec(kind, state[1], tuple(child for child in children if child is not None))


def encode(graph: Graph) -> dict[str, Any]:
    nodes = [(n.op, n.name, _encode_target(n), _encode_value(n.args), _encode_value(n.kwargs)) for n in graph.nodes]
    static = [(place, _encode_value(value)) for place, value in graph.static_inputs.items()]
    specs = _encode_spec(graph.in_spec), _encode_spec(graph.out_spec)
    state = {"version": 1, "nodes": nodes, "specs": specs, "static": static}
    types = {n.name: n.type for n in graph.nodes if n.type is not None}
    wrapped = [n.name for n in graph.nodes if n.meta.get("is_wrapped")]
    if graph.in_names is not None:
        state["in_names"] = graph.in_names
    return state | ({"types": types} if types else {}) | ({"wrapped": wrapped} if wrapped else {})


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and name.isidentifier()


def decode(state: Any) -> Graph:
    """TypeError where a state holds what `encode` does not write."""
    if not isinstance(state, dict) or state.get("version") != 1:
        raise TypeError("a saved graph is broken, or of a later version")
    graph = Graph()
    nodes: dict[str, Node] = {}
    for op, name, target, args, kwargs in state["nodes"]:
        keywords = _decode_value(kwargs, nodes)
        if not all(map(_is_name, [name, *keywords])):
            raise TypeError(f"a saved graph has a node or keyword that is no name: {name!r}")
        called = _decode_target(op, target)
        made = graph.create_node(op, called, _decode_value(args, nodes), keywords, name)
        nodes[name] = made
    for name in state.get("wrapped", ()):
        nodes[name].meta["is_wrapped"] = True
    for name, kind in state.get("types", {}).items():
        nodes[name].type = kind
    graph.in_spec, graph.out_spec = (_decode_spec(spec) for spec in state["specs"])
    names = state.get("in_names")
    if names is not None and not all(map(_is_name, names)):
        raise TypeError("a saved graph has a parameter that is no name")
    graph.in_names = names
    graph.static_inputs = {place: _decode_value(value, {}) for place, value in state["static"]}
    return graph
