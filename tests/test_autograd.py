"""The engine: order, accumulation, captures, hooks, views and in-place operators, errors, threads, memory."""

from __future__ import annotations

import gc
import threading
import time
import warnings
import weakref

import pytest

import tensorpy as tp
from tensorpy.autograd import backward, grad, gradcheck, gradgradcheck
from tensorpy.autograd.gradcheck import GradcheckError
from tensorpy.autograd.graph import increment_version, saved_tensors_hooks


def t(*values):
    return tp.tensor(list(values), dtype=tp.float64, requires_grad=True)


# ---- accumulation and order ----


def test_diamond_and_repeated_use():
    x = t(2.0)
    y = x * x
    z = y + y * x + x
    z.backward()
    assert x.grad.tolist() == [2 * 2 + 3 * 4 + 1]


def test_grad_adds_up_and_is_not_the_given_tensor():
    x = t(1.0, 2.0)
    seed = tp.ones(2, dtype=tp.float64)
    (x * 1).backward(seed)
    x.view_as(x).backward(seed) if hasattr(x, "view_as") else (x * 1).backward(seed)
    assert x.grad.tolist() == [2.0, 2.0] and seed.tolist() == [1.0, 1.0]


def test_a_root_twice_and_a_root_below_another():
    x = t(3.0)
    y = x * x
    z = y * 2
    backward([y, z, y], [None, None, None], retain_graph=True)
    assert x.grad.tolist() == [6 + 12 + 6]
    (g,) = grad([z, x], [x])
    assert g.tolist() == [13.0]


def test_leaf_as_root():
    x = t(1.0)
    x.backward()
    assert x.grad.tolist() == [1.0]


def test_root_errors():
    x = t(1.0, 2.0)
    with pytest.raises(RuntimeError, match="only for scalar outputs"):
        (x * 2).backward()
    with pytest.raises(RuntimeError, match="does not require grad"):
        tp.ones(1).backward()
    with pytest.raises(RuntimeError, match="element 1 of tensors"):
        backward([x.sum(), tp.ones(1)])
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        (x * 2).backward(tp.ones(3))
    with pytest.raises(RuntimeError, match="real scalar outputs"):
        (x.sum() * 1j).backward()
    with pytest.raises(RuntimeError, match="cannot be empty"):
        x.sum().backward(inputs=[])


def test_seed_is_cast():
    x = t(1.0, 2.0)
    (x * 2).backward(tp.ones(2, dtype=tp.float32))
    assert x.grad.dtype == tp.float64 and x.grad.tolist() == [2.0, 2.0]


def test_broadcast_and_dtype_of_gradients():
    a = tp.ones(3, 1, requires_grad=True)
    b = tp.ones(2, dtype=tp.float64, requires_grad=True)
    (a * b).sum().backward()
    assert a.grad.shape == (3, 1) and a.grad.dtype == tp.float32
    assert b.grad.shape == (2,) and b.grad.dtype == tp.float64
    z = tp.tensor([1j], dtype=tp.complex128, requires_grad=True)
    c = t(2.0)
    grads = grad(tp.real(z * c).sum(), [z, c])
    assert grads[0].dtype == tp.complex128 and grads[1].dtype == tp.float64


# ---- autograd.grad ----


def test_grad_of_inner_and_leaf():
    x = t(2.0)
    y = x * x
    z = y * 3
    gy, gx = grad(z, [y, x])
    assert gy.tolist() == [3.0] and gx.tolist() == [12.0] and x.grad is None


def test_grad_does_not_run_what_lies_below():
    """The graph under an inner tensor is left alone, saved values too."""
    x = t(2.0)
    y = x * x
    z = y * y
    ran = []
    y.grad_fn.register_hook(lambda a, b: ran.append("y"))
    (gy,) = grad(z, y)
    assert gy.tolist() == [8.0] and not ran
    y.backward()
    assert x.grad.tolist() == [4.0] and ran


def test_unused():
    x, y = t(1.0), t(1.0)
    with pytest.raises(RuntimeError, match="allow_unused"):
        grad((x * 2).sum(), [x, y])
    assert grad((x * 2).sum(), [x, y], allow_unused=True)[1] is None
    assert grad((x * 2).sum(), [x, y], materialize_grads=True)[1].tolist() == [0.0]
    with pytest.raises(RuntimeError, match="does not require grad"):
        grad((x * 2).sum(), [tp.ones(1)])


def test_same_input_twice():
    x = t(2.0)
    a, b = grad(x * x, [x, x])
    assert a.tolist() == b.tolist() == [4.0]


def test_backward_inputs():
    x, y = t(2.0), t(3.0)
    inner = x * 1
    (inner * y).backward(inputs=[x])
    assert x.grad.tolist() == [3.0] and y.grad is None
    inner = x * 1
    (inner * y).backward(inputs=inner)
    assert inner.grad.tolist() == [3.0] and x.grad.tolist() == [3.0]


def test_higher_orders():
    x = t(2.0)
    y = x**5
    for expected in (80.0, 160.0, 240.0, 240.0, 120.0):
        (y,) = grad(y, x, create_graph=True)
        assert y.item() == pytest.approx(expected)


def test_create_graph_backward_into_grad():
    x = t(3.0)
    (x**3).backward(create_graph=True)
    assert x.grad.requires_grad
    (g,) = grad(x.grad, x)
    assert g.tolist() == [18.0]
    x.grad = None


# ---- retain_graph and released values ----


def test_second_backward():
    x = t(2.0)
    y = x * x
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [8.0]
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()
    z = x + 1  # saves nothing, so it may run again
    z.backward()
    z.backward()


def test_saved_values_go_with_backward():
    x = t(2.0)
    a = x * 1
    y = a * a
    seen = weakref.ref(a)
    del a
    y.backward()
    assert seen() is None


# ---- hooks ----


def test_tensor_hooks():
    x = t(1.0, 2.0)
    y = x * 2
    order = []
    y.register_hook(lambda g: order.append("a"))
    handle = y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: order.append(g.tolist()))
    x.register_hook(lambda g: g + 1)
    y.sum().backward(retain_graph=True)
    assert order == ["a", [10.0, 10.0]] and x.grad.tolist() == [21.0, 21.0]
    handle.remove()
    x.grad = None
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_hook_sees_the_sum():
    x = t(1.0)
    calls = []
    y = x * 1
    y.register_hook(lambda g: calls.append(g.item()))
    (y * 2 + y * 3).backward()
    assert calls == [5.0]


def test_hook_on_captured_tensor():
    x = t(1.0)
    y = x * 2
    y.register_hook(lambda g: g * 5)
    x.register_hook(lambda g: g * 7)
    gy, gx = grad(y.sum(), [y, x])
    assert gy.tolist() == [5.0] and gx.tolist() == [70.0]


def test_node_hooks():
    x = t(1.0)
    y = x * 2
    seen = []
    y.grad_fn.register_prehook(lambda g: (g[0] * 3,))
    y.grad_fn.register_hook(lambda gi, go: seen.append((gi[0].item(), go[0].item())))
    y.grad_fn.register_hook(lambda gi, go: tuple(None if g is None else g * 10 for g in gi))
    y.backward()
    assert seen == [(6.0, 3.0)] and x.grad.tolist() == [60.0]


def test_post_accumulate_hook():
    x = t(1.0)
    seen = []

    def step(p):
        seen.append(p.grad.item())
        p.grad = None

    handle = x.register_post_accumulate_grad_hook(step)
    (x * 3).backward()
    assert seen == [3.0] and x.grad is None
    handle.remove()
    (x * 3).backward()
    assert seen == [3.0]
    with pytest.raises(RuntimeError, match="non-leaf"):
        (x * 2).register_post_accumulate_grad_hook(step)


def test_exceptions_in_hooks():
    class Oops(Exception):
        pass

    def fail(*unused):
        raise Oops("here")

    for place in ("tensor", "leaf", "node", "prehook", "accumulate"):
        x = t(1.0)
        y = x * 2
        if place == "tensor":
            y.register_hook(fail)
        elif place == "leaf":
            x.register_hook(fail)
        elif place == "node":
            y.grad_fn.register_hook(fail)
        elif place == "prehook":
            y.grad_fn.register_prehook(fail)
        else:
            x.register_post_accumulate_grad_hook(fail)
        with pytest.raises(Oops, match="here"):
            y.backward()
    x = t(1.0)
    x.register_hook(lambda g: 3)
    with pytest.raises(TypeError, match="hook"):
        (x * 2).backward()
    x = t(1.0)
    (x * 2).backward()
    assert x.grad.tolist() == [2.0]


def test_hook_that_runs_backward():
    x, w = t(1.0), t(5.0)
    y = x * 2

    def hook(g):
        assert not tp.is_grad_enabled()
        with tp.enable_grad():
            (w * w).backward()

    y.register_hook(hook)
    y.backward()
    assert x.grad.tolist() == [2.0] and w.grad.tolist() == [10.0]


def test_hook_changes_hooks_while_running():
    x = t(1.0)
    y = x * 2
    handles = []
    handles.append(y.register_hook(lambda g: handles[0].remove()))
    y.register_hook(lambda g: y.register_hook(lambda h: None) and None)
    y.backward()
    assert x.grad.tolist() == [2.0]


def test_hook_cycle_is_collected():
    class Box:
        pass

    def make():
        x = t(1.0)
        x.box = Box()
        x.register_hook(lambda g: x and None)
        return weakref.ref(x.box)

    box = make()
    gc.collect()
    assert box() is None


def test_retain_grad():
    x = t(1.0)
    y = x * 2
    y.retain_grad()
    y.retain_grad()
    z = y * 3
    z.backward(retain_graph=True)
    assert y.grad.tolist() == [3.0] and y.retains_grad
    z.backward()
    assert y.grad.tolist() == [6.0]
    x.retain_grad()
    with pytest.raises(RuntimeError, match="retain_grad"):
        tp.ones(1).retain_grad()


def test_retain_grad_moves_with_an_inplace_operator():
    x = t(1.0)
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    (y * 5).backward()
    assert y.grad.tolist() == [5.0] and x.grad.tolist() == [30.0]
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    fn = y.grad_fn
    del y
    gc.collect()
    assert fn.name()


# ---- views and in-place operators ----


def test_inplace():
    x = t(1.0, 2.0)
    y = x * 3
    y.mul_(y.detach().clone())
    assert y._version == 1 and y.grad_fn.name() == "MulBackward0"
    y.sum().backward()
    assert x.grad.tolist() == [9.0, 18.0]


def test_inplace_on_leaf_is_refused():
    x = t(1.0, 2.0)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        x.add_(1)
    with pytest.raises(RuntimeError, match="view of a leaf Variable"):
        x[0].add_(1)
    assert x.tolist() == [1.0, 2.0]
    with tp.no_grad():
        x.add_(1)
        x[0].mul_(5)
    assert x.tolist() == [10.0, 3.0] and x._version == 2


def test_inplace_on_a_view():
    x = t(1.0, 2.0, 3.0)
    y = x * 1
    v = y[1:]
    v.mul_(5)
    assert y.grad_fn.name() == "CopySlices" and v.grad_fn.name() == "AsStridedBackward0"
    (y * y).sum().backward()
    assert x.grad.tolist() == [2.0, 2 * 10 * 5, 2 * 15 * 5]


def test_gradient_through_the_view_itself():
    x = t(1.0, 2.0, 3.0)
    y = x * 1
    v, w = y[1:], y[:2]
    v.mul_(5)
    w.add_(1)
    (v.sum() + w.sum() * 2).backward()
    assert x.grad.tolist() == [2.0, 15.0, 5.0]


def test_base_changed_after_the_view_was_made():
    x = t(1.0, 2.0)
    y = x * 1
    v = y[0]
    y.mul_(4)
    v.backward()
    assert x.grad.tolist() == [4.0, 0.0]


def test_view_of_a_base_without_grad_gains_one():
    x = t(5.0)
    y = tp.zeros(3, dtype=tp.float64)
    v = y[0:1]
    y[1:2].copy_(x)
    assert y.requires_grad and v.requires_grad
    (y * 2).sum().backward()
    assert x.grad.tolist() == [2.0]


def test_writing_a_tensor_into_a_slice():
    x, w = t(1.0, 2.0, 3.0), t(7.0)
    y = x * 2
    y[1:2] = w
    (y * tp.tensor([1.0, 10.0, 100.0], dtype=tp.float64)).sum().backward()
    assert x.grad.tolist() == [2.0, 0.0, 200.0] and w.grad.tolist() == [10.0]


def test_double_backward_through_copy_slices():
    x = t(1.0, 2.0, 3.0)

    def f(x):
        y = x * x
        y[1:].mul_(x[:2])
        return y * y

    assert gradcheck(f, (x,)) and gradgradcheck(f, (x,))


def test_inplace_on_the_real_part():
    z = tp.tensor([1 + 2j, 3 - 1j], dtype=tp.complex128, requires_grad=True)
    x = t(2.0, 5.0)

    def f(z, x):
        w = z * 2
        w.real.mul_(x)
        return w * w

    assert gradcheck(f, (z, x)) and gradgradcheck(f, (z, x))


def test_inplace_on_a_complex_view():
    x = tp.tensor([[1.0, 2.0], [3.0, -1.0]], dtype=tp.float64, requires_grad=True)

    def f(x):
        y = x * 2
        tp.view_as_complex(y).mul_(1 + 3j)
        return y * y

    assert gradcheck(f, (x,)) and gradgradcheck(f, (x,))


def test_views_that_may_not_be_written():
    y = t(1.0, 2.0) * 1
    with pytest.raises(RuntimeError, match="multiple views"):
        y.split_with_sizes([1, 1])[0].mul_(2)
    with tp.no_grad():
        v = y[0]
    with pytest.raises(RuntimeError, match="no_grad"):
        v.mul_(2)


def test_detach_shares_versions():
    x = t(2.0) * 1
    d = x.detach()
    y = x * x
    d.add_(1)
    assert not d.requires_grad and x._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace"):
        y.backward()


def test_changed_value_names_both_operators():
    x = t(2.0) * 1
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"ExpBackward0.*exp.*add_") as info:
        y.backward()
    assert "at version 1; expected version 0" in str(info.value)
    x = t(2.0) * 1
    y = x * x
    increment_version(x)
    with pytest.raises(RuntimeError, match="increment_version"):
        y.backward()


def test_data_is_not_tracked():
    x = t(2.0) * 1
    y = x * x
    x.data.add_(1)
    y.backward()
    assert x._version == 0


def test_out_with_grad_is_refused():
    with pytest.raises(RuntimeError, match="out="):
        tp.add(t(1.0), t(1.0), out=tp.empty(1, dtype=tp.float64))


def test_requires_grad_flags():
    x = t(1.0)
    with pytest.raises(RuntimeError, match="leaf"):
        (x * 2).requires_grad = False
    with pytest.raises(RuntimeError, match="floating point"):
        tp.ones(1, dtype=tp.int64).requires_grad_()
    assert x.requires_grad_(requires_grad=False) is x and not x.requires_grad
    assert x.requires_grad_().requires_grad


def test_assigning_grad():
    x = t(1.0, 2.0)
    for bad in (tp.ones(3, dtype=tp.float64), tp.ones(2), x):
        with pytest.raises(RuntimeError):
            x.grad = bad
    with pytest.raises(TypeError):
        x.grad = 3
    x.grad = tp.ones(2, dtype=tp.float64)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


# ---- the graph as seen from Python ----


def test_nodes():
    x = t(1.0)
    y = (x * 2).exp()
    assert y.grad_fn is y.grad_fn and y.grad_fn.name() == "ExpBackward0"
    mul = y.grad_fn.next_functions[0][0]
    assert mul.name().startswith("MulBackward")
    leaf = mul.next_functions[0][0]
    assert leaf.name() == "AccumulateGrad" and leaf.variable is x and leaf.next_functions == ()
    with pytest.raises(AttributeError):
        mul.variable  # noqa: B018
    assert x.is_leaf and not y.is_leaf and x.grad_fn is None


def test_saved_tensors_hooks():
    packed = []

    def pack(x):
        packed.append(x.tolist())
        return len(packed) - 1

    x = t(1.0, 2.0)
    with saved_tensors_hooks(pack, lambda i: tp.tensor(packed[i], dtype=tp.float64)):
        y = (x * x).exp()
    y.sum().backward()
    assert len(packed) == 3
    assert x.grad.tolist() == pytest.approx([2 * 2.718281828459045, 4 * 54.598150033144236])


# ---- long chains, many edges ----


@pytest.mark.parametrize("n", [100_000])
def test_long_chain(n):
    x = t(1.0)
    start = time.perf_counter()
    y = x
    for _ in range(n):
        y = y + 1
    y.backward()
    assert x.grad.tolist() == [1.0]
    del y
    assert time.perf_counter() - start < 20
    y = x
    for _ in range(n):
        y = y * 1.0
    del y  # frees without recursion


def test_long_chain_of_saved_values_and_views():
    x = t(1.0)
    y = x
    for _ in range(20_000):
        y = (y * x)[0:1]
    del y
    y = x
    for _ in range(3_000):
        y = (y * x)[0:1]
    y.backward()
    assert x.grad.tolist() == [3001.0]


def test_many_edges_and_outputs():
    x = t(*range(70_000))
    parts = x.split_with_sizes([1] * 70_000)
    start = time.perf_counter()
    tp.cat(parts).sum().backward()
    assert x.grad.sum().item() == 70_000 and time.perf_counter() - start < 20


# ---- threads ----


def test_threads_share_leaves():
    w = tp.ones(64, dtype=tp.float64, requires_grad=True)
    failures = []

    def work():
        try:
            for _ in range(100):
                ((w * 2).exp() * 0 + w).sum().backward()
        except Exception as e:
            failures.append(e)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and w.grad.tolist() == [600.0] * 64


def test_threads_share_a_graph():
    x = tp.ones(1000, dtype=tp.float64, requires_grad=True)
    shared = (x * 2).exp()
    results = []

    def work():
        for _ in range(20):
            results.append(grad(shared.sum(), x, retain_graph=True)[0][0].item())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 80 and len(set(results)) == 1


def test_grad_mode_is_of_the_thread():
    seen = []
    with tp.no_grad():
        thread = threading.Thread(target=lambda: seen.append(tp.is_grad_enabled()))
        thread.start()
        thread.join()
        assert not tp.is_grad_enabled()
    assert seen == [True]


def test_mode_is_restored_after_an_error():
    x = t(1.0)
    y = x * 2
    y.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        y.backward()
    assert tp.is_grad_enabled()


# ---- anomaly mode ----


def test_anomaly_points_to_the_forward_call():
    x = t(0.0)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with tp.autograd.detect_anomaly(), pytest.raises(RuntimeError, match=r"'.*Backward0' returned nan values"):
            y = x.log() * 0  # the forward call
            y.backward()
    text = "".join(str(w.message) for w in seen)
    assert "Error detected in" in text and "the forward call" in text


def test_anomaly_without_nan_check():
    x = t(0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with tp.autograd.set_detect_anomaly(True, check_nan=False):
            (x.log() * 0).backward()
    assert x.grad.isnan().tolist() == [True]


# ---- memory ----


def blocks():
    gc.collect()
    return tp._C._memory_stats()["live_blocks"]


def step(kind):
    x = t(1.0, 2.0, 3.0)
    y = x * 2
    if kind == "plain":
        (y.exp() * x).sum().backward()
    elif kind == "not run":
        (y.exp() * x).sum()
    elif kind == "higher":
        (g,) = grad((y * y * x).sum(), x, create_graph=True)
        g.sum().backward()
        x.grad = None
    elif kind == "views":
        y[1:].mul_(x[:2])
        y.sum().backward()
    elif kind == "hooks":
        y.register_hook(lambda g: g * 2)
        y.retain_grad()
        x.register_post_accumulate_grad_hook(lambda p: None)
        y.sum().backward()
    elif kind == "error":
        y.register_hook(lambda g: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            (y * x).sum().backward()
    elif kind == "changed":
        z = y * x
        y.add_(1)
        with pytest.raises(RuntimeError):
            z.sum().backward()
    elif kind == "captures":
        grad((y * x).sum(), [y, x])
        with pytest.raises(RuntimeError):
            grad((y * x).sum(), [x, t(1.0)])
    elif kind == "wrong seed":
        with pytest.raises(RuntimeError):
            y.backward(tp.ones(2))


@pytest.mark.parametrize(
    "kind", ["plain", "not run", "higher", "views", "hooks", "error", "changed", "captures", "wrong seed"]
)
def test_no_leaks(kind):
    for _ in range(3):
        step(kind)
    before = blocks()
    for _ in range(50):
        step(kind)
    assert blocks() <= before + 2


def test_backward_frees_as_it_goes():
    n, size = 40, 1 << 16
    x = tp.ones(size, requires_grad=True)
    y = x
    for _ in range(n):
        y = y * x
    loss = y.sum()
    del y
    tp._C._reset_peak_memory()
    held = tp._C._memory_stats()["live_bytes"]
    loss.backward()
    assert tp._C._memory_stats()["peak_bytes"] <= held + 6 * size * 4


# ---- gradcheck itself ----


def test_gradcheck_finds_a_wrong_gradient():
    class Wrong(tp.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    x = t(1.0, 2.0)
    with pytest.raises(GradcheckError, match="mismatch"):
        gradcheck(Wrong.apply, (x,))
    assert not gradcheck(Wrong.apply, (x,), raise_exception=False)
    with pytest.raises(ValueError, match="require gradient"):
        gradcheck(lambda x: x, (tp.ones(1),))


def test_gradcheck_of_several_outputs_and_complex():
    x, z = t(0.5, -1.0), tp.tensor([1 + 1j], dtype=tp.complex128, requires_grad=True)
    assert gradcheck(lambda x, z: (x * z, x * 2, (x > 0)), (x, z))
    assert gradgradcheck(lambda x, z: (x * z * z, x.exp()), (x, z))
    assert gradcheck(lambda z: tp.real(z * z.conj()), (z,))
