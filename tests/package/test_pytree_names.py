"""Names of utils._pytree by which libraries take trees apart themselves."""

from __future__ import annotations

import time
from collections import OrderedDict, namedtuple
from typing import Any

import pytest

import tensorpy as tp
from tensorpy.utils import _pytree

Pair = namedtuple("Pair", ["a", "b"])


def apart(tree: Any) -> tuple[list[Any], _pytree.TreeSpec]:
    kind = _pytree._get_node_type(tree)
    if kind not in _pytree.SUPPORTED_NODES:
        return [tree], _pytree.LeafSpec()
    children, context = _pytree.SUPPORTED_NODES[kind].flatten_fn(tree)
    parts = [apart(child) for child in children]
    leaves = [leaf for part, _ in parts for leaf in part]
    return leaves, _pytree.TreeSpec(kind, context, [spec for _, spec in parts])


@pytest.mark.parametrize("tree", [1, [1, (2, 3)], {"a": [1]}, Pair(1, [2]), OrderedDict(x=Pair(1, 2))])
def test_trees_taken_apart_by_hand_are_put_together(tree: Any) -> None:
    leaves, spec = apart(tree)
    assert leaves == _pytree.tree_leaves(tree)
    assert _pytree.tree_unflatten(leaves, spec) == tree


def test_sizes_are_containers_of_numbers() -> None:
    """Libraries map them; what comes is a tuple, since not all leaves are numbers."""
    mapped = _pytree.tree_map(str, {"shape": tp.Size([2, 3])})
    assert mapped == {"shape": ("2", "3")} and type(mapped["shape"]) is tuple


def test_a_container_of_a_library_registers_as_a_list() -> None:
    class Mine(list[Any]):
        pass

    _pytree.register_pytree_node(
        Mine,
        _pytree._list_flatten,
        lambda children, context: Mine(_pytree._list_unflatten(children, context)),
        flatten_with_keys_fn=_pytree._list_flatten_with_keys,
    )
    doubled = _pytree.tree_map(lambda x: 2 * x, Mine([1, 2]))
    assert type(doubled) is Mine and doubled == [2, 4]
    assert [path for path, _ in _pytree.tree_leaves_with_path(Mine([5]))] == [(_pytree.SequenceKey(0),)]


def test_specs_are_written_and_compared_as_torchs() -> None:
    theirs = pytest.importorskip("torch.utils._pytree")
    from tensorpy.utils import _pytree as ours

    for tree in ([0, (1, 2)], {"a": [1], "b": 2}, OrderedDict(a=1), Pair(1, [2]), [], ([], {}), None):
        assert repr(ours.tree_structure(tree)) == repr(theirs.tree_structure(tree))
    leaf = ours.LeafSpec()
    assert ours.TreeSpec(list, None, [leaf, leaf]) == ours.tree_structure([1, 2])
    assert ours.TreeSpec(namedtuple, Pair, [leaf, leaf]) == ours.tree_structure(Pair(1, 2))
    assert ours.tree_unflatten([3, 4], ours.tree_structure(Pair(1, 2))) == Pair(3, 4)
    for given in (1, [1, 2], [1], [1, (2, 3)], [1, [2, 3]]):
        specs = (part.tree_structure([0, (1, 2)]) for part in (ours, theirs))
        assert ours._broadcast_to_and_flatten(given, next(specs)) == theirs._broadcast_to_and_flatten(
            given, next(specs)
        )
    assert ours.tree_all_only(int, lambda n: n > 0, [1, "a"]) and not ours.tree_any_only(int, lambda n: n > 1, [1])


def test_cs_named_tuples_are_told_from_others() -> None:
    class Derived(tuple):
        n_fields = n_sequence_fields = 0
        __slots__ = ()

    values = tp.max(tp.ones(2, 2), 0)
    for value, is_one in ((values, True), (time.gmtime(0), True), ((1,), False), (namedtuple("P", "x")(1), False)):
        assert _pytree.is_structseq(value) == _pytree.is_structseq(type(value)) == is_one
        assert _pytree.is_structseq_instance(value) == is_one and not _pytree.is_structseq_instance(type(value))
    assert not _pytree.is_structseq_class(Derived) and not _pytree.is_structseq_class(values)
