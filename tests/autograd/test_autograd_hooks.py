"""Hooks on tensors and nodes, kept gradients, anomaly mode, and gradcheck itself."""

from __future__ import annotations

import gc
import math
import subprocess
import sys
import threading
import warnings
import weakref

import pytest

import tensorpy as tp
from tensorpy.autograd import grad, gradcheck, gradgradcheck
from tensorpy.autograd.gradcheck import GradcheckError


def t(*values):
    return tp.tensor(list(values), dtype=tp.float64, requires_grad=True)


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


def test_a_hook_keeps_the_size():
    x = tp.ones(2, requires_grad=True)
    x.register_hook(lambda g: tp.ones(5))
    with pytest.raises(RuntimeError, match=r"changed the size of value: from .*\[2\] to .*\[5\]"):
        (x * 2).sum().backward()
    assert x.grad is None


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


def test_anomaly_of_a_gradient_s_gradient_points_to_all_calls():
    class Inner(tp.autograd.Function):
        @staticmethod
        def forward(ctx, g, x):
            return g * x

        @staticmethod
        def backward(ctx, g):
            return g * math.nan, None

    class Outer(tp.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return Inner.apply(g, *ctx.saved_tensors)

    def failing(forward):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            x, seed = t(1.0), t(1.0)
            with tp.autograd.set_detect_anomaly(forward):
                (first,) = tp.autograd.grad(Outer.apply(x), x, seed, create_graph=True)
            with tp.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="'InnerBackward' returned nan"):
                first.backward()
        return [str(w.message) for w in seen if "Anomaly" not in str(w.message)]

    traced = failing(True)
    assert traced[0].startswith("Error detected in Inner") and "Traceback of forward call" in traced[0]
    assert len(traced) == 2 and traced[1].startswith("Previous calculation was induced by Outer")
    assert "Outer.apply" in traced[1]
    (bare,) = failing(False)
    assert bare.startswith("Error detected in ") and "No forward pass information" in bare


def test_anomaly_s_warning_as_an_error_is_shown(capfd):
    x = t(0.0)
    with warnings.catch_warnings(), tp.autograd.set_detect_anomaly(True):
        warnings.simplefilter("error")
        with pytest.raises(RuntimeError, match="returned nan values"):
            (x.log() * 0).backward()
    assert "Error detected in" in capfd.readouterr().err


def test_anomaly_can_be_asked_for():
    assert not tp.is_anomaly_enabled()
    with tp.autograd.set_detect_anomaly(True, check_nan=False):
        assert tp.is_anomaly_enabled() and not tp.is_anomaly_check_nan_enabled()
    tp.set_anomaly_enabled(True)
    assert tp.is_anomaly_enabled() and tp.is_anomaly_check_nan_enabled()
    tp.set_anomaly_enabled(False)
    assert not tp.is_anomaly_enabled()


def test_anomaly_mode_is_all_threads():
    """A thread that is there already when it is switched on, and one that comes after."""
    begin, found = threading.Event(), []

    def failing(wait: bool) -> None:
        assert not wait or begin.wait(60)
        try:
            (t(0.0).log() * 0).backward()
        except RuntimeError as error:
            found.append(str(error))

    threads = [threading.Thread(target=failing, args=(wait,)) for wait in (True, False)]
    threads[0].start()
    with warnings.catch_warnings(), tp.autograd.set_detect_anomaly(True):
        warnings.simplefilter("ignore")
        begin.set()
        threads[1].start()
        for thread in threads:
            thread.join()
    assert len(found) == 2 and all("returned nan values" in text for text in found)


def test_anomaly_without_nan_check():
    x = t(0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with tp.autograd.set_detect_anomaly(True, check_nan=False):
            (x.log() * 0).backward()
    assert x.grad.isnan().tolist() == [True]


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


def test_nodes_have_classes_and_metadata():
    """A node's class has the operator's name; its metadata lives as long as the node, not as its Python object."""

    class Twice(tp.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = tp.ones(2, requires_grad=True)
    y, z = x * 2, Twice.apply(x)
    assert [type(t.grad_fn).__name__ for t in (y, z)] == ["MulBackward0", "TwiceBackward"]
    assert type(y.grad_fn) is type((x * 3).grad_fn) and isinstance(y.grad_fn, tp._C.Node)
    assert type(y.grad_fn.next_functions[0][0]).__name__ == "AccumulateGrad"
    y.grad_fn.metadata["where"] = [1]
    y.grad_fn.metadata["where"].append(2)
    assert y.grad_fn.metadata == {"where": [1, 2]} and z.grad_fn.metadata == {}
    with pytest.raises(TypeError, match="cannot create"):
        type(y.grad_fn)()


def test_hooks_that_are_entered_by_hand_and_forgotten_are_kept() -> None:
    code = """
import gc, tensorpy as tp
for _ in range(50):
    tp.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t).__enter__()
    gc.collect()
x = tp.zeros(1, requires_grad=True)
x.exp().backward()
print(x.grad.item())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0 and done.stdout.strip() == "2.0", done.stderr[-2000:]


# ---- what is known of a node ----


def test_a_hook_of_an_output_without_a_gradient_is_given_none():
    x = t(1.0, 2.0, 3.0)
    first, *others = x.unbind()
    seen = []
    first.register_hook(seen.append)
    first.backward()
    others[1].backward()
    assert seen[0].item() == 1 and seen[1:] == [None] and x.grad.tolist() == [1, 0, 1]


@pytest.mark.parametrize("on_tensor", [False, True])
@pytest.mark.parametrize("made", ["operator", "Function"])
def test_a_hook_that_holds_its_node_is_collected_with_it_and_not_before(made, on_tensor):
    class Same(tp.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return grad

    class Mark:
        pass

    calls = []

    def graph():
        y = t(1.0).exp() if made == "operator" else Same.apply(t(1.0))
        node, mark = y.grad_fn, Mark()

        def hook(*grads):
            calls.append((node, mark)[:0])

        (y if on_tensor else node).register_hook(hook)
        return y * 2, weakref.ref(mark)

    out, mark = graph()
    for _ in range(2):
        gc.collect()
        out.backward(retain_graph=True)
    assert len(calls) == 2 and mark() is not None
    del out
    gc.collect()
    assert mark() is None


def test_what_gradients_a_node_takes_is_told():
    var, mean = tp.var_mean(tp.ones(2, 3, requires_grad=True), 0)
    for output in (var, mean):
        told = output.grad_fn._input_metadata[output.output_nr]
        assert (told.shape, told.dtype, told.device) == ((3,), tp.float32, tp.device("cpu"))


def test_nodes_run_in_the_order_of_their_numbers():
    x, order = t(1.0), []
    a, b = x * 1, x * 2
    for name, product in (("a", a), ("b", b)):
        product.register_hook(lambda grad, name=name: order.append(name))
    total = a + b
    total.backward(retain_graph=True)
    a.grad_fn._set_sequence_nr(b.grad_fn._sequence_nr() + 1)
    total.backward()
    assert order == ["b", "a", "a", "b"]


def test_questions_of_the_backward_that_runs():
    x = t(1.0)
    y = x.exp()
    told = []
    y.register_hook(lambda grad: told.append(tp._C._current_autograd_node().name()))
    y.register_hook(lambda grad: told.append(tp._C._get_current_graph_task_keep_graph()))
    y.backward(retain_graph=True)
    y.backward()
    assert told == ["ExpBackward0", True, "ExpBackward0", False]
    assert tp._C._current_autograd_node() is None
    leaf = (x * 1).grad_fn.next_functions[0][0]
    z = x * 2
    z.register_hook(lambda grad: tp._C._will_engine_execute_node(leaf) or None)
    with pytest.raises(RuntimeError, match=r"are currently running autograd\.grad\(\)"):
        tp.autograd.grad(z.sum(), x)
    with pytest.raises(RuntimeError, match="during the backward pass"):
        tp._C._will_engine_execute_node(leaf)


@pytest.mark.parametrize("fast", [False, True])
def test_gradcheck_refuses_a_function_whose_outputs_depend_on_small_steps(fast):
    x = tp.ones(1, dtype=tp.float64, requires_grad=True)
    for what, change in (("shape", lambda v: tp.cat([v, v])), ("dtype", lambda v: v.float())):
        with pytest.raises(AssertionError, match=f"return outputs with the same {what} when inputs are perturbed"):
            gradcheck(lambda v, change=change: change(v) if bool((v >= 1).all()) else v * 1, (x,), fast_mode=fast)


# ---- switches that programs ask for ----


def test_switches_of_backward_and_of_views():
    modes = tp.autograd
    with modes.set_multithreading_enabled(False):
        assert not modes.is_multithreading_enabled()
    assert modes.is_multithreading_enabled() and not modes.is_view_replay_enabled()
    with modes._force_original_view_tracking(True):
        assert modes.is_view_replay_enabled()
    assert not modes.is_view_replay_enabled()
    x = tp.ones(2)
    with modes._unsafe_preserve_version_counter(x):
        x.mul_(2)
        assert x._version == 1
    assert x._version == 0
    with pytest.raises(RuntimeError, match="below 0"):
        tp._C._unsafe_set_version_counter(x, -1)


@pytest.mark.parametrize("create_graph", [False, True])
def test_zeros_that_stand_for_gradients_can_be_differentiated_where_a_graph_is_made(create_graph):
    x = t(1.0)
    (zero,) = grad(t(2.0) * 1, x, create_graph=create_graph, materialize_grads=True)
    assert zero.item() == 0 and zero.requires_grad == create_graph
