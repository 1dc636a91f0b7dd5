"""Views that are made under no_grad or in inference mode, and writes to what a transformed function captures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tensorpy as tp

MODES: list[Any] = [tp.no_grad, tp.inference_mode]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("leaf", [True, False])
def test_such_a_view_wants_what_its_base_wants(mode: Any, leaf: bool) -> None:
    base = tp.ones(3, requires_grad=True)
    base = base if leaf else base * 1
    with mode():
        view, one = base[:2], base.split(1)[0]
        below = view.view_as(view)
        assert not base.detach().requires_grad and not base.detach().is_inference()
        assert not base.to(tp.int64).view(3)[:1].requires_grad
    for t in (view, below, one):
        assert t.requires_grad and t.is_leaf and t.grad_fn is None and not t.is_inference()
    (view * 2).sum().backward()
    assert view.grad is not None and view.grad.tolist() == [2.0, 2.0] and (base.grad is None or not leaf)
    with mode():
        assert not tp.ones(3)[:2].requires_grad


@pytest.mark.parametrize("mode", MODES)
def test_it_is_neither_written_nor_read_after_a_write_elsewhere(mode: Any) -> None:
    name = "no_grad" if mode is tp.no_grad else "inference"
    base = tp.ones(3, requires_grad=True) * 1
    with mode():
        view = base[:2]
    with pytest.raises(RuntimeError, match=f"A view was created in {name} mode and is being modified inplace"):
        view.mul_(2)
    with mode():
        view.mul_(2)
        assert base.tolist() == [2.0, 2.0, 1.0] and "grad_fn=<Invalid>" in repr(view)
    changed: list[Callable[[], Any]] = [lambda: view.grad_fn, lambda: view * 2, lambda: view.sum().backward()]
    for use in changed:
        with pytest.raises(RuntimeError, match=f"A view was created in {name} mode and its base or another view"):
            use()
    plain = tp.ones(3)
    with mode():
        view = plain[:2]
    view.mul_(3)
    assert plain.tolist() == [3.0, 3.0, 1.0]
    plain.mul_(tp.ones(3, requires_grad=True))
    with pytest.raises(RuntimeError, match="its base or another view of its base has been modified inplace"):
        view * 2


def test_a_view_of_an_inference_tensor_is_one() -> None:
    with tp.inference_mode():
        made = tp.ones(3)
        view = made[:2]
    assert view.is_inference() and made[:1].is_inference()
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode is not allowed"):
        made[:1].mul_(2)


def views_of(t: tp.Tensor) -> list[tp.Tensor]:
    return [t.view(-1), t[0], t.t(), *t.unbind(), *t.split(1), t.expand(4, 2, 3), t.detach()]


def test_views_of_inference_tensors_have_no_base() -> None:
    """As PyTorch's: nothing follows them, so they want no gradient either, wherever they are made."""
    with tp.inference_mode():
        leaf = tp.ones(2, 3, requires_grad=True)
        views = views_of(leaf)
    for v in [*views, *views_of(leaf)]:
        assert (v.requires_grad, v.is_leaf, v._is_view(), v._base, v.is_inference()) == (False, True, False, None, True)
    with tp.inference_mode():
        views[0].requires_grad_().detach_()
        views[0].add_(1)
    assert leaf.tolist() == [[2.0] * 3] * 2 and views[0].is_leaf
    assert (leaf * 2).requires_grad and leaf.clone().requires_grad


TRANSFORMS: dict[str, Callable[..., Any]] = {
    "grad": lambda f, x: tp.func.grad(f)(x),
    "vjp": lambda f, x: tp.func.vjp(f, x)[1](tp.tensor(1.0)),
    "jvp": lambda f, x: tp.func.jvp(f, (x,), (tp.ones_like(x),)),
    "linearize": lambda f, x: tp.func.linearize(f, x)[1](tp.ones_like(x)),
    "grad of vmap": lambda f, x: tp.func.grad(lambda y: tp.vmap(lambda z: z * f(y))(tp.ones(2)).sum())(x),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_what_a_function_captures_is_not_written(name: str) -> None:
    captured = tp.tensor([1.0, 2.0])

    def writes(x: tp.Tensor) -> tp.Tensor:
        captured.copy_(x)
        return captured.sum()

    with pytest.raises(RuntimeError, match=r"would mutate a captured Tensor"):
        TRANSFORMS[name](writes, tp.ones(2))
    assert captured.tolist() == [1.0, 2.0] and not captured.requires_grad

    def own(x: tp.Tensor) -> tp.Tensor:
        made = tp.zeros(2)
        made.copy_(x)
        made[0].mul_(3)
        return made.mul_(x).sum() + captured.detach().add_(1).sum()

    assert TRANSFORMS[name](own, tp.ones(2)) is not None
    assert captured.tolist() != [1.0, 2.0]  # what records nothing is written


def test_an_inner_function_does_not_write_to_the_outer_ones() -> None:
    def outer(x: tp.Tensor) -> tp.Tensor:
        y = x * 2
        return tp.func.grad(lambda z: y.mul_(z).sum())(tp.ones(2)).sum()

    with pytest.raises(RuntimeError, match="would mutate a captured Tensor"):
        tp.func.grad(outer)(tp.ones(2))
    assert tp.func.grad(lambda x: (x * 2).mul_(x).sum())(tp.ones(2)).tolist() == [4.0, 4.0]


def test_ranges_of_bools_are_refused() -> None:
    for make in (tp.linspace, tp.logspace):
        with pytest.raises(NotImplementedError, match="not implemented for 'Bool'"):
            make(0, 1, 5, dtype=tp.bool)
        with pytest.raises(NotImplementedError, match="not implemented for 'Bool'"):
            make(0, 1, 5, out=tp.empty(5, dtype=tp.bool))
