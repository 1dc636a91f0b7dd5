"""What autograd refuses, warns of and takes, beside PyTorch: classes of errors and the beginnings of messages."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import tensorpy as tp

CALLS = [
    "(x * x).backward(t.ones(2))", "(x * x).backward(t.ones(3, dtype=t.complex64))",
    "t.autograd.grad(x * 2, x, t.eye(3)[:, :2], is_grads_batched=True)", "t.autograd.grad(x.sum(), [])",
    "t.autograd.grad(x * 2, x, t.eye(3), is_grads_batched=True)",
    "setattr(x, 'data', 5)",
    "setattr(x, 'data', t.zeros(2, dtype=t.int32))",
    "t.ones(3, dtype=t.int32).requires_grad_()",
    "t.autograd.gradcheck(t.sin, t.ones(2, dtype=t.float64))",
    "t.ones((), dtype=t.complex64, requires_grad=True).backward()",
    "t.autograd.functional.jacobian(t.sin, x, vectorize=True, strict=True)",
    "t.autograd.grad((x * 2).sum(), t.autograd.graph.get_gradient_edge(x))",
    "t.autograd.grad(t.autograd.graph.get_gradient_edge(x * 2), x, t.ones(3))",
    "t.autograd.grad([t.autograd.graph.get_gradient_edge(x * 2), (x * 3).sum()], [x], [t.ones(3), None])",
    "t.autograd.grad((lambda y: (y * 5).sum())(y), [t.autograd.graph.get_gradient_edge(y), y])",
    "t.autograd.grad(t.autograd.graph.get_gradient_edge(x.sum()), x)",
    "t.autograd.grad(t.autograd.graph.get_gradient_edge(x * 2), x, t.ones(2))",
]  # fmt: skip


def outcome(t: Any, call: str) -> Any:
    x = t.arange(3.0).requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return repr(eval(call, {"t": t, "x": x, "y": x * 1})).replace("tensorpy", "torch")
        except Exception as error:
            return type(error).__name__, str(error)[:50]


@pytest.mark.parametrize("call", CALLS)
def test_calls_are_answered_as_pytorchs(call: str) -> None:
    torch = pytest.importorskip("torch")
    assert outcome(tp, call) == outcome(torch, call)


BODIES = {
    "a number as gradient": ("return x * 2", "return 5"), "a number saved": ("ctx.save_for_backward(5)", "return g"),
    "a leaf marked dirty": ("ctx.mark_dirty(x); return x.mul_(2)", "return g"),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_functions_are_refused_as_pytorchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    forward, backward = BODIES[name]
    found = []
    for t in (tp, torch):
        space: dict[str, Any] = {"t": t}
        exec(
            "class F(t.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        " + forward + "\n"
            "    @staticmethod\n    def backward(ctx, g):\n        " + backward,
            space,
        )
        with pytest.raises(Exception) as error:
            space["F"].apply(t.ones(3, requires_grad=True)).sum().backward()
        found.append((error.type.__name__, str(error.value)[:30]))
    assert found[0] == found[1]


def test_gradcheck_names_the_output() -> None:
    x = tp.ones(2, dtype=tp.float64, requires_grad=True)
    with pytest.raises(tp.autograd.GradcheckError, match="Jacobian mismatch for output 1 with respect to input 0,"):
        tp.autograd.gradcheck(lambda x: (x.sin(), x.detach() + x * 0), x)
    with pytest.warns(UserWarning, match="Input #0 requires gradient and is not a double precision"):
        tp.autograd.gradcheck(lambda x: x * 1, tp.ones(2, requires_grad=True), eps=1e-2, atol=1e-2)


def test_a_decorated_class_stays_a_class() -> None:
    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):

        @tp.no_grad()
        class Made:
            def __init__(self) -> None:
                self.recorded = tp.is_grad_enabled()

    assert isinstance(Made, type) and not Made().recorded


@pytest.mark.parametrize("uplo", "LU")
def test_tangents_of_eigenvectors_along_any_matrix(uplo: str) -> None:
    """One that is not Hermitian is taken as it is, whatever triangle is read."""
    torch = pytest.importorskip("torch")
    found = []
    for t in (tp, torch):
        a = t.tensor([[2.0, 0.5, 0.1], [0.5, -1.0, 0.3], [0.1, 0.3, 0.7]], dtype=t.float64)
        along = t.arange(9.0, dtype=t.float64).reshape(3, 3).sin()
        found.append(t.func.jvp(lambda x, t=t: t.linalg.eigh(x, uplo)[1].abs(), (a,), (along,))[1].tolist())
        found[-1] += [t.func.jvp(lambda x, t=t: t.linalg.eigvalsh(x, uplo), (a,), (along,))[1].tolist()]
    for mine, theirs in zip(*found, strict=True):
        assert mine == pytest.approx(theirs)


def test_a_node_computes_gradients_in_the_order_of_its_arguments_names() -> None:
    """Modes and graphs see the calls of a backward: `mat2` of a product before `self`."""
    from tensorpy.utils._python_dispatch import TorchDispatchMode

    class Sizes(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            if func._opname in ("mm", "bmm", "mul", "dot"):
                seen.append(tuple(result.shape))
            return result

    seen: list[tuple[int, ...]] = []
    calls = {
        "mm": [(tp.mm, (2, 3), (3, 4)), [(3, 4), (2, 3)]],
        "bmm": [(tp.bmm, (1, 2, 3), (1, 3, 4)), [(1, 3, 4), (1, 2, 3)]],
        "addmm": [(tp.addmm, (2, 4), (2, 3), (3, 4)), [(2, 3), (3, 4)]],
    }
    for (function, *sizes), expected in calls.values():
        tensors = [tp.ones(s, requires_grad=True) for s in sizes]
        y = function(*tensors).sum()
        seen.clear()
        with Sizes():
            tp.autograd.grad(y, tensors)
        assert seen == expected
