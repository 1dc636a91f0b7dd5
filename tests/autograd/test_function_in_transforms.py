"""What a Function has to be inside of vmap, grad and jvp, and what it may return as it is: results, classes of errors
and beginnings of messages are PyTorch's."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import tensorpy as tp


def functions(t: Any) -> dict[str, Any]:
    """Functions of many kinds, by name, of the one library or of the other."""

    class Old(t.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2

    class New(t.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(x: Any) -> Any:
            return x * 2

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(output)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2

    class Same(New):
        @staticmethod
        def forward(x: Any) -> Any:
            return x

    class SameForJvp(Same):
        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_forward(output)

        @staticmethod
        def jvp(ctx: Any, tangent: Any) -> Any:
            return tangent * 2

    class Keyword(New):
        @staticmethod
        def forward(x: Any, *, y: Any) -> Any:
            return x * y

    class Both(New):
        generate_vmap_rule = True

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any) -> Any:
            return x, 0

    class NoDims(New):
        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any) -> Any:
            return x

    class OtherDims(New):
        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any) -> Any:
            return x, (0, 0)

    def moved(forward: Any, jvp: Any) -> Any:
        """The primal and the tangent of a Function's output at a level of dual numbers."""
        methods = {
            "forward": staticmethod(lambda ctx, x: forward(x)),
            "jvp": staticmethod(lambda ctx, tangent: jvp(tangent)),
        }
        function = type("Moved", (t.autograd.Function,), methods)
        with t.autograd.forward_ad.dual_level():
            dual = t.autograd.forward_ad.make_dual(t.ones(2), t.ones(2))
            return tuple(t.autograd.forward_ad.unpack_dual(function.apply(dual)))

    kinds = (Old, New, Same, SameForJvp, Keyword, Both, NoDims, OtherDims)
    return {kind.__name__: kind.apply for kind in kinds} | {"moved": moved}


CALLS = [
    "f.grad(lambda x: Old(x).sum())(x)", "f.vmap(Old)(x)", "f.vmap(New)(x)", "f.vmap(Both)(x)", "f.vmap(NoDims)(x)",
    "f.vmap(OtherDims)(x)", "f.grad(lambda x: New(x).sum())(x)", "f.jvp(New, (x,), (x,))", "Same(x)",
    "f.grad(lambda x: Same(x).sum())(x)", "Same(x.requires_grad_())", "f.jvp(SameForJvp, (x,), (x,))",
    "f.vmap(lambda a: Keyword(a, y=a))(x)", "moved(lambda x: x, lambda v: v)", "moved(lambda x: x, lambda v: v * 2)",
    "moved(lambda x: x.view(-1), lambda v: v)", "moved(lambda x: x.view(-1), lambda v: v.view(-1))",
    "moved(lambda x: x * 2, lambda v: v * 2)", "moved(lambda x: x * 2, lambda v: (v, v))",
    "moved(lambda x: x * 2, lambda v: 3)",
    "f.grad(lambda x: x.sum().backward())(x)", "f.grad(lambda x: t.autograd.backward([x.sum()]))(x)",
]  # fmt: skip


def outcome(t: Any, call: str) -> Any:
    names = {**functions(t), "t": t, "f": t.func, "x": t.ones(2)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return repr(eval(call, names)).replace("tensorpy", "torch")
        except Exception as error:
            return type(error).__name__, str(error)[:45]


@pytest.mark.parametrize("call", CALLS)
def test_functions_in_transforms_are_pytorchs(call: str) -> None:
    torch = pytest.importorskip("torch")
    assert outcome(tp, call) == outcome(torch, call)


def test_jvp_computes_tangents_where_they_are_switched_off() -> None:
    x = tp.tensor(1.0)
    with tp.autograd.forward_ad._set_fwd_grad_enabled(False):
        assert tp.func.jvp(tp.sin, (x,), (x,))[1] == x.cos()
        assert not tp.autograd.forward_ad._is_fwd_grad_enabled()


def test_the_packages_own_functions_are_fine_in_transforms() -> None:
    def loss(x: tp.Tensor) -> tp.Tensor:
        return tp.utils.checkpoint.checkpoint(tp.sin, x, use_reentrant=True).sum()

    assert tp.equal(tp.func.grad(loss)(tp.ones(2)), tp.ones(2).cos())


def test_nodes_in_transforms_are_called_generated() -> None:
    names = []

    class Twice(tp.autograd.Function):
        @staticmethod
        def forward(x: tp.Tensor) -> tp.Tensor:
            return x * 2

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None: ...

        @staticmethod
        def backward(ctx: Any, grad: tp.Tensor) -> tp.Tensor:
            return grad * 2

    def apply(x: tp.Tensor) -> tp.Tensor:
        y = Twice.apply(x)
        names.append((y.grad_fn.name(), type(y.grad_fn).__name__))
        return y

    assert tp.func.grad(apply)(tp.tensor(1.0)) == 2
    apply(tp.ones((), requires_grad=True))
    assert [name for _, name in names] == ["TwiceGeneratedBackward", "TwiceBackward"]
