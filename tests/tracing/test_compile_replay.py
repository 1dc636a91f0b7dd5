"""mode="reduce-overhead": calls that are done again without Python give what the program gives, to the bit."""

from __future__ import annotations

import gc
import re
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import tensorpy as tp
from tensorpy import nn
from tensorpy.compiler import ReplayError
from tensorpy.nn import functional as F

Step = Callable[..., Any]


def replayed(function: Any) -> Any:
    return tp.compile(function, mode="reduce-overhead")


def count(function: Any) -> int:
    return int(function._replays()["replayed"])


def why(function: Any) -> str:
    return str(function._replays()["why"])


def network() -> nn.Sequential:
    tp.manual_seed(5)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 4))


def batch(i: int) -> tuple[tp.Tensor, tp.Tensor]:
    tp.manual_seed(100 + i)
    return tp.randn(16, 6), tp.randint(0, 4, (16,))


OPTIMIZERS: dict[str, Callable[[Any], tp.optim.Optimizer]] = {
    "sgd": lambda p: tp.optim.SGD(p, 0.1),
    "momentum": lambda p: tp.optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.01, nesterov=True),
    "adam": lambda p: tp.optim.Adam(p, 0.01),
    "amsgrad": lambda p: tp.optim.Adam(p, 0.01, amsgrad=True),
    "adamw": lambda p: tp.optim.AdamW(p, 0.01),
    "adagrad": lambda p: tp.optim.Adagrad(p, 0.1),
    "rmsprop": lambda p: tp.optim.RMSprop(p, 0.01),
}


def training(name: str, wrap: Callable[[Step], Any], steps: int = 40, schedule: bool = False) -> tuple[list[Any], Any]:
    """Losses, weights, gradients and versions after each step."""
    model = network()
    optimizer = OPTIMIZERS[name](model.parameters())
    scheduler = tp.optim.lr_scheduler.ExponentialLR(optimizer, 0.95) if schedule else None

    def step(x: tp.Tensor, y: tp.Tensor) -> tp.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    run, seen = wrap(step), []
    for i in range(steps):
        loss = run(*batch(i))
        assert loss.requires_grad and "NllLoss" in type(loss.grad_fn).__name__
        with pytest.raises(RuntimeError, match="second time"):
            loss.backward()
        seen.append(loss.detach().clone())
        seen += [p.detach().clone() for p in model.parameters()]
        seen += [p.grad.clone() for p in model.parameters() if p.grad is not None]
        seen.append(tp.tensor([p._version for p in model.parameters()]))
        if scheduler:
            scheduler.step()
    return seen, run


def same(a: list[tp.Tensor], b: list[tp.Tensor]) -> bool:
    return len(a) == len(b) and all(x.equal(y) and x.stride() == y.stride() for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training(name: str) -> None:
    expected, _ = training(name, lambda step: step)
    got, run = training(name, replayed)
    assert same(got, expected)
    if name != "rmsprop":
        assert count(run) > 25, why(run)


def test_a_learning_rate_is_an_input() -> None:
    for name in ("sgd", "adam"):
        expected, _ = training(name, lambda step: step, schedule=True)
        got, run = training(name, replayed, schedule=True)
        assert same(got, expected) and count(run) > 25, why(run)


@pytest.mark.parametrize("in_place", [True, False])
def test_gradients_that_add_up(in_place: bool) -> None:
    """zero_grad outside of the function, now and then: in place, or by taking gradients away."""

    def run(wrap: Callable[[Step], Any]) -> list[tp.Tensor]:
        model = network()

        def add(x: tp.Tensor, y: tp.Tensor) -> tp.Tensor:
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            return loss.detach()

        step, seen = wrap(add), []
        for i in range(30):
            if i % 7 == 0:
                model.zero_grad(set_to_none=not in_place)
            seen.append(step(*batch(i)))
            seen += [p.grad.clone() for p in model.parameters() if p.grad is not None]
        if step is not add:
            assert count(step) > 5, why(step)
        return seen

    assert same(run(replayed), run(lambda step: step))


def test_inference_in_trees() -> None:
    model = network()

    @tp.no_grad()
    def function(x: tp.Tensor, pair: list[Any], *, scale: float, named: dict[str, tp.Tensor]) -> dict[str, Any]:
        y = model(x) * scale + pair[0]
        return {"y": y, "rows": (y.sum(1), [named["b"] + 1, x, 3, "word", None]), "again": y}

    fast = replayed(function)
    for i in range(20):
        x, _ = batch(i)
        args: tuple[Any, ...] = x, [tp.full((4,), float(i)), 2]
        words: dict[str, Any] = {"scale": 0.5, "named": {"b": x[0]}}
        got, expected = fast(*args, **words), function(*args, **words)
        assert got["y"].equal(expected["y"]) and got["rows"][0].equal(expected["rows"][0])
        assert got["rows"][1][0].equal(expected["rows"][1][0]) and got["rows"][1][1] is x
        assert got["rows"][1][2:] == [3, "word", None] and got["again"] is got["y"] and list(got) == list(expected)
    assert count(fast) > 8, why(fast)


def test_each_call_gives_its_own_memory() -> None:
    fast = replayed(lambda x: (x * 2, (x + 1).exp()))
    kept = [(tp.full((3,), float(i)), fast(tp.full((3,), float(i)))) for i in range(30)]
    assert count(fast) > 15, why(fast)
    for x, (a, b) in kept:
        assert a.equal(x * 2) and b.equal((x + 1).exp())
        a.add_(1)
    assert len({a.data_ptr() for _, pair in kept for a in pair}) == 60


def test_views_of_one_memory_are_followed_to_where_they_lie() -> None:
    data = tp.arange(200.0).reshape(20, 10)
    fast = replayed(lambda x: (x * 3).sum())
    for i in range(20):
        assert fast(data[i]).equal((data[i] * 3).sum())
    assert count(fast) > 8, why(fast)
    both = replayed(lambda x, y: x - y)
    for i in range(20):
        assert both(data[i], data[(i * 7) % 20]).equal(data[i] - data[(i * 7) % 20])


def test_arguments_that_are_written() -> None:
    fast = replayed(lambda x, y: x.mul_(2).add_(y))
    for i in range(20):
        x, y = tp.full((4,), float(i)), tp.ones(4)
        version = x._version
        assert fast(x, y) is x and x.equal(tp.full((4,), 2.0 * i + 1)) and x._version == version + 2
    assert count(fast) > 8, why(fast)
    x = tp.ones(4)
    for _ in range(4):
        fast(x, x)
    assert x.equal(tp.full((4,), 4.0**4))


def test_buffers_and_other_captured_tensors() -> None:
    total = tp.zeros(3)

    def add(x: tp.Tensor) -> tp.Tensor:
        total.add_(x)
        return total * 1

    fast = replayed(add)
    for i in range(1, 21):
        assert fast(tp.ones(3)).equal(tp.full((3,), float(i)))
    assert count(fast) > 8 and total._version == 20


def test_operators_that_run_at_once() -> None:
    """Products, sorting and factors are calls of a tape, too."""

    def function(x: tp.Tensor) -> tuple[tp.Tensor, ...]:
        a = x @ x.mT + 3 * tp.eye(5)
        return tp.linalg.cholesky_ex(a)[0], *a.sort(1), F.max_pool1d(x, 2), a.cumsum(0)

    fast = replayed(function)
    for i in range(20):
        tp.manual_seed(i)
        x = tp.randn(5, 5)
        assert all(a.equal(b) for a, b in zip(fast(x), function(x), strict=True))
    assert count(fast) > 8, why(fast)


# ---- what is compared before a replay ----

CHANGES: dict[str, Callable[[tp.Tensor], Any]] = {
    "sizes": lambda x: x[:2],
    "strides": lambda x: x.mT,
    "dtype": lambda x: x.double(),
    "a conjugate": lambda x: tp.complex(x, x).conj(),
    "a number": lambda x: 3.5,
    "requires_grad": lambda x: x.clone().requires_grad_(),
    "a class": lambda x: nn.Parameter(x, requires_grad=False),
    "a layout": lambda x: x.to_sparse(),
}


@pytest.mark.parametrize("name", CHANGES)
def test_other_arguments(name: str) -> None:
    def function(x: Any) -> Any:
        return x * 2

    fast = replayed(function)
    x = tp.randn(4, 4)
    other = CHANGES[name](x)
    for _ in range(12):
        assert fast(x).equal(x * 2)
    assert count(fast) > 3
    for _ in range(12):
        got, expected = fast(other), function(other)
        assert str(got) == str(expected) and type(got) is type(expected)
        assert fast(x).equal(x * 2)


def test_modes() -> None:
    fast = replayed(lambda x, w: x @ w)
    x, w = tp.randn(4, 4), tp.randn(4, 4)
    for _ in range(12):
        fast(x, w)
    assert count(fast) > 3
    with tp.autocast("cpu", dtype=tp.bfloat16):
        assert fast(x, w).dtype == tp.bfloat16
    w.requires_grad_()
    assert fast(x, w).requires_grad
    with tp.no_grad():
        for _ in range(12):
            assert not fast(x, w).requires_grad
    with tp.inference_mode():
        assert fast(x, w).is_inference()
    made = replayed(lambda x: x + tp.full((2,), 1.0))
    for _ in range(8):
        assert made(tp.ones(2)).dtype == tp.float32
    tp.set_default_dtype(tp.float64)
    try:
        assert made(tp.ones(2)).dtype == tp.float64
    finally:
        tp.set_default_dtype(tp.float32)


def test_modules_that_change() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    model.eval()
    fast = replayed(tp.no_grad()(lambda x: model(x)))
    x = tp.ones(2, 4)
    for _ in range(12):
        assert fast(x).equal(model(x))
    assert count(fast) > 3
    model.train()
    tp.manual_seed(0)
    got = fast(x)
    tp.manual_seed(0)
    assert got.equal(model(x))
    model.eval()
    with tp.no_grad():
        model[0].weight = nn.Parameter(tp.zeros(4, 4))
    for _ in range(6):
        assert fast(x).equal(model(x))
    model.double()
    assert fast(x.double()).equal(model(x.double()))


def test_weights_that_are_loaded_or_changed_in_place() -> None:
    model = network()
    fast = replayed(tp.no_grad()(lambda x: model(x)))
    x, _ = batch(0)
    for _ in range(12):
        fast(x)
    model.load_state_dict({name: t + 1 for name, t in model.state_dict().items()})
    assert fast(x).equal(model(x)) and count(fast) > 3


def test_parameters_that_change() -> None:
    model = network()
    optimizer = tp.optim.SGD(model.parameters(), 0.1)

    def step(x: tp.Tensor, y: tp.Tensor) -> tp.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    fast = replayed(step)
    for i in range(12):
        fast(*batch(i))
    assert count(fast) > 3
    frozen = model[0].weight.clone()
    model[0].weight.requires_grad_(False)
    for i in range(3):
        fast(*batch(i))
    assert model[0].weight.equal(frozen) and model[0].weight.grad is None
    model[0].weight.requires_grad = True
    model[3].weight.data = tp.zeros(4, 8)
    fast(*batch(0))
    assert not model[0].weight.equal(frozen) or model[3].weight.abs().sum() > 0


def test_who_sees_each_call() -> None:
    """Hooks of saved tensors, modes and profiles see the calls of the function itself."""
    fast = replayed(lambda x: (x * 2).exp().sum())
    x = tp.ones(3)
    for _ in range(12):
        fast(x)
    replays = count(fast)
    assert replays > 3
    w = tp.ones(3, requires_grad=True)
    step = replayed(lambda x: (w * x).exp().sum().backward())
    for _ in range(12):
        step(x)
    packed = []
    with tp.autograd.graph.saved_tensors_hooks(lambda t: packed.append(1) or t, lambda t: t):
        step(x)
    assert packed
    seen = []

    class Mode(tp.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func)
            return func(*args, **(kwargs or {}))

    with Mode():
        fast(x)
    assert seen
    with tp.profiler.profile() as profile:
        fast(x)
    assert any("exp" in event.key for event in profile.key_averages()) and count(fast) == replays


def test_objects_that_are_new_each_time_are_given_up() -> None:
    ran = []
    fast = replayed(lambda x, o: ran.append(1) or x + 1)
    for _ in range(200):
        fast(tp.ones(2), object())
    assert len(ran) == 200 and fast._replays()["written"] <= 65


# ---- what is refused ----

ONE = tp.ones(())
REFUSED: dict[str, tuple[Callable[[Any], Callable[[tp.Tensor], Any]], str]] = {
    "a value": (lambda kept: lambda x: x * x.sum().item(), "value is read"),
    "a check of values": (lambda kept: lambda x: tp.linalg.cholesky(x.abs().diag() + 1), "value is read"),
    "sizes from values": (lambda kept: lambda x: x.repeat_interleave(tp.tensor([1, 2, 1])), "is read|another one"),
    "a captured value": (lambda kept: lambda x: x * 2 if ONE.item() else x, "value is read"),
    "a branch": (lambda kept: lambda x: x + 1 if x.sum() > 0 else x - 1, "value is read"),
    "a shape": (lambda kept: lambda x: x[x > 0], "value is read"),
    "random numbers": (lambda kept: lambda x: F.dropout(x, 0.5), "is another one|random numbers"),
    "drawing": (lambda kept: lambda x: tp.multinomial(x.abs() + 1, 2), "random numbers|is another one|value is read"),
    "an address": (lambda kept: lambda x: tp.tensor((x * 2).numpy()) + 1, "address|another one|value is read"),
    "a tensor that lives on": (lambda kept: lambda x: kept.append(x.exp()) or x * 1, "lives on"),
    "a graph that lives on": (lambda kept: lambda x: (x.requires_grad_() * 2).exp(), "still to be computed"),
    "a view of an argument": (lambda kept: lambda x: x[1:], "was there before|not computed"),
    "an object": (lambda kept: lambda x: {1, 2, 3}, "object"),
    "another class of tensor": (lambda kept: lambda x: nn.Parameter(x * 2), "another class|computed"),
    "other calls each time": (lambda kept: lambda x: kept.append(0) or x * len(kept), "another|number"),
    "a new constant each time": (lambda kept: lambda x: x + tp.tensor([1.0, 2.0, 3.0]), "another one"),
    "a sparse tensor": (lambda kept: lambda x: x.to_sparse().to_dense(), "layout|shape|value"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    make, reason = REFUSED[name]
    function, fast = make([]), replayed(make([]))
    for i in range(30):
        tp.manual_seed(i)
        x = tp.randn(3)
        tp.manual_seed(i)
        expected = function(x.clone())
        tp.manual_seed(i)
        got = fast(x.clone())
        assert got.equal(expected) if isinstance(got, tp.Tensor) else got == expected
    assert count(fast) == 0
    assert re.search(reason, why(fast)), why(fast)


def test_hooks_are_followed() -> None:
    model, seen = network(), []
    model[0].weight.register_hook(lambda grad: seen.append(grad.sum().item()))

    def step(x: tp.Tensor, y: tp.Tensor) -> tp.Tensor:
        model.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        return loss.detach()

    fast = replayed(step)
    for i in range(12):
        fast(*batch(i))
    assert len(seen) == 12 and count(fast) == 0 and "hook" in why(fast)


# ---- audits ----


@pytest.mark.parametrize("change", ["number", "tensor", "path"])
def test_an_audit_finds_what_nobody_looks_at(change: str) -> None:
    state: dict[str, Any] = {"number": 2.0, "tensor": tp.ones(3), "path": False}

    def function(x: tp.Tensor) -> tp.Tensor:
        y = x * state["number"] + state["tensor"]
        return y.exp() if state["path"] else y.sin()

    fast = replayed(function)
    x = tp.randn(3)
    for _ in range(6):
        assert fast(x).equal(function(x))
    assert count(fast) == 3
    state[change] = {"number": 3.0, "tensor": tp.zeros(3), "path": True}[change]
    fast(x)  # the seventh: not seen
    line = function.__code__.co_firstlineno + (2 if change == "path" else 1)
    with pytest.raises(ReplayError, match=rf", at .*test_compile_replay\.py:{line}\. .*has to be an argument"):
        fast(x)  # the eighth
    for _ in range(12):
        assert fast(x).equal(function(x))
    assert count(fast) > 8


def test_audits_pass() -> None:
    ran = []
    fast = replayed(lambda x: ran.append(1) or x + 1)
    for _ in range(100):
        fast(tp.ones(2))
    assert len(ran) == 3 + 4 and count(fast) == 93  # 8, 16, 32, 64


# ---- errors, memory, threads ----


def test_an_error_of_a_call() -> None:
    fast = replayed(lambda x, i: x.index_select(0, i).exp())
    x = tp.randn(5)
    for _ in range(12):
        fast(x, tp.tensor([1, 2]))
    with pytest.raises(IndexError):
        fast(x, tp.tensor([1, 9]))
    assert fast(x, tp.tensor([0, 4])).equal(x[[0, 4]].exp())


def test_an_exception_of_the_function() -> None:
    state = {"raises": False}

    def function(x: tp.Tensor) -> tp.Tensor:
        if state["raises"]:
            raise KeyError("mine")
        return x + 1

    fast = replayed(function)
    for raises in [True, False, False, True, False, False, False, False]:
        state["raises"] = raises
        if raises:
            with pytest.raises(KeyError, match="mine"):
                fast(tp.ones(2))
        else:
            assert fast(tp.ones(2)).equal(tp.full((2,), 2.0))


def test_nothing_is_kept() -> None:
    def run() -> tuple[Any, Any]:
        model = network()
        optimizer = tp.optim.Adam(model.parameters())

        def step(x: tp.Tensor, y: tp.Tensor) -> tp.Tensor:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss.detach()

        fast = replayed(step)
        for i in range(12):
            fast(*batch(i))
        assert count(fast) > 3
        return weakref.ref(fast), weakref.ref(model)

    references = run()
    gc.collect()
    assert [reference() for reference in references] == [None, None]


def test_threads() -> None:
    model = network()
    fast = replayed(tp.no_grad()(lambda x: model(x).softmax(-1)))
    failed: list[Any] = []

    def work(seed: int) -> None:
        for i in range(200):
            x, _ = batch(0)
            x = x + seed + i
            if not fast(x).equal(model(x).softmax(-1).detach()):
                failed.append((seed, i))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and count(fast) > 100


def test_failing_allocations() -> None:
    model = network()
    optimizer = tp.optim.Adam(model.parameters(), 0.01)

    def step(x: tp.Tensor, y: tp.Tensor) -> tp.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    fast = replayed(step)
    for i in range(8):
        fast(*batch(i))
    for after in range(0, 60):
        x, y = batch(0)
        tp._C._fail_allocation_after(after)
        try:
            fast(x, y)
        except MemoryError:
            pass
        finally:
            tp._C._fail_allocation_after(-1)
    assert fast(*batch(0)).isfinite()


def test_in_other_functions_and_backends() -> None:
    inner = replayed(lambda x: x * 2)
    outer = tp.compile(lambda x: inner(x) + 1, options={"smallest": 0})
    for _ in range(6):
        assert outer(tp.ones(2)).equal(tp.full((2,), 3.0))
    assert tp.compile(lambda x: x, mode="reduce-overhead", backend="eager")(3) == 3
    model = tp.compile(network(), mode="reduce-overhead")
    with tp.no_grad():
        for i in range(10):
            assert model(batch(i)[0]).equal(model._orig_mod(batch(i)[0]))


def test_large_weights_are_no_hindrance() -> None:
    weight = tp.zeros(3000, 7000)  # 84 MB
    fast = replayed(lambda x: x @ weight)
    for _ in range(6):
        fast(tp.ones(1, 3000))
    assert count(fast) == 3
    made = replayed(lambda n: tp.zeros(n).sum() * 1)
    for _ in range(6):
        made(20_000_000)
    assert count(made) == 0 and "so much" in why(made)
