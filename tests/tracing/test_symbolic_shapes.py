"""make_fx with the mode 'symbolic': programs that are recorded once and run with other sizes, against eager runs."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest

import tensorpy as tp
from tensorpy._package.symbols import Atom, Expr, build
from tensorpy._subclasses import FakeTensorMode
from tensorpy.fx.experimental.proxy_tensor import make_fx
from tensorpy.fx.experimental.symbolic_shapes import (
    ShapeEnv,
    has_free_symbols,
    hint_int,
    statically_known_false,
    statically_known_true,
)  # fmt: skip
from tensorpy.utils._pytree import tree_leaves

F = tp.nn.functional


def record(f: Any, *args: Any) -> Any:
    return make_fx(f, tracing_mode="symbolic")(*args)


def lines(module: Any) -> list[str]:
    text = module.code.replace("tensorpy.ops.aten.", "")
    return [line.strip() for line in text.strip().splitlines()]


def gradient(f: Any) -> Any:
    def program(x: Any) -> Any:
        x = x.detach().requires_grad_()
        return tp.autograd.grad(f(x).sum(), x)[0]

    return program


def rand(*sizes: int) -> Any:
    return tp.rand(*sizes)


# a program, the sizes of its tensors, and those of replays
PROGRAMS: dict[str, tuple[Any, list[Any], list[list[Any]]]] = {
    "view": (lambda x: x.view(x.shape[0] * x.shape[1]) * x.shape[0], [(3, 4)], [[(5, 2)], [(2, 7)]]),
    "size, stride, numel": (
        lambda x: x.as_strided((x.size(0), x.size(-1)), x.stride()) + x.numel(),
        [(3, 4)],
        [[(6, 5)]],
    ),
    "len of a slice": (lambda x: x[: x.shape[0] // 2] * 2, [(7, 2)], [[(10, 3)], [(9, 2)]]),
    "last elements": (lambda x: x[x.shape[0] - 2 :], [(7,)], [[(3,)]]),
    "linear of three dimensions": (lambda x, w: F.linear(x, w).relu(), [(2, 3, 4), (5, 4)], [[(7, 2, 3), (4, 3)]]),
    "mean by hand": (lambda x: x.sum(0) / x.shape[0], [(3, 4)], [[(8, 4)]]),
    "variance": (lambda x: x.var() + x.std(0).sum(), [(5, 3)], [[(9, 2)]]),
    "attention": (F.scaled_dot_product_attention, [(2, 3, 4, 8)] * 3, [[(3, 5, 6, 16)] * 3]),
    "convolution and pool": (
        lambda x: F.max_pool2d(F.conv2d(x, tp.ones(2, 3, 3, 3), padding=1, stride=2), 2).flatten(1).softmax(-1),
        [(2, 3, 16, 20)],
        [[(3, 3, 12, 40)], [(4, 3, 13, 11)]],
    ),
    "cat and arange": (
        lambda x, y: tp.cat([x, y]) + tp.arange(x.shape[0] + y.shape[0]),
        [(3,), (4,)],
        [[(7,), (2,)]],
    ),
    "one size is another and one": (lambda x, y: tp.cat([x, tp.ones(1)]) + y, [(3,), (4,)], [[(7,), (8,)]]),
    "factories": (lambda x: tp.zeros(x.shape[0], 2) + x.new_ones(x.shape) + tp.full((x.size(0), 2), 3.0),
                  [(3, 2)], [[(5, 2)]]),
    "norm": (lambda x: F.layer_norm(x, x.shape[-1:]), [(3, 4)], [[(2, 9)]]),
    "expand and repeat": (lambda x: x[None].expand(x.shape[0], *x.shape).repeat(2, 1, 1), [(3, 4)], [[(5, 2)]]),
    "resized": (lambda x: F.interpolate(x, size=(x.shape[2] * 2, x.shape[3] + 1)), [(2, 3, 4, 5)], [[(3, 2, 6, 4)]]),
    "a resized argument": (lambda x: x.resize_(3), [(2, 3)], [[(2, 3)]]),
    "five dimensions": (lambda x: F.interpolate(x, scale_factor=2.0), [(2, 3, 4, 5, 6)], [[(3, 2, 5, 4, 3)]]),
    "one_hot": (lambda x: F.one_hot(x.argmax(-1), 9), [(3, 4)], [[(6, 5)]]),
    "a mask": (lambda x: x.masked_fill(tp.ones(x.shape[0], x.shape[0]).tril() == 0, 0.0), [(4, 4)], [[(6, 6)]]),
    "split": (lambda x: x.split([2, x.shape[0] - 2])[1], [(5, 2)], [[(8, 3)]]),
    "einsum": (lambda x, y: tp.einsum("bij,bjk->bik", x, y), [(2, 3, 4), (2, 4, 5)], [[(6, 2, 3), (6, 3, 7)]]),
    "writes": (lambda x: x.clone().index_fill_(0, tp.tensor([0]), 0.0).view(-1).add_(1), [(3, 4)], [[(5, 2)]]),
    "results that are sizes": (lambda x: (x.shape[0] * 2 + 1, x.shape[1] // 2, x.sum()), [(3, 4)], [[(7, 9)]]),
    "a maximum": (lambda x: x.new_zeros(tp.sym_max(x.shape[0], x.shape[1])), [(3, 4)], [[(8, 5)]]),
    "a remainder": (lambda x: x.new_zeros(x.shape[0] % 3 + 2), [(5,)], [[(9,)], [(7,)]]),
    "a constant like a remainder": (lambda x: x * (x.shape[0] % 2 * 0.5) * 0.5 + 0.5, [(5,)], [[(8,)], [(7,)]]),
    "a float": (lambda x: x * tp.sym_sqrt(x.shape[1]) + x.shape[0] / 3, [(3, 4)], [[(5, 9)]]),
    "gradient of a mean": (gradient(lambda x: x.mean() * 3 + x.sum(0).pow(2).sum()), [(3, 4)], [[(6, 2)]]),
    "gradient of a norm": (gradient(lambda x: F.layer_norm(x, (x.shape[-1],)).pow(3)), [(3, 4)], [[(6, 5)]]),
    "gradient of a view": (gradient(lambda x: (x.view(-1)[: x.shape[0]] * x[:, 0]).sin()), [(3, 4)], [[(6, 5)]]),
    "gradient of a variance": (gradient(lambda x: x.var(0) + x.std(1).sum()), [(3, 4)], [[(6, 5)]]),
    "gradient of an attention": (
        gradient(lambda x: F.scaled_dot_product_attention(x, x * 2, x + 1)), [(2, 3, 4, 8)], [[(3, 5, 6, 16)]],
    ),
    "gradient of a loss": (
        gradient(lambda x: F.cross_entropy(x, x.argmax(1)) + F.mse_loss(x, x * 2)), [(3, 4)], [[(6, 5)]],
    ),
    "batch norm": (lambda x: F.batch_norm(x, None, None, training=True), [(4, 3)], [[(7, 3)]]),
    "group norm": (gradient(lambda x: F.group_norm(x, 2)), [(2, 4, 6)], [[(3, 4, 5)]]),
    "sort and gather": (lambda x: x.gather(1, x.argsort(1)).cumsum(0), [(3, 4)], [[(6, 5)]]),
    "a function of sizes": (lambda x: x.sum() * math.prod(x.shape), [(3, 4)], [[(2, 9)]]),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_runs_with_other_sizes(name: str) -> None:
    f, sizes, others = PROGRAMS[name]
    module = record(f, *(rand(*size) for size in sizes))
    for given in [sizes, *others]:
        args = [rand(*size) for size in given]
        for got, wanted in zip(tree_leaves(module(*args)), tree_leaves(f(*args)), strict=True):
            if isinstance(wanted, tp.Tensor):
                tp.testing.assert_close(got, wanted)
            else:
                assert got == wanted


def test_sizes_are_nodes() -> None:
    module = record(lambda x: x.view(x.shape[0] * x.shape[1] - 1 + 1), rand(3, 4))
    assert lines(module)[1:] == [
        "sym_size_int = sym_size.int(x_1, 0)",
        "sym_size_int_1 = sym_size.int(x_1, 1)",
        "mul = sym_size_int * sym_size_int_1;  sym_size_int = sym_size_int_1 = None",
        "view = view.default(x_1, [mul]);  x_1 = mul = None",
        "return view",
    ]
    value = next(node for node in module.graph.nodes if node.name == "mul").meta["val"]
    assert isinstance(value, tp.SymInt) and str(value) == "s0*s1" and value.node.hint == 12


def test_a_branch_is_a_guard_with_its_line() -> None:
    module = record(lambda x: x + 1 if x.shape[0] > 4 else x - 1, rand(5))
    (guard,) = module.shape_env.guards
    assert str(guard.condition) == "s0 > 4" and "test_symbolic_shapes.py:" in guard.line
    assert module.shape_env.produce_guards() == ["x_1.size()[0] > 4"]
    assert module(tp.zeros(9)).tolist() == [1.0] * 9
    with pytest.raises(ValueError, match=r"x_1.size\(\)\[0\] > 4 holds, a guard of .*test_symbolic_shapes.py"):
        module(tp.zeros(3))


def test_what_holds_for_all_sizes_is_no_guard() -> None:
    module = record(lambda x: x if x.shape[0] > 0 and x.shape[0] != 1 and x.shape[0] == x.size(0) else x + 1, rand(5))
    assert module.shape_env.guards == []


def test_a_size_that_is_used_as_a_number_is_one() -> None:
    module = record(lambda x: sum(x[i] * i for i in range(x.shape[0])), rand(3, 4))
    assert module(tp.ones(3, 7)).tolist() == [3.0] * 7
    assert module.shape_env.produce_guards() == ["x_1.size()[0] == 3"]
    with pytest.raises(
        ValueError, match=r"size 0 of argument 0 is 3, 3, not 4: s0 is used as the number 3 \(.*shapes.py"
    ):
        module(rand(4, 4))
    for f in (lambda x: x * int(x.shape[0]), lambda x: [row + 1 for row in x], lambda x: x * [0, 1, 2, 3][x.shape[0]]):
        with pytest.raises(ValueError, match="is 3, 3, not 4"):
            record(f, rand(3, 4))(rand(4, 4))


def test_what_an_operator_finds_for_one_size_alone_is_an_error_for_others() -> None:
    module = record(lambda x: x[:3] * 2, rand(8))
    assert module(tp.ones(5)).tolist() == [2.0] * 3
    with pytest.raises(ValueError, match=r"slice_1.size\(\)\[0\] is 3, not 2"):
        module(tp.ones(2))
    with pytest.raises(ValueError, match="is 2, 2, not 5"):  # of the example, which the slice leaves as it is
        record(lambda x: x[:3] * 2, rand(2))(rand(5))
    with pytest.raises(ValueError, match="is 3, 3, not 4"):
        record(lambda x: x.unbind()[2], rand(3, 2))(rand(4, 2))


def test_sizes_that_are_alike_are_one_symbol_and_one_is_a_number() -> None:
    module = record(lambda x, y: x + y, rand(3), rand(3))
    assert module(rand(5), rand(5)).shape == (5,)
    with pytest.raises(ValueError, match=r"size 0 of argument 1 is x_1.size\(\)\[0\], 5, not 6"):
        module(rand(5), rand(6))
    with pytest.raises(ValueError, match="is 1, 1, not 2"):
        record(lambda x: x * 2, rand(1))(rand(2))


def test_an_int_is_an_input() -> None:
    module = record(lambda x, n: x.view(n) + n, rand(4, 6), 24)
    assert module.shape_env.produce_guards() == ["n_1 == x_1.size()[0]*x_1.size()[1]"]
    x = rand(4, 2)
    assert module(x, 8).equal(x.view(8) + 8)
    with pytest.raises(ValueError, match="argument 1"):
        module(x, 9)
    assert record(lambda x, n: x * n, rand(2), 5)(tp.ones(3), 7).tolist() == [7.0] * 3


def test_the_program_sees_the_example() -> None:
    seen = []

    def program(x: Any) -> Any:
        seen.append((x.shape, hint_int(x.shape[0]), str(x.stride()), str(x.numel()), has_free_symbols(x)))
        return x

    record(program, rand(5, 3))
    assert str(seen) == "[(tensorpy.Size([s0, s1]), 5, '(s1, 1)', 's0*s1', True)]"


def test_errors_are_those_of_the_example() -> None:
    with pytest.raises(RuntimeError, match=r"3.*4|4.*3"):
        record(lambda x, y: x[:, None] @ y, rand(3, 4), rand(3, 4))
    with pytest.raises(RuntimeError, match=r"\[5\].*6|shape"):
        record(lambda x: x.view(5), rand(6))


def test_a_symbolic_module_is_copied_and_recorded_again() -> None:
    module = record(lambda x: x.view(x.shape[0] * x.shape[1]), rand(3, 4))
    x = rand(5, 2)
    for other in (copy.deepcopy(module), record(module, rand(3, 4))):
        assert other(x).equal(x.view(10))


def test_control_flow_has_sizes_of_its_own() -> None:
    def program(x: Any) -> Any:
        return tp.cond(x.sum() > 0, lambda y: y.view(y.shape[0] * y.shape[1]).sin(), lambda y: y.reshape(-1) * 2, (x,))

    module = record(program, rand(3, 4))
    for x in (rand(5, 2), -rand(2, 7)):
        assert module(x).equal(program(x))


# ---- environments ----


def test_a_fake_mode_with_an_environment() -> None:
    env = ShapeEnv()
    mode = FakeTensorMode(shape_env=env)
    x, y = mode.from_tensor(rand(8, 3)), mode.from_tensor(rand(3, 5))
    assert isinstance(x.shape[0], tp.SymInt) and x.shape[1] == y.shape[0]
    with mode:
        assert str((x @ y).shape) == "tensorpy.Size([s0, s2])"
        assert str(tp.zeros(x.shape[0] * 2).shape) == "tensorpy.Size([2*s0])"
    assert mode.from_tensor(rand(7), static_shapes=True).shape == (7,)
    assert FakeTensorMode(shape_env=ShapeEnv(assume_static_by_default=True)).from_tensor(rand(7)).shape == (7,)
    assert bool(x.shape[0] > 4) and [str(guard.condition) for guard in env.guards] == ["s0 > 4"]
    assert statically_known_true(x.shape[0] >= 2) and not statically_known_true(x.shape[0] > 4)
    assert statically_known_false(x.shape[0] < 2)
    assert int(x.shape[0]) == 8 and env.produce_guards()[0] == "x0.size()[0] == 8"


def symbol(name: str) -> Expr:
    return Expr.of(Atom("symbol", (name,)))


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (symbol("a") + symbol("b") * Expr.of(2) - Expr.of(1), "a + 2*b - 1"),
        (build("floordiv", symbol("a") * symbol("b"), symbol("b")), "a"),
        (build("floordiv", symbol("a"), Expr.of(2)), "(a//2)"),
        (build("mod", symbol("a") * Expr.of(4), Expr.of(2)), "0"),
        (build("pow", symbol("a"), Expr.of(2)) - symbol("a") * symbol("a"), "0"),
        (build("max", symbol("a") + Expr.of(1), symbol("a")), "a + 1"),
        (build("truediv", symbol("a"), Expr.of(2)), "(a/2)"),
    ],
)
def test_expressions(made: Expr, text: str) -> None:
    assert str(made) == text
    assert made == Expr.of(made)


COMPUTED = """n + 2; 2 - n; n * n - n; n // 2; 20 // n; n % 4; 20 % n
n / 2; 2 / n; n**2; 2**n; -n; abs(n); divmod(n, 3)[1]
math.floor(n / 2); math.ceil(n / 2); round(n); tp.sym_min(n, 3); tp.sym_float(n); tp.sym_sum([n, n, 1])
tp.sym_int(n / 2)""".replace("\n", "; ").split("; ")


def test_numbers_compute_as_ints_do() -> None:
    env = ShapeEnv()
    n = FakeTensorMode(shape_env=env).from_tensor(rand(7)).shape[0]
    for text in COMPUTED:
        f = eval(f"lambda n: {text}", {"tp": tp, "math": math})
        made = f(n)
        assert made.node.hint == f(7), text
    for c in (n > 3, n >= 7, n == 7, n != 7, n < 9, n <= 6, (n > 3) & (n < 5), (n > 3) | (n < 5), tp.sym_not(n > 3)):
        assert isinstance(c, tp.SymBool)
    assert (n + 1 > n) is True and (n == "word") is False
    with pytest.raises(ZeroDivisionError):
        n // 0


def test_a_size_that_is_the_product_of_others_has_room() -> None:
    def solve(a: tp.Tensor, b: tp.Tensor) -> tp.Tensor:
        return tp.linalg.tensorsolve(a, b)

    graph = record(solve, tp.eye(6).reshape(2, 3, 6), tp.ones(2, 3))
    a, b = tp.randn(4, 5, 20).double(), tp.randn(4, 5).double()
    tp.testing.assert_close(graph(a, b), solve(a, b))
