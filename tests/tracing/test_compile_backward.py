"""Backward of what compiled functions made: in a region of its own, and to the bit what it is without."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import tensorpy as tp
from tensorpy import nn
from tensorpy.nn import functional as F
from tensorpy.utils.checkpoint import checkpoint

BACKENDS = ("aot_eager", "tensorpy")


def compiled(function: Any, **how: Any) -> Any:
    return tp.compile(function, options={"smallest": 0}, **how)


class Block(nn.Module):
    """Attention and a small network, as transformers have them."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.norm, self.other = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: tp.Tensor) -> tp.Tensor:
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        x = x + self.out(F.dropout((q @ k.mT * 0.25).softmax(-1), 0.1, self.training) @ v)
        return x + self.down(F.gelu(self.up(self.other(x))))


def block() -> Block:
    tp.manual_seed(3)
    return Block()


def gradients(module: nn.Module) -> list[Any]:
    return [(p.grad.clone(), p.grad.stride()) if p.grad is not None else None for p in module.parameters()]


def same(a: list[Any], b: list[Any]) -> bool:
    return len(a) == len(b) and all(
        (x is y is None) or (x[0].equal(y[0]) and x[1] == y[1]) for x, y in zip(a, b, strict=True)
    )


def both(run: Callable[[Callable[[Any], Any]], Any]) -> None:
    """What a program gives with its model compiled is what it gives without."""
    expected = run(lambda model: model)
    for backend in BACKENDS:
        got = run(lambda model, how=backend: compiled(model, backend=how))
        assert str(got) == str(expected)
        for a, b in zip(got, expected, strict=True):
            assert not isinstance(a, list) or not a or not isinstance(a[0], tuple) or same(a, b)


def test_it_runs_in_a_region_of_its_own() -> None:
    def names(function: Any) -> list[str]:
        x = tp.randn(50, 50, requires_grad=True)
        y = function(x).sum()
        with tp.profiler.profile() as profile:
            y.backward()
        return [e.name for e in profile.events() if e.name.startswith("group of")]

    def function(x: tp.Tensor) -> tp.Tensor:
        return (x.tanh() * 2 + 1).exp() * x

    assert not names(function) and not names(compiled(function, backend="aot_eager")) and names(compiled(function))
    fast = compiled(function)
    y = fast(tp.randn(50, 50, requires_grad=True)).sum()
    with tp.compiler.set_stance("force_eager"), tp.profiler.profile() as profile:
        y.backward()
    assert not [e for e in profile.events() if e.name.startswith("group of")]
    assert not names(function)


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
def test_training_with_an_unchanged_loop(optimizer: str) -> None:
    def run(wrap: Any) -> Any:
        net = block()
        model = wrap(net)
        step = getattr(tp.optim, optimizer)(net.parameters(), lr=0.01)
        losses = []
        for _ in range(50):
            x = tp.randn(2, 5, 16)
            step.zero_grad()
            loss = F.mse_loss(model(x), x.roll(1, 1))
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            step.step()
            losses.append(loss.item())
        return losses, gradients(net), [(p.detach().clone(), p.stride()) for p in net.parameters()]

    both(run)


def test_gradients_add_up_over_calls() -> None:
    def run(wrap: Any) -> Any:
        net = block()
        model = wrap(net)
        for _ in range(3):
            model(tp.randn(2, 5, 16)).square().mean().backward()
        return [gradients(net)]

    both(run)


def test_hooks_see_values() -> None:
    def run(wrap: Any) -> Any:
        net, seen = block(), []
        net.up.weight.register_hook(lambda g: (seen.append(g.sum().item()), g * 2)[1])
        net.down.bias.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.tolist()))
        net.qkv.register_full_backward_hook(lambda m, gi, go: seen.append(go[0].numpy().copy().tolist()))
        out = wrap(net)(tp.randn(2, 5, 16, requires_grad=True))
        out.register_hook(lambda g: seen.append(g.abs().max().item()))
        out.grad_fn.register_hook(lambda gi, go: seen.append(len(gi)))
        out.exp().sum().backward()
        return seen, gradients(net)

    both(run)


def test_graphs_that_are_kept_and_made() -> None:
    def run(wrap: Any) -> Any:
        net = block()
        x = tp.randn(2, 5, 16, requires_grad=True)
        loss = wrap(net)(x).tanh().sum()
        loss.backward(retain_graph=True)
        first = gradients(net)
        loss.backward(retain_graph=True)
        (gx,) = tp.autograd.grad(loss, x, create_graph=True)
        gx.square().sum().backward()
        some = tp.autograd.grad(wrap(net)(x).sum(), [x, net.up.weight, x], allow_unused=True)
        return first, gradients(net), [(g.clone(), g.stride()) for g in (gx.detach(), *some, x.grad)]

    both(run)


def test_checkpoints() -> None:
    def run(wrap: Any) -> Any:
        net = block()
        model = wrap(net)
        x = tp.randn(2, 5, 16, requires_grad=True)
        for reentrant in (False, True):
            checkpoint(model, x, use_reentrant=reentrant).square().sum().backward()
        wrap(lambda x: checkpoint(net, x, use_reentrant=False))(x).square().sum().backward()
        return gradients(net), [(x.grad, x.grad.stride())]

    both(run)


def test_anomaly_mode_names_the_function() -> None:
    x = tp.zeros(40, requires_grad=True)
    for wrap in (lambda f: f, compiled):
        with pytest.warns(UserWarning), tp.autograd.detect_anomaly():
            y = wrap(lambda x: (x * 0 / x).sqrt())(x).sum()
            with pytest.raises(RuntimeError, match="Function 'SqrtBackward0' returned nan values"):
                y.backward()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_in_the_middle(error: type[BaseException]) -> None:
    def run(wrap: Any) -> Any:
        net = block()

        def fail(g: tp.Tensor) -> None:
            raise error("here")

        out = wrap(net)(tp.randn(2, 5, 16))
        handle = net.qkv.weight.register_hook(fail)
        with pytest.raises(error, match="here"):
            out.square().sum().backward()
        handle.remove()
        left = gradients(net)
        net.zero_grad()
        wrap(net)(tp.ones(2, 5, 16)).sum().backward()
        return left, gradients(net)

    both(run)


def test_a_second_backward_is_refused() -> None:
    out = compiled(lambda x: x.exp() * x)(tp.randn(50, requires_grad=True)).sum()
    out.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        out.backward()


def test_changes_in_place_are_noticed() -> None:
    x = tp.randn(50, requires_grad=True)
    y = compiled(lambda x: x.exp())(x)
    loss = (y * y).sum()
    y.detach().add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    assert x.grad is None


def test_whole_steps_and_other_functions() -> None:
    def run(wrap: Any) -> Any:
        class Twice(tp.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: tp.Tensor) -> tp.Tensor:
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx: Any, grad: tp.Tensor) -> tp.Tensor:
                (x,) = ctx.saved_tensors
                return grad * 2 * x + grad.sum().item() * 0

        net = block()
        x = tp.randn(2, 5, 16, requires_grad=True)

        def step(x: tp.Tensor) -> tp.Tensor:
            loss = Twice.apply(net(x)).mean()
            loss.backward()
            return loss

        losses = [wrap(step)(x).item(), wrap(lambda x: Twice.apply(net(x)).mean())(x).item()]
        wrap(lambda x: Twice.apply(net(x.mul(2).mT.contiguous().mT)).mean())(x).backward()
        return losses, gradients(net), [(x.grad, x.grad.stride())]

    both(run)


@pytest.mark.parametrize("dtype", [tp.float64, tp.bfloat16, tp.float16])
def test_dtypes_and_autocast(dtype: tp.dtype) -> None:
    def run(wrap: Any) -> Any:
        net, other = block().to(dtype), block()
        wrap(net)(tp.randn(2, 5, 16, dtype=dtype)).float().sum().backward()
        with tp.autocast("cpu", dtype=tp.bfloat16):
            loss = wrap(other)(tp.randn(2, 5, 16)).square().sum()
        loss.backward()
        return gradients(net), gradients(other)

    both(run)


def test_from_threads() -> None:
    def run(wrap: Any) -> list[Any]:
        nets = [block() for _ in range(3)]
        x = tp.randn(2, 5, 16)

        def work(net: nn.Module) -> None:
            model = wrap(net.eval())
            for _ in range(10):
                model(x).square().sum().backward()

        threads = [threading.Thread(target=work, args=(net,)) for net in nets]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return [gradients(net) for net in nets]

    both(run)


def test_another_thread_reads_what_is_not_computed_yet() -> None:
    seen: list[Any] = []
    net = block()

    def look(g: tp.Tensor) -> None:
        thread = threading.Thread(target=lambda: seen.append((g.sum().item(), net.down.bias.grad.tolist())))
        thread.start()
        thread.join()

    for wrap in (lambda m: m, compiled):
        net.zero_grad()
        handle = net.norm.weight.register_hook(look)
        tp.manual_seed(4)
        wrap(net)(tp.randn(2, 5, 16)).square().sum().backward()
        handle.remove()
    assert len(seen) == 2 and seen[0] == seen[1]


NOT_HERE = (tp.optim.Optimizer, tp.optim.LBFGS, tp.optim.SparseAdam, tp.optim.Muon)  # of other gradients or a closure
OPTIMIZERS = [
    name
    for name, kind in vars(tp.optim).items()
    if isinstance(kind, type) and issubclass(kind, tp.optim.Optimizer) and kind not in NOT_HERE
]


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("how", [{}, {"foreach": True}, {"foreach": False}])
def test_whole_steps(name: str, how: dict[str, bool]) -> None:
    """Kernels of optimizers read their counters while what was noted before them runs."""
    kind = getattr(tp.optim, name)
    x, y = tp.rand(8, 6), tp.randint(0, 4, (8,))

    def weights(wrap: Callable[[Any], Any]) -> list[tp.Tensor]:
        tp.manual_seed(1)
        model = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 4))
        optimizer = kind(model.parameters(), **how)

        def step() -> Any:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        run = wrap(step)
        losses = [run().detach() for _ in range(4)]
        return [*losses, *(p.detach() for p in model.parameters())]

    for backend in BACKENDS:
        got = weights(lambda step, chosen=backend: compiled(step, backend=chosen))
        assert all(a.equal(b) for a, b in zip(got, weights(lambda step: step), strict=True))


# ---- versions ----


def _writes_a_leaf(a: tp.Tensor, b: tp.Tensor, c: tp.Tensor) -> tp.Tensor:
    with tp.no_grad():
        c.mul_(2)
    return (a * c * b).sum()


def _writes_what_is_saved(a: tp.Tensor, b: tp.Tensor, c: tp.Tensor) -> tp.Tensor:
    y = a * c * b
    with tp.no_grad():
        c.mul_(2)
    return y.sum()


def _writes_a_result(a: tp.Tensor, b: tp.Tensor, c: tp.Tensor) -> tp.Tensor:
    y = (a * 2).exp()
    z = y * b
    y.add_(1)
    return z.sum() + c.sum()


def _used_again(a: tp.Tensor, b: tp.Tensor, c: tp.Tensor) -> tp.Tensor:
    y = a
    for _ in range(3):
        y = y * a + a * b + (c @ a).softmax(1)
    return y.sum() + a.sum()


def _rows(a: tp.Tensor, b: tp.Tensor, c: tp.Tensor) -> tp.Tensor:
    rows = tp.arange(len(a)) % 3
    return (F.embedding(rows, a) * b).sum() + (a.index_select(0, rows) * c).sum()


@pytest.mark.parametrize("n", [4, 200])
@pytest.mark.parametrize("how", ["step", "replay", "forward", "graph"])
@pytest.mark.parametrize("function", [_writes_a_leaf, _writes_what_is_saved, _writes_a_result, _used_again, _rows])
def test_versions_are_those_of_the_function(function: Callable[..., tp.Tensor], how: str, n: int) -> None:
    """Of leaves and of their gradients, which are sums, and errors of what was saved and has been written."""

    def step(forward: Callable[..., tp.Tensor], *leaves: tp.Tensor) -> None:
        forward(*leaves).backward()

    def seen(call: Callable[..., None]) -> list[Any]:
        generator = tp.Generator().manual_seed(0)
        leaves = [tp.randn(n, n, generator=generator).requires_grad_() for _ in range(3)]
        found: list[Any] = []
        for i in range(8):
            try:
                call(*leaves)
            except RuntimeError as error:
                found.append((type(error), str(error)))
            grads = [leaf.grad for leaf in leaves]
            found.append([leaf._version for leaf in leaves])
            found.append([None if g is None else (g._version, g.stride(), g.sum().item()) for g in grads])
            for leaf in leaves if i == 5 else []:
                leaf.grad = None
        return found

    ways: dict[str, Callable[..., None]] = {
        "step": compiled(lambda *leaves: step(function, *leaves)),
        "replay": tp.compile(lambda *leaves: step(function, *leaves), mode="reduce-overhead"),
        "forward": lambda *leaves: step(compiled(function), *leaves),
        "graph": lambda *leaves: step(tp.compile(function, backend=lambda graph, _: graph.forward), *leaves),
    }
    assert seen(ways[how]) == seen(lambda *leaves: step(function, *leaves))
