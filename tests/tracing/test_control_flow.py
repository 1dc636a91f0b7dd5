"""Control flow as functions of functions (tensorpy._higher_order_ops)."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import tensorpy as tp
from tensorpy._dynamo.exc import TorchRuntimeError, UncapturedHigherOrderOpError
from tensorpy._functorch.utils import enable_single_level_autograd_function
from tensorpy._higher_order_ops import associative_scan, cond, map, scan, while_loop
from tensorpy._higher_order_ops.out_dtype import out_dtype
from tensorpy.func import functionalize, grad
from tensorpy.fx.experimental.proxy_tensor import DataDependentError, make_fx
from tensorpy.fx.passes.shape_prop import ShapeProp
from tensorpy.utils._python_dispatch import TorchDispatchMode


def same(a: Any, b: Any) -> None:
    tp.testing.assert_close(a, b)


def test_one_of_two_functions() -> None:
    for pred in (True, tp.tensor(True), tp.tensor([1.0])):
        same(tp.cond(pred, lambda x: x.sin(), lambda x: x.cos(), (tp.ones(2),)), tp.ones(2).sin())
    assert cond(False, lambda x: {"a": x}, lambda x: {"b": x}, [tp.ones(1)]).keys() == {"b"}
    same(grad(lambda x: cond(x > 0, lambda y: y * 2, lambda y: y * 3, (x,)))(tp.tensor(1.0)), tp.tensor(2.0))
    with pytest.raises(RuntimeError, match="Expect both branches to be callable"):
        cond(True, 1, lambda: 2)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="single-element tensor"):
        cond(tp.ones(2), lambda: 1, lambda: 2)
    with pytest.raises(RuntimeError, match="Expected pred to be bool"):
        cond("yes", lambda: 1, lambda: 2)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="Expect operands to be a tuple"):
        cond(True, lambda x: x, lambda x: x, (print,))


def test_branches_by_sample() -> None:
    def f(x: Any) -> Any:
        return cond(x.sum() > 0, lambda x: {"a": x * 2}, lambda x: {"a": x - 1}, (x,))["a"]

    x = tp.tensor([[1.0], [-1.0]])
    same(tp.vmap(f)(x), tp.tensor([[2.0], [-2.0]]))
    same(tp.vmap(grad(lambda x: f(x).sum()))(x), tp.tensor([[2.0], [1.0]]))
    same(make_fx(tp.vmap(f))(x)(-x), tp.vmap(f)(-x))
    with pytest.raises(TorchRuntimeError, match="other tensors"):
        tp.vmap(lambda x: cond(x > 0, lambda: x, lambda: x.double()))(x[:, 0])


def test_a_loop() -> None:
    count, x = while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (tp.tensor(0), tp.ones(2)))
    same((count, x), (tp.tensor(3), tp.full((2,), 8.0)))
    with pytest.raises(RuntimeError, match="structure"):
        while_loop(lambda x: True, lambda x: (x, x), (tp.ones(1),))
    with pytest.raises(RuntimeError, match="shapes"):
        while_loop(lambda x: True, lambda x: (x[:1],), (tp.ones(2),))
    with pytest.raises(RuntimeError, match="dtypes"):
        while_loop(lambda x: True, lambda x: (x.double(),), (tp.ones(2),))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dim", [0, 1])
def test_scans_are_sums(reverse: bool, dim: int) -> None:
    x = tp.arange(6.0).reshape(2, 3).requires_grad_()
    carry, ys = scan(lambda c, s: (c + s, c + s), tp.zeros(x.shape[1 - dim]), x, dim=dim, reverse=reverse)
    wanted = (x.flip(dim).cumsum(dim).flip(dim) if reverse else x.cumsum(dim)).movedim(dim, 0)
    same((carry, ys), (x.sum(dim), wanted))
    same(associative_scan(lambda a, b: a + b, x, dim, reverse), wanted.movedim(0, dim))
    (given,) = tp.autograd.grad(ys.sum(), x)
    same(given, tp.autograd.grad(wanted.sum(), x)[0])


def test_scans_of_trees() -> None:
    xs = {"a": tp.arange(4.0), "b": tp.ones(4)}
    found = associative_scan(lambda p, q: {"a": p["a"] * q["b"] + q["a"], "b": p["b"] * q["b"]}, xs, 0)
    same(found["a"], tp.arange(4.0).cumsum(0))
    assert scan(lambda c, x: (c, x), tp.ones(1), []) == (tp.ones(1), [])
    with pytest.raises(ValueError, match="Combine_mode"):
        associative_scan(lambda p, q: p, xs, 0, combine_mode="other")
    with pytest.raises(RuntimeError, match="metadata of init"):
        scan(lambda c, x: (c.double(), x), tp.zeros(()), tp.ones(3))
    with pytest.raises(UncapturedHigherOrderOpError, match="a carry and a result"):
        scan(lambda c, x: c + x, tp.zeros(()), tp.ones(3))  # type: ignore[arg-type, return-value]
    with pytest.raises(RuntimeError, match="same number of elements"):
        associative_scan(lambda p, q: p, (tp.ones(2), tp.ones(3)), 0)
    with pytest.raises(IndexError, match="out of range"):
        associative_scan(lambda p, q: p, tp.ones(2), 1)


def test_a_function_of_each_slice() -> None:
    same(map(lambda x, y: x + y, tp.arange(6.0).reshape(3, 2), tp.ones(2)), tp.arange(6.0).reshape(3, 2) + 1)
    with pytest.raises(RuntimeError, match="cannot be 0"):
        map(lambda x: x, tp.ones(0, 2))
    with pytest.raises(RuntimeError, match="consistent"):
        map(lambda x: x[0], (tp.ones(2), tp.ones(3)))


def test_vmap_takes_each_samples_branch() -> None:
    def f(x: tp.Tensor) -> Any:
        return tp.cond(x.sum() > 0, lambda t: {"a": (t * t).sum()}, lambda t: {"a": (t * 3).sum()}, (x,))

    x = tp.tensor([[1.0, 2.0], [-1.0, 0.0]])
    assert tp.vmap(f)(x)["a"].tolist() == [5.0, -3.0]
    assert tp.vmap(tp.func.grad(lambda x: f(x)["a"]))(x).tolist() == [[2.0, 4.0], [3.0, 3.0]]
    each = tp.vmap(tp.vmap(lambda x: tp.cond(x > 0, tp.sin, tp.cos, (x,))))(x)
    assert each.equal(tp.where(x > 0, x.sin(), x.cos()))
    with pytest.raises(RuntimeError):
        tp.vmap(lambda x: tp.cond(x > 0, lambda t: t, lambda t: (t,), (x,)))(x[0])


# ---- nodes of graphs ----

MODES = ("real", "fake", "symbolic")
W = tp.tensor([2.0, 3.0])


def targets(module: Any) -> list[str]:
    return [getattr(n.target, "__name__", "") for n in module.graph.nodes if n.op == "call_function"]


def is_recorded(f: Callable[..., Any], name: str, *calls: Any, mode: str = "real") -> Any:
    """The module of f for the first call: one node of the name, whose graphs give what f gives for each call."""
    module = make_fx(f, tracing_mode=mode)(*calls[0])
    assert targets(module).count(name) == 1
    for made in (module, make_fx(module)(*calls[0]), copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        for args in calls:
            same(made(*args), f(*args))
            same(tp.fx.Interpreter(made).run(*args), f(*args))
    return module


@pytest.mark.parametrize("mode", MODES)
def test_each_operator_is_a_node(mode: str) -> None:
    x, y = tp.arange(8.0).reshape(4, 2) + 1, -tp.ones(4, 2)
    calls = (x,), (y,)

    def loop(x: Any) -> Any:
        return while_loop(lambda i, x: (i < 3) & (x.sum() < 99), lambda i, x: (i + 1, x * W), (i0, x))

    i0 = tp.tensor(0)
    module = is_recorded(
        lambda x: cond(x.sum() > 0, lambda x: x.sin() + W, lambda x: x.cos(), (x,)), "cond", *calls, mode=mode
    )
    assert [name for name, _ in module.named_children()] == ["true_graph_0", "false_graph_0"]
    module = is_recorded(lambda x: map(lambda a, b: {"s": a + b * W}, x, x[0]), "map_impl", *calls, mode=mode)
    assert targets(module.body_graph_0) == ["mul.Tensor", "add.Tensor"] or len(targets(module.body_graph_0)) == 2
    module = is_recorded(loop, "while_loop", *calls, mode=mode)
    assert [n for n, _ in module.named_children()] == ["while_loop_cond_graph_0", "while_loop_body_graph_0"]
    for dim in (0, 1):
        for reverse in (False, True):
            is_recorded(
                lambda x, d=dim, r=reverse: scan(
                    lambda c, s: (c + s, c * s * W[0]), x.select(d, 0) * 0, x, dim=d, reverse=r
                ),
                "scan", *calls, mode=mode,
            )  # fmt: skip
            is_recorded(
                lambda x, d=dim, r=reverse: associative_scan(lambda a, b: a + b, x, d, r),
                "associative_scan", *calls, mode=mode,
            )  # fmt: skip


def test_branches_take_what_they_have_from_elsewhere() -> None:
    def f(x: Any) -> Any:
        y = x.exp()
        return cond(x.sum() > 0, lambda: {"a": x + y, "b": (y * 1,)}, lambda: {"a": x - W, "b": (x * y,)})

    module = is_recorded(f, "cond", (tp.ones(2),), (-tp.ones(2),))
    (node,) = module.graph.find_nodes(op="call_function", target=tp.ops.higher_order.cond)
    assert [arg.name for arg in node.args[3]] == ["x_1", "exp", "_tensor_constant0"]
    assert "tensorpy.ops.higher_order.cond(gt, true_graph_0, false_graph_0, (x_1, exp" in module.code
    ShapeProp(module).propagate(tp.ones(2))

    def nested(x: Any) -> Any:
        big = lambda y: cond(y.sum() > 4, lambda z: z * W, lambda z: z + x.sin(), (y,))  # noqa: E731
        return cond(x.sum() > 0, big, lambda y: y.cos(), (x * 2,))

    is_recorded(nested, "cond", (tp.ones(2) / 4,), (tp.ones(2) * 3,), (-tp.ones(2),))
    assert "cond" not in targets(make_fx(lambda x: cond(True, lambda: x.sin(), lambda: x))(tp.ones(2)))


@pytest.mark.parametrize("mode", MODES)
def test_gradients_of_nodes(mode: str) -> None:
    def f(x: Any) -> Any:
        return cond(x.sum() > 0, lambda x: x.sin() * W + x, lambda x: x.cos(), (x,))

    def g(x: Any) -> Any:
        return tp.autograd.grad(f(x).pow(2).sum(), x)[0]

    def of_map(x: Any) -> Any:
        return tp.autograd.grad(map(lambda row, y: row.sin() * y, x, x[0] * W).sum(), x)[0]

    xs = [(tp.tensor([v, 0.5], requires_grad=True),) for v in (1.0, -3.0)]
    module = make_fx(f, tracing_mode=mode)(*xs[0])
    for (x,) in xs:
        same(tp.autograd.grad(module(x).sum(), x), tp.autograd.grad(f(x).sum(), x))
    module = make_fx(g, tracing_mode=mode)(*xs[0])
    assert targets(module).count("cond") == 2 and hasattr(module, "false_graph_1")
    for args in xs:
        same(module(*args), g(*args))
    for h in (
        lambda x: grad(lambda x: f(x).sum())(x),
        lambda x: grad(lambda x: grad(lambda x: f(x).sum())(x).sum())(x),
    ):
        module = make_fx(h, tracing_mode=mode)(tp.ones(2))
        assert "cond" in targets(module)
        for (x,) in xs:
            same(module(x.detach()), h(x.detach()))
    x = tp.rand(3, 2, requires_grad=True)
    same(make_fx(of_map, tracing_mode=mode)(tp.ones(3, 2, requires_grad=True))(x), of_map(x))
    with pytest.raises(RuntimeError, match="records no gradient"):
        make_fx(lambda x: grad(lambda x: scan(lambda c, s: (c * s, s * 1), x[0], x)[0].sum())(x))(x)


def test_writes_are_removed_from_branches() -> None:
    def writes(x: Any) -> Any:
        y = x.sin()
        y.add_(4)
        return y.sum()

    def f(x: Any) -> Any:
        y = x + 1
        return cond(x.sum() > 0, writes, lambda x: x.cos().max() * y[0], (x,))

    module = is_recorded(functionalize(f), "cond", (tp.ones(2),), (-tp.ones(2),))
    assert not any(name.endswith("_") for graph in (module, module.true_graph_0) for name in targets(graph))
    is_recorded(f, "cond", (tp.ones(2),), (-tp.ones(2),))
    with pytest.raises(UncapturedHigherOrderOpError, match="writes"):
        make_fx(functionalize(lambda x: cond(x.sum() > 0, lambda x: x.add_(1) * 2, lambda x: x + 1, (x,))))(tp.ones(2))


@pytest.mark.parametrize(
    ("branch", "error", "match"),
    [
        (lambda x: x.add_(1), UncapturedHigherOrderOpError, "writes to a tensor from outside"),
        (lambda x: x, UncapturedHigherOrderOpError, "gives a tensor that it takes"),
        (lambda x: x.view(-1), UncapturedHigherOrderOpError, "or a view of it"),
        (lambda x: (x.sin(), x.sin()), UncapturedHigherOrderOpError, "2 tensors and 1"),
        (lambda x: {"a": x.sin()}, UncapturedHigherOrderOpError, "other trees"),
        (lambda x: 3, UncapturedHigherOrderOpError, "gives tensors"),
        (lambda x: x.double(), TorchRuntimeError, "of float64 and"),
        (lambda x: x[0] * 1, TorchRuntimeError, r"\[\] of float32"),
        (lambda x: x * x.sum().item(), DataDependentError, "item"),
    ],
)
def test_a_branch_that_is_no_graph(branch: Any, error: type[Exception], match: str) -> None:
    x = tp.ones(2)
    for mode in MODES[:1]:
        with pytest.raises(error, match=match):
            make_fx(lambda x: cond(x.sum() > 0, branch, lambda x: x.cos(), (x,)), tracing_mode=mode)(x)
    same(x, tp.ones(2))


def test_operators_called_by_name() -> None:
    x = tp.ones(2)
    op = tp.ops.higher_order.cond
    assert op.name() == "cond" and isinstance(op, tp._ops.HigherOrderOperator) and copy.deepcopy(op) is op
    same(op(tp.tensor(False), lambda x: (x + 1,), lambda x: (x - 1,), (x,)), (tp.zeros(2),))
    module = make_fx(lambda x: cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,)))(x)
    compiled = tp.compile(module, backend=lambda graph, inputs: graph)
    for value in (x, -x, x):
        same(compiled(value), module(value))
    with pytest.raises(AttributeError):
        tp.ops.higher_order.other  # noqa: B018


class Total(tp._ops.HigherOrderOperator):
    """An operator of a program's own, with rules for vmap and grad: function(x) summed, for sin."""

    def __init__(self) -> None:
        super().__init__("total")
        self.seen: list[str] = []

    def __call__(self, *args: Any) -> Any:
        return super().__call__(*args)


def own_operator() -> Total:
    total = Total()
    inside: Any = tp._functorch.interpreter

    @total.py_impl("AutogradCPU")
    def plain(function: Any, x: Any) -> Any:
        total.seen.append("plain")
        return function(x).sum(-1)

    @total.py_impl(inside.TransformType.Vmap)
    def batched(interpreter: Any, function: Any, x: Any) -> Any:
        total.seen.append("vmap")
        with interpreter.lower():
            if not inside.is_batchedtensor(x):
                return total(function, x)
            made = total(function, inside.get_unwrapped(x).movedim(inside.maybe_get_bdim(x), 0))
        return inside._add_batch_dim(made, 0, interpreter.level())

    @total.py_impl(inside.TransformType.Grad)
    def differentiated(interpreter: Any, function: Any, x: Any) -> Any:
        total.seen.append("grad")

        class Rule(tp.autograd.function._SingleLevelFunction):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                ctx.save_for_backward(x)
                with interpreter.lower():
                    made = total(function, inside._unwrap_for_grad(x, interpreter.level()))
                return inside._wrap_for_grad(made, interpreter.level())

            @staticmethod
            def backward(ctx: Any, grad: Any) -> Any:
                (x,) = ctx.saved_tensors
                return grad.unsqueeze(-1) * x.cos()

        with enable_single_level_autograd_function():
            return Rule.apply(x)

    return total


def test_operators_of_a_programs_own() -> None:
    with pytest.raises(TypeError, match="abstract class"):
        tp._ops.HigherOrderOperator("none")  # type: ignore[abstract]
    total, x = own_operator(), tp.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert tp.ops.higher_order.total is total and "total" in dir(tp.ops.higher_order)
    assert str(total) == total.name() == "total" and copy.deepcopy(total) is total
    same(total(tp.sin, x), x.sin().sum(-1))
    assert total.seen == ["plain"]
    same(tp.vmap(lambda x: total(tp.sin, x))(x), x.sin().sum(-1))
    assert total.seen[1:] == ["vmap", "plain"]
    same(grad(lambda x: total(tp.sin, x))(x[0]), x[0].cos())
    assert total.seen[3:] == ["grad", "plain"]
    same(tp.vmap(grad(lambda x: total(tp.sin, x)))(x), x.cos())
    with pytest.raises(NotImplementedError, match="no rule registered for HigherOrderOperator total and transform Jvp"):
        tp.func.jvp(lambda x: total(tp.sin, x), (x,), (x,))
    with pytest.raises(NotImplementedError, match="total and dispatch key AutogradMeta"):
        total(tp.sin, x.to("meta"))
    with pytest.raises(RuntimeError, match="Trying to override a python impl for AutogradCPU on operator total"):
        total.py_impl("AutogradCPU")(print)


def test_operators_of_a_programs_own_in_modes() -> None:
    total, x = own_operator(), tp.ones(2)
    total.py_kernels.clear()
    total.py_impl("Autograd")(lambda function, x: function(x))

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {})) if func is not total else "mode"

    below = tp._C._get_dispatch_sets()
    autograd = tp._C._KEYS["AutogradCPU"]
    total.py_impl("CompositeExplicitAutograd")(lambda function, x: "dense")
    tp._C._set_dispatch_sets(below[0], below[1] | autograd)
    try:
        assert total(tp.sin, x) == "dense"
        with Mode(), pytest.raises(NotImplementedError, match="total and mode"):
            total(tp.sin, x)
        Mode.supports_higher_order_operators = True
        with Mode():
            assert total(tp.sin, x) == "mode"
        total.py_impl(Mode)(lambda mode, function, x: type(mode).__name__)
        with Mode():
            assert total(tp.sin, x) == "Mode"
    finally:
        tp._C._set_dispatch_sets(*below)


def test_graphs_keep_what_a_function_says_it_returns() -> None:
    def annotated(x: Any) -> tp.Tensor:
        return x + 1

    assert "forward(self, x_1) -> " in make_fx(annotated)(tp.ones(2)).code
    assert "->" not in make_fx(lambda x: x + 1)(tp.ones(2)).code


def test_graphs_of_functions_of_any_arguments_say_nothing_of_their_result() -> None:
    def annotated(*x: Any) -> tp.Tensor:
        return x[0] + 1

    assert "forward(self, arg0_1):" in make_fx(annotated)(tp.ones(2)).code


# ---- results of a dtype of their own ----


def test_a_result_of_a_dtype_of_its_own() -> None:
    a, b = (tp.randint(-128, 127, (3, 3), dtype=tp.int8) for _ in range(2))
    same(out_dtype(tp.ops.aten.mm.default, tp.int32, a, b), a.int() @ b.int())
    same(out_dtype(tp.ops.aten.mul.Scalar, tp.int32, a, 3.5), (a * 3.5).int())
    same(out_dtype(tp.ops.aten.div.Tensor, tp.float64, a, b.abs() + 1), a.double() / (b.abs() + 1))
    same(make_fx(lambda x: out_dtype(tp.ops.aten.mm.default, tp.int32, x, b))(a)(a), a.int() @ b.int())


def test_gradients_of_a_result_of_a_dtype_of_its_own_are_refused() -> None:
    x = tp.rand(2, 2, requires_grad=True)
    assert not out_dtype(tp.ops.aten.mm.default, tp.int32, x, x).requires_grad
    result = out_dtype(tp.ops.aten.mm.default, tp.float64, x, x)
    with pytest.raises(RuntimeError, match="Autograd not implemented for out_dtype"):
        result.sum().backward()


@pytest.mark.parametrize(
    ("op", "says"),
    [
        (tp.add, "must be an OpOverload"),
        (tp.ops.aten.add_.Tensor, "needs to be a functional operator"),
        (tp.ops.aten.topk.default, "can only apply to ops that return a single tensor"),
        (tp.ops.aten.split_copy.Tensor, "can only apply to ops that return a single tensor"),
        (tp.ops.aten.sub.Tensor, "only allows the following operators"),
    ],
)
def test_operators_that_have_no_result_of_another_dtype(op: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        out_dtype(op, tp.int32, tp.ones(2), tp.ones(2))
