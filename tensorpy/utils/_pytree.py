"""Trees of Python containers: taken apart into leaves and a structure, and put together again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple


class TreeSpec(NamedTuple):
    """A tree without its leaves: `kind` None is a leaf; `context` is what the container is remade with."""

    kind: Any
    context: Any
    children: tuple[TreeSpec, ...]

    @property
    def num_leaves(self) -> int:
        return 1 if self.kind is None else sum(c.num_leaves for c in self.children)

    def __repr__(self) -> str:
        if self.kind is None:
            return "*"
        inside = ", ".join(map(repr, self.children))
        return f"{self.kind.__name__}({inside})"


LEAF = TreeSpec(None, None, ())


def _is_namedtuple(kind: type) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


def _parts(tree: Any) -> tuple[Any, list[Any]] | None:
    """The context of a container and what is in it; None for a leaf."""
    kind = type(tree)
    if kind in (dict, OrderedDict):
        keys = list(tree)
        return keys, [tree[key] for key in keys]
    if kind in (list, tuple) or _is_namedtuple(kind) or hasattr(kind, "n_sequence_fields"):
        return None, list(tree)
    return None


def tree_flatten(tree: Any) -> tuple[list[Any], TreeSpec]:
    """The leaves, in order, and the structure."""
    parts = _parts(tree)
    if parts is None:
        return [tree], LEAF
    context, children = parts
    flat = [tree_flatten(child) for child in children]
    leaves = [leaf for found, _ in flat for leaf in found]
    return leaves, TreeSpec(type(tree), context, tuple(spec for _, spec in flat))


def _make(spec: TreeSpec, children: list[Any]) -> Any:
    if spec.kind in (dict, OrderedDict):
        return spec.kind(zip(spec.context, children, strict=True))
    return spec.kind(*children) if _is_namedtuple(spec.kind) else spec.kind(children)


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """The tree of a structure with these leaves."""
    return _build(treespec, iter(leaves))


def _build(spec: TreeSpec, rest: Iterator[Any]) -> Any:
    return next(rest) if spec.kind is None else _make(spec, [_build(child, rest) for child in spec.children])


def tree_leaves(tree: Any) -> list[Any]:
    """The leaves, in order."""
    return tree_flatten(tree)[0]


def tree_structure(tree: Any) -> TreeSpec:
    """The structure."""
    return tree_flatten(tree)[1]


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any) -> Any:
    """The tree with func of each leaf, and of the leaves at its place in the other trees."""
    leaves, spec = tree_flatten(tree)
    others = [tree_leaves(rest) for rest in rests]
    return tree_unflatten(map(func, leaves, *others), spec)


def broadcast_to_leaves(tree: Any, spec: TreeSpec) -> list[Any] | None:
    """A value for each leaf of a structure, of which the tree may be a beginning: what stands where the structure has
    a container goes for all that is in it. None if the tree does not fit."""
    parts = _parts(tree)
    if parts is None:
        return [tree] * spec.num_leaves
    context, children = parts
    fits = spec.kind is not None and issubclass(spec.kind, (list, tuple)) == isinstance(tree, (list, tuple))
    if not fits or len(children) != len(spec.children) or context != spec.context:
        return None
    found: list[Any] = []
    for child, part in zip(children, spec.children, strict=True):
        leaves = broadcast_to_leaves(child, part)
        if leaves is None:
            return None
        found += leaves
    return found


__all__ = ["TreeSpec", "tree_flatten", "tree_leaves", "tree_map", "tree_structure", "tree_unflatten"]
