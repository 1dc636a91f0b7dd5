"""Functions compiled ahead: two graphs and what they give, against the function itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tensorpy as tp
from tensorpy import nn
from tensorpy._functorch.aot_autograd import (
    aot_function,
    aot_module,
    aot_module_simplified,
    get_aot_compilation_context,
    make_boxed_compiler,
)
from tensorpy._functorch.compilers import memory_efficient_fusion, nop
from tensorpy._functorch.partitioners import draw_graph, min_cut_rematerialization_partition
from tensorpy.fx.experimental.proxy_tensor import make_fx
from tensorpy.testing import assert_close
from tensorpy.utils._pytree import tree_leaves


def writes(a: Any) -> Any:
    a.mul_(2)
    return a * 3


def writes_and_views(a: Any, b: Any) -> Any:
    a.add_(b)
    c = a.clone()
    c.sin_()
    return c, a, a[0], b


def turns(a: Any, b: Any) -> Any:
    b.mul_(3)
    a.t_()
    return a * 2, a.reshape(-1), b.view(-1), a.diagonal()


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "one": lambda a, b: a + b * a.sin(),
    "two": lambda a, b: [a + b, a - b],
    "nested": lambda a, b: {"x": (a.exp(), 3), "y": b},
    "no gradient": lambda a, b: (a * b, a.argmax()),
    "a view": lambda a, b: (a.view(-1), b.t()),
    "ravel": lambda a, b: a.t().ravel() * b.ravel(),
    "written": lambda a, b: writes(a) + b,
    "written and seen": writes_and_views,
    "turned": turns,
    "tables": lambda a, b: nn.functional.pad(a[None], (1, 1), mode="reflect").sum() * b,
}


@pytest.mark.parametrize("wanted", [True, False])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_gives_what_the_function_gives(name: str, wanted: bool) -> None:
    f, found = FUNCTIONS[name], []
    boxed = make_boxed_compiler(lambda graph, _: graph.forward)
    for function in (f, aot_function(f, nop, nop), aot_function(f, boxed)):
        leaves = [tp.arange(12.0).reshape(3, 4).requires_grad_(wanted), tp.full((3, 4), 0.5, requires_grad=wanted)]
        inputs = [leaf[:, ::2] + 1 if name == "ravel" else leaf + 1 for leaf in leaves]
        results = tree_leaves(function(*inputs))
        tensors = [r for r in results if isinstance(r, tp.Tensor)]
        roots = [r.sum() for r in tensors if r.requires_grad]
        gradients = tp.autograd.grad(roots, leaves, allow_unused=True) if roots else []
        assert bool(roots) == wanted
        found.append((results, inputs, gradients, [r.requires_grad for r in tensors]))
    for other in found[1:]:
        assert_close(list(other[0]), list(found[0][0]))
        assert_close(other[1], found[0][1])
        assert_close(list(other[2]), list(found[0][2]))
        assert other[3] == found[0][3]


def test_arguments_of_another_kind_have_graphs_of_their_own() -> None:
    seen = []

    def compiler(graph: Any, inputs: Any) -> Any:
        seen.append((get_aot_compilation_context()[0], len(inputs)))
        return graph.forward

    f = aot_function(lambda x, n: x * n, compiler)
    assert f(tp.ones(2), 3).tolist() == f(tp.ones(2), n=3).tolist() == [3, 3]
    assert f(tp.ones(2), 4).tolist() == [4, 4] and f(tp.ones(3), 4).tolist() == [4, 4, 4]
    x = tp.ones(2, requires_grad=True)
    f(x, 5).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [5, 5]
    assert [names for names, _ in seen[-2:]] == [["forward"], ["backward"]] and len(seen) == 6


def test_a_tensor_given_twice_is_one() -> None:
    x = tp.tensor([2.0], requires_grad=True)
    aot_function(lambda a, b: a * b, nop)(x, x).backward()
    assert x.grad is not None and x.grad.item() == 4


def of_memory(case: str, wanted: bool) -> list[Any]:
    """Two tensors of four elements in one memory."""
    whole = tp.arange(8.0).requires_grad_(wanted) + 1
    return {
        "same": [whole[:4], whole[:4]],
        "shifted": [whole[:4], whole[2:6]],
        "turned": [whole[:4].view(2, 2), whole[:4].view(2, 2).t()],
        "beside": [whole[:4], whole[4:]],
        "gaps": [whole[::2], whole[1::2]],
    }[case]


@pytest.mark.parametrize("wanted", [True, False])
@pytest.mark.parametrize("case", ["same", "shifted", "turned", "beside", "gaps"])
@pytest.mark.parametrize("first", [True, False])
def test_arguments_in_one_memory(case: str, wanted: bool, first: bool) -> None:
    def f(a: Any, b: Any) -> Any:
        (a if first else b).mul_(2)
        return a + b * 3

    compiled = aot_function(f, nop)
    compiled(*map(tp.clone, of_memory(case, wanted)))  # a graph of arguments that lie apart is there already
    plain, given = of_memory(case, wanted), of_memory(case, wanted)
    assert_close(compiled(*given), f(*plain))
    assert_close(given, plain)


def test_a_view_of_an_argument_that_is_a_view_itself() -> None:
    whole = tp.arange(12.0)
    for f in (lambda x: x.as_strided((2,), (1,), 1), lambda x: x[1:]):
        compiled = aot_function(f, nop)
        for x in (whole[4:8], whole[6:10], whole[:4]):
            assert tp.equal(compiled(x), f(x))


def test_random_numbers_are_drawn_once_and_when_it_runs() -> None:
    f = aot_function(lambda x: nn.functional.dropout(x), nop)
    x = tp.ones(100)
    tp.manual_seed(3)
    first = f(x)
    tp.manual_seed(3)
    assert tp.equal(nn.functional.dropout(x), first)


def test_modules() -> None:
    models = [nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2), nn.ReLU()) for _ in range(3)]
    for model in models[1:]:
        model.load_state_dict(models[0].state_dict())
    x = tp.randn(5, 3)
    simplified = aot_module_simplified(models[2], (x,), nop, partition_fn=min_cut_rematerialization_partition)
    for run in (models[0], aot_module(models[1], nop), simplified):
        run(x).sum().backward()
    for model in models[1:]:
        for a, b in zip(model.parameters(), models[0].parameters(), strict=True):
            assert_close(a.grad, b.grad)
        for buffer, other in zip(model.buffers(), models[0].buffers(), strict=True):
            assert_close(buffer, other)
    assert tp.equal(memory_efficient_fusion(tp.sin)(x), x.sin())


def test_a_graph_is_drawn(tmp_path: Any) -> None:
    draw_graph(make_fx(tp.sin)(tp.ones(2)), str(tmp_path / "sine.svg"))
    assert "sin" in (tmp_path / "sine.svg").read_text()


def test_a_composites_table_is_where_fake_tensors_say() -> None:
    from tensorpy._subclasses import FakeTensorMode

    with FakeTensorMode():
        x = tp.ones(1, 2, 4, requires_grad=True)
        y = nn.functional.interpolate(nn.functional.pad(x, (1, 1), mode="circular"), scale_factor=2, mode="nearest")
        y.sum().backward()
        assert x.grad is not None and x.grad.device.type == "cpu" and tp.ones(2).to("meta").is_meta
