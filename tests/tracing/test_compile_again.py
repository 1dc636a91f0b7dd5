"""Saved values that are given up after a forward and computed again in backward: which, by whom, with the same bits."""

from __future__ import annotations

import gc
import os
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import tensorpy as tp
from tensorpy import nn
from tensorpy.nn import functional as F
from tensorpy.testing.checks import bits

Function = Callable[..., Any]
N, WIDTH = 64, 96
BYTES = N * WIDTH * 4


def compiled(function: Function, **options: Any) -> Any:
    return tp.compile(function, options={"smallest": 0, **options})


class Layer(nn.Module):
    """down saves what gelu gives, and gelu what it takes."""

    def __init__(self, middle: Function = F.gelu) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 8)
        self.middle = middle

    def forward(self, x: tp.Tensor) -> tp.Tensor:
        return self.down(self.middle(self.up(x)))


def layer(middle: Function = F.gelu) -> Layer:
    tp.manual_seed(4)
    return Layer(middle)


def batch() -> tp.Tensor:
    tp.manual_seed(5)
    return tp.randn(N, WIDTH)


def given_up(function: Function, *args: Any) -> int:
    return tp.compiler.explain(compiled(function))(*args).again


def shown(tensors: Any) -> list[Any]:
    return [None if t is None else bits(t.detach()) for t in tensors]


def gradients(module: nn.Module) -> list[Any]:
    return shown(p.grad for p in module.parameters())


def live() -> int:
    gc.collect()
    return tp._C._memory_stats()["live_bytes"]


def test_memory_between_forward_and_backward() -> None:
    def step(wrap: Function) -> tuple[int, Any]:
        net = layer()
        model, x = wrap(net), batch()
        before = live()
        loss = model(x).square().sum()
        held = live() - before
        loss.backward()
        return held, (shown([loss]), gradients(net))

    plain, expected = step(lambda net: net)
    kept, with_all = step(lambda net: compiled(net, recompute=False))
    less, again = step(compiled)
    assert expected == with_all == again
    assert kept - less > 0.9 * BYTES and plain - less > 0.9 * BYTES
    assert given_up(layer(), batch()) == BYTES
    assert "24 KB given up, to be computed again in backward" in str(tp.compiler.explain(compiled(layer()))(batch()))
    assert given_up(layer().eval().requires_grad_(False), batch()) == 0


# A function between two linear layers, and how many of its values are given up.
MIDDLES: dict[str, tuple[Function, int]] = {
    "gelu": (F.gelu, 1),
    "silu": (F.silu, 1),
    "a chain whose parts are saved": (lambda x: F.gelu(x) * F.silu(x), 2),
    "relu, which saves its result": (F.relu, 0),
    "two in a row, of which the second needs the first": (lambda x: F.silu(F.gelu(x)), 1),
    "in place afterwards": (lambda x: F.gelu(x).add_(1), 0),
    "what it is made of is gone": (lambda x: x.detach() * 2 + x, 0),
    "what it is made of is written": (lambda x: (F.gelu(x), x.detach().zero_())[0], 0),
    "casts, the wide one of which nobody saves": (lambda x: F.silu(x).double().float(), 0),
    "transposed": (lambda x: F.gelu(x.t()).t(), 1),
    "a part": (lambda x: F.gelu(x)[:, :96], 1),
    "dropout, which saves its mask alone": (lambda x: F.dropout(F.gelu(x), 0.5), 0),
}


@pytest.mark.parametrize("name", MIDDLES)
def test_what_is_given_up(name: str) -> None:
    """Gradients are those of the function itself, to the bit, and errors are, too."""
    middle, count = MIDDLES[name]

    def step(wrap: Function) -> Any:
        net, x = layer(middle), batch().requires_grad_()
        tp.manual_seed(6)
        loss = wrap(net)(x).exp().sum()
        try:
            loss.backward()
        except RuntimeError as error:
            return str(error)[:60]
        return gradients(net), shown([x.grad])

    assert step(compiled) == step(lambda net: net)
    assert given_up(layer(middle), batch().requires_grad_()) == count * BYTES


HOLDERS: dict[str, Callable[[tp.Tensor], Any]] = {
    "the tensor": lambda t: t,
    "a view": lambda t: t[1:],
    "a detached alias": lambda t: t.detach(),
    "its data": lambda t: t.data,
    "a storage": lambda t: t.untyped_storage(),
    "an array": lambda t: t.detach().numpy(),
    "a capsule": lambda t: tp.utils.dlpack.to_dlpack(t.detach()),
    "a memoryview": lambda t: memoryview(t.detach().numpy()),
    "another thread's view": lambda t: _in_thread(lambda: t.detach()[:]),
}


def _in_thread(function: Callable[[], Any]) -> Any:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.parametrize("name", HOLDERS)
@pytest.mark.parametrize("which", ["result", "input"])
def test_what_somebody_holds_stays(name: str, which: str) -> None:
    held: list[Any] = []

    def middle(x: tp.Tensor) -> tp.Tensor:
        y = F.gelu(x)
        held.append(HOLDERS[name](y if which == "result" else x))
        return y

    def step(wrap: Function) -> Any:
        held.clear()
        net = layer(middle)
        loss = wrap(net)(batch()).exp().sum()
        loss.backward()
        return gradients(net)

    assert step(compiled) == step(lambda net: net)
    assert given_up(layer(middle), batch()) == 0
    held.clear()


def test_graphs_that_are_kept_and_made() -> None:
    def step(wrap: Function) -> Any:
        net, x = layer(), batch().requires_grad_()
        loss = wrap(net)(x).tanh().sum()
        loss.backward(retain_graph=True)
        first = gradients(net)
        (g,) = tp.autograd.grad(loss, net.down.weight, retain_graph=True)
        (gx,) = tp.autograd.grad(loss, x, create_graph=True)
        gx.square().sum().backward()
        return first, shown([g, gx, x.grad]), gradients(net)

    assert step(compiled) == step(lambda net: net)


def test_only_a_part_of_the_graph() -> None:
    def step(wrap: Function) -> Any:
        net = layer()
        loss = wrap(net)(batch()).sum()
        return shown(tp.autograd.grad(loss, [net.down.weight])), shown(
            tp.autograd.grad(wrap(net)(batch()).sum(), [net.up.bias])
        )

    assert step(compiled) == step(lambda net: net)


def addmm_of(loss: tp.Tensor) -> Any:
    """The node of `down`, which saved gelu's result."""
    node: Any = loss.grad_fn
    while "Addmm" not in node.name():
        node = node.next_functions[0][0]
    return node


def saved_results(node: Any) -> list[tp.Tensor]:
    return [v for v in (getattr(node, n) for n in dir(node) if n.startswith("_saved_")) if isinstance(v, tp.Tensor)]


def test_nodes_that_are_asked_for_what_they_saved() -> None:
    def step(wrap: Function) -> Any:
        net = layer()
        loss = wrap(net)(batch()).sum()
        found = shown(saved_results(addmm_of(loss)))
        loss.backward()
        return found, gradients(net)

    assert step(compiled) == step(lambda net: net)


def test_hooks_of_a_saved_value() -> None:
    seen: list[Any] = []

    def pack(t: tp.Tensor) -> tp.Tensor:
        seen.append(bits(t))
        return t * 2

    def step(wrap: Function) -> Any:
        net = layer()
        loss = wrap(net)(batch()).sum()
        node = addmm_of(loss)
        name = "_raw_saved_mat1"
        getattr(node, name).register_hooks(pack, lambda t: t / 2)
        with pytest.raises(RuntimeError, match="already been set"):
            getattr(node, name).register_hooks(lambda t: t, lambda t: t)
        loss.backward()
        return list(seen), gradients(net)

    first = step(lambda net: net)
    seen.clear()
    assert step(compiled) == first


def test_a_saved_value_that_is_written_through_its_node() -> None:
    """What a recipe reads cannot be written but so, and then it is not computed again from it."""
    net = layer()
    loss = compiled(net)(batch()).sum()
    node = addmm_of(loss)
    while "Gelu" not in node.name():
        node = next(f for f, _ in node.next_functions if f is not None and "Accumulate" not in f.name())
    node._saved_self.detach().add_(1)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"computed again in backward.*add_.*recompute"):
            tp.autograd.grad(loss, net.down.weight, retain_graph=True)
    with pytest.raises(RuntimeError, match="computed again"):
        saved_results(addmm_of(loss))


def test_graphs_that_nobody_goes_back_through() -> None:
    model = compiled(layer())
    model(batch())
    before = live()
    for _ in range(20):
        model(batch())
    assert live() - before < BYTES
    with tp.no_grad():
        model(batch())


def test_nodes_that_go_before_the_end() -> None:
    """A node that saved a value may be gone, and the tensor's address be another's, when the calls run."""

    def function(x: tp.Tensor, w: tp.Tensor) -> tp.Tensor:
        for _ in range(20):
            y = F.gelu(x @ w)
            z = y @ w
            del y
        return (F.silu(z) @ w).sum()

    def step(wrap: Function) -> Any:
        x, w = batch(), tp.eye(WIDTH).add(0.01).requires_grad_()
        loss = wrap(function)(x, w)
        loss.backward()
        return shown([loss, w.grad])

    assert step(compiled) == step(lambda f: f)


def test_two_threads_go_back_at_once() -> None:
    net = layer()
    loss = compiled(net)(batch()).tanh().sum()
    expected = shown(tp.autograd.grad(layer_loss(net), list(net.parameters())))
    wrong: list[Any] = []
    start = threading.Barrier(4)

    def work() -> None:
        start.wait()
        for _ in range(3):
            if shown(tp.autograd.grad(loss, list(net.parameters()), retain_graph=True)) != expected:
                wrong.append(1)

    for _ in range(10):
        loss = compiled(net)(batch()).tanh().sum()
        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not wrong


def layer_loss(net: Any) -> Any:
    return net(batch()).tanh().sum()


@pytest.mark.parametrize("where", ["here", "in another thread", "in a child", "in a compiled function"])
def test_backward_somewhere_else(where: str) -> None:
    net = layer()
    expected = shown(tp.autograd.grad(layer_loss(net), list(net.parameters())))
    loss = compiled(net)(batch()).tanh().sum()

    def back() -> list[Any]:
        return shown(tp.autograd.grad(loss, list(net.parameters())))

    if where == "in a child":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pid = os.fork()
        if pid == 0:
            os._exit(0 if back() == expected else 1)
        assert os.waitpid(pid, 0)[1] == 0
    elif where == "in another thread":
        assert _in_thread(back) == expected
    elif where == "in a compiled function":
        for how in (compiled, lambda f: tp.compile(f, mode="reduce-overhead"), tp.compile):
            loss = compiled(net)(batch()).tanh().sum()
            assert how(back)() == expected
    else:
        with tp.compiler.set_stance("force_eager"):
            assert back() == expected


def test_failing_allocations() -> None:
    """Each allocation of a step fails in turn: a MemoryError, no leak, and what is kept gives its gradient later."""
    net, x = layer(), batch()
    expected = shown(tp.autograd.grad(net(x).sum(), list(net.parameters())))
    model = compiled(net)
    tp.autograd.grad(model(x).sum(), list(net.parameters()))
    before, failed, refused = tp._C._memory_stats()["live_blocks"], 0, 0
    reached = True
    for n in range(600):
        loss = None
        tp._C._fail_allocation_after(n)
        try:
            loss = model(x).sum()
            found = shown(tp.autograd.grad(loss, list(net.parameters()), retain_graph=True))
            assert found == expected
        except MemoryError:
            failed += 1
        finally:
            reached = not tp._C._fail_allocation_after(-1)
        if loss is not None:
            try:
                assert shown(tp.autograd.grad(loss, list(net.parameters()))) == expected
            except RuntimeError as error:
                assert "a tensor has no values" in str(error)
                refused += 1
        if not reached:
            break
    assert not reached and failed > 50 and refused < failed / 4
    del loss, found
    gc.collect()
    assert tp._C._memory_stats()["live_blocks"] <= before + 8


@pytest.mark.filterwarnings("ignore:Complex modules")
@pytest.mark.parametrize("dtype", [tp.float64, tp.bfloat16, tp.float16, tp.complex64])
def test_dtypes_and_autocast(dtype: tp.dtype) -> None:
    def step(wrap: Function) -> Any:
        net = layer(tp.sigmoid if not dtype.is_complex else lambda x: x * x.tanh()).to(dtype)
        net(batch().to(dtype)).abs().sum().backward()
        first = gradients(net)
        net.zero_grad()
        if not dtype.is_complex:
            with tp.autocast("cpu", tp.bfloat16):
                loss = wrap(net.float())(batch()).sum()
            loss.backward()
        return first, gradients(net)

    assert step(compiled) == step(lambda net: net)


@pytest.mark.parametrize("what", ["vmap", "jvp", "grad", "a checkpoint", "hooks"])
def test_layers_above(what: str) -> None:
    net = layer()

    def function(x: tp.Tensor) -> Any:
        if what == "vmap":
            return tp.func.vmap(net)(x.view(4, -1, WIDTH))
        if what == "jvp":
            return sum(tp.func.jvp(net, (x,), (x.cos(),)))
        if what == "grad":
            return tp.func.grad(lambda a: net(a).sum())(x) + net(x).sum()
        if what == "a checkpoint":
            return tp.utils.checkpoint.checkpoint(net, x, use_reentrant=False)
        with tp.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
            return net(x)

    def step(wrap: Function) -> Any:
        net.zero_grad()
        wrap(function)(batch()).sum().backward()
        return gradients(net)

    assert step(compiled) == step(lambda f: f)


def test_an_option_of_another_kind() -> None:
    with pytest.raises(RuntimeError, match="expected bool"):
        tp.compile(lambda x: x, options={"recompute": 1})
    with pytest.raises(RuntimeError, match="expected int"):
        tp.compile(lambda x: x, options={"smallest": True})
