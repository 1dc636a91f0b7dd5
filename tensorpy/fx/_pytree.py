"""Trees whose shape is known: their leaves, by a tree spec."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

from tensorpy.utils._pytree import TreeSpec

SUPPORTED_NODES: dict[Any, Callable[[Any, TreeSpec], Any]] = {
    dict: lambda tree, spec: [tree[key] for key in spec.context],
    list: lambda tree, spec: [tree[i] for i in range(len(spec.children_specs))],
    tuple: lambda tree, spec: [tree[i] for i in range(len(spec.children_specs))],
    namedtuple: lambda tree, spec: [tree[i] for i in range(len(spec.children_specs))],
}
SUPPORTED_NODES_EXACT_MATCH: dict[Any, Callable[[Any, TreeSpec], bool] | None] = {
    kind: lambda tree, spec: len(tree) == len(spec.children_specs) for kind in SUPPORTED_NODES
}


def register_pytree_flatten_spec(cls: Any, flatten_fn_spec: Any, flatten_fn_exact_match_spec: Any = None) -> None:
    """How a class is taken apart when its shape is known: a function of (value, spec) that gives the children."""
    SUPPORTED_NODES[cls] = flatten_fn_spec
    SUPPORTED_NODES_EXACT_MATCH[cls] = flatten_fn_exact_match_spec


def tree_flatten_spec(pytree: Any, spec: TreeSpec, exact_structural_match: bool = False) -> list[Any]:
    """The leaves of a tree of the shape of a spec; RuntimeError where it is of another."""
    if spec.is_leaf():
        return [pytree]
    if spec.type not in SUPPORTED_NODES:
        raise RuntimeError(f"{type(pytree)} does not have a flatten_fn_spec: give one to register_pytree_flatten_spec")
    exact = SUPPORTED_NODES_EXACT_MATCH.get(spec.type)
    if exact_structural_match and exact is not None and not exact(pytree, spec):
        raise RuntimeError(f"Cannot flatten pytree {pytree}, given spec: {spec}")
    children = SUPPORTED_NODES[spec.type](pytree, spec)
    pairs = zip(children, spec.children_specs, strict=True)
    return [leaf for child, part in pairs for leaf in tree_flatten_spec(child, part, exact_structural_match)]
