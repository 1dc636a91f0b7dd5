"""Control flow as functions of functions (tensorpy._higher_order_ops)."""

from __future__ import annotations

from typing import Any

import pytest

import tensorpy as tp
from tensorpy._higher_order_ops import associative_scan, cond, map, scan, while_loop
from tensorpy.func import grad


def same(a: Any, b: Any) -> None:
    tp.testing.assert_close(a, b)


def test_one_of_two_functions() -> None:
    for pred in (True, tp.tensor(True), tp.tensor([1.0])):
        same(tp.cond(pred, lambda x: x.sin(), lambda x: x.cos(), (tp.ones(2),)), tp.ones(2).sin())
    assert cond(False, lambda x: {"a": x}, lambda x: {"b": x}, [tp.ones(1)]).keys() == {"b"}
    same(grad(lambda x: cond(x > 0, lambda y: y * 2, lambda y: y * 3, (x,)))(tp.tensor(1.0)), tp.tensor(2.0))
    with pytest.raises(RuntimeError, match="Expect both branches to be callable"):
        cond(True, 1, lambda: 2)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="single-element tensor"):
        cond(tp.ones(2), lambda: 1, lambda: 2)
    with pytest.raises(RuntimeError, match="Expected pred to be bool"):
        cond("yes", lambda: 1, lambda: 2)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="Expect operands to be a tuple"):
        cond(True, lambda x: x, lambda x: x, (print,))


def test_a_loop() -> None:
    count, x = while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (tp.tensor(0), tp.ones(2)))
    same((count, x), (tp.tensor(3), tp.full((2,), 8.0)))
    with pytest.raises(RuntimeError, match="structure"):
        while_loop(lambda x: True, lambda x: (x, x), (tp.ones(1),))
    with pytest.raises(RuntimeError, match="shapes"):
        while_loop(lambda x: True, lambda x: (x[:1],), (tp.ones(2),))
    with pytest.raises(RuntimeError, match="dtypes"):
        while_loop(lambda x: True, lambda x: (x.double(),), (tp.ones(2),))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dim", [0, 1])
def test_scans_are_sums(reverse: bool, dim: int) -> None:
    x = tp.arange(6.0).reshape(2, 3).requires_grad_()
    carry, ys = scan(lambda c, s: (c + s, c + s), tp.zeros(x.shape[1 - dim]), x, dim=dim, reverse=reverse)
    wanted = (x.flip(dim).cumsum(dim).flip(dim) if reverse else x.cumsum(dim)).movedim(dim, 0)
    same((carry, ys), (x.sum(dim), wanted))
    same(associative_scan(lambda a, b: a + b, x, dim, reverse), wanted.movedim(0, dim))
    (given,) = tp.autograd.grad(ys.sum(), x)
    same(given, tp.autograd.grad(wanted.sum(), x)[0])


def test_scans_of_trees() -> None:
    xs = {"a": tp.arange(4.0), "b": tp.ones(4)}
    found = associative_scan(lambda p, q: {"a": p["a"] * q["b"] + q["a"], "b": p["b"] * q["b"]}, xs, 0)
    same(found["a"], tp.arange(4.0).cumsum(0))
    assert scan(lambda c, x: (c, x), tp.ones(1), []) == (tp.ones(1), [])
    with pytest.raises(ValueError, match="Combine_mode"):
        associative_scan(lambda p, q: p, xs, 0, combine_mode="other")
    with pytest.raises(RuntimeError, match="metadata of init"):
        scan(lambda c, x: (c.double(), x), tp.zeros(()), tp.ones(3))
    with pytest.raises(RuntimeError, match="same number of elements"):
        associative_scan(lambda p, q: p, (tp.ones(2), tp.ones(3)), 0)
    with pytest.raises(IndexError, match="out of range"):
        associative_scan(lambda p, q: p, tp.ones(2), 1)


def test_a_function_of_each_slice() -> None:
    same(map(lambda x, y: x + y, tp.arange(6.0).reshape(3, 2), tp.ones(2)), tp.arange(6.0).reshape(3, 2) + 1)
    with pytest.raises(RuntimeError, match="cannot be 0"):
        map(lambda x: x, tp.ones(0, 2))
    with pytest.raises(RuntimeError, match="consistent"):
        map(lambda x: x[0], (tp.ones(2), tp.ones(3)))


def test_vmap_takes_each_samples_branch() -> None:
    def f(x: tp.Tensor) -> Any:
        return tp.cond(x.sum() > 0, lambda t: {"a": (t * t).sum()}, lambda t: {"a": (t * 3).sum()}, (x,))

    x = tp.tensor([[1.0, 2.0], [-1.0, 0.0]])
    assert tp.vmap(f)(x)["a"].tolist() == [5.0, -3.0]
    assert tp.vmap(tp.func.grad(lambda x: f(x)["a"]))(x).tolist() == [[2.0, 4.0], [3.0, 3.0]]
    each = tp.vmap(tp.vmap(lambda x: tp.cond(x > 0, tp.sin, tp.cos, (x,))))(x)
    assert each.equal(tp.where(x > 0, x.sin(), x.cos()))
    with pytest.raises(RuntimeError, match="in the same tree"):
        tp.vmap(lambda x: tp.cond(x > 0, lambda t: t, lambda t: (t,), (x,)))(x[0])
