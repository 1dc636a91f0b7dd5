"""Nested lists, tuples and dictionaries as flat lists of what is in them, and back: torch.utils._pytree's names.

A tree is a leaf, or a container of trees. Containers are list, tuple, dict, namedtuple, OrderedDict, defaultdict,
deque, Size and the types that are registered; anything else is a leaf, None among it.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, NamedTuple

from tensorpy import _C

Context = Any
PyTree = Any
FlattenFunc = Callable[[Any], "tuple[list[Any], Context]"]
DumpableContext = Any
UnflattenFunc = Callable[["Iterable[Any]", Context], Any]


class NodeDef(NamedTuple):
    """How a container comes apart and is put together."""

    type: type[Any]
    flatten_fn: FlattenFunc
    unflatten_fn: UnflattenFunc


class _Form(NamedTuple):
    """How the nodes of a container are text: the container's name there, and its context as JSON has it."""

    name: str
    dump: Callable[[Context], DumpableContext]
    load: Callable[[DumpableContext], Context]


SUPPORTED_NODES: dict[Any, NodeDef] = {}
_FORMS: dict[Any, _Form] = {}  # of those that have a name as text
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
        raise ValueError(f"{cls} is already registered as pytree node.")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn)
    if serialized_type_name is not None:
        _FORMS[cls] = _Form(
            serialized_type_name, to_dumpable_context or _dump_context, from_dumpable_context or _load_context
        )
    if flatten_with_keys_fn is not None:
        _KEYED[cls] = flatten_with_keys_fn


def _deregister_pytree_node(cls: type[Any]) -> None:
    """Makes a class a leaf again."""
    for table in (SUPPORTED_NODES, _FORMS, _KEYED):
        table.pop(cls, None)


def _dump_context(context: Context) -> str:
    import json

    try:
        return json.dumps(context)
    except TypeError as error:
        raise TypeError(
            "Unable to serialize context: it is no JSON; _register_pytree_node takes to_dumpable_context"
        ) from error


def _load_context(text: DumpableContext) -> Context:
    import json

    return json.loads(text)


def is_namedtuple_class(cls: Any) -> bool:
    """Whether a type is one of collections.namedtuple, or a subclass of one."""
    return isinstance(cls, type) and _is_namedtuple(cls)


def is_namedtuple(obj: Any) -> bool:
    """Whether a value is a named tuple, or a type of them."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_namedtuple_instance(obj: Any) -> bool:
    """Whether a value is a named tuple."""
    return is_namedtuple_class(type(obj))


def is_structseq_class(cls: Any) -> bool:
    """Whether a type is one of C's named tuples, as time.struct_time is."""
    return (
        isinstance(cls, type)
        and cls.__bases__ == (tuple,)
        and not cls.__flags__ & 1 << 10  # no class derives from it
        and all(isinstance(getattr(cls, name, None), int) for name in ("n_sequence_fields", "n_fields"))
    )


def is_structseq(obj: Any) -> bool:
    """Whether a value is one of C's named tuples, or a type of them."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_instance(obj: Any) -> bool:
    """Whether a value is one of C's named tuples."""
    return is_structseq_class(type(obj))


def _is_namedtuple(cls: type[Any]) -> bool:
    return issubclass(cls, tuple) and hasattr(cls, "_fields")


def _make_namedtuple(values: Iterable[Any], context: Any) -> Any:
    """Also of a call's named results, which take one sequence."""
    return context._make(values) if hasattr(context, "_make") else context(values)


def _defaultdict(values: Iterable[Any], context: Any) -> Any:
    factory, keys = context
    return defaultdict(factory, zip(keys, values, strict=True))


_NAMEDTUPLE = NodeDef(tuple, lambda d: (list(d), type(d)), _make_namedtuple)
register_pytree_node(list, lambda d: (list(d), None), lambda values, context: list(values))
register_pytree_node(tuple, lambda d: (list(d), None), lambda values, context: tuple(values))
register_pytree_node(
    _C.Size,
    lambda d: (list(d), None),
    lambda values, context: tuple(values),  # of any leaves
    serialized_type_name="torch.Size",
)
register_pytree_node(
    dict, lambda d: (list(d.values()), list(d)), lambda values, context: dict(zip(context, values, strict=True))
)
register_pytree_node(
    OrderedDict,
    lambda d: (list(d.values()), list(d)),
    lambda values, context: OrderedDict(zip(context, values, strict=True)),
)
register_pytree_node(defaultdict, lambda d: (list(d.values()), (d.default_factory, list(d))), _defaultdict)
register_pytree_node(deque, lambda d: (list(d), d.maxlen), lambda values, context: deque(values, maxlen=context))


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

    @property
    def num_nodes(self) -> int:
        """How many containers and leaves there are, the tree itself among them."""
        return 1 + sum(child.num_nodes for child in self.children_specs)

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

    def flatten_up_to(self, tree: PyTree) -> list[PyTree]:
        """What a tree of this form, or of a deeper one, has where this has leaves."""
        found: list[PyTree] = []
        self._collect(tree, found)
        return found

    def _collect(self, tree: PyTree, found: list[PyTree]) -> None:
        if self.type is None:
            found.append(tree)
            return
        kind = _get_node_type(tree)
        both = {self.type, kind} <= _DICTIONARIES
        if kind is not self.type and not both:
            raise ValueError(f"Node type mismatch; expected {self.type!r}, but got {type(tree)!r}.")
        children, context = (_node_of(tree) or _NAMEDTUPLE).flatten_fn(tree)
        if len(children) != self.num_children:
            raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(children)}.")
        if both:
            keys = self.context[1] if self.type is defaultdict else self.context
            missing, extra = set(keys) - set(tree), set(tree) - set(keys)
            if missing:
                raise ValueError(f"Node keys mismatch; missing key(s): {missing}; extra key(s): {extra}.")
            children = [tree[key] for key in keys]
        elif context != self.context:
            raise ValueError(
                f"Node context mismatch for custom node type {self.type!r}: {context} is not {self.context}"
            )
        for spec, child in zip(self.children_specs, children, strict=True):
            spec._collect(child, found)

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
_DICTIONARIES = {dict, OrderedDict, defaultdict}
BUILTIN_TYPES = frozenset({tuple, list, dict, namedtuple, OrderedDict, defaultdict, deque})


def treespec_leaf() -> TreeSpec:
    """The spec of a leaf."""
    return _LEAF


def treespec_tuple(iterable: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """The spec of a tuple of trees."""
    return TreeSpec(tuple, None, tuple(iterable))


def treespec_dict(mapping: Any = (), /, **kwargs: TreeSpec) -> TreeSpec:
    """The spec of a dictionary of trees."""
    specs = dict(mapping, **kwargs)
    return TreeSpec(dict, list(specs), tuple(specs.values()))


def _check_spec(treespec: Any) -> None:
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}.")


def tree_is_leaf(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> bool:
    """Whether a tree is a leaf."""
    return (is_leaf is not None and is_leaf(tree)) or _node_of(tree) is None


_is_leaf = tree_is_leaf


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
    _check_spec(treespec)
    given = list(leaves)
    if len(given) != treespec.num_leaves:
        raise ValueError(
            f"treespec.unflatten(leaves): `leaves` has length {len(given)} but the spec refers to a pytree that holds "
            f"{treespec.num_leaves} items ({treespec})."
        )
    return treespec._build(iter(given))


def tree_leaves(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> list[Any]:
    """What is in a tree."""
    return tree_flatten(tree, is_leaf)[0]


def tree_iter(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> Iterator[Any]:
    """What is in a tree, one at a time."""
    yield from tree_leaves(tree, is_leaf)


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list[Any]:
    """What is in the arguments of a call."""
    return tree_leaves([*args, *kwargs.values()])


def tree_structure(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> TreeSpec:
    """A tree's spec."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: Callable[[PyTree], bool] | None = None
) -> PyTree:
    """The tree with func of each leaf, and of those of the other trees in its place."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
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
    """tree_map over the leaves of a type, of one of a tuple of types, or for which a function is true; others stay."""
    return tree_map(map_only(kind)(func), tree, is_leaf=is_leaf)


def map_only(kind: Any, /) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Decorates a function of one value: what is not of the type, or of one of the types, stays as it is. A function in
    the place of a type says which values are changed."""
    if callable(kind) and not isinstance(kind, type):
        return lambda func: lambda value: func(value) if kind(value) else value

    def decorated(func: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda value: func(value) if isinstance(value, kind) else value

    return decorated


def tree_map_only_(
    kind: Any, func: Callable[[Any], Any], tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None
) -> PyTree:
    """Calls func with each leaf of a type, or of one of a tuple of types; the tree itself."""
    return tree_map_(map_only(kind)(func), tree, is_leaf=is_leaf)


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


def _list_flatten_with_keys(d: Iterable[Any]) -> tuple[list[tuple[Any, Any]], Context]:
    return [(SequenceKey(i), value) for i, value in enumerate(d)], None


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
    if not isinstance(tree, (list, tuple, deque)):
        raise ValueError(f"Did not find a flatten_with_keys_fn for type: {type(tree)}; register_pytree_node takes one")
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


def register_constant(cls: type[Any]) -> None:
    """Makes a class a container of nothing, whose value is a part of the tree's shape: it has to have == and a hash."""
    equal: Any = cls.__eq__
    if equal is object.__eq__ or cls.__hash__ is None:
        raise TypeError(f"register_constant({cls}): the class has no __eq__ or no __hash__ of its own")
    _constants.add(cls)
    register_pytree_node(cls, lambda value: ([], _Constant(value)), lambda _, context: context.value)


class _Constant(NamedTuple):
    """What a tree spec knows of a value that is no leaf."""

    value: Any


_constants: set[type[Any]] = set()


def is_constant_class(cls: type[Any]) -> bool:
    """Whether a class was given to register_constant."""
    return cls in _constants


def register_dataclass(
    cls: type[Any],
    *,
    field_names: Sequence[str] | None = None,
    drop_field_names: Sequence[str] = (),
    serialized_type_name: str | None = None,
) -> None:
    """Makes a dataclass a container of its fields, or of those named; the class is made of these alone."""
    own = [f.name for f in fields(cls) if f.init] if is_dataclass(cls) else []
    if field_names is None:
        if not own:
            raise ValueError(f"field_names must be specified with a list of all fields used to initialize {cls}")
        field_names = [name for name in own if name not in drop_field_names]
    elif own and set(field_names) | set(drop_field_names) != set(own):
        raise ValueError(f"field_names {list(field_names)} are not the fields of {cls}: {own}")
    names = list(field_names)

    def flatten(value: Any) -> tuple[list[Any], Context]:
        return [getattr(value, name) for name in names], names

    register_pytree_node(
        cls,
        flatten,
        lambda children, context: cls(**dict(zip(context, children, strict=True))),
        serialized_type_name=serialized_type_name,
        flatten_with_keys_fn=lambda value: ([(GetAttrKey(name), getattr(value, name)) for name in names], names),
    )


# ---- specs as text ----


_FORMS.update(
    (cls, _Form(name, _dump_context, _load_context))
    for cls, name in (
        (list, "builtins.list"),
        (tuple, "builtins.tuple"),
        (dict, "builtins.dict"),
        (OrderedDict, "collections.OrderedDict"),
        (deque, "collections.deque"),
    )
)
_NAMED_TUPLES: dict[type[Any], str] = {}  # their names as text
_FACTORIES = {t.__name__: t for t in (list, dict, set, tuple, int, float, str, bool)}  # of defaultdicts that are text


def _register_namedtuple(cls: type[Any], *, serialized_type_name: str) -> None:
    """Gives a class of named tuples a name as text."""
    _NAMED_TUPLES[cls] = serialized_type_name


def _named_tuple_dump(cls: Context) -> DumpableContext:
    if cls not in _NAMED_TUPLES:
        raise NotImplementedError(
            f"Can't serialize TreeSpec of namedtuple class {cls}: it has no serialized_type_name, which "
            "_register_namedtuple gives it"
        )
    return _NAMED_TUPLES[cls]


def _named_tuple_load(name: DumpableContext) -> Context:
    for cls, known in _NAMED_TUPLES.items():
        if known == name:
            return cls
    raise NotImplementedError(f"Deserializing {name} in pytree is not registered.")


def _defaultdict_dump(context: Context) -> DumpableContext:
    factory, keys = context
    return {
        "default_factory_module": factory.__module__,
        "default_factory_name": factory.__qualname__,
        "dict_context": keys,
    }


def _defaultdict_load(form: DumpableContext) -> Context:
    module, name = form["default_factory_module"], form["default_factory_name"]
    if module != "builtins" or name not in _FACTORIES:
        raise NotImplementedError(f"Deserializing a defaultdict of {module}.{name} is not done: a text imports nothing")
    return _FACTORIES[name], form["dict_context"]


_FORMS[namedtuple] = _Form("collections.namedtuple", _named_tuple_dump, _named_tuple_load)
_FORMS[defaultdict] = _Form("collections.defaultdict", _defaultdict_dump, _defaultdict_load)


def _check_protocol(protocol: Any) -> None:
    if protocol != 1:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")


def _dumped(spec: TreeSpec) -> Any:
    if spec.type is None:
        return {"type": None, "context": None, "children_spec": []}
    form = _FORMS.get(spec.type)
    if form is None:
        raise NotImplementedError(
            f"No registered serialization name for {spec.type} found: _register_pytree_node takes serialized_type_name"
        )
    return {
        "type": form.name,
        "context": form.dump(spec.context),
        "children_spec": [_dumped(child) for child in spec.children_specs],
    }


def _loaded(text: Any) -> TreeSpec:
    name = text["type"]
    if name is None:
        return _LEAF
    for cls, form in _FORMS.items():
        if form.name == name:
            return TreeSpec(cls, form.load(text["context"]), tuple(map(_loaded, text["children_spec"])))
    raise NotImplementedError(f"Deserializing {name} in pytree is not registered.")


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """A spec as JSON."""
    import json

    _check_spec(treespec)
    _check_protocol(1 if protocol is None else protocol)
    return json.dumps([1, _dumped(treespec)])


def treespec_loads(serialized: str) -> TreeSpec:
    """The spec that treespec_dumps wrote."""
    import json

    protocol, text = json.loads(serialized)
    _check_protocol(protocol)
    return _loaded(text)


class _Star:
    def __repr__(self) -> str:
        return "*"


def treespec_pprint(treespec: TreeSpec) -> str:
    """A spec's tree as text, with stars for leaves."""
    return repr(treespec.unflatten([_Star()] * treespec.num_leaves))
