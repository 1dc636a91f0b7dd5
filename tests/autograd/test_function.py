"""autograd.Function: operators whose gradient is written in Python."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import tensorpy as tp
from tensorpy.autograd import Function, grad, gradcheck, gradgradcheck
from tensorpy.autograd.function import once_differentiable


def t(*values, **kwargs):
    return tp.tensor(list(values), dtype=tp.float64, requires_grad=True, **kwargs)


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


class CubeSetup(Function):
    @staticmethod
    def forward(x, scale=1.0):
        return scale * x * x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.scale = inputs
        ctx.save_for_backward(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return ctx.scale * 3 * x * x * g, None


class Exp(Function):
    """Saves its output."""

    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y


def test_first_and_second_derivative():
    x = t(1.0, -2.0)
    y = Cube.apply(x)
    assert y.grad_fn.name() == "CubeBackward"
    (g,) = grad(y.sum(), x, create_graph=True)
    assert g.tolist() == [3.0, 12.0]
    (h,) = grad(g.sum(), x)
    assert h.tolist() == [6.0, -12.0]


@pytest.mark.parametrize("function", [Cube.apply, Exp.apply, CubeSetup.apply, lambda x: CubeSetup.apply(x, scale=2.0)])
def test_against_finite_differences(function):
    x = t(0.3, -0.7, 1.1)
    assert gradcheck(function, (x,))
    assert gradgradcheck(function, (x,))


def test_saved_output_does_not_leak():
    x = t(1.0)
    y = Exp.apply(x)
    node = weakref.ref(y.grad_fn)
    ctx = weakref.ref(y.grad_fn.saved_tensors and y)
    del y
    assert ctx() is None and node() is None


def test_no_grad_records_nothing():
    with tp.no_grad():
        assert Cube.apply(t(1.0)).grad_fn is None
    assert Cube.apply(tp.tensor([1.0])).grad_fn is None


def test_other_arguments_and_none():
    class Scale(Function):
        @staticmethod
        def forward(ctx, x, factor, name, other):
            ctx.factor = factor
            ctx.needs = ctx.needs_input_grad
            return x * factor, None, name

        @staticmethod
        def backward(ctx, g, nothing, nothing_either):
            assert nothing is None and nothing_either is None
            return g * ctx.factor, None, None, None

    x = t(2.0)
    y, nothing, name = Scale.apply(x, 3, "n", tp.ones(1))
    assert nothing is None and name == "n" and y.grad_fn.needs == (True, False, False, False)
    y.backward()
    assert x.grad.tolist() == [3.0]


def test_needs_input_grad_and_surplus_gradients():
    class Product(Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            assert ctx.needs_input_grad == (True, False)
            return g * b, g * a, None, None

    a, b = t(2.0), tp.tensor([5.0], dtype=tp.float64)
    Product.apply(a, b).backward()
    assert a.grad.tolist() == [5.0] and b.grad is None


def test_materialize_grads():
    seen = []

    class Two(Function):
        @staticmethod
        def forward(ctx, x, materialize):
            ctx.set_materialize_grads(materialize)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, a, b):
            seen.append((a, b))
            return a, None

    x = t(1.0, 2.0)
    Two.apply(x, True)[0].sum().backward()
    assert seen[-1][1].tolist() == [0.0, 0.0]
    Two.apply(x, False)[0].sum().backward()
    assert seen[-1][1] is None


def test_non_differentiable_outputs():
    class Sort(Function):
        @staticmethod
        def forward(ctx, x):
            big = x > 1
            same = x.clone()
            ctx.mark_non_differentiable(same)
            return x * 2, big, same

        @staticmethod
        def backward(ctx, g, g_big, g_same):
            assert g_same.tolist() == [0.0, 0.0]
            return g * 2

    x = t(1.0, 2.0)
    y, big, same = Sort.apply(x)
    assert y.requires_grad and not big.requires_grad and not same.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


class Double_(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, g):
        return g * 2


def test_mark_dirty():
    x = t(1.0, 2.0)
    y = x * 1
    z = Double_.apply(y)
    assert z is y and y.grad_fn.name() == "Double_Backward" and y._version == 1
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_mark_dirty_view():
    x = t(1.0, 2.0)
    y = x * 1
    Double_.apply(y[0:1])
    assert y.tolist() == [2.0, 2.0] and y.grad_fn.name() == "torch::autograd::CopySlices"
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 1.0]


def test_mark_dirty_leaf_is_refused():
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        Double_.apply(t(1.0))


def test_dirty_must_be_returned():
    class Bad(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x * 2

    with pytest.raises(RuntimeError, match="marked as dirty"):
        Bad.apply(t(1.0) * 1)


def test_argument_returned_as_it_is():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 10

    x = t(1.0)
    y = Same.apply(x)
    assert y is not x and x.is_leaf and y.grad_fn.name() == "SameBackward"
    y.sum().backward()
    assert x.grad.tolist() == [10.0]


def test_once_differentiable():
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            assert not tp.is_grad_enabled()
            return 2 * x * g

    x = t(3.0)
    Once.apply(x).backward()
    assert x.grad.tolist() == [6.0]
    seed = t(1.0)
    (g,) = grad(Once.apply(x), x, grad_outputs=seed, create_graph=True)
    assert g.requires_grad
    with pytest.raises(RuntimeError, match="once_differentiable"):
        g.backward()


class Oops(Exception):
    pass


def test_exceptions_arrive_as_they_are():
    class Fails(Function):
        @staticmethod
        def forward(ctx, x, where):
            ctx.where = where
            if where == "forward":
                raise Oops("f")
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise Oops("b")

    x = t(1.0)
    with pytest.raises(Oops, match="f"):
        Fails.apply(x, "forward")
    assert tp.is_grad_enabled()
    with pytest.raises(Oops, match="b"):
        Fails.apply(x, "backward").backward()
    Cube.apply(x).backward()


def returning(value):
    class Returns(Function):
        @staticmethod
        def forward(ctx, x, other=None):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return value(g)

    return Returns


def test_wrong_returns_of_backward():
    x = t(1.0, 2.0)
    for value, kind, text in (
        (lambda g: (g, g, g), RuntimeError, r"incorrect number of gradients \(expected 1, got 3\)"),
        (lambda g: 1.5, RuntimeError, "expected Variable or None"),
        (lambda g: tp.ones(3, dtype=tp.float64), RuntimeError, "invalid gradient"),
    ):
        with pytest.raises(kind, match=text):
            returning(value).apply(x).sum().backward()
    with pytest.raises(RuntimeError, match="different than None"):
        returning(lambda g: (g, g)).apply(x, 3).sum().backward()


def test_missing_methods():
    class Nothing(Function):
        pass

    class OnlyForward(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

    with pytest.raises(NotImplementedError):
        Nothing.apply(t(1.0))
    with pytest.raises(NotImplementedError):
        OnlyForward.apply(t(1.0)).backward()
    with pytest.raises(RuntimeError, match="apply"):
        Cube()(t(1.0))
    with pytest.raises(TypeError, match="missing a required argument"):
        Cube.apply(y=2)
    with pytest.raises(TypeError, match="keyword"):
        Cube.apply(t(1.0), y=2)
    with pytest.raises(TypeError, match="save_for_backward"):
        Cube._backward_cls().save_for_backward(1)


def test_backward_has_one_name():
    class Two(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad

        vjp = backward

    with pytest.raises(RuntimeError, match="Implementing both 'backward' and 'vjp'"):
        Two.apply(tp.ones(1, requires_grad=True)).sum().backward()


def test_a_node_is_of_the_class_of_contexts():
    node = Cube.apply(t(1.0)).grad_fn
    assert node.__class__ is Cube._backward_cls
    assert isinstance(node, Cube._backward_cls) and isinstance(node, tp.autograd.graph.Node)
    assert node.__class__.__name__ == node.name() == "CubeBackward" and not isinstance(t(1.0).exp().grad_fn, type(node))
    assert t(1.0).exp().grad_fn.__class__.__name__ == "ExpBackward0"


def test_saved_value_changed_in_place():
    x = t(1.0) * 1
    y = Cube.apply(x)
    x.add_(1)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation.*CubeBackward.*add_"):
        y.sum().backward()


def test_saved_tensors_are_let_go():
    x = t(1.0)
    y = Cube.apply(x)
    ctx = y.grad_fn
    assert ctx.saved_tensors[0] is x
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        ctx.saved_tensors  # noqa: B018
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_retain_graph():
    x = t(1.0)
    y = Cube.apply(x)
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [6.0]


def test_complex():
    class Square(Function):
        @staticmethod
        def forward(ctx, z):
            ctx.save_for_backward(z)
            return z * z

        @staticmethod
        def backward(ctx, g):
            (z,) = ctx.saved_tensors
            return g * (2 * z).conj()

    z = tp.tensor([1 + 2j, -0.5j], dtype=tp.complex128, requires_grad=True)
    assert gradcheck(Square.apply, (z,)) and gradgradcheck(Square.apply, (z,))


def test_contexts_are_freed():
    class Carries(Cube):
        @staticmethod
        def forward(ctx, x):
            ctx.payload = Oops()
            return Cube.forward(ctx, x)

    def use():
        x = t(1.0)
        y = Carries.apply(x)
        seen = weakref.ref(y.grad_fn.payload)
        y.backward()
        return seen

    seen = use()
    gc.collect()
    assert seen() is None
    before = tp._C._memory_stats()["live_blocks"]
    for _ in range(50):
        use()
    gc.collect()
    assert tp._C._memory_stats()["live_blocks"] <= before + 4


def test_nested_backward_inside_backward():
    class Inner(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            with tp.enable_grad():
                copy = x.detach().requires_grad_()
                (slope,) = grad((copy * copy).sum(), copy)
            return g * slope

    x = t(3.0)
    Inner.apply(x).backward()
    assert x.grad.tolist() == [6.0]


def test_subclass_of_a_subclass():
    class Twice(Cube):
        @staticmethod
        def forward(ctx, x):
            return 2 * Cube.forward(ctx, x)

        @staticmethod
        def backward(ctx, g):
            return 2 * Cube.backward(ctx, g)

    x = t(1.0)
    y = Twice.apply(x)
    assert y.grad_fn.name() == "TwiceBackward"
    y.backward()
    assert x.grad.tolist() == [6.0]


# ---- cycles through what the nodes of operators save ----


class Payload:
    pass


def around_one(x: tp.Tensor) -> tp.Tensor:
    return x.exp()


CYCLES = {
    "an output, by itself": lambda x: (x.exp(), None),
    "an input, by the result": lambda x: ((a := x * 1), a * (x * 2)),
    "an input saved twice": lambda x: ((a := x * 1), a * a),
    "a leaf": lambda x: (x, x.sin()),
    "a leaf saved twice": lambda x: (x, x * x),
    "an output saved again": lambda x: ((y := x.exp()), y * y),
    "a chain": lambda x: ((y := x.exp()), y.sin().cos()),
    "a list": lambda x: ((a := x * 1), tp.einsum("i,i,i->i", a, a, x)),
    "a member of a list that is saved": lambda x: ((a := x + 1), tp.cat([a, a]).prod()),
}


@pytest.mark.parametrize("name", CYCLES)
def test_a_cycle_through_what_an_operator_saves_is_collected(name: str) -> None:
    found = []
    for _ in range(3):
        x = tp.ones(2, requires_grad=True)
        holder, result = CYCLES[name](x)
        holder.payload, holder.result = Payload(), holder if result is None else result
        found.append(weakref.ref(holder.payload))
        del x, holder, result
    gc.collect()
    gc.collect()
    assert not [r for r in found if r() is not None]


def test_what_is_in_use_is_not_collected() -> None:
    """Each of the ends of such a cycle keeps all of it: the graph, the attributes, the gradient."""
    for keep in ("input", "result", "node"):
        x = tp.ones(2, requires_grad=True)
        a = x * 3
        y = a * a
        a.result, a.payload = y, Payload()
        payload = weakref.ref(a.payload)
        kept = {"input": a, "result": y, "node": y.grad_fn}[keep]
        del a, y
        gc.collect()
        assert payload() is not None
        if keep == "result":
            kept.sum().backward()
            assert x.grad.tolist() == [18.0, 18.0]
        del kept
        gc.collect()
        gc.collect()


RESULTS = {
    "new": lambda x, p: x * p,
    "a view": lambda x, p: (x * p).view(2),
    "detached": lambda x, p: (x * p).detach(),
    "written": lambda x, p: tp.zeros(2, dtype=x.dtype).copy_(x),
    "a view of an argument": lambda x, p: x.view(2),
}


@pytest.mark.parametrize("result", RESULTS)
@pytest.mark.parametrize("wanted", [True, False])
def test_a_saved_output_has_its_history_in_every_backward(result, wanted):
    """One that is recorded and one that is not: a backward may differentiate what it computes itself from an output."""
    seen = []

    class Saves(Function):
        @staticmethod
        def forward(ctx, x, p):
            y = RESULTS[result](x, p)
            ctx.save_for_backward(y, x, p)
            return y

        @staticmethod
        def backward(ctx, g):
            y, x, p = ctx.saved_tensors
            seen.append((y.requires_grad, y.is_leaf, type(y.grad_fn).__name__, x.requires_grad, p.requires_grad))
            with tp.enable_grad():
                (slope,) = grad((y * y).sum(), y)
            assert tp.equal(slope, 2 * y)
            return g, g

    x, p = t(1.0, 2.0).detach().requires_grad_(wanted), t(3.0, 4.0)
    Saves.apply(x, p).sum().backward()
    grad(Saves.apply(x, p).sum(), p, create_graph=True)
    assert seen == [(True, False, "SavesBackward", wanted, True)] * 2


def test_an_input_that_is_returned_is_saved_as_an_input():
    class Same(Function):
        @staticmethod
        def forward(ctx, x, p):
            ctx.save_for_backward(x)
            return x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            assert x.is_leaf and x.requires_grad is wanted
            return g, None

    for wanted in (True, False):
        Same.apply(tp.ones(2).requires_grad_(wanted), tp.ones(2).requires_grad_()).sum().backward()


def test_a_view_that_forward_returns_is_named_where_it_is_written() -> None:
    class Viewed(Function):
        @staticmethod
        def forward(ctx: Any, x: tp.Tensor) -> tp.Tensor:
            return x.view_as(x)

        @staticmethod
        def backward(ctx: Any, grad: tp.Tensor) -> tp.Tensor:
            return grad

    words = "Output 0 of Viewed is a view and is being modified inplace. This view was created inside a custom Function"
    with pytest.raises(RuntimeError, match=words):
        Viewed.apply(tp.ones(2, requires_grad=True) * 1).add_(1)
    with pytest.raises(RuntimeError, match="Output 0 of Unbind is a view"):
        tp.ones(2, 2, requires_grad=True).clone().unbind()[0].mul_(2)


def test_arguments_by_name():
    class Scaled(Function):
        @staticmethod
        def forward(ctx, x, factor=2, *, word=1):
            ctx.factor = factor
            return x * factor

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.factor, None

    x = t(1.0, 2.0)
    for y in (Scaled.apply(x, 3), Scaled.apply(x, factor=3), Scaled.apply(factor=3, x=x)):
        assert y.tolist() == [3, 6] and tp.autograd.grad(y.sum(), x)[0].tolist() == [3, 3]
    with pytest.raises(TypeError, match="keyword-only"):
        Scaled.apply(x, word=2)


@pytest.mark.parametrize("zeros", [True, False])
def test_an_output_without_gradient_may_have_none_in_place_of_zeros(zeros):
    class Two(Function):
        @staticmethod
        def forward(ctx, x):
            second = x.clone()
            ctx.mark_non_differentiable(second)
            assert ctx._materialize_non_diff_grads
            ctx._materialize_non_diff_grads = zeros
            return x.clone(), second

        @staticmethod
        def backward(ctx, first, second):
            assert (second is None) == (not zeros)
            return first

    x = t(1.0)
    Two.apply(x)[0].backward()
    assert x.grad.item() == 1


def test_what_comes_back_as_it_is_keeps_its_class() -> None:
    class Plain(tp.Tensor):
        pass

    class Wrapped(tp.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return super().__torch_function__(func, types, args, kwargs)

    class Same(tp.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return 3 * grad

    seen: list = []
    for kind in (Plain, Wrapped):
        for requires_grad in (False, True):
            x = tp.ones(2).as_subclass(kind).requires_grad_(requires_grad)
            y = Same.apply(x)
            assert type(y) is kind and y is not x and y.requires_grad is requires_grad
            if requires_grad:
                y.sum().backward()
                assert x.grad.tolist() == [3, 3]
    assert tp.Tensor.view_as in seen


def test_jvp_sees_only_what_was_saved_for_it() -> None:
    counts = []

    class Copy(tp.autograd.Function):
        @staticmethod
        def forward(ctx, x, forward_too):
            ctx.save_for_backward(x)
            if forward_too:
                ctx.save_for_forward(x, x)
            return x.clone()

        @staticmethod
        def jvp(ctx, tangent, _):
            counts.append(len(ctx.saved_tensors))
            return tangent

        @staticmethod
        def backward(ctx, grad):
            counts.append(len(ctx.saved_tensors))
            return grad, None

    x = tp.ones(2, requires_grad=True)
    for forward_too in (False, True):
        with tp.autograd.forward_ad.dual_level():
            Copy.apply(tp.autograd.forward_ad.make_dual(x, tp.ones(2)), forward_too).sum().backward()
    assert counts == [0, 1, 2, 1]
