"""Jacobians as matrices, gradcheck along one direction, and calls at the end of a backward pass."""

import pytest

import tensorpy as tp
from tensorpy.autograd import Function, Variable, gradcheck, gradgradcheck
from tensorpy.autograd import gradcheck as module_function  # noqa: F401  (the package has the function of that name)
from tensorpy.autograd.jacobians import (
    _get_numerical_jacobian,
    _iter_tensors,
    get_analytical_jacobian,
    get_numerical_jacobian,
    get_numerical_jacobian_wrt_specific_input,
)

torch = pytest.importorskip("torch")
theirs = __import__("torch.autograd.gradcheck", fromlist=["x"])


def inputs(package, dtype):
    x = package.arange(1, 4).to(getattr(package, dtype)).requires_grad_()
    return x, package.arange(2, 5, dtype=package.float64).requires_grad_()


def both(x, y):
    return (x * x * y).abs(), (x * y).sum(0, keepdim=True).abs()


def same(ours, others):
    assert len(ours) == len(others)
    for a, b in zip(ours, others, strict=True):
        assert [str(m.dtype).split(".")[1] for m in a] == [str(m.dtype).split(".")[1] for m in b]
        for m, n in zip(a, b, strict=True):
            torch.testing.assert_close(torch.tensor(m.tolist(), dtype=n.dtype), n, atol=1e-7, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_numerical_jacobians_are_pytorchs(dtype):
    ours, others = inputs(tp, dtype), inputs(torch, dtype)
    same(_get_numerical_jacobian(both, ours, eps=1e-6), theirs._get_numerical_jacobian(both, others, eps=1e-6))
    ours_y = _get_numerical_jacobian(both, ours, target=ours[1], eps=1e-6)
    same(ours_y, theirs._get_numerical_jacobian(both, others, target=others[1], eps=1e-6))
    assert ours[0].tolist() == [1, 2, 3]  # moved and put back
    with pytest.warns(FutureWarning, match="get_numerical_jacobian"):
        (matrix, _) = get_numerical_jacobian(lambda both: both[0].abs() * both[1], ours)
    assert matrix.shape == (3, 3)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_an_analytical_jacobian_is_pytorchs(dtype):
    ours, others = inputs(tp, dtype), inputs(torch, dtype)
    with pytest.warns(FutureWarning, match="get_analytical_jacobian"):
        matrices, *answers = get_analytical_jacobian(ours, both(*ours)[0])
    with pytest.warns(FutureWarning):
        expected, *wanted = theirs.get_analytical_jacobian(others, both(*others)[0])
    same([matrices], [expected])
    assert answers == wanted == [True, True, True]


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_jacobians_of_complex_outputs_and_scaled_ones_are_refused():
    (x, _) = inputs(tp, "complex128")
    for call in (
        lambda: get_analytical_jacobian((x,), x * x),
        lambda: get_numerical_jacobian(lambda v: v[0], (x,)),
        lambda: get_numerical_jacobian(lambda v: v[0].abs(), (x,), grad_out=2.0),
        lambda: get_analytical_jacobian((x,), x.abs(), grad_out=2.0),
    ):
        with pytest.raises(ValueError, match="no longer supports"):
            call()


def test_one_input_is_named_by_its_place():
    x, y = inputs(tp, "float64")
    (matrix,) = get_numerical_jacobian_wrt_specific_input(lambda a, b: a * b, 1, (x, y), (x * y,), 1e-6)
    assert [round(n) for n in matrix.diagonal().tolist()] == [1, 2, 3]
    assert list(_iter_tensors([x, [y, "no"]], True)) and not list(_iter_tensors("abc"))


# ---- fast mode ----


class Wrong(Function):
    """Squares, whose gradient is off by a factor."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x * 2.01


@pytest.mark.parametrize("dtype", [tp.float64, tp.complex128])
def test_fast_mode_finds_a_wrong_gradient(dtype):
    x = tp.randn(7, dtype=dtype, requires_grad=True)
    assert gradcheck(lambda v: (v * v).exp(), (x,), fast_mode=True)
    assert gradgradcheck(lambda v: v * v * v, (x,), fast_mode=True)
    assert not gradcheck(Wrong.apply, (x,), fast_mode=True, raise_exception=False)
    with pytest.raises(RuntimeError, match="mismatch"):
        gradcheck(Wrong.apply, (x,), fast_mode=True)


def test_fast_mode_does_not_go_through_every_element():
    calls = []
    x = tp.randn(300, dtype=tp.float64, requires_grad=True)
    assert gradcheck(lambda v: calls.append(1) or v.sin(), (x,), fast_mode=True)
    assert len(calls) < 10


# ---- the end of a backward pass ----


def test_a_queued_call_runs_when_its_pass_is_done():
    order = []

    class Queues(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            engine = Variable._execution_engine
            engine.queue_callback(
                lambda: (order.append("called"), engine.queue_callback(lambda: order.append("again")))
            )
            return grad

    x = tp.ones(2, requires_grad=True)
    before = Queues.apply(x) * 1
    before.register_hook(lambda g: order.append("after the function") or None)
    leaf_hook = x.register_hook(lambda g: order.append("leaf") or None)
    before.sum().backward()
    assert order == ["after the function", "leaf", "called", "again"]
    leaf_hook.remove()
    with pytest.raises(RuntimeError, match="Final callbacks can only be installed during backward pass"):
        Variable._execution_engine.queue_callback(print)


def test_an_error_of_a_queued_call_is_the_passes():
    class Queues(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            Variable._execution_engine.queue_callback(lambda: 1 / 0)
            return grad

    with pytest.raises(ZeroDivisionError):
        Queues.apply(tp.ones(2, requires_grad=True)).sum().backward()


def test_the_engine_runs_backward_by_name():
    x = tp.ones(2, requires_grad=True)
    y = (x * 2).sum()
    (grad,) = Variable._execution_engine.run_backward((y,), (tp.tensor(1.0),), True, False, (x,))
    assert grad.tolist() == [2, 2] and x.grad is None
    Variable._execution_engine.run_backward((y,), (None,), False, False, (), accumulate_grad=True)
    assert x.grad.tolist() == [2, 2]
