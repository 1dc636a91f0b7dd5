"""What programs say about what they compile: decorators of functions and classes, stances, settings, graph breaks."""

from __future__ import annotations

import copy
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from programs import run

import tensorpy as tp
from tensorpy import nn
from tensorpy._dynamo import exc, testing
from tensorpy._dynamo.backends.debugging import ExplainWithBackend, aot_eager, eager
from tensorpy._dynamo.backends.registry import lookup_backend
from tensorpy._dynamo.comptime import comptime
from tensorpy._dynamo.testing import CompileCounter, InductorAndRecordGraphs, same


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x: tp.Tensor) -> tp.Tensor:
        return self.inner(x).exp() + 1


def fresh() -> type[Net]:
    return type("Fresh", (Net,), {})


@pytest.mark.parametrize(
    "decorate",
    [
        tp.compiler.disable,
        tp.compiler.disable(recursive=False),
        tp.compile,
        tp.compile(options={"smallest": 0}),
        tp.compile(mode="reduce-overhead"),
        tp.compile(backend="eager"),
        tp.compile(backend=CompileCounter()),
        tp._dynamo.mark_static,
    ],
)
def test_a_decorated_class_is_a_class(decorate: Callable[[Any], Any]) -> None:
    kind = fresh()
    assert decorate(kind) is kind
    net, x = kind(), tp.randn(3, 4)
    assert isinstance(net, kind) and isinstance(net, Net)
    expected = net.inner(x).exp() + 1
    assert net(x).equal(expected) and copy.deepcopy(net)(x).equal(expected)

    class Sub(kind):  # type: ignore[misc, valid-type]
        def forward(self, x: tp.Tensor) -> tp.Tensor:
            return super().forward(x) * 2

    sub = Sub()
    sub.load_state_dict(net.state_dict())
    assert sub(x).equal(expected * 2)


def test_a_class_has_the_calls_of_its_instances_compiled() -> None:
    counter = CompileCounter()
    net = tp.compile(fresh(), backend=counter)()
    x = tp.randn(4)
    assert net(x).equal(net(x))
    assert counter.frame_count == 1

    class Plain:
        pass

    assert tp.compile(Plain) is Plain and "__call__" not in vars(Plain)


def test_hooks_of_a_compiled_class_run() -> None:
    net = tp.compile(fresh())()
    net.register_forward_pre_hook(lambda module, args: (args[0] * 0,))
    assert net(tp.randn(4)).equal(net.inner.bias.exp() + 1)


def broken(x: tp.Tensor) -> tp.Tensor:
    y = x + 1
    tp._dynamo.graph_break("as is said")
    return y * 2


def test_graph_breaks() -> None:
    counter = CompileCounter()
    assert tp.compile(broken, backend=counter)(tp.ones(1)).item() == 4
    assert (counter.frame_count, counter.op_count) == (2, 2)
    with pytest.raises(exc.Unsupported, match=r"graph_break\(\) is called: as is said"):
        tp.compile(broken, backend=counter, fullgraph=True)(tp.ones(1))
    told = tp._dynamo.explain(broken)(tp.ones(1))
    assert (told.graph_count, told.graph_break_count, told.op_count, told.out_guards) == (2, 1, 2, [])
    (why,) = told.break_reasons
    assert why.reason == "graph_break() is called: as is said" and why.graph_break
    line = broken.__code__.co_firstlineno + 2
    assert [(frame.name, frame.lineno) for frame in why.user_stack] == [("broken", line)]
    assert [len(ops) for ops in told.ops_per_graph] == [1, 1]
    for words in ("Graph Count: 2", "Graph Break Count: 1", "Op Count: 2", "Break Reason 1:", f"line {line} in broken"):
        assert words in str(told)
    inside = tp._dynamo.nonstrict_trace(broken)
    assert tp.compile(lambda x: inside(x) + 1, backend=counter, fullgraph=True)(tp.ones(1)).item() == 5
    assert tp.compile(broken)(tp.ones(1)).item() == broken(tp.ones(1)).item() == 4


@pytest.mark.parametrize("backend", ["tensorpy", "aot_eager", testing.CompileCounterWithBackend("inductor")])
def test_graph_breaks_of_whole_functions(backend: Any) -> None:
    with pytest.raises(exc.Unsupported, match=r"graph_break\(\) is called: as is said"):
        tp.compile(broken, fullgraph=True, backend=backend)(tp.ones(1))
    assert tp.compile(broken, backend=backend)(tp.ones(1)).equal(broken(tp.ones(1)))
    inner = tp.compile(broken, fullgraph=True, backend=backend)
    if isinstance(backend, str):  # the outermost function says what is an error
        assert tp.compile(lambda x: inner(x))(tp.ones(1)).equal(broken(tp.ones(1)))
    with tp.compiler.set_stance("force_eager"):
        assert inner(tp.ones(1)).equal(broken(tp.ones(1)))


@pytest.mark.parametrize(
    "words",
    [
        {},
        {"backend": "aot_eager"},
        {"mode": "reduce-overhead"},
        {"backend": "eager"},
        {"backend": testing.CompileCounterWithBackend("eager")},
    ],
    ids=["plain", "aot_eager", "replayed", "eager", "counted"],
)
def test_code_knows_whether_it_is_compiled(words: Any) -> None:
    """In every call, also in those that note nothing; not in what disable() keeps out, and not on other threads."""
    is_compiling = tp.compiler.is_compiling

    def function(x: tp.Tensor) -> tp.Tensor:
        return x * 2 if is_compiling() else x * 3

    compiled = tp.compile(function, **words)
    assert [compiled(tp.ones(1)).item() for _ in range(20)] == [2.0] * 20 and not is_compiling()
    kept_out = tp.compiler.disable(function)
    assert tp.compile(lambda x: kept_out(x) + function(x), **words)(tp.ones(1)).item() == 5.0
    with tp.compiler.set_stance("force_eager"):
        assert compiled(tp.ones(1)).item() == 3.0
    with pytest.raises(ZeroDivisionError):
        tp.compile(lambda x: x * (1 // (1 - is_compiling())), **words)(tp.ones(1))
    assert not is_compiling()

    def beside(x: tp.Tensor) -> tp.Tensor:
        with ThreadPoolExecutor(1) as threads:
            return x * threads.submit(is_compiling).result()

    assert tp.compile(beside, **words)(tp.ones(1)).item() == 0.0


def test_backends_by_name_are_functions_of_graphs() -> None:
    lookup = tp._dynamo.lookup_backend
    assert lookup is lookup_backend
    assert lookup("eager") is lookup("eager") is tp._dynamo.backends.debugging.eager
    for name in ("eager", "aot_eager", "inductor", "tensorpy"):
        seen = []

        def backend(graph: Any, inputs: Any, name: str = name, seen: list[str] = seen) -> Any:
            seen.append(lookup(name).__name__)
            return lookup(name)(graph, inputs)

        assert tp.compile(lambda x: x * 2 + 1, backend=backend)(tp.ones(2)).tolist() == [3.0, 3.0] and seen == [name]
    with pytest.raises(tp._dynamo.exc.InvalidBackend, match="'nobody'"):
        lookup("nobody")


def test_error_on_graph_break() -> None:
    f = tp.compile(broken, backend=CompileCounter())
    with tp._dynamo.error_on_graph_break(True):
        with pytest.raises(exc.Unsupported):
            f(tp.ones(1))
        with tp._dynamo.error_on_graph_break(False):
            assert f(tp.ones(1)).item() == 4

    @tp._dynamo.error_on_graph_break(True)
    def outer(x: tp.Tensor) -> Any:
        return tp.compile(broken, backend=CompileCounter())(x)

    with pytest.raises(exc.Unsupported):
        outer(tp.ones(1))
    assert tp.compile(broken, backend=CompileCounter())(tp.ones(1)).item() == 4


def test_stances_of_graphs() -> None:
    counter = CompileCounter()
    f = tp.compile(lambda x: x + 1, backend=counter, dynamic=False)
    with tp.compiler.set_stance("eager_then_compile"):
        assert [f(tp.ones(1)).item() for _ in range(3)] == [2, 2, 2] and counter.frame_count == 1
    with tp.compiler.set_stance("eager_on_recompile"):
        assert f(tp.ones(2)).tolist() == [2, 2] and f(tp.ones(1)).item() == 2 and counter.frame_count == 1
    with tp.compiler.set_stance("fail_on_recompile"):
        assert f(tp.ones(1)).item() == 2
        with pytest.raises(RuntimeError, match="'fail_on_recompile'"):
            f(tp.ones(2))
    assert f(tp.ones(2)).tolist() == [2, 2] and counter.frame_count == 2
    with tp._dynamo.config.patch(error_on_recompile=True), pytest.raises(exc.RecompileError):
        f(tp.ones(3))


def test_stances_are_left_as_they_were() -> None:
    @tp.compiler.set_stance("fail_on_recompile")
    def strict(x: tp.Tensor) -> Any:
        return tp.compile(lambda x: x + 1, backend=CompileCounter())(x)

    with pytest.raises(RuntimeError):
        strict(tp.ones(1))
    assert tp.compile(lambda x: x + 1, backend=CompileCounter())(tp.ones(1)).item() == 2


def test_backends_by_name() -> None:
    graph, x = tp.fx.symbolic_trace(lambda x: x.sin() + 1), tp.randn(3)
    for backend in (eager, aot_eager, lookup_backend("inductor"), lookup_backend("tensorpy")):
        assert backend(graph, [x])(x).equal(x.sin() + 1)
        assert tp.compile(lambda x: x * 2, backend=backend)(x).equal(x * 2)
    told = ExplainWithBackend("eager")
    tp.compile(lambda x: x.sin() + 1, backend=told)(x)
    assert (told.output().graph_count, told.output().op_count) == (1, 2)
    recorded = InductorAndRecordGraphs()
    assert tp.compile(lambda x: x.sin() + 1, backend=recorded)(x).equal(x.sin() + 1) and len(recorded.graphs) == 1


def test_a_module_says_that_its_calls_are_compiled() -> None:
    net = Net()
    assert net._compiled_call_impl is None
    net.compile()
    assert callable(net._compiled_call_impl)


def test_comptime_and_marks() -> None:
    seen: list[int] = []
    comptime(lambda context: seen.append(1))
    x = tp.ones(2)
    assert tp._dynamo.mark_static(x, 0) is tp._dynamo.mark_unbacked(x, 0) is None and seen == []


@pytest.mark.parametrize(
    ("one", "other", "are"),
    [
        ([tp.ones(2), {"a": 1.0}], (tp.ones(2), {"a": 1.0 + 1e-6}), True),
        (tp.ones(2), tp.ones(2, dtype=tp.float64), False),
        (tp.ones(2), tp.ones(3), False),
        ([1], [1, 2], False),
        (tp.tensor([1]), tp.tensor([2]), False),
        (tp.tensor([tp.nan]), tp.tensor([tp.nan]), False),
        ("a", "b", False),
        ({"a": 1}, {"b": 1}, False),
    ],
)
def test_same(one: Any, other: Any, are: bool) -> None:
    assert same(one, other) is are


def test_clones_of_inputs() -> None:
    x = tp.randn(2, 3).t().requires_grad_()
    x.sum().backward()
    clone = tp._dynamo.utils.clone_input(x)
    assert clone.stride() == x.stride() and clone.requires_grad and clone.is_leaf and clone.equal(x)
    assert clone.grad is not x.grad and clone.grad.equal(x.grad)
    some = tp._dynamo.utils.clone_inputs({"a": x, "b": [x, 1]})
    assert some["a"].equal(x) and some["b"][0] is not x and some["b"][1] == 1


def test_logs_are_taken() -> None:
    tp._logging.set_logs(graph_breaks=True, dynamo=10)


def test_settings_are_known_by_name() -> None:
    import tensorpy.compiler.config as compiler_config

    config = tp._dynamo.config
    for settings in (config, compiler_config):
        with pytest.raises(AttributeError, match="does not exist"):
            settings.recompile_limits = 3  # type: ignore[attr-defined]
        with pytest.raises(AttributeError):
            settings.nothing  # noqa: B018
        with pytest.raises(AttributeError), settings.patch(nothing=1):
            pass
    with compiler_config.patch(recompile_limit=2, verbose=True):
        assert (config.recompile_limit, config.cache_size_limit, config.verbose) == (2, 2, True)
    assert (config.recompile_limit, config.verbose) == (8, False)
    with pytest.raises(AttributeError, match=r"compiler\.config\.nothing does not exist"):
        compiler_config.nothing = 1  # type: ignore[attr-defined]


def test_settings_that_do_something() -> None:
    counter = CompileCounter()
    f = tp.compile(lambda x: x + 1, backend=counter)
    with tp._dynamo.config.patch(disable=True):
        assert f(tp.ones(1)).item() == 2 and counter.frame_count == 0
    with tp._dynamo.config.patch(cache_size_limit=1, fail_on_recompile_limit_hit=True):
        assert f(tp.ones(1)).item() == 2
        with pytest.raises(exc.FailOnRecompileLimitHit):
            f(tp.ones(2))
    assert f(tp.ones(2)).tolist() == [2, 2] and counter.frame_count == 2


def test_export_as_a_graph() -> None:
    net = Net()
    graph, guards = tp._dynamo.export(net)(tp.ones(2, 4))
    x = tp.randn(2, 4)
    assert graph(x).equal(net(x)) and guards == []
    graph = tp._dynamo.export(lambda x, k: {"a": x * k}, aten_graph=True)(tp.ones(2), k=tp.ones(2)).graph_module
    assert graph(x[0, :2], k=x[1, :2])["a"].equal(x[0, :2] * x[1, :2])
    with pytest.raises(exc.UserError) as error:
        tp._dynamo.export(lambda x: x * 2 if x.sum() > 0 else x)(tp.ones(2))
    assert error.value.error_type is exc.UserErrorType.DYNAMIC_CONTROL_FLOW


def test_reasons_have_the_programs_lines() -> None:
    def inner(x: tp.Tensor) -> float:
        return float(x.sum())

    def outer(x: tp.Tensor) -> tp.Tensor:
        return x * inner(x)

    told = tp._dynamo.explain(outer, tp.ones(2))
    assert (told.graph_count, told.graph_break_count, told.op_count, told.ops_per_graph) == (0, 1, 0, [])
    (why,) = told.break_reasons
    assert why.reason == "item() asks for the values of a tensor"
    assert [frame.name for frame in why.user_stack] == ["outer", "inner"]
    assert why.user_stack[-1].line == "return float(x.sum())"
    line = inner.__code__.co_firstlineno + 1
    with pytest.raises(exc.Unsupported, match=rf"values of a tensor \(.*test_compile_words\.py:{line}\)"):
        tp.compile(outer, fullgraph=True, backend=CompileCounter())(tp.ones(2))


def test_names_around_it() -> None:
    x = tp.ones(3, requires_grad=True)
    with tp._dynamo.compiled_autograd._enable(tp.compile), tp._dynamo.override_cudagraphs():
        tp.compile(lambda x: x.exp(), options={"smallest": 0})(x).sum().backward()
    assert x.grad is not None and x.grad.equal(x.detach().exp())
    assert issubclass(exc.ObservedKeyError, exc.ObservedException) and issubclass(exc.UserError, RuntimeError)
    kept_out = tp.compiler.disable(abs, recursive=False)
    assert tp._dynamo.is_dynamo_disable_recursive(kept_out) is False
    assert tp._dynamo.is_dynamo_disable_recursive(abs) is None
    assert not tp.compiler.set_enable_guard_collectives(True) and tp.compiler.set_enable_guard_collectives(False)
    utils = tp._dynamo.utils
    assert utils.rmse(tp.zeros(4), tp.full((4,), 2.0)).item() == 2
    assert utils.istensor(tp.nn.Parameter(tp.ones(1))) and not utils.istensor(utils)
    with utils.preserve_rng_state(), utils.dynamo_timed("draw"):
        first = tp.rand(2)
    assert tp.rand(2).equal(first)


def test_settings_are_an_attribute() -> None:
    program = "import tensorpy as tp; print(tp.compiler.config.recompile_limit, hasattr(tp.compiler, 'nothing'))"
    assert run(program).split() == ["8", "False"]


def test_a_plan_from_an_open_file(tmp_path: Path) -> None:
    tp.compiler.save_plan(lambda x: x.exp() + 1, (tp.ones(3),), tmp_path / "a.plan")
    with (tmp_path / "a.plan").open("rb") as file:
        assert tp.compiler.load_compiled_function(file)(tp.zeros(3)).tolist() == [2.0, 2.0, 2.0]
    with (tmp_path / "b.plan").open("w+b") as file, pytest.raises(RuntimeError):
        tp.compiler.load_compiled_function(file)
