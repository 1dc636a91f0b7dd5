"""make_fx: how what it records is written, graphs of fake tensors, decompositions."""

from __future__ import annotations

import unittest
from typing import Any

import pytest

import tensorpy as tp
from tensorpy._subclasses import FakeTensor
from tensorpy._subclasses.fake_tensor import DataDependentOutputException
from tensorpy.fx.experimental.proxy_tensor import DataDependentError, DecompositionInterpreter, make_fx

aten = tp.ops.aten
F = tp.nn.functional


def lines(f: Any, *args: Any, **options: Any) -> list[str]:
    code = make_fx(f, **options)(*args).code.strip().replace("tensorpy.ops.aten.", "")
    return [line.strip() for line in code.split("\n")]


def test_numbers_beside_tensors_are_recorded_as_modes_see_them() -> None:
    assert lines(lambda x: tp.add(2 * x, 1, alpha=3), tp.ones(2)) == [
        "def forward(self, x_1):",
        "mul = mul.Tensor(x_1, 2);  x_1 = None",
        "add = add.Tensor(mul, 1, alpha = 3);  mul = None",
        "return add",
    ]


def test_parts_of_a_result_have_nodes_in_their_order() -> None:
    assert lines(lambda x: (x.max(0), [x]), tp.ones(2, 2)) == [
        "def forward(self, x_1):",
        "max_1 = max.dim(x_1, 0)",
        "getitem = max_1[0]",
        "getitem_1 = max_1[1];  max_1 = None",
        "return ((getitem, getitem_1), [x_1])",
    ]


def test_factories_and_constants() -> None:
    assert lines(lambda x: x + tp.ones(2) + tp.zeros_like(x) + tp.tensor(2.0), tp.ones(2))[1:] == [
        "ones = ones.default([2], device = device(type='cpu'), pin_memory = False)",
        "add = add.Tensor(x_1, ones);  ones = None",
        "zeros_like = zeros_like.default(x_1, pin_memory = False);  x_1 = None",
        "add_1 = add.Tensor(add, zeros_like);  add = zeros_like = None",
        "_tensor_constant0 = self._tensor_constant0",
        "lift_fresh_copy = lift_fresh_copy.default(_tensor_constant0);  _tensor_constant0 = None",
        "add_2 = add.Tensor(add_1, lift_fresh_copy);  add_1 = lift_fresh_copy = None",
        "return add_2",
    ]


FUNCTIONS = (
    lambda x: (x * 2).relu().sum(),
    lambda x: F.dropout2d(x[None]).sum(0),  # draws on the device of its argument
    lambda x: tp.quantile(x, 0.5),  # composites that make tensors of their own
    lambda x: tp.mvlgamma(x + 5, 2),
    lambda x: tp.histc(x),
    lambda x: x.new_ones(2) + tp.full((2,), 3.0),
    lambda x: x.split([1, 1])[0].to(tp.float64),
    lambda x: x.sort(),
    lambda x: F.pad(x, (1, 1), mode="circular"),  # composites that compute with tables of the host
    lambda x: F.interpolate(x, 5, mode="linear"),
    lambda x: F.interpolate(x[None], 3, mode="bilinear", antialias=True),
)


@pytest.mark.parametrize("mode", ["fake", "symbolic"])
@pytest.mark.parametrize("f", FUNCTIONS)
def test_graphs_of_fake_tensors_are_those_of_real_ones(f: Any, mode: str) -> None:
    x = tp.arange(8.0).reshape(2, 2, 2)
    real, fake = make_fx(f)(x), make_fx(f, tracing_mode=mode)(x)
    assert real.code == fake.code or mode == "symbolic"  # whose sizes are nodes
    called = [node.meta["val"] for node in fake.graph.nodes if node.op == "call_function" and "val" in node.meta]
    values = [value for value in tp.utils._pytree.tree_leaves(called) if not isinstance(value, (int, tp.SymInt))]
    assert values and all(isinstance(value, FakeTensor) and value.device.type == "cpu" for value in values)
    given = tp.rand(2, 2, 2)
    tp.manual_seed(1)
    expected = tp.utils._pytree.tree_leaves(f(given))
    tp.manual_seed(1)
    got = tp.utils._pytree.tree_leaves(fake(given))
    assert all(a.equal(b) for a, b in zip(got, expected, strict=True))


def test_a_graph_of_fake_tensors_asks_for_no_value() -> None:
    with pytest.raises(DataDependentError, match="asks for the values of a tensor that depends"):
        make_fx(lambda x: x.sum().item(), tracing_mode="fake")(tp.ones(2))


def test_a_decomposition_runs_in_an_operator_s_place() -> None:
    def addmm(bias, a, b, *, beta=1, alpha=1):
        return NotImplemented if beta != 1 else bias + a @ b * alpha

    x = tp.rand(2, 2)
    module = make_fx(lambda x: tp.addmm(x, x, x, alpha=2), {aten.addmm.default: addmm})(x)
    names = [node.target.name() for node in module.graph.nodes if node.op == "call_function"]
    assert names == ["aten::mm", "aten::mul.Tensor", "aten::add.Tensor"]
    assert module(x).equal(x + x @ x * 2)
    declined = make_fx(lambda x: tp.addmm(x, x, x, beta=2), {aten.addmm.default: addmm})(x)
    assert "aten.addmm.default" in declined.code


@pytest.mark.parametrize("mode", ["real", "fake"])
def test_data_of_the_function_are_constants_of_the_graph(mode: str) -> None:
    def f(x):
        count = tp.tensor(3)
        count.add_(2)  # a constant still
        return x + tp.tensor([1.0, 2.0]) * count.item()

    module = make_fx(f, tracing_mode=mode)(tp.zeros(2))
    for _ in range(2):
        assert module(tp.ones(2)).tolist() == [6.0, 11.0]
    assert "meta" not in module.code


def test_fake_tensors_are_cast_by_autocast() -> None:
    def f(x):
        with tp.autocast("cpu", tp.bfloat16):
            return x @ x

    module = make_fx(f, tracing_mode="fake")(tp.ones(2, 2))
    assert module.code == make_fx(f)(tp.ones(2, 2)).code
    assert module(tp.ones(2, 2)).dtype == tp.bfloat16


def test_a_fake_tensor_goes_to_meta() -> None:
    with tp._subclasses.FakeTensorMode():
        x = tp.ones(2, 3).t()
        moved = x.to("meta"), x.to(tp.device("meta"), tp.float64), x.to(device="meta")
    assert [(t.device.type, t.dtype, t.shape) for t in moved] == [
        ("meta", tp.float32, (3, 2)),
        ("meta", tp.float64, (3, 2)),
        ("meta", tp.float32, (3, 2)),
    ]


def test_what_stands_for_values_is_noted_in_a_graph_of_a_module() -> None:
    from tensorpy.fx.passes.fake_tensor_prop import FakeTensorProp

    module = tp.fx.symbolic_trace(tp.nn.Sequential(tp.nn.Linear(3, 4), tp.nn.ReLU()))
    given = FakeTensorProp(module).propagate(tp.ones(2, 3))
    assert isinstance(given, FakeTensor) and given.shape == (2, 4)
    assert [tuple(node.meta["val"].shape) for node in module.graph.nodes] == [(2, 3), (2, 4), (2, 4), (2, 4)]


def test_a_graph_is_recorded_by_itself_inside_of_another_recording() -> None:
    from tensorpy.fx.experimental.proxy_tensor import get_isolated_graphmodule

    inner: list[Any] = []
    given = tp.ones(2)

    def f(x):
        inner.append(get_isolated_graphmodule(lambda y: y.sin() + 1, (given,), {}))
        return x * 2

    assert lines(f, tp.ones(2))[1:] == ["mul = mul.Tensor(x_1, 2);  x_1 = None", "return mul"]
    assert inner[0](tp.zeros(2)).tolist() == [1.0, 1.0]


def test_the_gradient_of_what_is_written_comes_of_the_values_before() -> None:
    def gradient(x: Any) -> Any:
        x = x.detach().requires_grad_()
        y = x * 1
        y.sin_()
        return tp.autograd.grad((y * y).sum(), x)[0]

    module = make_fx(gradient)(tp.ones(2))
    assert not any(node.op == "get_attr" for node in module.graph.nodes)
    assert tp.allclose(module(tp.full((2,), 3.0)), gradient(tp.full((2,), 3.0)))


def test_shapes_of_nodes_are_those_that_they_had() -> None:
    def grown(x: tp.Tensor) -> tp.Tensor:
        y = x.clone()
        y.unsqueeze_(0)
        return tp.var_mean(y, dim=0)[0]

    nodes = make_fx(grown, tracing_mode="fake")(tp.ones(3)).graph.nodes
    shapes = [tp.utils._pytree.tree_map(lambda t: tuple(t.shape), n.meta["val"]) for n in nodes if n.op != "output"]
    assert shapes == [(3,), (3,), (1, 3), ((3,), (3,)), (3,), (3,)]


def test_values_are_asked_for_in_pytorchs_words() -> None:
    for mode in ("real", "fake"):
        with pytest.raises(DataDependentOutputException, match="data-dependent"):
            make_fx(tp.allclose, tracing_mode=mode)(tp.zeros(3), tp.zeros(3))


def test_an_interpreter_writes_a_graph_of_parts() -> None:
    x = tp.rand(4)
    module, graph = make_fx(tp.nn.functional.silu)(x), tp.fx.Graph()
    table = {tp.ops.aten.silu.default: lambda x: x * x.sigmoid()}
    result = DecompositionInterpreter(module, new_graph=graph, decomposition_table=table).run(x)
    parts = tp.fx.GraphModule(module, graph)
    assert "silu" not in parts.code and tp.allclose(parts(x), result) and tp.allclose(result, module(x))


def test_names_and_factories_are_those_of_the_program() -> None:
    x = tp.ones(2)
    graph = make_fx(lambda a, b: a + b + tp.zeros(2, pin_memory=False))(x, x)
    assert [node.name for node in graph.graph.nodes][:2] == ["a_1", "b_1"]
    assert "zeros.default([2], device = device(type='cpu'), pin_memory = False)" in graph.code


def test_scopes_of_a_dispatcher_in_python_change_nothing() -> None:
    from tensorpy._dispatch import python

    x = tp.ones(2)
    for scope in map(python.__dict__.get, python.__all__):
        assert scope is not None
        with scope():
            assert make_fx(tp.func.functionalize(lambda x: x.add_(1)))(x.clone())(x.clone()).tolist() == [2, 2]


def test_the_class_of_a_test_with_other_settings() -> None:
    from tensorpy._dynamo.testing import make_test_cls_with_patches
    from tensorpy.fx.experimental import _config

    class Tests(unittest.TestCase):
        kept = 3

        def test_settings(self) -> None:
            assert _config.translation_validation and _config.use_duck_shape

        def test_fails(self) -> None:
            assert not _config.translation_validation

        test_fails.by_design = True  # type: ignore[attr-defined]

    changed: Any = make_test_cls_with_patches(
        Tests, "Validated", "_validated", (_config, "translation_validation", True), xfail_prop="by_design"
    )
    assert changed.__name__ == "ValidatedTests" and changed.kept == 3
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(changed).run(result)
    assert result.testsRun == 2 and len(result.expectedFailures) == 1 and result.wasSuccessful()
    assert not _config.translation_validation
    with pytest.raises(AttributeError):
        _config.nonsense  # noqa: B018
