"""Nested lists, tuples and dictionaries as flat lists of what is in them, and back: torch.utils._pytree's names.

A tree is a leaf, or a container of trees. Containers are list, tuple, dict, namedtuple, OrderedDict, defaultdict,
deque, Size and the types that are registered; anything else is a leaf, None among it.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tensorpy import _C

Context = Any
PyTree = Any
FlattenFunc = Callable[[Any], "tuple[list[Any], Context]"]
UnflattenFunc = Callable[["Iterable[Any]", Context], Any]


class NodeDef(NamedTuple):
    """How a container comes apart and is put together."""

    type: type[Any]
    flatten_fn: FlattenFunc
    unflatten_fn: UnflattenFunc


SUPPORTED_NODES: dict[Any, NodeDef] = {}
_KEYED: dict[Any, Callable[[Any], tuple[Any, Context]]] = {}  # gives ([(key, child), ...], context)


def register_pytree_node(
    cls: type[Any],
    flatten_fn: FlattenFunc,
    unflatten_fn: UnflattenFunc,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Any = None,
    from_dumpable_context: Any = None,
    flatten_with_keys_fn: Any = None,
) -> None:
    """Makes a class a container: `flatten_fn(it)` gives (children, context), `unflatten_fn(children, context)` it."""
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as a pytree node")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn)
    if flatten_with_keys_fn is not None:
        _KEYED[cls] = flatten_with_keys_fn


def _is_namedtuple(cls: type[Any]) -> bool:
    return issubclass(cls, tuple) and hasattr(cls, "_fields")


def _make_namedtuple(children: Iterable[Any], cls: Any) -> Any:
    """Also of a call's named results, which take one sequence."""
    return cls._make(children) if hasattr(cls, "_make") else cls(children)


def _defaultdict(children: Iterable[Any], context: Any) -> Any:
    factory, keys = context
    return defaultdict(factory, zip(keys, children, strict=True))


_NAMEDTUPLE = NodeDef(tuple, lambda t: (list(t), type(t)), _make_namedtuple)
register_pytree_node(list, lambda x: (list(x), None), lambda children, _: list(children))
register_pytree_node(tuple, lambda x: (list(x), None), lambda children, _: tuple(children))
register_pytree_node(_C.Size, lambda x: (list(x), None), lambda children, _: tuple(children))  # of any leaves
register_pytree_node(
    dict, lambda d: (list(d.values()), list(d)), lambda children, keys: dict(zip(keys, children, strict=True))
)
register_pytree_node(
    OrderedDict,
    lambda d: (list(d.values()), list(d)),
    lambda children, keys: OrderedDict(zip(keys, children, strict=True)),
)
register_pytree_node(defaultdict, lambda d: (list(d.values()), (d.default_factory, list(d))), _defaultdict)
register_pytree_node(deque, lambda d: (list(d), d.maxlen), lambda children, maxlen: deque(children, maxlen=maxlen))


SUPPORTED_NODES[namedtuple] = _NAMEDTUPLE


def _get_node_type(tree: Any) -> Any:
    """What SUPPORTED_NODES has a container under: its class; of all named tuples it is `namedtuple`."""
    return namedtuple if _is_namedtuple(type(tree)) else type(tree)


def _node_of(tree: Any) -> NodeDef | None:
    """How a tree comes apart; None: it is a leaf."""
    cls = type(tree)
    found = SUPPORTED_NODES.get(cls)
    if found is None and isinstance(tree, tuple) and (_is_namedtuple(cls) or hasattr(cls, "n_sequence_fields")):
        return _NAMEDTUPLE
    return found


@dataclass(frozen=True, repr=False)
class TreeSpec:
    """A tree without its leaves: the container's type (None: a leaf), what it keeps beside its children, these.

    The type of every named tuple is `namedtuple`; its class is what it keeps.
    """

    type: Any
    context: Context
    children_specs: Sequence[TreeSpec] = ()

    @property
    def num_leaves(self) -> int:
        return 1 if self.type is None else sum(child.num_leaves for child in self.children_specs)

    @property
    def num_children(self) -> int:
        return len(self.children_specs)

    def __post_init__(self) -> None:
        object.__setattr__(self, "children_specs", tuple(self.children_specs))  # a list may be given

    def children(self) -> list[TreeSpec]:
        return list(self.children_specs)

    def child(self, index: int) -> TreeSpec:
        return self.children_specs[index]

    def __repr__(self, indent: int = 0) -> str:
        if self.type is None:
            return "*"
        inner = indent + 2
        parts = (",\n" + " " * inner).join(child.__repr__(inner) for child in self.children_specs)
        return f"TreeSpec({self.type.__name__}, {self.context}, [{parts}])"

    def is_leaf(self) -> bool:
        return self.type is None

    def unflatten(self, leaves: Iterable[Any]) -> PyTree:
        """The tree with these leaves."""
        return tree_unflatten(leaves, self)

    def _build(self, leaves: Any) -> PyTree:
        if self.type is None:
            return next(leaves)
        node = SUPPORTED_NODES.get(self.type, _NAMEDTUPLE)
        return node.unflatten_fn([child._build(leaves) for child in self.children_specs], self.context)


class LeafSpec(TreeSpec):
    """A leaf."""

    def __init__(self) -> None:
        super().__init__(None, None)


_LEAF = LeafSpec()


def _take_apart(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None, leaves: list[Any]) -> TreeSpec:
    node = None if is_leaf is not None and is_leaf(tree) else _node_of(tree)
    if node is None:
        leaves.append(tree)
        return _LEAF
    children, context = node.flatten_fn(tree)
    kind = namedtuple if node is _NAMEDTUPLE else node.type
    return TreeSpec(kind, context, tuple(_take_apart(child, is_leaf, leaves) for child in children))


def tree_flatten(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> tuple[list[Any], TreeSpec]:
    """(leaves, spec) of a tree."""
    leaves: list[Any] = []
    spec = _take_apart(tree, is_leaf, leaves)
    return leaves, spec


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """The tree of a spec with these leaves."""
    given = list(leaves)
    if len(given) != treespec.num_leaves:
        raise ValueError(f"tree_unflatten(): {len(given)} leaves for a spec of {treespec.num_leaves}")
    return treespec._build(iter(given))


def tree_leaves(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> list[Any]:
    """What is in a tree."""
    return tree_flatten(tree, is_leaf)[0]


tree_iter = tree_leaves


def tree_structure(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> TreeSpec:
    """A tree's spec."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: Callable[[PyTree], bool] | None = None
) -> PyTree:
    """The tree with func of each leaf, and of those of the other trees in its place."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = []
    for rest in rests:
        found, shape = tree_flatten(rest, is_leaf)
        if shape != spec:
            raise ValueError(f"tree_map(): the trees differ: {spec} and {shape}")
        others.append(found)
    return tree_unflatten([func(*each) for each in zip(leaves, *others, strict=True)], spec)


def tree_map_(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: Callable[[PyTree], bool] | None = None
) -> PyTree:
    """Calls func with each leaf; the tree itself."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_map_only(
    kind: Any, func: Callable[[Any], Any], tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None
) -> PyTree:
    """tree_map over the leaves of a type, or of one of a tuple of types; others stay."""
    return tree_map(lambda leaf: func(leaf) if isinstance(leaf, kind) else leaf, tree, is_leaf=is_leaf)


def broadcast_to_leaves(tree: PyTree, treespec: TreeSpec) -> list[Any] | None:
    """A value for each leaf of a spec, whose beginning the tree is: what stands where the spec has a container goes for
    all that is in it. None if the tree does not fit; a list may stand for a tuple."""
    node = _node_of(tree)
    if node is None:
        return [tree] * treespec.num_leaves
    children, context = node.flatten_fn(tree)
    kind = tuple if treespec.type is namedtuple else treespec.type
    sequences = isinstance(tree, (list, tuple)) and kind is not None and issubclass(kind, (list, tuple))
    fits = sequences or (type(tree) is treespec.type and context == treespec.context)
    if not fits or len(children) != treespec.num_children:
        return None
    found: list[Any] = []
    for child, part in zip(children, treespec.children_specs, strict=True):
        leaves = broadcast_to_leaves(child, part)
        if leaves is None:
            return None
        found += leaves
    return found


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> bool:
    """Whether it holds for every leaf."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> bool:
    """Whether it holds for some leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(
    kind: Any, pred: Callable[[Any], bool], tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None
) -> bool:
    """Whether it holds for every leaf of a type."""
    return all(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if isinstance(leaf, kind))


def tree_any_only(
    kind: Any, pred: Callable[[Any], bool], tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None
) -> bool:
    """Whether it holds for some leaf of a type."""
    return any(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if isinstance(leaf, kind))


def _broadcast_to_and_flatten(
    tree: PyTree, treespec: TreeSpec, is_leaf: Callable[[PyTree], bool] | None = None
) -> list[Any] | None:
    """See broadcast_to_leaves; a container here is one of the spec's own kind."""
    if (is_leaf is not None and is_leaf(tree)) or (node := _node_of(tree)) is None:
        return [tree] * treespec.num_leaves
    children, context = node.flatten_fn(tree)
    kind = namedtuple if node is _NAMEDTUPLE else node.type
    if kind is not treespec.type or context != treespec.context or len(children) != treespec.num_children:
        return None
    parts = [
        _broadcast_to_and_flatten(child, spec, is_leaf)
        for child, spec in zip(children, treespec.children_specs, strict=True)
    ]
    return None if any(part is None for part in parts) else [leaf for part in parts if part for leaf in part]


# ---- paths: where in a tree a leaf is ----


@dataclass(frozen=True)
class MappingKey:
    """The child of a mapping under a key."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        return mapping[self.key]


@dataclass(frozen=True)
class SequenceKey:
    """The child of a sequence at a place."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        return sequence[self.idx]


@dataclass(frozen=True)
class GetAttrKey:
    """The child that is an attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        return getattr(obj, self.name)


KeyPath = tuple[Any, ...]


def keystr(kp: KeyPath) -> str:
    """A path as it is written: "['a'][0]"."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: KeyPath) -> Any:
    """What a path leads to."""
    for key in kp:
        obj = key.get(obj)
    return obj


# Libraries register containers of their own by these.
_list_flatten, _list_unflatten = SUPPORTED_NODES[list][1:]
_tuple_flatten, _tuple_unflatten = SUPPORTED_NODES[tuple][1:]
_ordereddict_flatten, _ordereddict_unflatten = SUPPORTED_NODES[OrderedDict][1:]
_namedtuple_flatten, _namedtuple_unflatten = _NAMEDTUPLE[1:]


def _list_flatten_with_keys(x: Iterable[Any]) -> tuple[list[tuple[Any, Any]], Context]:
    return [(SequenceKey(i), value) for i, value in enumerate(x)], None


_tuple_flatten_with_keys = _list_flatten_with_keys


def _dict_flatten(d: dict[Any, Any]) -> tuple[list[Any], Context]:
    return list(d.values()), list(d)


def _dict_unflatten(values: Iterable[Any], context: Context) -> dict[Any, Any]:
    return dict(zip(context, values, strict=True))


def _dict_flatten_with_keys(d: dict[Any, Any]) -> tuple[list[tuple[Any, Any]], Context]:
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def _keys(tree: PyTree, count: int) -> list[Any]:
    if isinstance(tree, dict):
        return [MappingKey(key) for key in tree]
    if _is_namedtuple(type(tree)):
        return [GetAttrKey(name) for name in type(tree)._fields]
    return [SequenceKey(i) for i in range(count)]


def _paths(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None, path: KeyPath, found: list[Any]) -> None:
    node = None if is_leaf is not None and is_leaf(tree) else _node_of(tree)
    if node is None:
        found.append((path, tree))
        return
    with_keys = _KEYED.get(type(tree))
    if with_keys is not None:
        pairs = list(with_keys(tree)[0])
    else:
        children = node.flatten_fn(tree)[0]
        pairs = list(zip(_keys(tree, len(children)), children, strict=True))
    for key, child in pairs:
        _paths(child, is_leaf, (*path, key), found)


def tree_flatten_with_path(
    tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None
) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """([(path, leaf), ...], spec) of a tree."""
    found: list[tuple[KeyPath, Any]] = []
    _paths(tree, is_leaf, (), found)
    return found, tree_flatten(tree, is_leaf)[1]


def tree_leaves_with_path(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> list[tuple[KeyPath, Any]]:
    """[(path, leaf), ...]"""
    return tree_flatten_with_path(tree, is_leaf)[0]


def tree_map_with_path(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: Callable[[PyTree], bool] | None = None
) -> PyTree:
    """The tree with func(path, leaf, the leaves of the other trees) for each leaf."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    others = [tree_flatten(rest, is_leaf)[0] for rest in rests]
    return tree_unflatten([func(*pair, *leaves) for pair, *leaves in zip(pairs, *others, strict=True)], spec)


def _register_pytree_node(cls: type[Any], flatten_fn: FlattenFunc, unflatten_fn: UnflattenFunc, **options: Any) -> None:
    """register_pytree_node as it was called first; a class that is registered stays as it is."""
    if cls not in SUPPORTED_NODES:
        register_pytree_node(cls, flatten_fn, unflatten_fn, **options)


# ---- specs as text ----


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """A spec of lists, tuples and dictionaries as JSON."""
    import json

    def plain(spec: TreeSpec) -> Any:
        name = None if spec.type is None else spec.type.__name__
        if name not in (None, "list", "tuple", "dict"):
            raise NotImplementedError(f"treespec_dumps: {name} has no form as text")
        return [name, spec.context, [plain(child) for child in spec.children_specs]]

    return json.dumps([1, plain(treespec)])


def treespec_loads(serialized: str) -> TreeSpec:
    """The spec that treespec_dumps wrote."""
    import json

    def spec(form: Any) -> TreeSpec:
        name, context, children = form
        return TreeSpec(_PLAIN[name], context, tuple(map(spec, children)))

    version, form = json.loads(serialized)
    if version != 1:
        raise ValueError(f"treespec_loads: version {version} of the text is not known")
    return spec(form)


_PLAIN: dict[Any, Any] = {None: None, "list": list, "tuple": tuple, "dict": dict}
