"""Tensors that have parts, and their values, written in place: gradients are those of the same steps on dense tensors,
or an error."""

from __future__ import annotations

import gc
import itertools
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import tensorpy as tp
import tensorpy.autograd.forward_ad as fw

INDICES = tp.tensor([[0, 1, 1, 2], [1, 0, 2, 2]])
STARTS, COLUMNS = tp.tensor([0, 1, 3, 4]), tp.tensor([1, 0, 2, 2])
OFFSETS = tp.tensor([0, 1, 4])
Make = Callable[[tp.Tensor], tp.Tensor]

LAYOUTS: dict[str, Make] = {
    "sparse_coo": lambda v: tp.sparse_coo_tensor(INDICES, v, (3, 3), is_coalesced=True),
    "sparse_csr": lambda v: tp.sparse_csr_tensor(STARTS, COLUMNS, v, (3, 3)),
    "sparse_csc": lambda v: tp.sparse_csc_tensor(STARTS, COLUMNS, v, (3, 3)),
    "sparse_bsr": lambda v: tp.sparse_bsr_tensor(STARTS, COLUMNS, v.reshape(4, 1, 1), (3, 3)),
    "sparse_bsc": lambda v: tp.sparse_bsc_tensor(STARTS, COLUMNS, v.reshape(4, 1, 1), (3, 3)),
    "nested": lambda v: tp._C._nested_make(v, OFFSETS, None, None, 1, False),
    "jagged": lambda v: tp.nested.nested_tensor_from_jagged(v, OFFSETS),
    "jagged with lengths": lambda v: tp.nested.nested_tensor_from_jagged(v, OFFSETS, tp.tensor([1, 3])),
}
NESTED = [name for name in LAYOUTS if "sparse" not in name]

# In place, with a factor that requires grad: of the base, of the tensor, of its values, and of a part of those.
Write = Callable[[Any, Any, Any], Any]
OPERATORS: dict[str, Write] = {
    "mul_": lambda t, q, q0: t.mul_(q0),
    "add_": lambda t, q, q0: t.add_(q0, alpha=3),
    "exp_": lambda t, q, q0: t.exp_(),
    "copy_": lambda t, q, q0: t.copy_(q0 * tp.ones_like(t.detach())),
    "fill_": lambda t, q, q0: t.fill_(q0),
    "zero_": lambda t, q, q0: t.zero_(),
    "clamp_": lambda t, q, q0: t.clamp_(max=2.5),
}


class Steps:
    """The same program on a tensor of a layout, or on the dense values alone."""

    def __init__(self, make: Make | None) -> None:
        self.leaf = tp.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
        self.factor = tp.tensor(1.5, requires_grad=True)
        self.base = self.leaf * 1
        self.whole = make(self.base) if make else self.base.view(4)
        self.dense = make is None

    def values(self) -> tp.Tensor:
        return self.whole.view(4) if self.dense else self.whole.values().view(4)

    def place(self, name: str) -> tp.Tensor:
        if name == "base":
            return self.base
        if name == "whole":
            return self.whole
        return self.values() if name == "values" else self.values()[1:3]

    def run(self, writes: list[tuple[str, Write]], read: str, early: bool) -> tuple[list[float], ...]:
        taken = self.values() if early else None
        for place, write in writes:
            write(self.place(place), self.factor, self.factor)
        weights = tp.tensor([1.0, 10.0, 100.0, 1000.0])
        found = taken if taken is not None else self.base if read == "base" else self.values()
        (found * found * weights).sum().backward()
        factor = self.factor.grad
        return found.tolist(), self.leaf.grad.tolist(), [] if factor is None else [factor.item()]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("operator", OPERATORS)
def test_writes_reach_all_that_show_the_memory(layout: str, operator: str) -> None:
    write = OPERATORS[operator]
    places = ["base", "whole", "values", "some values"] if layout in NESTED else ["base", "values", "some values"]
    for place, read, early in itertools.product(places, ("base", "whole"), (False, True)):
        found = Steps(LAYOUTS[layout]).run([(place, write)], read, early)
        assert found == Steps(None).run([(place, write)], read, early), (place, read, early)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_writes_one_after_the_other(layout: str) -> None:
    places = ["base", "whole", "values", "some values"] if layout in NESTED else ["base", "values", "some values"]
    for first, second, early in itertools.product(places, places, (False, True)):
        writes = [(first, OPERATORS["mul_"]), (second, OPERATORS["add_"])]
        for read in ("base", "whole"):
            found = Steps(LAYOUTS[layout]).run(writes, read, early)
            assert found == Steps(None).run(writes, read, early), (first, second, read, early)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_was_computed_before_a_write_keeps_its_history(layout: str) -> None:
    steps = Steps(LAYOUTS[layout])
    before = steps.whole * 3
    steps.values().mul_(2)
    before.values().sum().backward()
    assert steps.leaf.grad.tolist() == [3.0] * 4


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("place", ["base", "values", "some values"])
def test_a_saved_value_that_was_written_is_refused(layout: str, place: str) -> None:
    for recorded in (False, True):
        steps = Steps(LAYOUTS[layout])
        squares = steps.whole * steps.whole
        with tp.set_grad_enabled(recorded):
            steps.place(place).mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            squares.values().sum().backward()


class Kept(tp.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: tp.Tensor) -> tp.Tensor:
        ctx.save_for_backward(x)
        return x.values().detach().sum()

    @staticmethod
    def backward(ctx: Any, grad: tp.Tensor) -> tp.Tensor:
        (x,) = ctx.saved_tensors
        return x.detach() * grad


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("place", ["base", "whole", "values"])
def test_a_function_that_saved_the_whole_is_told(layout: str, place: str) -> None:
    steps = Steps(LAYOUTS[layout])
    found = Kept.apply(steps.whole)
    with tp.no_grad():
        steps.place(place).mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        found.backward()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("place", ["base", "whole", "values", "some values"])
def test_a_write_that_is_not_recorded_is_no_reason_to_refuse(layout: str, place: str) -> None:
    steps, dense = Steps(LAYOUTS[layout]), Steps(None)
    for one in (steps, dense):
        with tp.no_grad():
            one.place(place).mul_(2)
    squares = (steps.whole * steps.whole).values().sum()
    squares.backward()
    (dense.whole * dense.whole).sum().backward()
    assert steps.leaf.grad.tolist() == dense.leaf.grad.tolist()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_leaves_are_not_written(layout: str) -> None:
    leaf = LAYOUTS[layout](tp.ones(4)).requires_grad_()
    for write in (lambda: leaf.values().mul_(2), lambda: leaf.mul_(2), lambda: leaf.values()[1:].zero_()):
        with pytest.raises(RuntimeError):
            write()
    with tp.no_grad():
        leaf.values().mul_(2)
    assert leaf.is_leaf and leaf.values().reshape(-1).tolist() == [2.0] * 4


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_tensor_that_is_its_own_base(layout: str) -> None:
    """Made where nothing was recorded: a write by something that requires grad is recorded on the whole, or refused."""
    with tp.no_grad():
        whole = LAYOUTS[layout](tp.ones(4))
    q = tp.tensor(2.0, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"no_grad|under no_grad"):
        whole.values().mul_(q)
    if layout in NESTED:
        taken = whole.values()
        whole.mul_(q)
        (taken.sum() + whole.values().sum()).backward()
        assert q.grad.item() == 8.0


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("place", ["base", "values", "some values"])
def test_forward_mode_sees_writes(layout: str, place: str) -> None:
    with fw.dual_level():
        base = tp.tensor([1.0, 2.0, 3.0, 4.0])
        whole = LAYOUTS[layout](base)
        shown = tp._C._layout_values(whole).view(4)
        written = {"base": base, "values": shown, "some values": shown[1:3]}[place]
        written.mul_(fw.make_dual(tp.tensor(2.0), tp.tensor(1.0)))
        tangent = fw.unpack_dual(tp._C._layout_values(whole) * 3).tangent
        expected = [0.0, 6.0, 9.0, 0.0] if place == "some values" else [3.0, 6.0, 9.0, 12.0]
        assert tangent.reshape(-1).tolist() == expected


def test_a_tensor_and_what_saved_it_are_freed() -> None:
    for make in LAYOUTS.values():
        steps = Steps(make)
        squares = steps.whole * steps.whole
        steps.values().mul_(2)
        ends = [weakref.ref(t) for t in (steps.base, steps.whole, squares)]
        del steps, squares
        gc.collect()
        assert [end() for end in ends] == [None] * 3
