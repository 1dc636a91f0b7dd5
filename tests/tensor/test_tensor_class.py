"""Tensor is a class like one written in Python: it takes methods, new and replaced, and its objects other classes."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

import tensorpy as tp


class Sub(tp.Tensor):
    def greet(self) -> str:
        return "hello"


class Answers(tp.Tensor):
    """Answers operators itself; `seen` are those that it was asked."""

    seen: ClassVar[list[str]] = []

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.seen.append(str(func))
        return tp.zeros(2)


def test_a_new_method() -> None:
    tp.Tensor.twice = lambda self: self * 2  # type: ignore[attr-defined]
    try:
        assert tp.ones(2).twice().tolist() == [2, 2] and tp.nn.Parameter(tp.ones(1)).twice().item() == 2  # type: ignore[attr-defined]
    finally:
        del tp.Tensor.twice  # type: ignore[attr-defined]
    assert not hasattr(tp.ones(1), "twice")


@pytest.fixture
def replaced(request: pytest.FixtureRequest) -> Iterator[str]:
    name = request.param
    before = tp.Tensor.__dict__[name]
    setattr(tp.Tensor, name, lambda *args, **kwargs: "replaced")
    yield name
    setattr(tp.Tensor, name, before)


CALLS = {
    "sum": lambda t: t.sum(),
    "__add__": lambda t: t + 1,
    "__radd__": lambda t: 1 + t,
    "__getitem__": lambda t: t[0],
    "__eq__": lambda t: t == t,
    "__repr__": lambda t: repr(t),
    "__neg__": lambda t: -t,
    "backward": lambda t: t.backward(),
}


@pytest.mark.parametrize("replaced", CALLS, indirect=True)
def test_a_replaced_method_is_called(replaced: str) -> None:
    for t in (tp.ones(2), Sub([1.0])):
        assert CALLS[replaced](t) == "replaced"


@pytest.mark.parametrize("name", CALLS)
def test_the_own_method_is_there_again(name: str) -> None:
    before = tp.Tensor.__dict__[name]
    setattr(tp.Tensor, name, None)
    setattr(tp.Tensor, name, before)
    t = tp.ones((), requires_grad=name == "backward")
    if name != "__getitem__":
        assert CALLS[name](t) != "replaced"


def test_an_attribute_may_be_a_property() -> None:
    tp.Tensor.rows = property(lambda self: self.shape[0])  # type: ignore[attr-defined]
    try:
        assert tp.ones(3, 2).rows == 3  # type: ignore[attr-defined]
    finally:
        del tp.Tensor.rows  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", [tp.Tensor, tp.nn.Parameter])
def test_an_objects_class_can_be_set(kind: type) -> None:
    made = type("Made", (kind,), {"greet": Sub.greet})
    t = kind(tp.ones(2))
    t.__class__ = made
    assert type(t) is made and t.greet() == "hello"
    assert tp.equal(copy.deepcopy(t), t) and type(copy.deepcopy(t)) is made
    t.__class__ = kind
    assert type(t) is kind and not hasattr(t, "greet")


def test_results_are_of_the_class_that_was_set() -> None:
    t = tp.ones(2)
    t.__class__ = Sub
    assert type(t + 1) is Sub and type(pickle.loads(pickle.dumps(t))) is Sub


def test_a_class_with_torch_dispatch_is_asked_from_then_on() -> None:
    t = tp.ones(2)
    t.__class__ = Answers
    Answers.seen.clear()
    t + 1
    assert len(Answers.seen) == 1
    t.__class__ = tp.Tensor
    t + 1
    assert len(Answers.seen) == 1


@pytest.mark.parametrize("kind", [int, tp.Size, tp.Generator, type("Slots", (tp.Tensor,), {"__slots__": ("a",)})])
def test_a_class_of_another_layout_is_refused(kind: type) -> None:
    with pytest.raises(TypeError):
        tp.ones(1).__class__ = kind  # type: ignore[assignment]


def test_objects_whose_class_was_set_are_collected() -> None:
    gone = []
    for _ in range(300):
        t = tp.ones(2, requires_grad=True)
        t.__class__ = Sub
        y = t * 2
        y.also = t  # type: ignore[attr-defined]
        gone.append(weakref.ref(y))
        t = Sub([1.0])
        t.__class__ = tp.Tensor
        gone.append(weakref.ref(t))
        del t, y
    gc.collect()
    assert not any(ref() is not None for ref in gone)
