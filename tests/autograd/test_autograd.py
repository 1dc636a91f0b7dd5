"""The engine: order, accumulation, captures, released values, long chains, threads, memory."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from typing import Any

import pytest

import tensorpy as tp
from tensorpy.autograd import backward, grad
from tensorpy.autograd.graph import saved_tensors_hooks
from tensorpy.testing.samples.catalog import CATALOG

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]


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


# ---- the graph as seen from Python ----


def test_nodes():
    x = t(1.0)
    y = (x * 2).exp()
    assert y.grad_fn is y.grad_fn and y.grad_fn.name() == "ExpBackward0"
    mul = y.grad_fn.next_functions[0][0]
    assert mul.name().startswith("MulBackward")
    leaf = mul.next_functions[0][0]
    assert leaf.name() == "torch::autograd::AccumulateGrad" and leaf.variable is x and leaf.next_functions == ()
    with pytest.raises(AttributeError):
        mul.variable  # noqa: B018
    assert x.is_leaf and not y.is_leaf and x.grad_fn is None


def test_a_node_can_be_called():
    """With gradients of its outputs it gives those of its inputs, and its hooks see them."""
    x, y = tp.tensor([2.0, 3.0], requires_grad=True), tp.tensor([5.0, 7.0], requires_grad=True)
    product, seen = x * y, []
    product.grad_fn.register_hook(lambda inputs, outputs: seen.append((len(inputs), len(outputs))))
    assert [g.tolist() for g in product.grad_fn(tp.ones(2))] == [[5, 7], [2, 3]] and seen == [(2, 1)]
    assert product.grad_fn(None)[0] is None
    assert x.exp().sum().grad_fn(tp.tensor(2.0)).tolist() == [2, 2]
    low = tp.unbind(x)[0]
    assert low.grad_fn(tp.tensor(1.0), tp.tensor(4.0)).tolist() == [1, 4]
    x.exp().grad_fn.next_functions[0][0](tp.tensor([1.0, 1.0]))
    assert x.grad.tolist() == [1, 1]
    for wrong in ((), (tp.ones(2),) * 2, (3,)):
        with pytest.raises(TypeError):
            product.grad_fn(*wrong)


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


def test_zeta_has_a_gradient_by_its_second_argument_only() -> None:
    s, q = tp.tensor([2.5, 3.0], dtype=tp.float64), tp.tensor([1.5, 2.0], dtype=tp.float64, requires_grad=True)
    assert tp.autograd.gradcheck(lambda q: tp.special.zeta(s, q), (q,))
    assert tp.autograd.gradcheck(lambda q: tp.special.zeta(2.5, q), (q,))
    for other in (q.detach(), 2.0):
        loss = tp.special.zeta(s.clone().requires_grad_(), other).sum()
        with pytest.raises(NotImplementedError, match="special_zeta: there is no derivative by its first argument"):
            loss.backward()


def test_gradcheck_looks_at_outputs_that_have_a_gradient() -> None:
    x = tp.ones(2, dtype=tp.float64, requires_grad=True)
    assert tp.autograd.gradcheck(lambda x: (x * 2, x.detach(), x.round().long()), (x,))
    assert not tp.autograd.gradcheck(lambda x: (x.detach(),), (x,), raise_exception=False)


def test_a_generator_under_a_grad_mode_hears_its_caller() -> None:
    seen: list[Any] = []

    @tp.no_grad()
    def steps() -> Any:
        try:
            given = yield 1
            seen.append((given, tp.is_grad_enabled()))
            yield 2
        except KeyError:
            seen.append(("thrown", tp.is_grad_enabled()))
            yield 3
        finally:
            seen.append(("end", tp.is_grad_enabled()))

    generator = steps()
    assert (next(generator), generator.send(5), generator.throw(KeyError)) == (1, 2, 3) and tp.is_grad_enabled()
    generator.close()
    assert seen == [(5, False), ("thrown", False), ("end", False)] and tp.is_grad_enabled()


@pytest.mark.parametrize(
    ("first", "slope"), [(0, [0, 0, 0, 0]), (4, [1, 2, 1, 1]), (7, [0, 0, 1, 1]), (20, [0, 0, 0, 0])]
)
def test_a_strided_view_may_reach_beyond_its_source(first: int, slope: list[int]) -> None:
    """The source is a part of its storage, which the view reads from: what lies outside of the source has no slope."""
    for library in [tp] if torch is None else [tp, torch]:
        x = library.arange(30.0)[5:9].requires_grad_()
        view = x.as_strided((2, 3), (2, 1), first)
        assert view[0].tolist() == [first, first + 1, first + 2]
        view.sum().backward()
        assert x.grad.tolist() == slope


def test_a_strided_view_beyond_its_source_is_differentiated_twice() -> None:
    x = tp.arange(30.0, dtype=tp.float64)[5:9].requires_grad_()
    assert tp.autograd.gradcheck(lambda x: x.clone().as_strided((2, 2), (2, 1), 0), (x,))
    view = x.as_strided((2, 3), (2, 1), 4)
    (slope,) = grad((view**3).sum(), x, create_graph=True)
    slope.sum().backward()
    assert x.grad.tolist() == [6 * 5, 2 * 6 * 6, 6 * 7, 6 * 8]


@pytest.mark.parametrize("name", ["hstack", "vstack", "addmv", "clamp", "sort", "softmax", "outer", "matmul"])
def test_an_out_tensor_is_no_place_for_a_gradient(name: str) -> None:
    """Nothing would record what is written: composites say so as operators with a formula of their own do."""
    calls: dict[str, Any] = {
        "hstack": ((lambda x: [x, x]), ()),
        "vstack": ((lambda x: [x, x]), ()),
        "addmv": ((lambda x: x), (tp.eye(2), tp.ones(2))),
        "clamp": ((lambda x: x), (0, 1)),
        "sort": ((lambda x: x), ()),
        "softmax": ((lambda x: x), (0,)),
        "outer": ((lambda x: x), (tp.ones(2),)),
        "matmul": ((lambda x: x), (tp.eye(2),)),
    }
    given, rest = calls[name]
    f = getattr(tp, name)
    made = f(given(tp.ones(2)), *rest)
    plain = tp.utils._pytree.tree_map(tp.empty_like, made)
    wanting = tp.utils._pytree.tree_map(lambda r: r.clone().requires_grad_() if r.is_floating_point() else r, made)
    for x, out in ((tp.ones(2, requires_grad=True), plain), (tp.ones(2), wanting)):
        with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
            f(given(x), *rest, out=out)
        with tp.no_grad():
            f(given(x), *rest, out=out)


def test_a_leaf_that_was_frozen_gets_no_gradient():
    """Between the forward pass and the backward one, as where the other half of a pair of models is trained."""
    kept, frozen = t(1.0, 2.0), t(3.0, 4.0)
    loss = (kept * frozen).sum()
    frozen.requires_grad_(False)
    loss.backward(retain_graph=True)
    assert kept.grad.tolist() == [3.0, 4.0] and frozen.grad is None
    frozen.requires_grad_(True)
    loss.backward()
    assert frozen.grad.tolist() == [1.0, 2.0]
    left = t(1.0)
    y = left * 2
    left.detach_()
    y.backward()
    assert left.grad is None


def test_requires_grad_is_set_on_leaves_only():
    """True too, which requires_grad_() takes of a tensor that has it."""
    y = t(1.0) * 2
    for value in (True, False):
        with pytest.raises(RuntimeError, match="leaf variables"):
            y.requires_grad = value
    assert y.requires_grad_() is y
    leaf = t(1.0)
    leaf.requires_grad = True
    assert leaf.requires_grad


def views_of_one() -> list:
    """Declared views that are called with a tensor alone; detach is there to lose gradients."""
    return [
        op
        for op in CATALOG
        if str(op.schema).startswith(f"{op.schema.name}(Tensor(a) self")
        and all(a.default is not None for a in op.schema.arguments[1:])
        and op.schema.name.base != "detach"
    ]


@pytest.mark.parametrize("op", views_of_one(), ids=lambda op: str(op.schema.name))
@pytest.mark.parametrize("dtype", [tp.float64, tp.complex128], ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 2), (1, 2), (0, 2), (2, 2, 2)], ids=str)
def test_a_view_of_what_wants_a_gradient_wants_one(op, dtype, shape):
    """Whatever way through the operator a shape takes; what is no floating tensor has none."""
    x = tp.ones(shape, dtype=dtype, requires_grad=True)
    name = op.schema.name
    try:
        found = getattr(getattr(tp.ops.aten, name.base), name.overload or "default")(x)
    except (RuntimeError, IndexError, ValueError):
        return
    for y in found if isinstance(found, (tuple, list)) else [found]:
        assert y.requires_grad
        (y * 1).real.sum().backward()
        assert x.grad is not None
        x.grad = None
