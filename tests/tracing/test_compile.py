"""compile(): what it takes and gives, and that a compiled function is the function: effects, errors, gradients."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import tensorpy as tp
from tensorpy import nn
from tensorpy._dynamo import exc
from tensorpy._higher_order_ops.while_loop import while_loop

NOTED = {"smallest": 0}


def compiled(function: Any, **how: Any) -> Any:
    return tp.compile(function, options=NOTED, **how)


# ---- words ----


@pytest.mark.parametrize(
    "how, error",
    [
        ({"mode": "fastest"}, r"Unrecognized mode=fastest"),
        ({"backend": "nvfuser"}, r"Invalid backend: 'nvfuser'"),
        ({"options": {"triton.nothing": True}}, r"Unexpected optimization option triton.nothing"),
        ({"options": {"smallest": "1"}}, r"Unexpected type of attr smallest, got str"),
        ({"mode": "default", "options": {}}, r"Either mode or options"),
        ({"dynamic": 3}, r"dynamic has to be"),
    ],
)
def test_unknown_words_are_refused(how: dict[str, Any], error: str) -> None:
    with pytest.raises(RuntimeError, match=error):
        tp.compile(lambda x: x, **how)
    with pytest.raises(TypeError):
        tp.compile(lambda x: x, inline=True)  # type: ignore[call-arg]
    with pytest.raises(AssertionError, match="A callable function is expected"):
        tp.compile(3)


@pytest.mark.parametrize("mode", [None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"])
def test_modes(mode: str | None) -> None:
    assert tp.compile(lambda x: x * 2, mode=mode, dynamic=True)(tp.ones(2)).tolist() == [2.0, 2.0]


def test_what_is_given_back_as_it_is() -> None:
    def function(x: tp.Tensor) -> tp.Tensor:
        return x

    assert tp.compile(function, disable=True) is function
    assert "tensorpy" in tp.compiler.list_backends() and "eager" not in tp.compiler.list_backends()


def test_a_decorator_keeps_names() -> None:
    @tp.compile(fullgraph=True)
    def double(x: tp.Tensor) -> tp.Tensor:
        """Twice x."""
        return x * 2

    assert (double.__name__, double.__doc__) == ("double", "Twice x.") and double.__wrapped__([1]) == [1, 1]
    assert double(tp.ones(2)).tolist() == [2.0, 2.0] and not tp.compiler.is_compiling()
    double.mark = 1
    assert vars(double)["mark"] == 1


@tp.compile
def named_in_a_module(x: tp.Tensor) -> tp.Tensor:
    return x * 2


def test_copies_and_pickles_of_functions() -> None:
    """As of other functions: who has one among its attributes can be copied."""
    holder = nn.Linear(2, 2)
    holder.loss = named_in_a_module
    assert copy.deepcopy(holder).loss is copy.copy(named_in_a_module) is named_in_a_module
    assert pickle.loads(pickle.dumps(named_in_a_module)) is named_in_a_module
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(compiled(lambda x: x))


def test_methods() -> None:
    class Scale:
        by = 3

        @compiled
        def __call__(self, x: tp.Tensor, *, plus: int = 0) -> tp.Tensor:
            return x * self.by + plus

        @staticmethod
        @compiled
        def twice(x: tp.Tensor) -> tp.Tensor:
            return x + x

    scale = Scale()
    assert scale(tp.ones(2), plus=1).tolist() == [4.0, 4.0] and Scale.twice(tp.ones(1)).tolist() == [2.0]
    assert compiled(scale.__call__)(tp.ones(1)).tolist() == [3.0]


# ---- switches ----


def test_stances() -> None:
    double = compiled(lambda x: x * 2)
    other = compiled(lambda x: x * 2)
    with tp.compiler.set_stance("force_eager"):
        double(tp.ones(9))
    assert double._report()["calls"] == 0
    double(tp.ones(9))
    assert double._report()["calls"] == 1

    @tp.compiler.set_stance("force_eager")
    def inside() -> None:
        other(tp.ones(9))

    inside()
    assert other._report()["calls"] == 0
    tp.compiler.set_stance("force_eager")
    other(tp.ones(9))
    tp.compiler.set_stance("default")
    assert other._report()["calls"] == 0
    with pytest.raises(RuntimeError, match=r"invalid torch\.compile stance 'fast'"):
        tp.compiler.set_stance("fast")


def test_a_disabled_function_runs_at_once() -> None:
    @tp.compiler.disable
    def slow(x: tp.Tensor) -> float:
        y = x + 1
        return float(y.sum())

    def function(x: tp.Tensor) -> tuple[tp.Tensor, float]:
        y = x * 2
        return y - 1, slow(y)

    x = tp.arange(8.0)
    assert str(compiled(function)(x)) == str(function(x))
    with pytest.raises(RuntimeError, match=r"fullgraph=True.*a function that is not compiled"):
        compiled(function, fullgraph=True)(x)
    with pytest.raises(exc.Unsupported, match="a function that is not compiled"):
        tp.compile(lambda x: slow(x), fullgraph=True)(x)
    assert tp.compiler.disable()(slow)(x) == slow(x)
    linear = nn.Linear(2, 2)
    assert tp.compiler.disable(linear) is linear and linear(tp.ones(1, 2)).shape == (1, 2)


def test_the_environment_switches_it_off() -> None:
    code = "import tensorpy as tp; f = tp.compile(lambda x: x + 1, options={'smallest': 0}); f(tp.ones(4)); "
    code += "print(f._report()['calls'])"
    for value, calls in (("0", "0"), ("1", "1")):
        done = subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "TENSORPY_COMPILE": value}, capture_output=True, text=True
        )
        assert done.stdout.strip() == calls, done.stderr


def test_fullgraph_says_what_breaks() -> None:
    def branches(x: tp.Tensor) -> tp.Tensor:
        return x * 2 if (x + 1).sum() > 0 else x

    with pytest.raises(RuntimeError, match=r"compile\(fullgraph=True\).*a value decides what the program does"):
        compiled(branches, fullgraph=True)(tp.ones(3))
    assert compiled(branches)(tp.ones(3)).tolist() == [2.0, 2.0, 2.0]
    whole = compiled(lambda x: (x + 1).exp().sum(), fullgraph=True)
    assert whole(tp.zeros(3)).item() == pytest.approx(3 * 2.718281828, rel=1e-5)
    asks: list[Any] = [
        lambda x: not (x + 1)[0],
        lambda x: [t for t in x + 1 if t > 1],
        lambda x: (x + 1).tolist(),
        lambda x: (x + 1).numpy(),
        lambda x: (x + 1).data_ptr(),
    ]
    for number in (tp.Tensor.item, float, int, complex):
        assert compiled(lambda x, number=number: x * number((x + 1)[0]), fullgraph=True)(tp.ones(3))[0] == 2
    choice = compiled(lambda x: tp.cond((x > 0).any(), tp.sin, tp.cos, (x,)), fullgraph=True)
    assert choice(tp.ones(3)).equal(tp.ones(3).sin())
    for function in asks:
        with pytest.raises(RuntimeError, match=r"compile\(fullgraph=True\)"):
            compiled(function, fullgraph=True)(tp.ones(3))


def test_fullgraph_names_the_operator_and_the_line() -> None:
    """A bool that an operator gives is what the program decides by; the class is that of a tensor in an `if`."""

    def same(a: tp.Tensor, b: tp.Tensor) -> tp.Tensor:
        return a * 2 if tp.equal(a + 1, b + 1) else b

    def near(a: tp.Tensor, b: tp.Tensor) -> tp.Tensor:
        return a * 2 if tp.allclose(a + 1, b + 1) else b

    a = tp.ones(3)
    for function, name in ((same, "equal"), (near, "allclose")):
        line = function.__code__.co_firstlineno + 1
        words = rf"a value decides what the program does, at {name} \(.*test_compile\.py:{line}\)"
        with pytest.raises(exc.Unsupported, match=words):
            compiled(function, fullgraph=True)(a, a)
        assert compiled(function)(a, a).equal(function(a, a))
    assert compiled(lambda x: x * tp.equal(x, x), fullgraph=True)(a).equal(a)  # nothing is noted of x
    with pytest.raises(exc.Unsupported, match=r"memory is read or lent \(.*test_compile\.py:\d+\)"):
        compiled(lambda x: (x + 1).tolist(), fullgraph=True)(a)


def _reads_in_a_branch(x: tp.Tensor) -> Any:
    return tp.cond((x + 1).sum() > 0, lambda y: y * y.sum().item(), lambda y: y.cos(), (x,))


def _decides_in_a_branch(x: tp.Tensor) -> Any:
    return tp.cond((x + 1).sum() > 0, lambda y: y * 2 if y.sum() > 0 else y * 3, lambda y: y.cos(), (x,))


def _reads_in_a_loop(x: tp.Tensor) -> Any:
    return while_loop(lambda y: bool(y.sum().item() < 100), lambda y: (y * (2 + y.mean().abs().item()),), (x + 9,))


def _loops(x: tp.Tensor) -> Any:
    return while_loop(lambda y: y.sum() < 100, lambda y: (y * 2 + 1,), ((x + 9) * 1,))


@pytest.mark.parametrize("function", [_reads_in_a_branch, _decides_in_a_branch, _reads_in_a_loop, _loops])
def test_control_flow_that_reads_values(function: Any) -> None:
    """In predicates, branches and bodies: what is noted runs, and the result is the function's."""
    x = tp.arange(4.0)
    for how in ({}, {"backend": "aot_eager"}, {"backend": lambda graph, inputs: graph.forward}):
        call = tp.compile(function, **how) if "backend" in how else compiled(function)
        for value in (x, x - 3):
            assert str(call(value)) == str(function(value))
    if function is _decides_in_a_branch:
        with pytest.raises(exc.Unsupported, match="a value decides what the program does"):
            compiled(function, fullgraph=True)(x)
    else:
        assert str(compiled(function, fullgraph=True)(x)) == str(function(x))


def test_operators_from_outside_that_read_values() -> None:
    """By their tag and what they give, as tensorpy's own: a number is computed with, a bool decides something."""
    library = tp.library.Library("read_values", "DEF")
    schemas = {"number": "Scalar", "count": "int", "size": "float", "holds": "bool"}
    for name, gives in schemas.items():
        library.define(f"{name}(int least, Tensor x) -> {gives}", tags=(tp.Tag.data_dependent_output,))
        kind = {"Scalar": float, "int": int, "float": float, "bool": bool}[gives]
        library.impl(name, lambda least, x, kind=kind: kind(max(least, x.sum().item())), "CPU")
    try:
        for name in schemas:
            call = getattr(tp.ops.read_values, name)

            def function(x: tp.Tensor, call: Any = call) -> tp.Tensor:
                return x * call(2, x + 1)

            x = tp.ones(3)
            assert compiled(function)(x).equal(function(x))
            if name == "holds":
                with pytest.raises(
                    exc.Unsupported, match="a value decides what the program does, at read_values::holds"
                ):
                    compiled(function, fullgraph=True)(x)
            else:
                assert compiled(function, fullgraph=True)(x).equal(function(x))
    finally:
        library._destroy()


@pytest.mark.parametrize("backend", ["tensorpy", "aot_eager", "eager"])
@pytest.mark.parametrize("n", [3, 100_000])
def test_fullgraph_says_it_of_any_size(backend: str, n: int) -> None:
    def branches(x: tp.Tensor) -> tp.Tensor:
        return x * 2 if x.sum() > 0 else x

    whole = tp.compile(branches, fullgraph=True, backend=backend)
    for _ in range(2):
        with pytest.raises(exc.Unsupported, match=r"compile\(fullgraph=True\): the function does not run as a whole"):
            whole(tp.ones(n))
    fine = tp.compile(lambda x: (x + 1).exp().sum(), fullgraph=True, backend=backend)
    assert fine(tp.zeros(n)).equal(fine(tp.zeros(n))) and tp.compile(branches, backend=backend)(tp.ones(n))[0] == 2


def test_the_backend_that_only_calls() -> None:
    """backend="eager": a function of its own, whose calls run at once."""

    class Layer(nn.Module):
        @tp.compile(backend="eager")
        def forward(self, x: tp.Tensor) -> tp.Tensor:
            return x + 1 if tp.compiler.is_compiling() else x

    def function(x: tp.Tensor) -> tuple[bool, tp.Tensor]:
        """Says what it is."""
        return tp.compiler.is_compiling(), x * 2

    plain: Any = tp.compile(function, backend="eager")
    assert plain is not function and plain._torchdynamo_orig_callable is plain.__wrapped__ is function
    assert (plain.__name__, plain.__doc__) == ("function", "Says what it is.")
    assert plain(tp.ones(2))[0] and not function(tp.ones(2))[0] and copy.deepcopy(plain) is plain
    assert Layer()(tp.ones(1)) == 2 and plain._report()["calls"] == 0
    with tp.compiler.set_stance("force_eager"):
        assert not plain(tp.ones(2))[0]
    fast: Any = tp.compile(lambda x: plain(x + 1)[1] + 1, options={"smallest": 0})
    assert fast(tp.ones(4)).tolist() == [5.0] * 4 and fast._report()["calls"] == 3
    net = tp.compile(nn.Linear(2, 2), backend="eager")
    assert list(net.state_dict()) == ["_orig_mod.weight", "_orig_mod.bias"]
    assert tp.compiler.explain(plain)(tp.ones(2)).units == []


def test_kernels_that_cannot_wait_are_no_break() -> None:
    """They have what came before run, which the program does not see."""

    def function(x: tp.Tensor) -> tuple[Any, ...]:
        y = x * 2
        places = (y[:, 0] > 0).nonzero()[:, 0]
        cache = tp.zeros(6, 4)
        cache[places] = y[places] + 1
        return cache.sort(0).values * 2, tp.nn.functional.embedding(places, cache), tp.cumsum(y, 0) + 1

    x = tp.randn(6, 4)
    for one, other in zip(compiled(function, fullgraph=True)(x), function(x), strict=True):
        assert one.equal(other)


# ---- modules ----


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 2)
        self.scale = 1.0

    def forward(self, x: tp.Tensor) -> tp.Tensor:
        return self.second(self.first(x).relu()) * self.scale


def test_a_compiled_module() -> None:
    net = Net()
    fast = compiled(net)
    x = tp.randn(3, 4)
    assert isinstance(fast, tp._dynamo.OptimizedModule) and fast._orig_mod is net
    assert fast(x).equal(net(x)) and list(fast.state_dict()) == ["_orig_mod." + k for k in net.state_dict()]
    assert [id(p) for p in fast.parameters()] == [id(p) for p in net.parameters()]
    fast.scale = 2.0
    assert net.scale == 2.0 and fast(x).equal(net(x)) and "first" in dir(fast) and fast.first is net.first
    assert not fast.eval().training and not net.training and net.train() is net
    fast.load_state_dict({"_orig_mod." + k: v + 1 for k, v in net.state_dict().items()})
    assert fast(x).equal(net(x))
    seen = []
    fast.register_forward_hook(lambda m, i, o: seen.append("outer"))
    net.register_forward_hook(lambda m, i, o: seen.append("inner"))
    fast(x)
    assert seen == ["inner", "outer"]
    other = copy.deepcopy(compiled(Net()))
    other.first.weight.data.zero_()
    assert other(x).equal(other._orig_mod(x))
    assert not hasattr(fast, "third")


def test_a_module_compiles_its_own_calls() -> None:
    net, x = Net(), tp.randn(3, 4)
    expected = net(x)
    assert net.compile(options=NOTED) is None and net(x).equal(expected)
    assert net.forward._report()["calls"] > 0
    net.compile(options=NOTED, backend="aot_eager")
    assert net(x).equal(expected)
    twin = copy.deepcopy(net)
    twin.second.bias.data.add_(1)
    assert not twin(x).equal(expected) and "forward" not in vars(twin)
    assert pickle.loads(pickle.dumps(net))(x).equal(expected) and net(x).equal(expected)


def losses(steps: int, prepare: Any) -> tuple[list[float], Net]:
    tp.manual_seed(3)
    net = Net()
    net.train()
    optimizer = tp.optim.Adam(net.parameters(), lr=0.01)
    model, found = prepare(net), []
    for _ in range(steps):
        x = tp.randn(16, 4)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(nn.functional.dropout(model(x), 0.1), x[:, :2])
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found, net


def test_training_gives_the_same_losses() -> None:
    expected, net = losses(50, lambda m: m)
    for backend in ("aot_eager", "tensorpy"):
        got, twin = losses(50, lambda m, how=backend: compiled(m, backend=how))
        assert got == expected
        assert all(a.equal(b) for a, b in zip(net.parameters(), twin.parameters(), strict=True))


def test_a_whole_step_as_one_function() -> None:
    def train(wrap: Any) -> list[float]:
        tp.manual_seed(3)
        net = Net()
        optimizer = tp.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

        @wrap
        def step(x: tp.Tensor) -> float:
            optimizer.zero_grad()
            loss = net(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss.item()

        return [step(tp.randn(8, 4)) for _ in range(20)]

    assert train(compiled) == train(lambda f: f)


# ---- Python runs ----


def test_python_runs_at_every_call(capsys: pytest.CaptureFixture[str]) -> None:
    calls = []

    def function(x: tp.Tensor, factor: float = 1.0) -> tp.Tensor:
        calls.append(factor)
        y = x * factor
        print(y)
        return y + len(calls)

    fast = compiled(function)
    assert [fast(tp.ones(2), f).tolist() for f in (1.0, 2.0, 3.0)] == [[2.0, 2.0], [4.0, 4.0], [6.0, 6.0]]
    assert capsys.readouterr().out == "tensor([1., 1.])\ntensor([2., 2.])\ntensor([3., 3.])\n"


def test_errors_come_from_their_line() -> None:
    def function(x: tp.Tensor, index: tp.Tensor) -> tp.Tensor:
        y = x * 2
        try:
            return y[index]
        except IndexError:
            return y - 1

    x = tp.arange(300.0)
    for index in (tp.tensor([1]), tp.tensor([300])):
        assert compiled(function)(x, index).equal(function(x, index))
    with pytest.raises(RuntimeError, match="must match"):
        compiled(lambda x: (x + 1) + tp.ones(7))(x)


# Calls that fail because of values, which their checks do not know: one for each primitive that says so.
REFUSED_VALUES: dict[str, Callable[[], Any]] = {
    "a bag's place": lambda: tp.embedding_bag(tp.ones(3, 2), tp.tensor([0, 5]), tp.tensor([0, 1])),
    "a bag's begin": lambda: tp.embedding_bag(tp.ones(3, 2), tp.tensor([0, 1]), tp.tensor([1, 1])),
    "a label": lambda: nn.functional.ctc_loss(tp.zeros(5, 1, 4), tp.tensor([[1, 9]]), tp.tensor([5]), tp.tensor([2])),
    "a pivot": lambda: tp.linalg.lu_solve(tp.eye(3), tp.tensor([1, 2, 9], dtype=tp.int32), tp.ones(3, 1)),
    "a swap": lambda: tp.lu_unpack(tp.eye(3), tp.tensor([1, 2, 9], dtype=tp.int32)),
    "a block": lambda: tp.linalg.ldl_solve(tp.eye(3), tp.tensor([1, 2, 9], dtype=tp.int32), tp.ones(3, 1)),
    "a rate": lambda: tp.poisson(tp.tensor([1.0, -1.0])),
    "a class": lambda: nn.functional.nll_loss(tp.zeros(2, 3), tp.tensor([0, 7])),
    "a place": lambda: tp.zeros(2, 3).gather(1, tp.tensor([[9]])),
    "a place to write to": lambda: tp.zeros(3).index_add(0, tp.tensor([9]), tp.ones(1)),
    "a place of a window": lambda: nn.functional.max_unpool1d(tp.ones(1, 1, 2), tp.tensor([[[0, 9]]]), 2),
    "too few elements": lambda: tp.zeros(4).masked_scatter(tp.ones(4) > 0, tp.ones(2)),
}


@pytest.mark.parametrize("backend", ["tensorpy", "aot_eager"])
@pytest.mark.parametrize("refused", REFUSED_VALUES)
def test_errors_of_values_come_from_their_line(refused: str, backend: str) -> None:
    """What is noted before and after is computed all the same."""

    def function(x: tp.Tensor) -> tuple[Any, tp.Tensor]:
        y = x * 2
        try:
            REFUSED_VALUES[refused]()
        except (RuntimeError, IndexError) as error:
            return (type(error), str(error)), y + 1
        return None, y

    expected, result = function(tp.ones(300))
    got, computed = compiled(function, backend=backend)(tp.ones(300))
    assert got == expected is not None and computed.equal(result)


def test_random_numbers_are_the_same() -> None:
    def function(x: tp.Tensor) -> tp.Tensor:
        return nn.functional.dropout(x * 2, 0.5) + tp.rand_like(x) + x.bernoulli(0.3)

    x = tp.rand(400)
    tp.manual_seed(1)
    expected = function(x), tp.rand(2)
    tp.manual_seed(1)
    got = compiled(function)(x), tp.rand(2)
    assert got[0].equal(expected[0]) and got[1].equal(expected[1])


@pytest.mark.parametrize("n", [(8 << 20) + 777, 5000])
@pytest.mark.parametrize("threads", [1, 2])
def test_outputs_written_past_the_caches(n: int, threads: int) -> None:
    """Outputs as large as the caches, or all where a rule is left out: read again by calls after, of other dtypes, and
    written where no line begins."""
    before, given = tp.get_num_threads(), tp._C._set_fusion(0, () if n > 5000 else ("near",))
    a, b = tp.randn(n), tp.randn(n)

    def program(a: tp.Tensor, b: tp.Tensor) -> tuple[tp.Tensor, ...]:
        x = (a + b) * a
        y = (x - b).double() * 0.5
        z = tp.full((n + 3,), 7.0)
        z[3:] = y * x + x.sin()
        return x, y, x > a, z, (y + x).sum()

    try:
        tp.set_num_threads(threads)
        plan = tp.compiler.explain(compiled(program))(a, b)
        results = compiled(program)(a, b)
    finally:
        tp.set_num_threads(before)
        tp._C._set_fusion(*given)
    assert any(len(u.operators) > 3 for u in plan.units)
    for made, wanted in zip(results, program(a, b), strict=True):
        assert made.equal(wanted)


def test_what_is_written_before_and_after() -> None:
    """Reads of what is written later in the program have the old contents, through views, in place and out=."""

    def function(x: tp.Tensor) -> list[tp.Tensor]:
        before = x + 1
        view = x[::2]
        x.mul_(3)
        between = view * 1
        view.zero_()
        tp.add(before, 1, out=x)
        other = tp.empty(0)
        tp.sub(x, 1, out=other)
        x.resize_(3, 2)
        return [before, between, x, other, view]

    for wrap in (compiled, lambda f: compiled(f, backend="aot_eager")):
        a, b = tp.arange(400.0), tp.arange(400.0)
        for got, expected in zip(wrap(function)(a), function(b), strict=True):
            assert got.equal(expected) and got.stride() == expected.stride()


def test_transforms_inside_and_outside() -> None:
    def function(x: tp.Tensor) -> tp.Tensor:
        return (x.sin() * x).sum()

    x = tp.randn(300)
    expected = tp.func.grad(function)(x)
    assert compiled(tp.func.grad(function))(x).equal(expected) and tp.func.grad(compiled(function))(x).equal(expected)
    batch = tp.randn(5, 300)
    assert tp.vmap(compiled(function))(batch).equal(tp.vmap(function)(batch))
    with tp.autocast("cpu", dtype=tp.bfloat16):
        assert compiled(lambda a: a @ a.t())(batch).equal(batch @ batch.t())
    with tp.no_grad():
        assert not compiled(lambda a: a * 2)(batch.requires_grad_()).requires_grad


def test_operators_from_outside_see_contents() -> None:
    seen = []

    @tp.library.custom_op("test_compile::look", mutates_args=())
    def look(x: tp.Tensor) -> tp.Tensor:
        seen.append(x.tolist())
        return x * 2

    def function(x: tp.Tensor) -> tp.Tensor:
        return look(x + 1) + x

    x = tp.arange(200.0)
    assert compiled(function)(x).equal(function(x)) and seen[0] == seen[1]


def test_other_devices_and_layouts() -> None:
    def function(x: tp.Tensor) -> Any:
        y = x * 2
        return (y.to_sparse() * 3).to_dense(), y.to("meta"), tp.sparse.mm(y.to_sparse(), y.t())

    x = tp.eye(20)
    for got, expected in zip(compiled(function)(x), function(x), strict=True):
        assert got.device == expected.device and got.shape == expected.shape
        assert got.is_meta or got.equal(expected)
