"""compile(backend=function): graphs of calls, one for each kind of arguments, and never a stale one."""

from __future__ import annotations

import collections
import contextlib
import copy
import io
import pickle
import random
import re
import sys
import threading
import types
import unittest
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorpy as tp
from tensorpy import nn
from tensorpy._dynamo import config, exc
from tensorpy._dynamo.testing import CompileCounter, CompileCounterWithBackend

FACTOR = tp.full((3,), 2.0)
SHIFT = 1.0
SETTINGS = types.ModuleType("settings_of_test")
SETTINGS.scale = 3.0  # type: ignore[attr-defined]


def graphs_of(function: Any, *calls: tuple[Any, ...], **how: Any) -> CompileCounter:
    """Calls it both ways, and says what the backend was given."""
    counter = CompileCounter()
    compiled = tp.compile(function, backend=counter, **how)
    for args in calls:
        got, expected = compiled(*copy.deepcopy(args)), function(*copy.deepcopy(args))
        assert str(got) == str(expected)
    return counter


# ---- graphs ----


def test_a_backend_is_given_a_graph_and_its_inputs() -> None:
    given: list[Any] = []

    def backend(graph: Any, inputs: list[Any], **words: Any) -> Any:
        given.append((graph, inputs, words))
        return lambda *now: [out * 10 for out in graph(*now)]

    @tp.compile(backend=backend, options={"level": 3})
    def function(x: tp.Tensor, *, by: float = 2.0) -> dict[str, Any]:
        """Doc."""
        return {"made": x * by + FACTOR, "given": x, "plain": by}

    x = tp.ones(3)
    result = function(x)
    graph, inputs, words = given[0]
    assert isinstance(graph, tp.fx.GraphModule) and words == {"options": {"level": 3}}
    assert inputs[0] is x and inputs[1] is FACTOR and len(inputs) == 2
    assert [n.name for n in graph.graph.nodes if n.op == "placeholder"] == ["x", "factor"]
    assert result["made"].tolist() == [40.0] * 3 and result["given"] is x and result["plain"] == 2.0
    assert (function.__name__, function.__doc__) == ("function", "Doc.")


def test_one_graph_for_each_kind_of_arguments() -> None:
    def function(x: tp.Tensor, y: Any) -> tp.Tensor:
        return x * y

    x = tp.ones(3)
    assert graphs_of(function, (x, 2), (x + 1, 2), (x, 2)).frame_count == 1
    for other in [(tp.ones(4), 2), (x.double(), 2), (x, 3), (x, 2.0), (x, x), (tp.ones(6)[::2], 2), (x[None], 2)]:
        assert graphs_of(function, (x, 2), other, (x, 2), other).frame_count == 2
    assert graphs_of(function, (x, 0.0), (x, -0.0)).frame_count == 2
    assert graphs_of(function, (x, x), (x, x.clone())).frame_count == 2
    counter = CompileCounter()
    compiled = tp.compile(function, backend=counter)
    compiled(x, 2)
    with tp.no_grad():
        compiled(x, 2)
    compiled(tp.ones(3, requires_grad=True), 2).sum().backward()
    assert counter.frame_count == 3


def test_surroundings_are_seen() -> None:
    global FACTOR, SHIFT
    by = [1.0]

    class Scale:
        plus = 1.0

        def __init__(self) -> None:
            self.times = 2.0

        def run(self, x: tp.Tensor) -> tp.Tensor:
            return helper(x) * self.times + self.plus

    def helper(x: tp.Tensor) -> tp.Tensor:
        return (x * FACTOR + SHIFT) * by[0] + SETTINGS.scale

    scale, counter = Scale(), CompileCounter()
    compiled = tp.compile(scale.run, backend=counter)
    x, before = tp.ones(3), (FACTOR, SHIFT)

    def same(graphs: int) -> None:
        assert compiled(x).equal(scale.run(x)) and counter.frame_count == graphs

    try:
        same(1)
        FACTOR = tp.full((3,), 5.0)  # another tensor of the same kind is an input like the first
        same(1)
        SHIFT = 2.0
        same(2)
        by[0] = 3.0
        same(3)
        by.append(1.0)
        same(4)
        scale.times = 5.0
        same(5)
        Scale.plus = 4.0
        same(6)
        SETTINGS.scale = 7.0  # type: ignore[attr-defined]
        same(7)
        FACTOR = tp.full((1,), 5.0)
        same(8)
        with pytest.warns(UserWarning, match="recompile_limit.*'times'"):
            scale.times = 6.0
            same(8)
    finally:
        FACTOR, SHIFT = before


def test_what_containers_slots_and_modules_hold_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slotted:
        __slots__ = ("times",)

    import numpy

    held, values, queue, array = Slotted(), {1.0}, collections.deque([1.0]), numpy.ones(1)
    held.times = 1.0
    module = types.ModuleType("imported_inside")
    module.plus = 1.0  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "imported_inside", module)

    def imports(x: tp.Tensor) -> tp.Tensor:
        import imported_inside  # type: ignore[import-not-found]  # pyright: ignore[reportMissingImports]

        return x + imported_inside.plus

    programs: list[tuple[Any, Any]] = [
        (lambda x: x * held.times, lambda: setattr(held, "times", 2.0)),
        (lambda x: x * sum(values), lambda: values.add(3.0)),
        (lambda x: x * sum(queue), lambda: queue.append(3.0)),
        (lambda x: x * sum(queue), lambda: queue.__setitem__(0, 7.0)),
        (lambda x: x * float(array[0]), lambda: array.fill(4.0)),
        (imports, lambda: setattr(module, "plus", 5.0)),
    ]
    for function, change in programs:
        counter, x = CompileCounter(), tp.ones(3)
        compiled = tp.compile(function, backend=counter)
        for graphs in (1, 1):
            assert compiled(x).equal(function(x)) and counter.frame_count == graphs
        change()
        assert compiled(x).equal(function(x)) and counter.frame_count == 2


def test_training_and_evaluation() -> None:
    def net() -> nn.Sequential:
        tp.manual_seed(0)
        return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 2))

    def train(model: Any, of: nn.Module) -> list[float]:
        tp.manual_seed(1)
        optimizer, losses = tp.optim.Adam(of.parameters(), lr=0.01), []
        for _ in range(20):
            optimizer.zero_grad()
            loss = model(tp.randn(16, 4)).square().sum()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    plain, other, counter = net(), net(), CompileCounter()
    compiled = tp.compile(other, backend=counter, fullgraph=True)
    assert train(compiled, other) == train(plain, plain) and counter.frame_count == 1
    assert all(a.equal(b) for a, b in zip(plain.state_dict().values(), other.state_dict().values(), strict=True))
    assert counter.graphs[0].graph.find_nodes(op="placeholder")[0].name == "input_1"
    x = tp.ones(2, 4)
    assert compiled.eval()(x).equal(plain.eval()(x)) and counter.frame_count == 2
    other[0].weight = nn.Parameter(other[0].weight.detach() + 1)
    assert compiled(x).equal(other(x)) and not compiled(x).equal(plain(x)) and counter.frame_count == 2


def test_the_recorded_call_leaves_nothing_behind() -> None:
    def function(x: tp.Tensor) -> tp.Tensor:
        x[1:].add_(1)
        x.mul_(2)
        return x + tp.rand(3)

    counter = CompileCounter()
    compiled = tp.compile(function, backend=counter)
    a, b = tp.arange(3.0), tp.arange(3.0)
    for _ in range(3):
        tp.manual_seed(3)
        got = compiled(a), tp.rand(1)
        tp.manual_seed(3)
        expected = function(b), tp.rand(1)
        assert got[0].equal(expected[0]) and got[1].equal(expected[1]) and a.equal(b)
    assert counter.frame_count == 1


def test_casts_of_before_are_no_constants() -> None:
    layer, x = nn.Linear(3, 2), tp.ones(4, 3)
    compiled = tp.compile(layer, backend=CompileCounter(), fullgraph=True)
    for _ in range(3):
        with tp.autocast("cpu"):
            expected = layer(x)  # autocast keeps its casts of the parameters
            assert compiled(x).equal(expected)
        with tp.no_grad():
            layer.weight.add_(1)


# ---- what is no graph ----


def branches(x: tp.Tensor) -> tp.Tensor:
    return x * 2 if x.sum() > 0 else x - 1


def test_a_function_that_is_no_graph_is_followed() -> None:
    seen: list[Any] = []
    weight = nn.Parameter(tp.ones(3))

    def appends(x: tp.Tensor) -> tp.Tensor:
        seen.append(1)
        return x * len(seen)

    def learns(x: tp.Tensor) -> tp.Tensor:
        weight.grad = None
        (weight * x).sum().backward()
        return weight.grad

    def holds(x: tp.Tensor) -> Any:
        return types.SimpleNamespace(x=x + 1)

    def turns(x: tp.Tensor) -> tp.Tensor:
        x.t_()
        return x + 1

    def grows(x: tp.Tensor) -> tp.Tensor:
        return x.mul_(weight)

    x = tp.ones(3)
    for function, why in [
        (branches, r"item\(\) asks"),
        (appends, "it changes a list"),
        (learns, "backward runs inside"),
        (holds, "an object of class SimpleNamespace"),
        (turns, "changes a tensor from outside"),
        (grows, "changes a tensor from outside"),
    ]:
        seen.clear()
        counter = CompileCounter()
        compiled = tp.compile(function, backend=counter)
        got = [str(compiled(x.clone())) for _ in range(3)]
        seen.clear()
        assert got == [str(function(x.clone())) for _ in range(3)] and counter.frame_count == 0
        with pytest.raises(exc.Unsupported, match=why):
            tp.compile(function, backend=counter, fullgraph=True)(x.clone())
    assert str(tp.compile(branches, backend=CompileCounter())(-x)) == str(branches(-x))


def test_errors_are_the_functions_own() -> None:
    def function(x: tp.Tensor, index: int) -> tp.Tensor:
        return x[index] + 1

    compiled = tp.compile(function, backend=CompileCounter())
    for _ in range(2):
        with pytest.raises(IndexError):
            compiled(tp.ones(3), 5)
        assert compiled(tp.ones(3), 1).item() == 2.0


def test_errors_of_backends() -> None:
    def raises(graph: Any, inputs: Any) -> Any:
        raise ValueError("no")

    x = tp.ones(3)
    with pytest.raises(exc.BackendCompilerFailed, match=r"backend='raises' raised:\nValueError: no") as told:
        tp.compile(lambda x: x * 2, backend=raises)(x)
    assert isinstance(told.value, RuntimeError) and isinstance(told.value.inner_exception, ValueError)
    with pytest.raises(exc.BackendCompilerFailed, match="did not return a callable"):
        tp.compile(lambda x: x * 2, backend=lambda graph, inputs: 3)(x)
    with config.patch(suppress_errors=True):
        assert tp.compile(lambda x: x * 2, backend=raises)(x).tolist() == [2.0] * 3
    assert not config.suppress_errors


def in_parts(x: tp.Tensor, w: tp.Tensor) -> tuple[tp.Tensor, tp.Tensor]:
    y = (x * 2).sin()
    tp._dynamo.graph_break()
    first, second = y.split(2)
    with tp.no_grad():
        z = first.exp() * w
        tp._dynamo.graph_break()
        z = z * 3 * w
    tp._dynamo.graph_break()
    x.add_(1)
    tp._dynamo.graph_break()
    return z * w + second * w, y


@pytest.mark.parametrize("backend", [None, "aot_eager", "inductor"])
def test_graphs_end_where_the_program_says(backend: str | None) -> None:
    counter = CompileCounterWithBackend(backend) if backend else CompileCounter()
    compiled = tp.compile(in_parts, backend=counter)
    for _ in range(3):
        x, w, same = tp.rand(4), tp.rand(2, requires_grad=True), tp.rand(4)
        same.copy_(x)
        got, expected = compiled(x, w), in_parts(same, w)
        for a, b in zip((*got, x), (*expected, same), strict=True):
            assert a.equal(b) and a.requires_grad == b.requires_grad
        found, wanted = (tp.autograd.grad(r[0].sum(), w)[0] for r in (got, expected))
        assert found.equal(wanted) and tp.is_grad_enabled()
    assert counter.frame_count == len(counter.graphs) == 5
    assert [len(inputs_of(g)) for g in counter.graphs] == [1, 2, 2, 1, 3]


@pytest.mark.parametrize("fullgraph", [False, True])
def test_a_function_that_is_kept_out_runs_at_every_call(fullgraph: bool) -> None:
    seen = []

    @tp.compiler.disable
    def kept_out(x: tp.Tensor) -> tp.Tensor:
        seen.append(len(seen))
        return x * len(seen)

    counter = CompileCounter()
    compiled = tp.compile(lambda x: kept_out(x + 1) * 2, backend=counter, fullgraph=fullgraph)
    if fullgraph:
        with pytest.raises(exc.Unsupported, match=r"disable\(\) keeps out"):
            compiled(tp.ones(1))
    else:
        assert [compiled(tp.ones(1)).item() for _ in range(3)] == [4, 8, 12] and counter.frame_count == 0


def test_a_break_that_is_no_error() -> None:
    def inner(x: tp.Tensor) -> tp.Tensor:
        with tp._dynamo.error_on_graph_break(False):
            x = x + 1
            tp._dynamo.graph_break()
            return x * 2

    counter = CompileCounter()
    with tp._dynamo.error_on_graph_break(True):
        assert tp.compile(inner, backend=counter)(tp.ones(1)) == 4 and counter.frame_count == 2


def inputs_of(graph: Any) -> list[Any]:
    return [node for node in graph.graph.nodes if node.op == "placeholder"]


@pytest.mark.parametrize("function, graphs", [(lambda x: x, 0), (lambda x: x + 1, 1)])
def test_parts_without_operators_are_no_graphs(function: Any, graphs: int) -> None:
    def broken(x: tp.Tensor) -> Any:
        tp._dynamo.graph_break()
        tp._dynamo.graph_break()
        result = function(x)
        tp._dynamo.graph_break()
        return result

    for f in (function, broken):
        counter = CompileCounter()
        assert tp.compile(f, backend=counter)(tp.ones(2)).equal(function(tp.ones(2)))
        assert counter.frame_count == graphs


def test_an_error_of_a_later_part() -> None:
    calls = []

    def second_fails(graph: Any, inputs: list[Any]) -> Any:
        calls.append(graph)
        if len(calls) == 2:
            raise ValueError("no")
        return graph.forward

    compiled = tp.compile(in_parts, backend=second_fails)
    args = tp.rand(4), tp.rand(2)
    with pytest.raises(exc.BackendCompilerFailed, match="no"):
        compiled(*args)
    assert compiled(args[0].clone(), args[1])[0].equal(in_parts(args[0].clone(), args[1])[0])
    calls.clear()
    with config.patch(suppress_errors=True):
        compiled = tp.compile(in_parts, backend=second_fails)
        assert compiled(args[0].clone(), args[1])[0].equal(in_parts(args[0].clone(), args[1])[0]) and len(calls) == 5


def test_so_many_graphs_and_no_more() -> None:
    counter = CompileCounter()
    compiled = tp.compile(lambda x: x + 1, backend=counter, dynamic=False)
    with config.patch("recompile_limit", 2), pytest.warns(UserWarning, match="2 graphs, as many as recompile_limit"):
        assert config.cache_size_limit == 2
        for n in range(1, 5):
            assert compiled(tp.ones(n)).tolist() == [2.0] * n
    assert counter.frame_count == 2
    with config.patch(cache_size_limit=1), pytest.raises(exc.FailOnRecompileLimitHit):
        whole = tp.compile(lambda x: x + 1, backend=counter, fullgraph=True)
        whole(tp.ones(1)), whole(tp.ones(2))
    counter.clear()
    tp.compiler.reset()
    compiled(tp.ones(1))
    assert counter.frame_count == 1


# ---- beside all else ----


def test_inside_and_outside_of_others() -> None:
    counter = CompileCounter()
    inner = tp.compile(lambda x: x.sin() * 2, backend=counter)
    x = tp.randn(300)

    def outer(x: tp.Tensor) -> tp.Tensor:
        return inner(x + 1) - x

    expected = (x + 1).sin() * 2 - x
    assert tp.compile(outer, options={"smallest": 0})(x).equal(expected) and counter.frame_count == 1
    assert tp.compile(outer, backend=counter)(x).equal(expected) and counter.frame_count == 2
    assert tp.vmap(inner)(x.view(3, 100)).equal((x.sin() * 2).view(3, 100))
    assert tp.func.grad(lambda x: inner(x).sum())(x).equal(tp.func.grad(lambda x: (x.sin() * 2).sum())(x))
    with tp.compiler.set_stance("force_eager"):
        before = counter.frame_count
        tp.compile(lambda x: x, backend=counter)(x)
        assert counter.frame_count == before


def test_from_threads() -> None:
    compiled = tp.compile(lambda x, y: x * y + FACTOR, backend=CompileCounter())
    wrong: list[Any] = []

    def work(k: int) -> None:
        for i in range(50):
            x = tp.full((3,), float(k * i))
            if not compiled(x, k).equal(x * k + FACTOR):
                wrong.append((k, i))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


# ---- names ----


def test_names_of_backends() -> None:
    @tp._dynamo.register_backend(name="of_this_test", tags=("debug",))
    def backend(graph: Any, inputs: list[Any]) -> Any:
        return lambda *now: [out + 1 for out in graph(*now)]

    assert "of_this_test" in tp._dynamo.list_backends(None)
    assert "of_this_test" not in tp.compiler.list_backends() and "tensorpy" in tp.compiler.list_backends()
    assert tp.compile(lambda x: x * 2, backend="of_this_test")(tp.ones(1)).item() == 3.0
    assert tp._dynamo.optimize("of_this_test")(lambda x: x * 2)(tp.ones(1)).item() == 3.0
    with pytest.raises(AssertionError, match="duplicate name"):
        tp._dynamo.register_backend(backend, name="of_this_test")
    counter = CompileCounterWithBackend("of_this_test")
    assert tp.compile(lambda x: x * 2, backend=counter)(tp.ones(1)).item() == 3.0 and counter.op_count == 1
    with pytest.raises(exc.InvalidBackend, match=r"Invalid backend: 'nvfuser', expected one of .*'of_this_test'"):
        tp.compile(lambda x: x, backend="nvfuser")


def test_what_would_be_a_graph() -> None:
    whole = tp._dynamo.explain(lambda x: (x * 2).sin())(tp.ones(2))
    assert (whole.graph_count, whole.graph_break_count, whole.op_count) == (1, 0, 2)
    broken = tp._dynamo.explain(branches)(tp.ones(2))
    assert (broken.graph_count, broken.graph_break_count) == (0, 1) and "Reason: item()" in str(broken)


# ---- what no operator shows ----


class Tripled(tp.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: tp.Tensor) -> tp.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: tp.Tensor) -> tp.Tensor:
        return grad * 3


def with_a_hook(x: tp.Tensor) -> tp.Tensor:
    y = x * 2
    y.register_hook(lambda grad: grad * 5)
    return y + 1


def saved_as_halves(x: tp.Tensor) -> tp.Tensor:
    with tp.autograd.graph.saved_tensors_hooks(lambda t: t.half(), lambda t: t.float()):
        return (x + 0.0001) ** 2


def with_a_leaf(x: tp.Tensor) -> tp.Tensor:
    return (x * 2).detach().requires_grad_() + x


def seeded(x: tp.Tensor) -> tp.Tensor:
    tp.manual_seed(4)
    return x * tp.rand(3)


def states_put_back(x: tp.Tensor) -> tp.Tensor:
    state = tp.get_rng_state()
    y = tp.rand(3)
    tp.set_rng_state(state)
    return (y - tp.rand(3)) * x


def with_a_count(x: tp.Tensor) -> tp.Tensor:
    with_a_count.calls = getattr(with_a_count, "calls", 0) + 1
    return x * with_a_count.calls


def with_a_parameter(x: tp.Tensor) -> tp.Tensor:
    return nn.Parameter(tp.full((3,), 2.0)) * x.detach()


def with_a_layer(x: tp.Tensor) -> tp.Tensor:
    layer = nn.Linear(3, 3, bias=False)
    handle = layer.register_forward_hook(lambda module, args, result: result * 2)
    y = layer(x.detach())
    handle.remove()
    return y


def of_another_dtype(x: tp.Tensor) -> tp.Tensor:
    tp.set_default_dtype(tp.float64)
    try:
        return tp.ones(3) * 2 + x
    finally:
        tp.set_default_dtype(tp.float32)


def printing(x: tp.Tensor) -> tp.Tensor:
    print("of", x.shape[0])
    return x * 2


class Own(tp.Tensor):
    """A class of the program's."""


UNSEEN: dict[str, tuple[Callable[[tp.Tensor], tp.Tensor], str]] = {
    "function": (lambda x: Tripled.apply(x) + 1, "a Function with a backward of its own is applied"),
    "hook": (with_a_hook, "a hook is registered"),
    "saved": (saved_as_halves, "tensors are saved by hooks"),
    "leaf": (with_a_leaf, "requires_grad is set"),
    "inference": (lambda x: tp.inference_mode()(lambda: x * 2 + 1)(), "inference mode is switched"),
    "seed": (seeded, "a generator is seeded"),
    "state": (states_put_back, "a generator is seeded"),
    "python": (lambda x: x * random.random(), "random numbers of Python or NumPy are drawn"),
    "numpy": (lambda x: x * float(np.random.rand()), "random numbers of Python or NumPy are drawn"),
    "attribute": (with_a_count, "it changes "),
    "parameter": (with_a_parameter, "a tensor is made that requires grad"),
    "layer": (with_a_layer, "a tensor is made that requires grad"),
    "a new leaf": (lambda x: tp.ones(3, requires_grad=True), "a tensor is made that requires grad"),
    "default dtype": (of_another_dtype, "the default dtype is set"),
    "class": (lambda x: (x.as_subclass(Own) * 2).as_subclass(tp.Tensor), "a tensor becomes one of another class"),
    "print": (printing, "text is printed"),
    "text": (lambda x: x * len(str(x + 1)), "a tensor is printed"),
    "address": (lambda x: x * ((x + 1).data_ptr() > 0), "data_ptr() asks for the values of a tensor"),
    "copy": (lambda x: copy.deepcopy(x.detach() * 2) + x, "deepcopy() asks for the values of a tensor"),
    "pickle": (lambda x: pickle.loads(pickle.dumps(x.detach() * 2)) + x, "a pickle asks for the values of a tensor"),
}


@pytest.mark.parametrize("name", UNSEEN)
def test_what_no_operator_shows_is_no_graph(name: str) -> None:
    """Results, gradients and random numbers are the function's, at every call."""
    function, why = UNSEEN[name]

    def outcome(f: Callable[[tp.Tensor], tp.Tensor]) -> list[Any]:
        for seed in (tp.manual_seed, random.seed, np.random.seed):
            seed(1)
        vars(function).pop("calls", None)
        seen: list[Any] = []
        for _ in range(3):
            x = tp.tensor([0.1, 2.0, 3.0], requires_grad=True)
            with contextlib.redirect_stdout(io.StringIO()) as text:
                y = f(x)
            seen += [text.getvalue(), y.tolist(), y.requires_grad, y.is_inference(), tp.rand(1).item()]
            if y.requires_grad:
                y.sum().backward()
                seen.append(x.grad if x.grad is None else x.grad.tolist())
        return seen

    assert outcome(tp.compile(function, backend=CompileCounter())) == outcome(function)
    with pytest.raises(tp._dynamo.exc.Unsupported, match=re.escape(why)):
        tp.compile(function, backend=CompileCounter(), fullgraph=True)(tp.ones(3, requires_grad=True))


def test_text_of_others_is_no_break() -> None:
    """What another thread prints, and what the function keeps for itself."""

    def quiet(x: tp.Tensor) -> tp.Tensor:
        thread = threading.Thread(target=print, args=("from a thread",))
        thread.start()
        thread.join()
        with contextlib.redirect_stdout(io.StringIO()):
            print("kept")
        return x * 2

    assert graphs_of(quiet, (tp.ones(3),), (tp.ones(3),)).frame_count == 1


def test_hooks_that_keep_values_are_graphs() -> None:
    """Checkpoints, and values saved on the CPU: a graph of the program's has no need of them."""
    counter = CompileCounter()

    def function(x: tp.Tensor) -> tp.Tensor:
        y = tp.utils.checkpoint.checkpoint(lambda x: x.exp() * x, x, use_reentrant=False)
        with tp.autograd.graph.save_on_cpu():
            return y.tanh()

    x = tp.rand(3, requires_grad=True)
    (found,) = tp.autograd.grad(tp.compile(function, backend=counter, fullgraph=True)(x).sum(), x)
    (expected,) = tp.autograd.grad(function(x).sum(), x)
    assert found.equal(expected) and counter.frame_count == 1


# ---- hooks ----


def _of_a_tensor(net: nn.Sequential, log: list[Any]) -> None:
    net[0].weight.register_hook(lambda g: (log.append(g.sum().item()), g * 3)[1])


def _after_accumulation(net: nn.Sequential, log: list[Any]) -> None:
    for p in net.parameters():
        p.register_post_accumulate_grad_hook(lambda p: log.append(p.grad.sum().item()))


def _before_forward(net: nn.Sequential, log: list[Any]) -> None:
    net[2].register_forward_pre_hook(lambda module, args: (args[0] + 1,))


def _after_forward(net: nn.Sequential, log: list[Any]) -> None:
    net[1].register_forward_hook(lambda module, args, out: (log.append(out.sum().item()), out * 2)[1])


def _of_backward(net: nn.Sequential, log: list[Any]) -> None:
    net[2].register_full_backward_hook(lambda module, gi, go: (log.append(go[0].sum().item()), (gi[0] * 0.5,))[1])


def _before_backward(net: nn.Sequential, log: list[Any]) -> None:
    net[2].register_full_backward_pre_hook(lambda module, go: (go[0] * 0.5,))


@pytest.mark.parametrize(
    "hook", [_of_a_tensor, _after_accumulation, _before_forward, _after_forward, _of_backward, _before_backward]
)
def test_hooks_do_what_they_do_without(hook: Callable[..., None]) -> None:
    """Of tensors, of gradients that are there, and of modules; registered before, or while calls go on."""

    def seen(compiles: bool, late: bool) -> tuple[list[Any], list[Any]]:
        tp.manual_seed(0)
        net, log, found = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4)), [], []
        if not late:
            hook(net, log)
        loss: Any = lambda x: net(x).square().sum()  # noqa: E731
        call = tp.compile(loss, backend=CompileCounter()) if compiles else loss
        for i in range(5):
            if late and i == 2:
                hook(net, log)
            x = tp.arange(8.0).view(2, 4).add_(i).requires_grad_()
            call(x).backward()
            found.append([x.grad.tolist(), *(p.grad.tolist() for p in net.parameters())])
        return found, log

    for late in (False, True):
        assert seen(True, late) == seen(False, late)


def test_hooks_of_all_modules_are_seen() -> None:
    """They come and go without any module's knowing, and what they hold changes."""
    net, log = nn.Sequential(nn.Linear(3, 3), nn.Tanh()), []
    compiled = tp.compile(lambda x: net(x) * 1, backend=CompileCounter())
    x = tp.ones(2, 3)
    plain = compiled(x)
    held = {"factor": 2.0}

    def scale(module: nn.Module, args: Any, out: tp.Tensor) -> tp.Tensor:
        return out * held["factor"]

    def note(module: nn.Module, args: Any, out: tp.Tensor) -> None:
        log.append(type(module).__name__)

    for hook in (scale, note):
        with nn.modules.module.register_module_forward_hook(hook):
            for held["factor"] in (3.0, 4.0):
                assert compiled(x).equal(net(x) * 1)
                assert compiled(x).equal(net(x) * 1)
        assert compiled(x).equal(plain)
    assert log == ["Linear", "Tanh", "Sequential"] * 8


# ---- control flow ----


class _Sevenfold(tp.autograd.Function):
    """Twice its input, with a gradient of seven."""

    @staticmethod
    def forward(ctx: Any, x: tp.Tensor) -> tp.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, *grads: tp.Tensor) -> tp.Tensor:
        return grads[0] * 7


WEIGHT = tp.full((3,), 2.0)


def _chooses(x: tp.Tensor) -> tp.Tensor:
    inner: Any = lambda y: tp.cond(y.sum() > 5, lambda z: z * WEIGHT, tp.sin, (y,))  # noqa: E731
    return tp.cond(x.sum() > 0, inner, lambda y: y.cos() - WEIGHT, (x,)) + 1


@pytest.mark.parametrize("requires_grad", [False, True])
def test_control_flow_is_in_a_whole_graph(requires_grad: bool) -> None:
    """A graph for each branch; which one runs is asked at each call."""
    counter = CompileCounter()
    compiled = tp.compile(_chooses, backend=counter, fullgraph=True)

    def seen(function: Any, start: float) -> str:
        x = (tp.arange(3.0) + start).requires_grad_(requires_grad)
        y = function(x)
        if requires_grad:
            y.sum().backward()
        return str((y, x.grad))

    for start in (1.0, 5.0, -9.0, 2.0):
        assert seen(compiled, start) == seen(_chooses, start)
    assert counter.frame_count == 1
    follows = CompileCounter()
    assert seen(tp.compile(_chooses, backend=follows), 1.0) == seen(_chooses, 1.0) and follows.frame_count == 0


@pytest.mark.parametrize(
    "branch, error, words",
    [
        (lambda x: x * x.sum().item(), exc.Unsupported, "the function is no graph: .*asks for the values"),
        (lambda x: _Sevenfold.apply(x), exc.Unsupported, "a Function with a backward of its own is applied"),
        (lambda x: x, exc.UncapturedHigherOrderOpError, "gives a tensor that it takes"),
        (lambda x: x.add_(1), exc.UncapturedHigherOrderOpError, "writes to a tensor from outside"),
        (lambda x: (WEIGHT.tolist(), x * 2)[1], exc.Unsupported, "asks for the values"),
    ],
)
def test_branches_that_are_no_graphs(branch: Any, error: type[Exception], words: str) -> None:
    def function(x: tp.Tensor) -> tp.Tensor:
        result: tp.Tensor = tp.cond(x.sum() > 0, branch, lambda y: y.cos(), (x,))
        return result

    for start in (1.0, -9.0):
        with pytest.raises(error, match=words):
            tp.compile(function, backend=CompileCounter(), fullgraph=True)((tp.arange(3.0) + start).requires_grad_())


def test_distributions_check_no_arguments_in_graphs() -> None:
    """Whether parameters fit is a value. Where a function is no graph after all, its distributions check from there."""
    scale = tp.full((3,), 2.0)

    def policy(x: tp.Tensor) -> Any:
        normal = tp.distributions.Normal(x, scale * x.exp())
        draw = normal.rsample()
        return normal.log_prob(draw), tp.distributions.Categorical(logits=x).entropy()

    tp.manual_seed(0)
    counter = CompileCounter()
    compiled, x = tp.compile(policy, backend=counter, fullgraph=True), tp.randn(3)
    for _ in range(2):
        tp.manual_seed(1)
        got = compiled(x)
        tp.manual_seed(1)
        assert str(got) == str(policy(x)) and counter.frame_count == 1

    def refused(x: tp.Tensor) -> float:
        if x[0].item() == 0.0:
            tp.distributions.Normal(x, -x.exp())
        return 1.0

    with pytest.raises(ValueError, match="Expected parameter scale"):
        tp.compile(refused, backend=CompileCounter())(tp.zeros(3))
    asks = lambda x: tp.distributions.Normal(x, x.exp(), validate_args=True).mean + 1  # noqa: E731
    assert graphs_of(asks, (x,)).frame_count == 0
    assert tp.distributions.Distribution._validate_args is True


def test_the_standard_test_compares_results_and_counts() -> None:
    case = unittest.TestCase()
    check = tp._dynamo.testing.standard_test
    check(case, lambda a, b: (a + b).sin(), 2, expected_ops=2)
    check(case, lambda a: a + 1, 1)
    for fn, words in (
        (lambda a: a.sin() + 1, {"expected_ops": 1}),
        (lambda a: a.sin(), {"expected_frame_count": 2}),
    ):
        with pytest.raises(AssertionError):
            check(case, fn, 1, **words)


def test_what_no_graph_has_ends_one() -> None:
    unsupported = tp._dynamo.eval_frame.unsupported
    assert unsupported(1, 2) == 2
    counter = graphs_of(lambda x: unsupported(x, x + 1) * 2, (tp.ones(2),))
    assert counter.frame_count == 2
    with pytest.raises(exc.Unsupported, match="unsupported"):
        tp.compile(lambda x: unsupported(x, x), fullgraph=True, backend="eager")(tp.ones(2))


def test_code_of_graphs_is_compared_without_comments() -> None:
    normalize = tp._dynamo.testing.normalize_gm
    assert normalize("x = 1  # a\n\n\n \ny = 2\n  # file\nz\n\n") == "x = 1  # a\n\ny = 2\nz\n"
    since, before = tp._dynamo.testing.skipIfNotPy311, tp._dynamo.testing.skipIfPy312
    for mark, runs in ((since, sys.version_info >= (3, 11)), (before, sys.version_info < (3, 12))):
        assert hasattr(mark(lambda: None), "__unittest_skip__") is not runs
