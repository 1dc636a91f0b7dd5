"""What divides graphs, changes them and looks for patterns in them (tensorpy.fx.passes, tensorpy.fx.experimental)."""

from __future__ import annotations

import copy
import numbers
import operator
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tensorpy as tp
from tensorpy import nn
from tensorpy._functorch import compile_utils
from tensorpy._functorch.fx_minifier import minifier
from tensorpy.fx import Graph, GraphModule, Interpreter, Transformer, symbolic_trace, traceback
from tensorpy.fx.experimental.const_fold import split_const_subgraphs
from tensorpy.fx.experimental.merge_matmul import merge_matmul
from tensorpy.fx.experimental.normalize import NormalizeArgs, NormalizeOperators
from tensorpy.fx.experimental.optimization import fuse, remove_dropout
from tensorpy.fx.experimental.proxy_tensor import make_fx
from tensorpy.fx.experimental.rewriter import RewritingTracer
from tensorpy.fx.experimental.schema_type_annotation import AnnotateTypesWithSchema
from tensorpy.fx.operator_schemas import (
    _torchscript_type_to_python_type,
    create_type_hint,
    get_signature_for_torch_op,
    normalize_function,
    type_matches,
)
from tensorpy.fx.passes import pass_manager as older
from tensorpy.fx.passes.dialect.common.cse_pass import CSEPass
from tensorpy.fx.passes.graph_drawer import FxGraphDrawer
from tensorpy.fx.passes.graph_manipulation import get_size_of_all_nodes, replace_target_nodes_with
from tensorpy.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from tensorpy.fx.passes.infra.pass_base import PassBase, PassResult
from tensorpy.fx.passes.infra.pass_manager import PassManager, pass_result_wrapper, this_before_that_pass_constraint
from tensorpy.fx.passes.operator_support import OperatorSupport, OpSupports, chain, create_op_support
from tensorpy.fx.passes.param_fetch import lift_lowering_attrs_to_nodes
from tensorpy.fx.passes.reinplace import reinplace
from tensorpy.fx.passes.shape_prop import ShapeProp
from tensorpy.fx.passes.split_module import split_module
from tensorpy.fx.passes.split_utils import split_by_tags
from tensorpy.fx.passes.tools_common import legalize_graph, stable_topological_sort
from tensorpy.fx.passes.utils.fuser_utils import fuse_by_partitions
from tensorpy.fx.passes.utils.matcher_utils import SubgraphMatcher
from tensorpy.fx.passes.utils.matcher_with_name_node_map_utils import SubgraphMatcherWithNameNodeMap
from tensorpy.fx.subgraph_rewriter import replace_pattern
from tensorpy.fx.tensor_type import Dyn, TensorType, is_consistent, is_more_precise
from tensorpy.jit._types import infer


def same(a: Any, b: Any) -> None:
    tp.testing.assert_close(a, b)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(tp.rand(3, 4))
        self.line = nn.Linear(4, 4)

    def forward(self, x: Any, y: Any) -> Any:
        return self.line(x + self.scale * 2).clamp(min=0.0) + self.line(y).relu()


# ---- dividing ----


@pytest.mark.parametrize(
    "options", [{}, {"keep_original_order": True}, {"partition_affix": "p"}, {"tuple_return": True}]
)
def test_a_module_in_parts_computes_the_same(options: dict[str, Any]) -> None:
    net = symbolic_trace(Net())
    order = {node: i for i, node in enumerate(net.graph.nodes)}
    paths: dict[str, str] = {}
    parts = split_module(net, net, lambda node: order[node] // 4, paths, **options)
    x, y = tp.rand(3, 4), tp.rand(3, 4)
    same(parts(x, y), net(x, y))
    assert set(paths.values()) == {"line"}
    assert all(type(parts.get_submodule(path)) is nn.Linear for path in paths)
    parts.graph.lint()


def test_parts_that_need_each_other_are_refused() -> None:
    net = symbolic_trace(lambda x: ((x + 1).relu() * 2).relu())
    places = {node: i % 2 for i, node in enumerate(net.graph.nodes)}
    with pytest.raises(RuntimeError, match="cycle"):
        split_module(net, net, places.__getitem__)


def test_parts_by_tags() -> None:
    net = symbolic_trace(Net())
    for node in net.graph.nodes:
        node.tag = "second" if node.op == "call_function" and node.name == "add_1" else "first"
    parts, paths = split_by_tags(net, ["first", "second"], return_fqn_mapping=True)
    x, y = tp.rand(3, 4), tp.rand(3, 4)
    same(parts(x, y), net(x, y))
    assert [name for name, _ in parts.named_children()] == ["first", "second"]
    assert paths == {"line": "first.line", "scale": "first.scale"}
    assert parts.first.scale is net.scale


def _adds() -> OperatorSupport:
    class Adds(OperatorSupport):
        def is_node_supported(self, submodules: Any, node: Any) -> bool:
            return bool(node.op == "call_function" and node.target is operator.add)

    return Adds()


def test_partitions_are_large_and_have_no_circle() -> None:
    def f(a: Any, b: Any) -> Any:
        c = a + b
        d = c.relu()  # from one sum to the other through what is not computed: they cannot be one
        return (c + d) + (a + c)

    net = symbolic_trace(f)
    found = CapabilityBasedPartitioner(net, _adds()).propose_partitions()
    names = sorted(sorted(node.name for node in part.nodes) for part in found)
    assert names == [["add_1", "add_2", "add_3"]] or names == [["add", "add_2"], ["add_1", "add_3"]]
    fused = CapabilityBasedPartitioner(net, _adds(), allows_single_node_partition=True).partition_and_fuse()
    a, b = tp.rand(3), tp.rand(3)
    same(fused(a, b), f(a, b))
    assert all(node.op != "call_function" for node in fused.graph.nodes)


def test_a_circle_is_refused() -> None:
    net = symbolic_trace(lambda a: (a + 1).relu() + 2)
    first, last = (node for node in net.graph.nodes if node.op == "call_function")
    with pytest.raises(AssertionError, match="cycles"):
        fuse_by_partitions(net, [{first: None, last: None}])


def test_who_supports_a_node() -> None:
    net = symbolic_trace(lambda x: tp.relu(x) + 1)
    ShapeProp(net).propagate(tp.ones(2))
    relu = next(node for node in net.graph.nodes if node.name == "relu")
    table = OperatorSupport({"tensorpy.relu": (((tp.float64,),), {})})
    assert not table.is_node_supported({}, relu)
    assert OperatorSupport({"tensorpy.relu": None}).is_node_supported({}, relu)
    named = create_op_support(lambda modules, node: node.name == "relu")
    assert chain(named, OpSupports.decline_if_input_dtype(tp.int64)).is_node_supported({}, relu)
    assert not chain(named, OpSupports.decline_if_input_dtype(tp.float32)).is_node_supported({}, relu)


# ---- patterns ----


def test_matches_overlap_only_if_asked() -> None:
    graph = symbolic_trace(lambda x: tp.sigmoid(tp.sigmoid(tp.sigmoid(x)))).graph
    pattern = symbolic_trace(lambda x: tp.sigmoid(tp.sigmoid(x))).graph
    assert len(SubgraphMatcher(pattern).match(graph)) == 1
    assert len(SubgraphMatcher(pattern, remove_overlapping_matches=False).match(graph)) == 2
    assert not SubgraphMatcher(pattern, match_output=True, match_placeholder=True).match(graph)


def test_an_input_of_a_match_comes_of_nothing_inside() -> None:
    def pattern(a: Any, b: Any) -> Any:
        c = tp.relu(a)
        return c, c * b

    def circle(x: Any) -> Any:
        y = tp.relu(x)
        return y * tp.sigmoid(y)

    matcher = SubgraphMatcher(symbolic_trace(pattern).graph)
    assert not matcher.match(symbolic_trace(circle).graph)
    assert len(matcher.match(symbolic_trace(lambda x: tp.relu(x) * tp.sigmoid(x)).graph)) == 1
    net = symbolic_trace(circle)
    assert not replace_pattern(net, pattern, lambda a, b: (a, b))
    same(net(tp.ones(2)), circle(tp.ones(2)))


def test_a_match_of_the_output_has_it() -> None:
    graph = symbolic_trace(lambda x: tp.neg(x)).graph
    (match,) = SubgraphMatcher(graph, match_output=True, match_placeholder=True).match(graph)
    assert match.nodes_map == {node: node for node in graph.nodes}


@pytest.mark.parametrize("words", [{"stride": 1}, {"padding": 1}, {"stride": 1, "padding": 1}, {"dilation": 1}])
def test_arguments_of_operators_that_are_left_out_match_their_defaults(words: dict[str, Any]) -> None:
    def pattern(x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Any:
        return tp.ops.aten.max_pool2d_with_indices.default(x, kernel, stride, padding, dilation)

    graph = make_fx(nn.MaxPool2d(2, **words))(tp.ones(1, 4, 4)).graph
    assert len(SubgraphMatcher(symbolic_trace(pattern).graph).match(graph)) == 1


def test_a_packet_is_what_a_node_calls() -> None:
    net = symbolic_trace(lambda x: tp.ops.aten.relu(tp.ops.aten.add(x, 1)))
    calls = [node for node in net.graph.nodes if node.op == "call_function"]
    assert [node.target for node in calls] == [tp.ops.aten.add, tp.ops.aten.relu]
    assert [node.name for node in calls] == ["add", "relu"] and "tensorpy.ops.aten.add(x, 1)" in net.code
    for made in (net, copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        same(made(tp.ones(2)), tp.full((2,), 2.0))
    assert not any(node.is_impure() for node in calls)
    assert symbolic_trace(lambda x: tp.ops.aten.add_(x, 1)).graph.output_node().all_input_nodes[0].is_impure()


def test_nodes_of_a_match_by_name() -> None:
    def pattern(x: Any) -> Any:
        y = tp.relu(x)
        return y, {"the_relu": y}

    graph = symbolic_trace(lambda x: tp.relu(x + 1) * 2).graph
    (match,) = SubgraphMatcherWithNameNodeMap(symbolic_trace(pattern)).match(graph)
    assert match.name_node_map["the_relu"].target is tp.relu


# ---- passes ----


def test_what_is_computed_twice_is_computed_once() -> None:
    def f(x: Any) -> Any:
        return x.cos() + x.cos() * x.sum(0) + x.sum(0)

    gm = make_fx(f)(tp.rand(3, 3))
    result = CSEPass()(gm)
    assert result is not None and result.modified
    assert len(result.graph_module.graph.nodes) == len(gm.graph.nodes) - 2
    x = tp.rand(3, 3)
    same(result.graph_module(x), f(x))


@pytest.mark.parametrize(
    "f", [lambda x: x.clone().add_(1) + x.clone().add_(1), lambda x: tp.rand_like(x) - tp.rand_like(x)]
)
def test_calls_that_give_different_values_stay_two(f: Any) -> None:
    gm = make_fx(f)(tp.rand(3))
    result = CSEPass()(gm)
    assert result is not None and not result.modified
    assert len(result.graph_module.graph.nodes) == len(gm.graph.nodes)


def test_constants_that_are_equal_and_not_the_same_stay_two() -> None:
    gm = make_fx(lambda x: (x + 1, x + 1.0, x + True))(tp.arange(3))
    result = CSEPass()(gm)
    assert result is not None
    assert [y.dtype for y in result.graph_module(tp.arange(3))] == [tp.int64, tp.float32, tp.int64]


def test_passes_in_an_order() -> None:
    class Nothing(PassBase):
        def call(self, graph_module: Any) -> PassResult:
            return PassResult(graph_module, False)

    first, second = Nothing(), Nothing()
    before = this_before_that_pass_constraint(first, second)
    with pytest.raises(RuntimeError, match="schedule constraint violated"):
        PassManager([second, first], [before]).validate_constraints()
    manager = PassManager([second, first], [before])
    manager.solve_constraints()
    assert manager.passes == [first, second]
    after = this_before_that_pass_constraint(second, first)
    with pytest.raises(RuntimeError, match="Circular dependency"):
        PassManager([first, second], [before, after]).solve_constraints()


def test_passes_run_until_nothing_changes() -> None:
    def one(gm: Any) -> Any:
        for node in gm.graph.nodes:
            if node.target is tp.mul:
                node.target = tp.div
                return PassResult(gm, True)
        return PassResult(gm, False)

    net = symbolic_trace(lambda x: tp.mul(tp.mul(x, 2.0), 4.0))
    result = PassManager([one], steps=5)(net)
    assert result.modified
    same(result.graph_module(tp.tensor(8.0)), tp.tensor(1.0))
    with pytest.raises(RuntimeError, match="An error occurred when running the 'fails' pass"):
        PassManager([_fails])(net)
    with pytest.raises(TypeError):
        PassManager([lambda gm: None])(net)
    assert PassManager([pass_result_wrapper(lambda gm: None)])(net).modified


def _fails(gm: Any) -> Any:
    raise RuntimeError("no")


fails = _fails
_fails.__name__ = "fails"


def test_older_passes() -> None:
    def more(x: int) -> int:
        return x + 1

    assert older.PassManager([more] * 3)(0) == 3
    assert older.loop_pass(more, n_iter=4)(0) == 4
    assert older.loop_pass(more, predicate=lambda x: x < 9)(0) == 9
    seen: list[int] = []
    assert older.inplace_wrapper(lambda x: x.append(1))(seen) is seen


def test_sizes_and_other_targets() -> None:
    net = symbolic_trace(lambda x: tp.relu(x))
    get_size_of_all_nodes(net, [tp.ones(4)])
    assert [node.size_bytes.output_size for node in net.graph.nodes if node.op != "output"] == [16, 16]
    replace_target_nodes_with(net, "call_function", tp.relu, "call_method", "neg")
    same(net(tp.ones(2)), -tp.ones(2))
    line = symbolic_trace(nn.Sequential(nn.Linear(2, 2)))
    lift_lowering_attrs_to_nodes(line)
    assert any(getattr(node, "attrs_for_lowering", {}).get("weight") is not None for node in line.graph.nodes)


def test_the_order_of_nodes() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    late = graph.call_function(tp.neg, (x,))
    early = graph.call_function(tp.relu, (x,))
    late.args = (early,)
    graph.output(late)
    net = GraphModule({}, graph)
    with pytest.raises(RuntimeError, match="before it has been defined"):
        graph.lint()
    stable_topological_sort(net)
    graph.lint()
    legalize_graph(net)
    net.recompile()
    same(net(tp.tensor([-1.0, 2.0])), tp.tensor([0.0, -2.0]))
    early = next(node for node in net.graph.nodes if node.name == "relu")
    early.args = (next(node for node in net.graph.nodes if node.name == "neg"),)
    with pytest.raises(RuntimeError, match="cycles"):
        legalize_graph(net)


def test_pictures_of_modules_inside() -> None:
    net = symbolic_trace(lambda x: (x + 1).relu() + x)
    nodes = [node for node in net.graph.nodes if node.name in ("add", "relu")]
    drawer = FxGraphDrawer(fuse_by_partitions(net, [dict.fromkeys(nodes)]), "net")
    assert set(drawer.get_all_dot_graphs()) == {"net", "net_fused_0"}
    assert "fused_0" in str(drawer.get_dot_graph()) and b"<svg" in drawer.get_dot_graph("fused_0").create_svg()


# ---- constants ----


def test_the_constant_part_runs_once() -> None:
    net = Net()
    folded = split_const_subgraphs(net)
    x, y = tp.rand(3, 4), tp.rand(3, 4)
    same(folded(x, y), net(x, y))
    assert folded.has_folding_been_run and folded.const_subgraph_module is not None
    assert not any(node.target == "scale" for node in folded.graph.nodes)
    with pytest.raises(AssertionError):
        folded.run_folding()
    skipped = split_const_subgraphs(net, skip_folding_node_fn=lambda node: True)
    assert skipped.const_subgraph_module is None


def test_several_constants() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Parameter(tp.rand(2)), nn.Parameter(tp.rand(2))

        def forward(self, x: Any) -> Any:
            return x + self.a.exp(), x * self.b.cos(), tp.rand(2).sum() * 0 + x

    net = Two()
    folded = split_const_subgraphs(net)
    for got, wanted in zip(folded(tp.ones(2)), net(tp.ones(2)), strict=True):
        same(got, wanted)


def test_a_circle_names_the_passes_in_it() -> None:
    def first(module: Any) -> None: ...
    def second(module: Any) -> None: ...
    def third(module: Any) -> None: ...

    passes = [third, second, first]
    circle = [this_before_that_pass_constraint(first, second), this_before_that_pass_constraint(second, first)]
    with pytest.raises(RuntimeError) as error:
        PassManager(passes, circle).solve_constraints()
    assert str(error.value) == f"Circular dependency detected within the following passes: {[second, first]}"
    manager = PassManager(passes, [this_before_that_pass_constraint(first, third)])
    manager.solve_constraints()
    assert manager.passes == [second, first, third]


def test_dead_calls_go_in_graphs_inside_too() -> None:
    def branch(x: Any) -> Any:
        x.sin()
        return x.cos()

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.named, self.alone = symbolic_trace(branch), symbolic_trace(branch)

    root = Outer()
    graph = Graph(root)
    x = graph.placeholder("x")
    graph.output((x, graph.get_attr("named")))
    net = GraphModule(root, graph)
    setattr(net, "alone", root.alone)  # noqa: B010
    assert net.graph.eliminate_dead_code() and not net.graph.eliminate_dead_code()
    dead = {name: any(n.target == "sin" for n in getattr(net, name).graph.nodes) for name in ("named", "alone")}
    assert dead == {"named": False, "alone": True}


def test_dead_calls_of_a_graph_out_of_order_are_an_error() -> None:
    net = symbolic_trace(lambda x: x.sin().cos())
    _, sin, cos, _ = net.graph.nodes
    cos.append(sin)
    with pytest.raises(RuntimeError, match="before"):
        net.graph.eliminate_dead_code()


def test_names_in_a_pattern_that_was_exported() -> None:
    class Pattern(nn.Module):
        def forward(self, x: Any) -> Any:
            y = x.relu()
            return y, y * 2, {"relu": y}

    class Program(nn.Module):
        def forward(self, x: Any) -> Any:
            y = (x + 1).relu()
            return y + y * 2

    x = tp.randn(3)
    program, pattern = (tp.export.export(made(), (x,)).module() for made in (Program, Pattern))
    (found,) = SubgraphMatcherWithNameNodeMap(pattern).match(program.graph)
    assert found.name_node_map["relu"] in program.graph.nodes and "relu" in str(found.name_node_map["relu"].target)
    for got, wanted in zip(pattern(x), (x.relu(), x.relu() * 2), strict=True):
        same(got, wanted)


# ---- other graphs of the same ----


def test_arguments_by_name() -> None:
    net = symbolic_trace(lambda x: tp.add(x, 1, alpha=2) + nn.functional.relu(x))
    named = NormalizeArgs(net).transform()
    same(named(tp.ones(2)), net(tp.ones(2)))
    assert all(not node.args for node in named.graph.nodes if node.target in (tp.add, nn.functional.relu))
    plain = NormalizeOperators(net).transform()
    assert not any(node.target is operator.add for node in plain.graph.nodes)
    same(plain(tp.ones(2)), net(tp.ones(2)))
    found = normalize_function(tp.ops.aten.add.Tensor, (tp.ones(1), 2), normalize_to_only_use_kwargs=True)
    assert found is not None and set(found.kwargs) == {"input", "other", "alpha"}
    assert len(get_signature_for_torch_op(tp.add)) == len(tp.ops.aten.add.overloads())
    assert get_signature_for_torch_op(print) is None


@pytest.mark.parametrize("x", [tp.ones(2, 3)])
@pytest.mark.parametrize(
    ("function", "args"),
    [(tp.sum, (1,)), (tp.sum, ([0, 1], True)), (tp.add, (2,)), (tp.max, (0,)), (tp.max, ()), (tp.split, (1,))],
)
def test_types_choose_an_overload(function: Any, args: tuple[Any, ...], x: tp.Tensor) -> None:
    kinds = [_torchscript_type_to_python_type(infer(arg).type()) for arg in (x, *args)]
    named = normalize_function(function, (x, *args), {}, kinds, {}, normalize_to_only_use_kwargs=True)
    assert named is not None and not named.args and "out" not in named.kwargs
    got, wanted = function(**named.kwargs), function(x, *args)
    same(tuple(got) if isinstance(got, tuple) else got, tuple(wanted) if isinstance(wanted, tuple) else wanted)


def test_arguments_that_several_overloads_take_want_types() -> None:
    x = tp.ones(2)
    with pytest.raises(RuntimeError, match=r"Tried to normalize arguments to .*add.* ambiguous"):
        normalize_function(tp.add, (x, 1))
    by_place = normalize_function(tp.add, (x, 1), {}, (tp.Tensor, int))
    assert by_place is not None and by_place.args == (x, 1) and by_place.kwargs == {"alpha": 1}
    assert normalize_function(tp.add, (x, "1"), {}, (tp.Tensor, str)) is None
    assert normalize_function(lambda *args: args, (1, 2)) is None
    assert normalize_function(lambda a, b=3: a, (1,)) == ((1,), {"b": 3})


def test_types_that_signatures_take() -> None:
    takes = [
        (numbers.Number, int), (numbers.Number, float), (int, tp.dtype), (list[int], int), (list[int], list[int]),
        (list[int], tuple[int, int]), (int | None, int), (int | None, type(None)), (tp.Tensor, nn.Parameter),
        (list[int] | None, tuple[()]), (list[tp.Tensor | None], list[tp.Tensor]),
        (list[tp.Tensor | None], list[tp.Tensor | None]),
    ]  # fmt: skip
    refuses = [(int, float), (tp.Tensor, int), (list[int], float), (list[int], list[float]), (list[int], tuple[str])]
    assert all(type_matches(*pair) for pair in takes) and not any(type_matches(*pair) for pair in refuses)
    hints = [create_type_hint(types) for types in ([int, bool], (tp.Tensor, nn.Parameter), [int, str], [], int)]
    assert hints == [list[int], tuple[tp.Tensor, ...], list[Any], list[Any], int]


def test_types_of_values() -> None:
    values = {
        1: int, 2.5: float, "a": str, (1, "a"): tuple[int, str], (): tuple[()], None: type(None), tp.float32: int,
        tp.device("cpu"): tp.device,
    }  # fmt: skip
    assert {value: infer(value).type().hint for value in values} == values
    assert infer([tp.ones(1), None]).type().hint == list[tp.Tensor | None]
    assert str(infer({"a": [1, None]}).type()) == "Dict[str, List[Optional[int]]]"
    assert infer({"a": [1]}).type().hint == dict[str, list[int]] and str(infer(tp.ones(1)).type()) == "Tensor"
    for value, why in (([], "must have elements"), ([1, "a"], "Found int and str"), (object(), "type object")):
        found = infer(value)
        assert not found.success() and why in found.reason()
        with pytest.raises(RuntimeError, match=why):
            found.type()


def test_types_of_nodes() -> None:
    typed = AnnotateTypesWithSchema(symbolic_trace(Net())).transform()
    assert {node.type for node in typed.graph.nodes if node.op in ("call_module", "get_attr")} == {tp.Tensor}


def test_products_of_one_right_side() -> None:
    class Products(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(tp.rand(3, 3))

        def forward(self, x: Any, y: Any) -> Any:
            first = tp.matmul(x, self.w)
            return first, tp.matmul(y, self.w)

    net, x, y = Products(), tp.rand(2, 3), tp.rand(4, 3)
    merged = merge_matmul(net)
    assert sum(node.target is tp.matmul for node in merged.graph.nodes) == 1
    for got, wanted in zip(merged(x, y), net(x, y), strict=True):
        same(got, wanted)
    chained = merge_matmul(lambda x, w: tp.matmul(tp.matmul(x, w), w))
    assert sum(node.target is tp.matmul for node in chained.graph.nodes) == 2


def test_models_for_inference() -> None:
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Dropout(0.5), nn.ReLU()).eval()
    x = tp.rand(1, 1, 5, 5)
    small = remove_dropout(fuse(net))
    same(small(x), net(x))
    assert sum(node.op == "call_module" for node in small.graph.nodes) == 2


def test_assertions_are_traced() -> None:
    limit = 3

    class Checked(nn.Module):
        def forward(self, x: Any, n: Any) -> Any:
            assert n < limit, "too large"
            return x + n

    tracer = RewritingTracer()
    graph = tracer.trace(Checked())
    net = GraphModule(tracer.root, graph)
    same(net(tp.ones(1), 2), tp.tensor([3.0]))
    with pytest.raises(AssertionError, match="too large"):
        net(tp.ones(1), 4)


def test_types_of_shapes() -> None:
    assert TensorType((1, Dyn)) == TensorType[1, Dyn]
    assert is_consistent(TensorType((1, Dyn)), TensorType((1, 3))) and not is_consistent(
        TensorType((1,)), TensorType((2,))
    )
    assert is_more_precise(TensorType((1, 2)), TensorType((1, Dyn)))
    assert not is_more_precise(TensorType((1, Dyn)), TensorType((1, 2)))


# ---- notes and hooks ----


def test_marks_of_a_program_are_at_its_nodes() -> None:
    def f(x: Any) -> Any:
        with traceback.annotate({"stage": 0}):
            y = x.relu()
        return y + 1

    for net in (symbolic_trace(f), make_fx(f)(tp.ones(2))):
        marks = [node.meta.get("custom") for node in net.graph.nodes if node.op not in ("placeholder", "output")]
        assert marks == [{"stage": 0}, None]
    assert not traceback.has_preserved_node_meta() and "custom" not in traceback.get_current_meta()


def test_hooks_of_nodes() -> None:
    net = symbolic_trace(lambda x: x.relu())
    made, gone, changed = [], [], []
    net._register_create_node_hook(made.append)
    net._register_erase_node_hook(gone.append)
    relu = next(node for node in net.graph.nodes if node.name == "relu")
    with net._set_replace_hook(lambda old, new, user: changed.append((old, new, user.op))):
        with net.graph.inserting_after(relu):
            new = net.graph.call_function(tp.neg, (relu.args[0],))
        relu.replace_all_uses_with(new)
    net.graph.erase_node(relu)
    assert made == [new] and gone == [relu] and changed == [(relu, "neg", "output")]
    net._unregister_create_node_hook(made.append)
    net.graph.call_function(tp.neg, (new,))
    assert made == [new]
    with pytest.warns(UserWarning, match="Attempted to insert a get_attr Node with no underlying reference"):
        net.graph.get_attr("nothing.here")


def test_writes_are_refused_where_they_are_not_wanted() -> None:
    class Strict(tp.fx.Tracer):
        check_mutable_operations = True

    def f(x: Any) -> Any:
        y = tp.empty(2)
        tp.sigmoid(x, out=y)
        return y

    with pytest.raises(RuntimeError, match=r"mutable operation aten::sigmoid.out"):
        Strict().trace(f)
    Strict().trace(lambda x: tp.sigmoid(x))


def test_an_interpreter_keeps_only_the_result() -> None:
    run = Interpreter(symbolic_trace(lambda x: (x + 1).relu()))
    run.run(tp.ones(2))
    assert [node.op for node in run.env] == ["output"]
    with pytest.raises(RuntimeError, match="Expected positional argument for parameter x"):
        run.run()


def test_trees_among_the_arguments_are_code() -> None:
    net = symbolic_trace(lambda x: x["a"] + x["b"][0], concrete_args={"x": {"a": tp.fx.PH, "b": [tp.fx.PH]}})
    given = {"a": tp.ones(1), "b": [tp.ones(1)]}
    assert "tree_flatten_spec" in net.code
    for each in (net, Transformer(net).transform(), symbolic_trace(net)):
        same(each(given), tp.tensor([2.0]))
    assert sum(node.op == "placeholder" for node in symbolic_trace(net).graph.nodes) == 1


def test_a_folder_with_the_code(tmp_path: Path) -> None:
    net = symbolic_trace(Net())
    net.to_folder(tmp_path / "saved", "Saved")
    program = (
        "import tensorpy as tp; from saved import Saved; net = Saved(); tp.manual_seed(0); "
        "print(net(tp.ones(3, 4), tp.ones(3, 4)).sum().item())"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert abs(float(done.stdout) - net(tp.ones(3, 4), tp.ones(3, 4)).sum().item()) < 1e-4


def test_a_norm_that_went_into_a_convolution_is_no_module_any_more() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3, bias=False, dtype=tp.bfloat16), nn.BatchNorm2d(4)).eval()
    fused = fuse(model)
    assert not any(isinstance(m, nn.BatchNorm2d) for m in fused.modules())
    x = tp.randn(1, 3, 8, 8).bfloat16()
    assert fused(x).dtype == tp.bfloat16 and tp.allclose(fused(x), model(x), atol=0.1)


def test_functions_with_strings_that_stand_further_left_are_rewritten() -> None:
    class Asks(nn.Module):
        def forward(self, a: Any, b: Any) -> Any:
            message = """
two lines
"""
            assert a == b, message
            return a + b

    graph = RewritingTracer().trace(Asks())
    assert any(node.target is tp._assert for node in graph.nodes)


def test_modules_that_write_their_code_late() -> None:
    from tensorpy.fx._lazy_graph_module import _force_skip_lazy_graph_module, _LazyGraphModule, _use_lazy_graph_module

    with _use_lazy_graph_module(True):
        late: Any = symbolic_trace(lambda x: x + 1)
        with _force_skip_lazy_graph_module():
            assert not isinstance(symbolic_trace(lambda x: x + 1), _LazyGraphModule)
    assert isinstance(late, _LazyGraphModule) and late._needs_recompile()
    assert late(tp.ones(1)).item() == 2.0 and not late._needs_recompile()
    late.recompile()
    assert late._needs_recompile() and "add" in late.code and not late._needs_recompile()
    assert type(symbolic_trace(lambda x: x)).__mro__[1] is GraphModule


# ---- writes where nobody sees them ----


def targets(gm: GraphModule) -> list[str]:
    return [str(node.target) for node in gm.graph.nodes if node.op == "call_function"]


def _reads_later(x: Any) -> Any:
    a = x.clone()
    shown = a.view(-1)
    return a + 1, shown * 2


def _reads_twice(x: Any) -> Any:
    a = x.clone()
    return a * a


def _writes_two_views(x: Any) -> Any:
    a = x.clone()
    a[1].add_(1)
    a[:, 0].mul_(3)
    return a


def _other_dtype(x: Any) -> Any:
    return x.clone().ge(0)


def _repeats(x: Any) -> Any:
    return x.clone()[:1].expand(4, 4) + 1


def _chain(x: Any) -> Any:
    return x.clone().add(1).mul(2).view(-1).sub(3)


def _parts(x: Any) -> Any:
    a, b = x.clone().split(2)
    return a.sin().cos(), b


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (_reads_later, ["clone.default", "view.default", "add.Tensor", "mul_.Tensor"]),
        (_reads_twice, ["clone.default", "mul.Tensor"]),
        (lambda x: x.add(1), ["add.Tensor"]),
        (_other_dtype, ["clone.default", "ge.Scalar"]),
        (_repeats, ["clone.default", "slice.Tensor", "expand.default", "add.Tensor"]),
        (_chain, ["clone.default", "add_.Tensor", "mul_.Tensor", "view.default", "sub_.Tensor"]),
        (lambda x: x.clone()[1].sin(), ["clone.default", "select.int", "sin_.default"]),
    ],
)
def test_a_call_writes_its_argument_where_nothing_reads_that_later(f: Any, expected: list[str]) -> None:
    x = tp.rand(4, 4)
    gm = reinplace(make_fx(f)(x), x)
    assert targets(gm) == [f"aten.{name}" for name in expected]
    before = x.clone()
    same(gm(x), f(x))
    same(x, before)


@pytest.mark.parametrize("f", [_writes_two_views, _parts, lambda x: tp.select_scatter(x.clone(), x[0], 0, 1)])
def test_parts_that_are_put_back_are_written_where_they_lie(f: Any) -> None:
    x = tp.rand(4, 4)
    gm = reinplace(make_fx(tp.func.functionalize(f))(x), x)
    assert not any("scatter" in target for target in targets(gm))
    assert any(target.partition(".")[2].partition(".")[0].endswith("_") for target in targets(gm))
    same(gm(x), f(x))


def test_a_part_that_belongs_elsewhere_is_copied() -> None:
    def f(x: Any) -> Any:
        a = x.clone()
        return tp.select_scatter(a, a[1].add(1), 0, 0)

    x = tp.rand(4, 4)
    gm = reinplace(make_fx(f)(x), x)
    assert targets(gm)[-2:] == ["aten.select.int", "aten.copy_.default"]
    same(gm(x), f(x))


def test_a_write_through_many_views_takes_each_view_once() -> None:
    def calls(views: int) -> int:
        def f(x: Any) -> Any:
            part = x.clone()
            for _ in range(views):
                part = part[:-1]
            part.add_(1)
            return part

        return len(targets(make_fx(tp.func.functionalize(f))(tp.rand(20))))

    assert calls(12) - calls(8) == calls(8) - calls(4)


# ---- graphs that compilers take ----


def test_what_a_graph_returns_stays_apart() -> None:
    def f(x: Any) -> Any:
        return x.sin() + x.sin(), x.cos(), x.cos()

    graph = make_fx(f)(tp.rand(3)).graph
    for node, value in zip(graph.nodes, [tp.rand(3) for _ in graph.nodes], strict=True):
        node.meta["val"] = value
    made = GraphModule({}, compile_utils.fx_graph_cse(graph))
    assert targets(made).count("aten.sin.default") == 1 and targets(made).count("aten.cos.default") == 2
    same(made(x := tp.rand(3)), f(x))


def test_a_graph_that_writes_is_copied_as_it_is() -> None:
    gm = make_fx(lambda x: (x.add_(1), x.sin(), x.sin())[1:])(tp.rand(3))
    made = compile_utils.fx_graph_cse(gm.graph)
    assert made is not gm.graph and len(made.nodes) == len(gm.graph.nodes)


def test_parts_of_a_graph() -> None:
    gm = make_fx(lambda x, y: (tp.std_mean(x)[1], y, y + 1))(tp.rand(3), tp.rand(3))
    graph = gm.graph
    assert [node.name for node in compile_utils.get_placeholders(graph)] == ["x_1", "y_1"]
    assert [node.op for node in compile_utils.get_outputs(graph)] == ["call_function", "placeholder", "call_function"]
    (item,) = (node for node in graph.nodes if node.target is operator.getitem and node.users)
    compile_utils.raise_getitems(gm)
    assert item.prev.target is tp.ops.aten.std_mean.correction or item.prev.target is operator.getitem
    compile_utils.strip_overloads(gm)
    assert tp.ops.aten.add in [node.target for node in graph.nodes]


def calls(name: str) -> Any:
    return lambda gm, _: any(target.startswith(f"aten.{name}.") for target in targets(gm))


@pytest.mark.parametrize("granularity", [None, 1, 4])
def test_a_graph_that_fails_becomes_small(granularity: int | None) -> None:
    def f(x: Any, y: Any) -> Any:
        a = (x + 1).sin() * y
        b = a.cos().exp()
        return b.log(), y, (b * a).sum()

    inputs, seen = [tp.rand(3), tp.rand(3)], []
    gm, given = minifier(
        make_fx(f)(*inputs), inputs, calls("exp"), lambda gm, _: seen.append(gm), max_granularity=granularity
    )
    assert targets(gm) == ["aten.exp.default"] and len(given) == 1 and seen
    same(gm(*given)[0], ((inputs[0] + 1).sin() * inputs[1]).cos().exp())


def test_a_graph_that_returns_an_input_becomes_that() -> None:
    def returns_an_input(gm: GraphModule, _: Any) -> bool:
        outputs = compile_utils.get_outputs(gm.graph)
        return any(node in outputs for node in compile_utils.get_placeholders(gm.graph))

    gm, given = minifier(
        make_fx(lambda a, b: (a.sin(), b, a * b))(tp.rand(2), tp.ones(2)), [tp.rand(2), tp.ones(2)], returns_an_input
    )
    assert targets(gm) == [] and len(gm(*given)) == len(given) == 1


def test_a_graph_that_does_not_fail_is_refused() -> None:
    gm = make_fx(tp.sin)(tp.rand(2))
    with pytest.raises(RuntimeError, match="did not fail"):
        minifier(gm, [tp.rand(2)], calls("exp"))
    with pytest.raises(RuntimeError, match="not power of two"):
        minifier(gm, [tp.rand(2)], calls("sin"), max_granularity=3)
