"""Specs of trees as text and up to a tree's form, beside PyTorch's: what is written, what is refused."""

from __future__ import annotations

import json
from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import pytest

Point = namedtuple("Point", ["x", "y"])

TREES = [
    [1, (2, 3)], {"b": 1, "a": [2]}, OrderedDict(b=1, a=2), defaultdict(list, a=1), deque([1, 2], maxlen=3), 5, None,
    {1: 2}, [], {}, [None, [[]]],
]  # fmt: skip
CALLS = [
    "p.treespec_loads('[5, {}]')", "p.treespec_dumps('text')", "p.treespec_dumps(p.tree_structure([1]), 9)",
    """p.treespec_loads('[1, {"type": "foo", "context": "null", "children_spec": []}]')""",
    "p.tree_unflatten([1], p.tree_structure([1, 2]))", "p.tree_unflatten([1], 5)",
    "p.tree_structure([1, (2,)]).flatten_up_to([[3], (4,)])", "p.tree_structure([1, (2,)]).flatten_up_to([3, 4])",
    "p.tree_structure([1, 2]).flatten_up_to((3, 4))", "p.tree_structure([1, 2]).flatten_up_to([3])",
    "p.tree_structure({'a': 1}).flatten_up_to({'b': 1})",
    "p.tree_structure({'a': 1, 'b': 2}).flatten_up_to({'b': 1, 'a': 5})",
    "p.tree_structure([1, (2, {'a': 3})]).num_nodes", "list(p.tree_iter([1, (2,)]))", "p.arg_tree_leaves(1, [2], a=3)",
    "p.treespec_pprint(p.tree_structure([1, {'a': 2}]))", "p.tree_map(lambda x, y: x + y, [1], [1, 2])",
    "p.map_only(int)(lambda x: x + 1)(3)", "p.map_only(int)(lambda x: x + 1)('a')", "p.tree_is_leaf([5])",
    "p.treespec_tuple([p.treespec_leaf()])", "p.treespec_dict({'a': p.treespec_leaf()})",
    "p.tree_map_only_(int, lambda x: None, [1])", "p.is_namedtuple(Point(1, 2)), p.is_namedtuple_class(int)",
    "p.treespec_dumps(p.tree_structure(Point(1, 2)))", "p.register_pytree_node(list, None, None)",
    "p.register_pytree_node(set, None, None, to_dumpable_context=lambda c: 1)",
]  # fmt: skip


def both() -> tuple[Any, Any]:
    pytest.importorskip("torch")
    return import_module("tensorpy.utils._pytree"), import_module("torch.utils._pytree")


def outcome(p: Any, call: str) -> Any:
    try:
        return repr(eval(call, {"p": p, "Point": Point}))
    except Exception as error:
        return type(error).__name__, str(error)[:60]


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_specs_are_pytorchs_text(tree: Any) -> None:
    ours, theirs = both()
    spec = ours.tree_structure(tree)
    text = ours.treespec_dumps(spec)
    assert text == theirs.treespec_dumps(theirs.tree_structure(tree))
    assert ours.treespec_loads(text) == spec


@pytest.mark.parametrize("call", CALLS)
def test_calls_are_pytorchs(call: str) -> None:
    ours, theirs = both()
    assert outcome(ours, call) == outcome(theirs, call)


def test_text_imports_nothing() -> None:
    ours, _ = both()
    form = {"default_factory_module": "os", "default_factory_name": "getcwd", "dict_context": []}
    spec = {"type": "collections.defaultdict", "context": form, "children_spec": []}
    with pytest.raises(NotImplementedError, match="imports nothing"):
        ours.treespec_loads(json.dumps([1, spec]))


def test_classes_of_a_program_have_names_as_text() -> None:
    ours, _ = both()

    @dataclass
    class Pair:
        a: Any
        b: Any

    ours._register_namedtuple(Point, serialized_type_name="test.Point")
    ours.register_dataclass(Pair, serialized_type_name="test.Pair")
    try:
        tree = [Pair(1, Point(2, 3))]
        spec = ours.tree_structure(tree)
        assert ours.treespec_loads(ours.treespec_dumps(spec)) == spec
        assert ours.tree_map(lambda x: x + 1, tree) == [Pair(2, Point(3, 4))]
        assert ours.keystr(ours.tree_flatten_with_path(tree)[0][1][0]) == "[0].b.x"
    finally:
        ours._deregister_pytree_node(Pair)
    assert ours.tree_leaves(tree) == tree
