"""utils.weak: references and dictionaries by identity."""

from __future__ import annotations

import copy
import gc
import weakref
from typing import Any

import pytest

import tensorpy as tp
from tensorpy.utils.weak import TensorWeakRef, WeakIdKeyDictionary, WeakIdRef, WeakTensorKeyDictionary, _WeakHashRef


def test_references_are_equal_where_they_are_of_one_living_object() -> None:
    x = tp.ones(2)
    first, second, other = WeakIdRef(x), WeakIdRef(x), WeakIdRef(x.clone())
    assert first == second and hash(first) == hash(second) == id(x) and first() is x
    assert first != other and other() is None and other != WeakIdRef(x) and other == other
    del x
    assert first() is None and first != second
    seven = frozenset({7})
    assert _WeakHashRef(seven) == _WeakHashRef(frozenset({7})) or frozenset({7}) is seven
    with pytest.raises(AssertionError, match=r"expected torch.Tensor, got <class 'int'>"):
        TensorWeakRef(3)  # type: ignore[arg-type]


def test_a_dictionary_of_tensors_forgets_those_that_have_gone() -> None:
    kept, gone = tp.ones(2), tp.ones(2)
    notes = WeakTensorKeyDictionary({kept: 1, gone: 2})
    assert len(notes) == 2 and notes[kept] == 1 and gone in notes and tp.ones(2) not in notes and 3 not in notes
    assert notes.get(tp.ones(2), "none") == "none" and notes.setdefault(kept, 5) == 1
    with pytest.raises(KeyError):
        notes[tp.ones(2)]
    seen = []
    for key in notes:  # an entry that goes meanwhile is no error
        seen.append(id(key))
        if len(seen) == 1:
            del gone
            gc.collect()
    del key
    gc.collect()
    assert len(notes) == 1 and next(notes.keys()) is kept and next(r() for r in notes.keyrefs()) is kept


def test_a_dictionary_is_copied_joined_and_compared_by_the_objects() -> None:
    a, b, c = (tp.full((1,), float(n)) for n in range(3))
    one, two = WeakIdKeyDictionary({a: [1], b: [2]}), WeakIdKeyDictionary([(b, [3]), (c, [4])])
    shallow, deep = copy.copy(one), copy.deepcopy(one)
    assert shallow == one and shallow[a] is one[a] and deep == one and deep[a] is not one[a]
    assert (one | two)[b] == [3] and len(one | two) == 3 and ({c: 5} | one)[c] == 5 and one != two and one != 7
    with pytest.raises(TypeError):
        one | [1]  # type: ignore[operator]
    one |= {c: [6]}
    assert one.pop(c) == [6] and one.pop(c, "no") == "no"
    with pytest.raises(KeyError):
        one.pop(c)
    del one[a]
    key, value = one.popitem()
    assert key is b and value == [2] and not one
    with pytest.raises(KeyError):
        del one[a]


def test_keys_may_be_compared_by_hash() -> None:
    class Key:
        def __init__(self, number: int) -> None:
            self.number = number

        def __hash__(self) -> int:
            return self.number

    first, same = Key(3), Key(3)
    by_hash: Any = WeakIdKeyDictionary({first: "x"}, ref_type=_WeakHashRef)
    assert by_hash[same] == "x" and same not in WeakIdKeyDictionary({first: "x"})
    assert isinstance(by_hash.keyrefs()[0], weakref.ref)
