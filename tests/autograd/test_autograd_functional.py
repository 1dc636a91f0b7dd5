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


@pytest.mark.parametrize("name", ["jacobian", "hessian", "vjp", "jvp", "vhp", "hvp"])
@pytest.mark.parametrize("wanted", [False, True])
def test_create_graph_under_no_grad(name: str, wanted: bool) -> None:
    """What is asked for is recorded, whatever the caller's mode, and whether the inputs require gradients or not."""
    x, v = two(tp)
    x.requires_grad_(wanted)
    program = (lambda x: x**3) if name in ("jacobian", "vjp", "jvp") else (lambda x: (x**3).sum())
    with tp.no_grad():
        found = getattr(functional, name)(program, x, *[v] * (name not in ("jacobian", "hessian")), create_graph=True)
    assert all(t.requires_grad for t in tree_leaves(found))


def test_structure() -> None:
    """What comes has the form of the outputs, and in it that of the inputs."""
    _, spec = tree_flatten(functional.jacobian(several, two(tp)))
    assert spec == tree_flatten(((0, 0), (0, 0)))[1]
    assert isinstance(functional.jacobian(lambda x: (x,), two(tp)[0]), tuple)
    assert isinstance(functional.jacobian(lambda x: x, (two(tp)[0],)), tuple)


def test_refusals() -> None:
    x, y = two(tp)
    with pytest.raises(RuntimeError, match="Output 0 of the user-provided function is independent of input 1"):
        functional.jacobian(lambda x, y: x * 2, (x, y), strict=True)
    with pytest.raises(RuntimeError, match="Output 0 of the user-provided function does not require gradients"):
        functional.jacobian(lambda x: tp.ones(2), x, strict=True)
    with pytest.raises(RuntimeError, match="function given to hvp should contain a single element"):
        functional.hvp(lambda x: x, x, x)
    with pytest.raises(RuntimeError, match="The vector v can only be None if the user-provided function returns"):
        functional.vjp(lambda x: x, x)
    with pytest.raises(RuntimeError, match="v has invalid size: should be"):
        functional.jvp(lambda x: x, x, x[:2])
    with pytest.raises(AssertionError, match="strategy"):
        functional.jacobian(lambda x: x, x, strategy="sideways")
    with pytest.raises(TypeError, match="The inputs given to jacobian must be either a Tensor or a tuple"):
        functional.jacobian(lambda x: x, [x])


@pytest.mark.parametrize(
    ("which", "function", "graph", "words"),
    [
        ("vjp", lambda x: (x.detach() * 2).sum(), False, "Output 0 of the user-provided function does not require"),
        (
            "jvp",
            lambda x: tp.ones(2, requires_grad=True) * 2,
            False,
            "The output of the user-provided function is indep",
        ),
        ("vjp", lambda x: x.sum(), True, "The jacobian of the user-provided function is independent of input 0"),
        ("jacobian", lambda x: x * 2, True, "The jacobian of the user-provided function is independent of input 0"),
        (
            "hessian",
            lambda x: x.sum(),
            False,
            "that the jacobian of the user-provided function with respect to input 0",
        ),
        (
            "hessian",
            lambda x: tp.ones((), requires_grad=True) * 2,
            False,
            "that the jacobian of the user-provided function with respect to input 0",
        ),
        ("vhp", lambda x: x.sum(), False, "that the jacobian of the user-provided function with respect to input 0"),
        ("hvp", lambda x: (x * x).sum(), True, "The hessian of the user-provided function is independent of input 0"),
    ],
)
def test_strict(which: str, function: Any, graph: bool, words: str) -> None:
    """Each derivative names what it does not depend on; without strict the same call gives zeros."""
    x = tp.tensor([1.0, 2.0])
    v = () if which in ("jacobian", "hessian") else (tp.ones(2),)
    if which == "vjp":
        v = (tp.tensor(1.0),)
    with pytest.raises(RuntimeError, match=words):
        getattr(functional, which)(function, x, *v, create_graph=graph, strict=True)
    getattr(functional, which)(function, x, *v, create_graph=graph)


class Cube(tp.autograd.Function):
    """Fills in its context in forward() and asks for a value, which no transform of tensorpy.func allows."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        assert x.sum().item() == x.sum().item()
        return x * x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * g * x * x


@pytest.mark.parametrize("vectorize", [False, True])
def test_the_function_runs_in_no_transform(vectorize: bool) -> None:
    """A Function of the older form, a hook, a value that is asked for; strict or not, the function runs once."""
    x = tp.tensor([1.0, 2.0])
    seen: list[Any] = []

    def function(a: Any) -> Any:
        seen.append(a)
        a.register_hook(lambda g: None)
        return Cube.apply(a)

    def number(a: Any) -> Any:
        return function(a).sum().reshape(1)

    v = tp.tensor([1.0, -1.0])
    assert tp.equal(functional.jacobian(function, x, vectorize=vectorize), tp.diag(3 * x * x))
    assert tp.equal(functional.hessian(number, x, vectorize=vectorize), tp.diag(6 * x))
    for name in ("vjp", "jvp"):
        assert tp.equal(getattr(functional, name)(function, x, v, strict=True)[1], 3 * x * x * v), name
    for name in ("vhp", "hvp"):
        value, product = getattr(functional, name)(number, x, v, strict=True)
        assert value.shape == (1,) and tp.equal(product, 6 * x * v), name
    assert len(seen) == 6


def test_complex_outputs_are_refused_row_by_row() -> None:
    with pytest.raises(RuntimeError, match="real scalar outputs but got"):
        functional.jacobian(lambda a: a * 1j, tp.ones(2))


def test_the_standard_basis_of_several_tensors():
    tensors = (tp.zeros(2, dtype=tp.float64), tp.zeros(()), tp.zeros(1, 2))
    parts = functional._construct_standard_basis_for(tensors, (2, 1, 2))
    assert [p.dtype for p in parts] == [t.dtype for t in tensors]
    assert tp.equal(tp.cat([p.float() for p in parts], 1), tp.eye(5))
