"""autograd.functional: derivatives of functions in PyTorch's older form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tensorpy as tp
from tensorpy.autograd import functional
from tensorpy.testing import assert_close
from tensorpy.utils._pytree import tree_flatten, tree_leaves

Program = Callable[[Any], Any]


def two(m: Any) -> tuple[Any, Any]:
    return m.tensor([0.5, 1.5, 2.0], dtype=m.float64), m.tensor([1.0, -0.5, 0.25], dtype=m.float64)


def several(x: Any, y: Any) -> Any:
    return (x * y).sum(), x.exp() * y.sum()


def number(x: Any, y: Any) -> Any:
    return (x * x * y).sum()


def programs() -> dict[str, Program]:
    def of(m: Any) -> Any:
        return m.autograd.functional

    return {
        "jacobian": lambda m: of(m).jacobian(several, two(m)),
        "jacobian, forward": lambda m: of(m).jacobian(several, two(m), strategy="forward-mode", vectorize=True),
        "jacobian of one": lambda m: of(m).jacobian(lambda x: x**3, two(m)[0]),
        "hessian": lambda m: of(m).hessian(number, two(m)),
        "hessian of one": lambda m: of(m).hessian(lambda x: x.prod(), two(m)[0]),
        "vjp": lambda m: of(m).vjp(several, two(m), (two(m)[0].sum(), two(m)[1])),
        "jvp": lambda m: of(m).jvp(several, two(m), two(m)),
        "jvp of one": lambda m: of(m).jvp(lambda x: x**3, *two(m)),
        "vhp": lambda m: of(m).vhp(number, two(m), two(m)),
        "hvp": lambda m: of(m).hvp(number, two(m), two(m)),
    }


@pytest.mark.parametrize("name", programs())
def test_against_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    from torch.utils._pytree import tree_leaves as torch_leaves

    found = programs()[name](tp)
    got, expected = tree_leaves(found), torch_leaves(programs()[name](torch))
    assert len(got) == len(expected) and not any(t.requires_grad for t in got)
    for a, b in zip(got, expected, strict=True):
        assert_close(a, tp.from_numpy(b.numpy()), rtol=1e-9, atol=1e-12)


def test_create_graph() -> None:
    x, v = two(tp)
    x.requires_grad_()
    jacobian = functional.jacobian(lambda x: x**3, x, create_graph=True)
    assert_close(tp.autograd.grad(jacobian.sum(), x)[0], 6 * x)
    _, moved = functional.jvp(lambda x: x**3, x, v, create_graph=True)
    assert_close(tp.autograd.grad(moved.sum(), x)[0], 6 * x * v)
    assert not functional.jvp(lambda x: x**3, x, v)[1].requires_grad


def test_structure() -> None:
    """What comes has the form of the outputs, and in it that of the inputs."""
    _, spec = tree_flatten(functional.jacobian(several, two(tp)))
    assert spec == tree_flatten(((0, 0), (0, 0)))[1]
    assert isinstance(functional.jacobian(lambda x: (x,), two(tp)[0]), tuple)
    assert isinstance(functional.jacobian(lambda x: x, (two(tp)[0],)), tuple)


def test_refusals() -> None:
    x, y = two(tp)
    with pytest.raises(RuntimeError, match="output 0 is independent of input 1"):
        functional.jacobian(lambda x, y: x * 2, (x, y), strict=True)
    with pytest.raises(RuntimeError, match="does not depend on the inputs"):
        functional.jacobian(lambda x: tp.ones(2), x, strict=True)
    with pytest.raises(RuntimeError, match="one number"):
        functional.hvp(lambda x: x, x, x)
    with pytest.raises(RuntimeError, match="can only be left out"):
        functional.vjp(lambda x: x, x)
    with pytest.raises(RuntimeError, match="has the shapes of the input"):
        functional.jvp(lambda x: x, x, x[:2])
    with pytest.raises(ValueError, match="strategy"):
        functional.jacobian(lambda x: x, x, strategy="sideways")
    with pytest.raises(TypeError, match="the inputs are"):
        functional.jacobian(lambda x: x, [x])
