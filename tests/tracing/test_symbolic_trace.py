"""torch.fx as programs use it: what is traced by proxies has PyTorch's node names, targets and code, and gives the
values of the program; graphs are rewritten; modules of graphs are copied and saved."""

from __future__ import annotations

import copy
import functools
import importlib
import math
import operator
import pickle
import re
from typing import Any

import numpy as np
import pytest
from fx_programs import graphs, programs, scaled

import tensorpy as tp
from tensorpy import fx
from tensorpy.utils import _pytree as pytree

fx.wrap("scaled")
PROGRAMS = programs(tp)
GRAPHS = graphs(tp, fx)


def same(got: Any, expected: Any) -> None:
    left, shape = pytree.tree_flatten(got)
    right, other = pytree.tree_flatten(expected)
    assert shape == other
    for a, b in zip(left, right, strict=True):
        if isinstance(b, tp.Tensor):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())
        else:
            assert a == b


def described(graph: Any) -> list[tuple[str, str, str]]:
    """What PyTorch and tensorpy say alike of each node."""
    return [(n.op, n.name, getattr(n.target, "__name__", str(n.target))) for n in graph.nodes]


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_of_a_traced_program(name: str) -> None:
    program, args = PROGRAMS[name]
    gm = fx.symbolic_trace(program)
    gm.graph.lint()
    expected = program(*args)
    if name == "starred":
        assert "def forward(self, *args, **kwargs):" in gm.code
    for runs in (gm, fx.Interpreter(gm).run, copy.deepcopy(gm), fx.symbolic_trace(gm), fx.Transformer(gm).transform()):
        if name == "starred" and runs is not gm:
            continue  # a *args is one value of a graph, which only code unpacks
        same(runs(*args), expected)


@pytest.mark.parametrize("name", PROGRAMS)
def test_names_and_code_are_those_of_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch")
    importlib.import_module("torch.fx")
    theirs = torch.fx.symbolic_trace(programs(torch)[name][0])
    ours = fx.symbolic_trace(PROGRAMS[name][0])
    assert described(ours.graph) == described(theirs.graph)
    assert ours.code == re.sub(r"\b_operator_", "operator_", theirs.code.replace("torch", "tensorpy"))
    assert str(ours.graph) == str(theirs.graph).replace("torch", "tensorpy")
    assert ours.print_readable(False).startswith(f"class {type(theirs).__name__}(tensorpy.nn.Module):\n")


@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_by_hand_are_those_of_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch")
    importlib.import_module("torch.fx")
    theirs, ours = graphs(torch, torch.fx)[name], GRAPHS[name]
    assert [d[:2] for d in described(ours)] == [d[:2] for d in described(theirs)]
    assert ours.python_code("self").src == theirs.python_code("self").src.replace("torch", "tensorpy")


@pytest.mark.parametrize(
    "program, error, says",
    [
        (lambda x: x if x.sum() > 0 else -x, fx.proxy.TraceError, "control flow"),
        (lambda x: [y + 1 for y in x], fx.proxy.TraceError, "cannot be iterated"),
        (lambda x: dict(**x), fx.proxy.TraceError, "cannot be iterated"),
        (lambda x: 1 in x, fx.proxy.TraceError, "cannot be iterated"),
        (lambda x: len(x), RuntimeError, "'len' is not supported"),
        (lambda x: int(x), TypeError, "int()"),
        (lambda x: float(x), TypeError, "float()"),
        (lambda x: range(x), TypeError, "integer"),
        (lambda x: x.foo(object()), NotImplementedError, "argument of type"),
        (lambda x: operator.setitem(x, 0, 1), TypeError, "item assignment"),
        (lambda x: x.foo({x: 1}), RuntimeError, "Keys for dictionaries"),
    ],
)
def test_what_cannot_be_traced(program: Any, error: Any, says: str) -> None:
    with pytest.raises(error, match=re.escape(says)):
        fx.symbolic_trace(program)
    assert not fx._symbolic_trace.is_fx_tracing()
    same(tp.nn.ReLU()(tp.tensor([-1.0, 1.0])), tp.tensor([0.0, 1.0]))  # what was replaced is back


def test_functions_that_are_wrapped() -> None:
    gm = fx.symbolic_trace(lambda x: scaled(x, x.shape[0]) + math.floor(x.shape[1]))
    assert [n.name for n in gm.graph.nodes if n.op == "call_function"].count("scaled") == 1
    x = tp.ones(2, 3)
    same(gm(x), x * 2 + 3)
    assert 'wrap("math_floor")' in gm.code and math.floor(2.5) == 2
    same(fx.symbolic_trace(gm)(x), x * 2 + 3)
    with pytest.raises(NotImplementedError, match="top level"):
        fx.wrap("scaled")
    with pytest.raises(RuntimeError, match="function"):
        fx.wrap(3)


def test_concrete_arguments() -> None:
    def f(x: Any, flag: bool = True, scale: Any = None) -> Any:
        return x if flag else -x * (1 if scale is None else scale)

    gm = fx.symbolic_trace(f, concrete_args={"flag": False, "scale": None})
    same(gm(tp.ones(2), False), -tp.ones(2))
    with pytest.raises(AssertionError, match="specialized to have value False"):
        gm(tp.ones(2), True)
    with pytest.raises(AssertionError, match="specialized to have value None"):
        gm(tp.ones(2), False, 2)
    with pytest.raises(RuntimeError, match="3 arguments but got 1"):
        fx.symbolic_trace(f, (1,))
    nested = fx.symbolic_trace(
        lambda d: {"sum": d["a"] + d["b"][0]}, concrete_args={"d": {"a": fx.PH, "b": [fx.PH, 3]}}
    )
    same(nested({"a": tp.ones(2), "b": [tp.ones(2), 3]}), {"sum": tp.full((2,), 2.0)})
    with pytest.raises(AssertionError, match="value 3"):
        nested({"a": tp.ones(2), "b": [tp.ones(2), 4]})


def test_tracers_of_ones_own() -> None:
    class Shallow(fx.Tracer):
        def is_leaf_module(self, m: Any, qualname: str) -> bool:
            return qualname == "first" or super().is_leaf_module(m, qualname)

    model, args = PROGRAMS["nested"]
    tracer = Shallow()
    graph = tracer.trace(model)
    gm = fx.GraphModule(tracer.root, graph, "Shallow")
    assert [n.target for n in graph.nodes if n.op == "call_module"] == ["first", "second.0", "second.1", "second.0"]
    last = list(graph.nodes)[-2]
    assert last.meta["nn_module_stack"] == {"second.0@1": ("second.0", tp.nn.Linear)}
    assert tracer.node_name_to_scope["first"] == ("first", type(model.first))
    same(gm(*args), model(*args))
    assert type(gm).__name__ == "Shallow" and repr(gm).startswith("Shallow(")
    shapes = fx.Tracer(param_shapes_constant=True).trace(model)
    assert not [
        n for n in shapes.nodes if n.op == "call_function" and n.target is getattr and n.args[0].op == "get_attr"
    ]


class Small(tp.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.unused = tp.nn.Linear(2, 2), tp.nn.Linear(1, 1)

    def forward(self, x: Any) -> Any:
        return scaled(self.linear(x).relu(), tp.nn.functional.gelu(x).shape[0])


@pytest.mark.parametrize("how", ["pickle", "deepcopy", "copy"])
def test_copies(how: str) -> None:
    gm = fx.symbolic_trace(Small()).eval()
    gm.note = {"kept": 1}
    gm.add_submodule("more.relu", tp.nn.ReLU())
    gm.linear.register_forward_hook(hook)
    made = {"pickle": lambda m: pickle.loads(pickle.dumps(m)), "deepcopy": copy.deepcopy, "copy": copy.copy}[how](gm)
    x = tp.ones(3, 2)
    same(made(x), gm(x))
    assert made.code == gm.code and not made.training and type(made).__name__ == "Small"
    if how != "copy":
        assert made.note == {"kept": 1} and isinstance(made.more.relu, tp.nn.ReLU)
    assert (made.linear is gm.linear) == (how == "copy")


def hook(module: Any, args: Any, result: Any) -> Any:
    return result * 2


def test_submodules_of_a_graph() -> None:
    gm = fx.symbolic_trace(Small())
    assert not hasattr(gm, "unused")
    gm.add_submodule("a.b", tp.nn.ReLU())
    assert (
        not gm.add_submodule("code.b", tp.nn.ReLU()) and not gm.delete_submodule("a.c") and gm.delete_submodule("a.b")
    )
    gm.add_submodule("a.b", tp.nn.ReLU())
    gm.delete_all_unused_submodules()
    assert [name for name, _ in gm.named_modules()] == ["", "linear"]
    with pytest.raises(RuntimeError, match="does not have"):
        fx.GraphModule({}, gm.graph)


def test_code_is_changed_as_it_is_written() -> None:
    gm = fx.symbolic_trace(lambda x: x + 1)

    class Loud(fx.CodeGen):
        def additional_globals(self) -> Any:
            return [("seen", seen)]

        def gen_fn_def(self, free_vars: Any, annotation: str) -> str:
            return super().gen_fn_def([*free_vars, "*rest"], annotation) + "\n    seen.append(rest)"

        def process_inputs(self, *args: Any) -> Any:
            return args[:1]

    seen: list[Any] = []
    gm.graph.set_codegen(Loud())
    with gm.graph.on_generate_code(lambda before: lambda lines: [line.replace("+ 1", "+ 2") for line in lines]):
        gm.recompile()
    same(gm(tp.ones(1), 5), tp.full((1,), 3.0))
    assert seen == [(5,)] and fx.Interpreter(gm).run(tp.ones(1), 5).item() == 2
    gm.recompile()
    assert gm(tp.ones(1)).item() == 2 and isinstance(gm.graph.python_code("self"), fx.graph.PythonCode)


def test_patterns_with_constants_several_results_and_modules() -> None:
    def program(x: Any, y: Any) -> Any:
        a = tp.cat([x, y], 1).relu()
        return a.sum(), (x * 2).exp(), (y * 3).exp(), a

    gm = fx.symbolic_trace(program)
    assert not fx.replace_pattern(gm, lambda a, b: tp.cat([a, b], 0), lambda a, b: tp.stack([a, b]))
    # a sum of what is used elsewhere too is no match
    assert not fx.replace_pattern(gm, lambda a: a.relu().sum(), lambda a: a.mean())
    assert len(fx.replace_pattern(gm, lambda a: (a * 2).exp(), lambda a: a.sin())) == 1
    found = fx.subgraph_rewriter.replace_pattern_with_filters(
        gm, lambda a: (a * 2).exp(), lambda a: a.cos(), [lambda match, graph, pattern: True], ignore_literals=True
    )
    assert [len(f.replacements) for f in found] == [1]
    x, y = tp.ones(1, 2), tp.zeros(1, 2)
    same(gm(x, y), (tp.cat([x, y], 1).relu().sum(), x.sin(), y.cos(), tp.cat([x, y], 1).relu()))
    two = fx.symbolic_trace(lambda x: x.max(1)[0] + x.max(1)[1])

    class Replacement(tp.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = tp.nn.Linear(1, 1)

        def forward(self, x: Any) -> Any:
            return self.scale(x)

    one = fx.symbolic_trace(lambda x: x.neg().abs())
    new = fx.symbolic_trace(Replacement())
    assert len(fx.replace_pattern(one, fx.symbolic_trace(lambda x: x.neg().abs()), new)) == 1
    same(one(tp.ones(1, 1)), new(tp.ones(1, 1)))
    assert len(fx.replace_pattern(two, lambda x: x.max(1)[0], lambda x: x.amax(1))) == 1


def test_nodes() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    node = graph.call_function(tp.add, (x, [1, {"k": 2}]))
    with pytest.raises(TypeError, match="mutation"):
        node.args[1].append(2)
    with pytest.raises(TypeError, match="mutation"):
        node.args[1][1]["k"] = 3
    node.insert_arg(1, 5)
    assert node.args == (x, 5, [1, {"k": 2}])
    node.update_kwarg("alpha", x)
    assert list(x.users) == [node] and node.kwargs == {"alpha": x}
    node._rename("x")
    assert node.name == "x_1"
    assert not node.is_impure() and graph.call_function(tp.rand, (2,)).is_impure()

    @fx.has_side_effect
    def logs(value: Any) -> None:
        pass

    dead = graph.call_function(logs, (x,))
    graph.output(x)
    graph.eliminate_dead_code()
    assert [n.name for n in graph.nodes if n.target is logs] == [dead.name] and node._erased
    bound = graph.create_node("call_function", tp.nn.functional.dropout, (x,), {}).normalized_arguments(None)
    assert bound is not None and bound.args == (x,) and bound.kwargs == {"p": 0.5, "training": True, "inplace": False}


def test_random_and_written_values_stay_when_dead() -> None:
    def f(x: Any) -> Any:
        tp.rand(2)
        tp._assert(x.shape[0] == 2, "two")
        x.sin()
        return x

    gm = fx.symbolic_trace(f)
    assert gm.graph.eliminate_dead_code()
    gm.recompile()
    assert "_assert" in gm.code and "sin" not in gm.code
    with pytest.raises(AssertionError, match="two"):
        gm(tp.ones(3))


def test_tracebacks_and_sources_show_the_code() -> None:
    import gc
    import inspect
    import linecache

    gm = fx.symbolic_trace(lambda x: x.no_such_method())
    assert "no_such_method" in inspect.getsource(gm.forward)
    file = gm.forward.__code__.co_filename
    assert file in linecache.cache
    del gm
    gc.collect()
    assert "no_such_method" not in linecache.getline(file, 2)
    linecache.checkcache()
    assert file not in linecache.cache


def test_a_collection_may_run_while_linecache_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    import gc
    import linecache

    class Walked(dict[str, Any]):
        """The graph module goes when the walk over all keys has begun."""

        def __getitem__(self, key: str) -> Any:
            if held:
                held.clear()
                gc.collect()
            return super().__getitem__(key)

    held = [fx.symbolic_trace(lambda x: x.sin()) for _ in range(3)]
    files = [gm.forward.__code__.co_filename for gm in held]
    monkeypatch.setattr(linecache, "cache", Walked(linecache.cache))
    keys = list(linecache.cache)
    assert set(files) <= set(keys)
    linecache.getlines(files[0])
    assert all(linecache.cache[key] is not None for key in keys)
    linecache.checkcache()
    assert not set(files) & set(linecache.cache)


def test_shapes_are_propagated() -> None:
    from tensorpy.fx.passes.shape_prop import ShapeProp

    gm = fx.symbolic_trace(Small())
    ShapeProp(gm).propagate(tp.ones(3, 2))
    (linear,) = gm.graph.find_nodes(op="call_module")
    assert linear.meta["tensor_meta"].shape == (3, 2) and linear.meta["tensor_meta"].dtype == tp.float32


def test_readable_code_has_tensors_and_places() -> None:
    from tensorpy.fx.passes.shape_prop import ShapeProp

    tracer = fx.Tracer()
    tracer.record_stack_traces = True
    gm = fx.GraphModule(tp.nn.Module(), tracer.trace(lambda x: tp.relu(x)))
    ShapeProp(gm).propagate(tp.ones(3, 2))
    text = gm.print_readable(print_output=False)
    assert 'relu: "f32[3, 2]" = ' in text and ", code: gm = fx.GraphModule(tp.nn.Module(), tracer.trace(" in text
    assert "f32" not in gm.code and "print_readable()" in str(gm)


def test_nodes_have_an_order_and_proxies_are_copied() -> None:
    graph = fx.symbolic_trace(lambda x: tp.relu(x) + 1).graph
    first, middle, *_ = graph.nodes
    assert first < middle and middle > first and first <= first and not middle < first
    proxies = [fx.Proxy(node) for node in graph.nodes]
    copied = copy.deepcopy(proxies)
    assert copied[0].node is not first and copied[0].node.name == first.name
    assert len({id(proxy.node.graph) for proxy in copied}) == 1 and copied[0].node.graph is not graph


def test_functions_of_a_list() -> None:
    gm = fx.symbolic_trace(lambda x, y: x + y)
    given = [tp.ones(2), tp.ones(2)]
    assert fx.Interpreter(gm).boxed_run(given).tolist() == [2.0, 2.0] and not given


def test_made_functions_have_their_own_names() -> None:
    gm = fx.symbolic_trace(lambda x: tp.nn.functional.max_pool2d(x, 2))
    assert "tensorpy.nn.functional.max_pool2d(x, 2)" in gm.code
    assert pickle.loads(pickle.dumps(gm)).code == gm.code


def test_what_decorates_a_function_is_traced_with_it() -> None:
    def doubling(function: Any) -> Any:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs) * 2

        return wrapper

    @doubling
    def first(x: tp.Tensor) -> tp.Tensor:
        return tp.relu(x)

    @doubling
    def second(x: tp.Tensor, *, y: int = 1) -> tp.Tensor:
        return x + y

    assert fx.symbolic_trace(first)(tp.ones(2)).tolist() == [2.0, 2.0]
    assert fx.symbolic_trace(second)(tp.ones(2), y=2).tolist() == [6.0, 6.0]


def test_modules_that_take_anything_leave_no_annotation() -> None:
    assert "Any" not in fx.symbolic_trace(tp.nn.Sequential(tp.nn.Linear(2, 2))).code


def test_a_trace_says_which_function_it_is_of() -> None:
    class Traced(tp.nn.Module):
        def forward(self, x: tp.Tensor) -> tp.Tensor:
            return x * 2

    made = fx.symbolic_trace(Traced())
    code = type(made).forward.__code__
    assert re.fullmatch(rf"<eval_with_key>\.\d+ from {re.escape(__file__)}:\d+ in forward", code.co_filename)
    made.graph.eliminate_dead_code()
    made.recompile()
    assert "in forward" in type(made).forward.__code__.co_filename
    again = fx.GraphModule(made, copy.deepcopy(made.graph))
    assert again(tp.ones(1)).tolist() == pickle.loads(pickle.dumps(made))(tp.ones(1)).tolist() == [2]
