"""compile(backend=function) with sizes that vary: how many graphs there are, each for the sizes that it runs with.

The numbers of graphs are PyTorch's (2.13) for the same calls.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
from test_symbolic_shapes import PROGRAMS, rand

import tensorpy as tp
from tensorpy import nn
from tensorpy._dynamo import config, exc
from tensorpy._dynamo.testing import CompileCounter
from tensorpy.fx.experimental.symbolic_shapes import ConstraintViolationError
from tensorpy.utils._pytree import tree_leaves

F = nn.functional


def graphs(f: Any, *calls: Any, **how: Any) -> list[int]:
    """How many graphs there are after each call, whose results are those of f, to the bit."""
    counter, numbers = CompileCounter(), []
    compiled = tp.compile(f, backend=counter, fullgraph=True, **how)
    for args in calls:
        got, wanted = (tree_leaves(function(*copy.deepcopy(args))) for function in (compiled, f))
        for a, b in zip(got, wanted, strict=True):
            assert type(a) is type(b) and (a.equal(b) if isinstance(a, tp.Tensor) else a == b)
        numbers.append(counter.frame_count)
    return numbers


def is_gradient(name: str) -> bool:
    """Whether a program runs backward itself, and is no graph."""
    return bool(PROGRAMS[name][0].__name__ == "program")


@pytest.mark.parametrize("dynamic", [True, None, False])
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "a resized argument" and not is_gradient(name)])
def test_one_graph_is_for_all_sizes(name: str, dynamic: bool | None) -> None:
    f, sizes, others = PROGRAMS[name]
    calls = [tuple(rand(*size) for size in given) for given in [sizes, *others, sizes, *others]]
    expected = {True: 1, None: 2, False: 1 + len(others)}
    assert graphs(f, *calls, dynamic=dynamic)[-1] == expected[dynamic]


def add(x: tp.Tensor, *numbers: int) -> tp.Tensor:
    for number in numbers:
        x = x + number
    return x + 1


def test_sizes_that_differ_are_symbols() -> None:
    shapes = [(8, 3), (5, 3), (6, 3), (6, 4), (1, 4), (2, 2, 2), (2, 3, 2), (9, 9)]
    assert graphs(add, *((rand(*shape),) for shape in shapes)) == [1, 2, 2, 3, 4, 5, 5, 5]
    calls = [(rand(8, 3),), (rand(5, 3),), (rand(6, 3),), (rand(6, 4),)]
    with config.patch(automatic_dynamic_shapes=False):
        assert graphs(add, *calls) == graphs(add, *calls, dynamic=False) == [1, 2, 3, 4]
    with config.patch(assume_static_by_default=False):
        assert graphs(add, *calls) == [1, 1, 1, 1]


def test_ints_that_differ_are_symbols() -> None:
    calls = [(rand(3), n) for n in (3, 4, 5, 1, 0, -7)]
    assert graphs(add, *calls) == [1, 2, 2, 2, 2, 2]
    assert graphs(add, *calls, dynamic=True) == [1] * 6
    assert graphs(add, (rand(3), 0), (rand(3), 1), (rand(3), 2), (rand(3), 3)) == [1, 2, 3, 3]
    with config.patch(specialize_int=True):
        assert graphs(add, *calls[:3]) == [1, 2, 3]


def test_a_backend_is_given_symbols_before_what_brings_them() -> None:
    given: list[Any] = []

    def backend(graph: Any, inputs: list[Any]) -> Any:
        names = [node.name for node in graph.graph.nodes if node.op == "placeholder"]
        given.append((names, inputs))

        def run(*now: Any) -> Any:
            given.append([type(value) for value in now])
            return graph(*now)

        return run

    x, y = rand(8, 3), rand(3, 8)
    compiled = tp.compile(lambda x, y, n: x.sum() + y.sum() * n, backend=backend, dynamic=True)
    compiled(x, y, 5)
    (names, inputs), kinds = given
    assert names == ["s0", "s1", "x", "y", "n"] and kinds == [int, int, tp.Tensor, tp.Tensor, int]
    assert inputs[2] is x and inputs[3] is y and str(inputs[:2]) == "[s0, s1]"
    assert all(isinstance(inputs[i], tp.SymInt) for i in (0, 1, 4)) and inputs[4].node.hint == 5


def branches(x: tp.Tensor) -> tp.Tensor:
    return x + 1 if x.shape[0] > 5 else x - 1


def counts(x: tp.Tensor) -> Any:
    return sum(x[i] * i for i in range(x.shape[0]))


def looks_for_ints(x: tp.Tensor) -> tp.Tensor:
    return x * (2 if isinstance(x.shape[0], int) else 3)


def makes_a_root(x: tp.Tensor) -> tp.Tensor:
    return x * math.sqrt(x.shape[0])


def sums(x: tp.Tensor, y: tp.Tensor) -> tp.Tensor:
    return x.sum() + y.sum()


def says(x: tp.Tensor) -> Any:
    return x + 1, x.shape[0], tuple(x.shape), x.shape[0] / 3 * 0.7, x.shape[0] > 4, x.numel()


@pytest.mark.parametrize(
    ("f", "shapes", "expected"),
    [
        (branches, [[8], [9], [4], [3], [6]], [1, 1, 2, 2, 2]),
        (counts, [[3, 4], [3, 5], [4, 5], [4, 2]], [1, 1, 2, 2]),
        (looks_for_ints, [[3], [4], [3]], [1, 2, 2]),
        (makes_a_root, [[3], [4], [3]], [1, 2, 2]),
        (says, [[8, 3], [5, 4], [3, 9]], [1, 1, 2]),
        (add, [[8, 3], [5, 1], [1, 3], [4, 1]], [1, 2, 3, 3]),
    ],
)
def test_what_the_program_asks_of_a_size_is_a_guard(f: Any, shapes: list[Any], expected: list[int]) -> None:
    assert graphs(f, *((rand(*shape),) for shape in shapes), dynamic=True) == expected


def test_sizes_that_are_alike_are_one_symbol_where_all_are() -> None:
    calls = [(rand(8), rand(8)), (rand(5), rand(5)), (rand(5), rand(6)), (rand(7), rand(7))]
    assert graphs(sums, *calls, dynamic=True) == [1, 1, 2, 2]
    assert graphs(sums, *calls) == [1, 2, 2, 2]


def test_strides_and_kinds_are_looked_at() -> None:
    x = rand(6, 4)
    calls = [(x,), (rand(3, 5),), (x.t(),), (rand(5, 9).t(),), (rand(8, 4)[::2],), (x.double(),), (x[0],)]
    assert graphs(lambda x: x.as_strided(x.shape, x.stride()) * 2, *calls, dynamic=True) == [1, 1, 2, 2, 3, 4, 5]


# ---- marks ----


def marked(how: Any, *sizes: int, **words: Any) -> tuple[tp.Tensor]:
    x = rand(*sizes)
    how(x, 0, **words)
    return (x,)


def test_marks() -> None:
    dynamo = tp._dynamo
    assert graphs(add, marked(dynamo.mark_dynamic, 8, 3), (rand(5, 3),), (rand(9, 3),), (rand(9, 4),)) == [1, 1, 1, 2]
    assert graphs(add, marked(dynamo.maybe_mark_dynamic, 8, 3), (rand(5, 3),)) == [1, 1]
    assert graphs(add, marked(dynamo.mark_static, 8, 3), (rand(8, 4),), dynamic=True)[0] == 1
    assert graphs(add, (rand(8),), marked(dynamo.mark_dynamic, 8), (rand(8),), (rand(9),)) == [1, 2, 2, 2]
    limits = {"min": 4, "max": 10}
    calls = [(rand(5),), (rand(11),), (rand(12),), (rand(2),)]
    assert graphs(add, marked(dynamo.mark_dynamic, 8, **limits), *calls) == [1, 1, 2, 2, 2]


def test_marks_are_attributes_which_copies_have() -> None:
    (x,) = marked(tp._dynamo.mark_dynamic, 3)
    assert vars(copy.deepcopy(x))["_dynamo_dynamic_indices"] == {0}


def test_a_marked_size_that_is_a_number() -> None:
    compiled = tp.compile(counts, backend=CompileCounter())
    with pytest.raises(ConstraintViolationError, match=r"x.size\(\)\[0\]\)!.*number 3: .*_dynamic.py:"):
        compiled(*marked(tp._dynamo.mark_dynamic, 3, 4))
    assert graphs(counts, marked(tp._dynamo.maybe_mark_dynamic, 3, 4)) == [1]
    with config.patch(allow_ignore_mark_dynamic=True):
        assert graphs(counts, marked(tp._dynamo.mark_dynamic, 3, 4)) == [1]


def test_products_of_sizes_that_are_alike() -> None:
    def loss(x: tp.Tensor, y: tp.Tensor) -> tp.Tensor:
        return F.cross_entropy(x.view(-1, 5), y.view(-1))

    calls = [(rand(b, t, 5), tp.randint(5, (b, t))) for b, t in [(2, 3), (3, 4), (7, 2), (4, 9)]]
    assert graphs(loss, *calls) == [1, 2, 2, 2]


# ---- programs ----


def einsum_with_a_weight(x: tp.Tensor) -> tp.Tensor:
    result: tp.Tensor = tp.einsum("bi,hi->bh", x, WEIGHT)
    return result


def one_more_row(x: tp.Tensor) -> tp.Tensor:
    return tp.cat([x, x[:, :1]], 1)[:, :5] + ROWS


def patches(x: tp.Tensor) -> tp.Tensor:
    return F.conv2d(x, KERNEL, stride=4).flatten(2).transpose(1, 2) + ROWS[:4]


WEIGHT, ROWS, KERNEL = tp.rand(6, 8), tp.rand(5, 2), tp.rand(2, 3, 4, 4)


@pytest.mark.parametrize(
    ("f", "shapes"),
    [
        (einsum_with_a_weight, [(3, 8), (5, 8), (8, 8)]),
        (one_more_row, [(3, 4, 2), (7, 4, 2)]),
        (patches, [(2, 3, 8, 8), (5, 3, 8, 8), (9, 3, 8, 8)]),
    ],
)
def test_a_size_that_goes_with_a_weight_is_a_number_and_no_other(f: Any, shapes: Any) -> None:
    assert graphs(f, *((rand(*shape),) for shape in shapes), dynamic=True)[-1] == 1


def net() -> nn.Module:
    tp.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.GELU(), nn.Dropout(0.5), nn.Linear(8, 2))


def test_training_with_batches_of_any_size() -> None:
    def train(model: Any, of: nn.Module) -> list[Any]:
        tp.manual_seed(1)
        optimizer, losses = tp.optim.Adam(of.parameters(), lr=0.01), []
        for size in (16, 7, 9, 16, 3, 31):
            optimizer.zero_grad()
            loss = model(tp.randn(size, 4)).square().sum()
            loss.backward()
            optimizer.step()
            losses.append((loss.item(), [p.grad.tolist() for p in of.parameters() if p.grad is not None]))
        return losses

    plain, other, counter = net(), net(), CompileCounter()
    expected = train(plain, plain)
    found = train(tp.compile(other, backend=counter, fullgraph=True), other)
    assert counter.frame_count == 2 and str(found) == str(expected)
    assert all(a.equal(b) for a, b in zip(plain.state_dict().values(), other.state_dict().values(), strict=True))


@pytest.mark.parametrize("mode", [tp.no_grad, tp.inference_mode, lambda: tp.autocast("cpu")])
def test_under_modes(mode: Any) -> None:
    model, counter = net().eval(), CompileCounter()
    compiled = tp.compile(model, backend=counter, dynamic=True)
    with mode():
        for size in (5, 8, 3):
            x = rand(size, 4)
            assert compiled(x).equal(model(x)) and compiled(x).dtype is model(x).dtype
    assert counter.frame_count == 1
    for size in (5, 8):
        x = rand(size, 4)
        assert compiled(x).equal(model(x))
    assert counter.frame_count == 2


def test_graphs_that_end_have_symbols_of_their_own() -> None:
    def in_parts(x: tp.Tensor) -> Any:
        n = x.shape[0]
        y = x.view(n * x.shape[1])
        tp._dynamo.graph_break()
        z = y * n
        tp._dynamo.graph_break()
        return z.view(x.shape[1], n) + n * 2, n

    counter = CompileCounter()
    compiled = tp.compile(in_parts, backend=counter, dynamic=True)
    for shape in [(3, 4), (5, 2), (2, 7)]:
        x = rand(*shape)
        got, wanted = compiled(x), in_parts(x)
        assert got[0].equal(wanted[0]) and got[1] == wanted[1] and counter.frame_count == 3


def test_writes_and_random_numbers_of_the_recording_are_put_back() -> None:
    def function(x: tp.Tensor) -> tp.Tensor:
        x[1:].add_(1)
        x.mul_(x.shape[0])
        return x + tp.rand(x.shape[0])

    counter = CompileCounter()
    compiled = tp.compile(function, backend=counter, dynamic=True)
    for size in (3, 5, 4):
        a, b = tp.arange(float(size)), tp.arange(float(size))
        tp.manual_seed(3)
        got = compiled(a), tp.rand(1)
        tp.manual_seed(3)
        expected = function(b), tp.rand(1)
        assert got[0].equal(expected[0]) and got[1].equal(expected[1]) and a.equal(b)
    assert counter.frame_count == 1


def test_what_is_no_graph_is_followed_for_all_sizes() -> None:
    def reads(x: tp.Tensor) -> tp.Tensor:
        return x * 2 if x.sum() > 0 else x

    compiled = tp.compile(reads, backend=CompileCounter())
    tp._dynamo.utils.counters.clear()
    for size in range(2, 20):
        assert compiled(tp.ones(size)).equal(reads(tp.ones(size)))
    assert tp._dynamo.utils.counters["frames"]["total"] == 2


def test_an_error_of_other_sizes_is_the_functions_own() -> None:
    def adds(x: tp.Tensor, y: tp.Tensor) -> Any:
        try:
            return x + y
        except RuntimeError:
            return x.sum() + y.sum()

    calls = [(rand(4), rand(4)), (rand(5), rand(5)), (rand(6), rand(6))]
    assert graphs(adds, *calls) == [1, 2, 2]
    compiled = tp.compile(lambda x, y: x + y, backend=CompileCounter(), dynamic=True)
    compiled(rand(4), rand(4))
    with pytest.raises(RuntimeError, match=r"4.*5"):
        compiled(rand(4), rand(5))
    counter = CompileCounter()
    compiled = tp.compile(adds, backend=counter, dynamic=True)
    for x, y in [*calls, (rand(4), rand(5)), (rand(7), rand(7))]:
        assert compiled(x, y).equal(adds(x, y))


def test_why_there_is_another_graph(caplog: pytest.LogCaptureFixture) -> None:
    said = ["size 0 of x is 5, not 4", "x is of tensorpy.float64, not tensorpy.float32", "x has 2 dimensions, not 1"]
    compiled = tp.compile(add, backend=CompileCounter())
    with caplog.at_level("INFO", logger="tensorpy._dynamo.recompiles"):
        for x in (rand(4), rand(5), rand(6).double(), rand(5, 2).double()):
            compiled(x)
        with tp.no_grad():
            compiled(x)
    messages = [record.getMessage() for record in caplog.records]
    assert [m.removeprefix("another graph of add: ") for m in messages[:3]] == said and "gradients" in messages[3]
    with config.patch(error_on_recompile=True):
        compiled = tp.compile(branches, backend=CompileCounter(), dynamic=True)
        compiled(rand(8))
        with pytest.raises(exc.RecompileError, match=r"x.size\(\)\[0\] > 5 holds, a guard of .*_dynamic.py"):
            compiled(rand(4))


def test_reset_forgets_what_has_differed() -> None:
    counter = CompileCounter()
    compiled = tp.compile(add, backend=counter)
    for size in (3, 4, 5):
        compiled(rand(size))
    tp._dynamo.reset()
    for size in (6, 6):
        compiled(rand(size))
    assert counter.frame_count == 3 and "s0" not in counter.graphs[-1].code
