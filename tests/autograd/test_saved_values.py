"""y.grad_fn._saved_self and its kin: what a node keeps for backward, under PyTorch's names."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest

import tensorpy as tp

CALLS = {
    "exp": lambda t, x: x.exp(), "mul": lambda t, x: x * (x + 1), "pow": lambda t, x: x**2,
    "max": lambda t, x: x.max(0)[0],
    "where": lambda t, x: t.where(x > 0, x, x * 2), "gather": lambda t, x: x.gather(0, t.tensor([0, 1])),
    "sigmoid": lambda t, x: x.sigmoid(), "sqrt": lambda t, x: x.sqrt(), "mm": lambda t, x: x[None] @ x[:, None],
}  # fmt: skip


def saved(node: Any) -> dict[str, Any]:
    """Tensors that a node saves, by name."""
    found = {name: getattr(node, name) for name in dir(node) if name.startswith("_saved_")}
    return {name: v.tolist() for name, v in found.items() if hasattr(v, "tolist")}


@pytest.mark.parametrize("name", CALLS)
def test_saved_tensors_are_pytorchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = (saved(CALLS[name](t, t.tensor([1.0, 4.0], requires_grad=True)).grad_fn) for t in (tp, torch))
    assert ours and ours == {name: theirs[name] for name in ours}


def test_saved_values_are_those_that_backward_uses() -> None:
    x = tp.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    assert y.grad_fn._saved_self is x and y.grad_fn._saved_other is x
    e = x.exp()
    assert e.grad_fn._saved_result.equal(e) and e.grad_fn._saved_result.requires_grad
    assert "_saved_result" in dir(e.grad_fn) and not hasattr(e.grad_fn, "_saved_no_such")
    e.sum().backward()
    with pytest.raises(RuntimeError, match="saved"):
        e.grad_fn._saved_result  # noqa: B018
    z = (x * 2).sin()
    before = z.grad_fn._saved_self
    before.detach().zero_()
    with pytest.raises(RuntimeError, match=r"in-?place|changed"):
        z.grad_fn._saved_self  # noqa: B018


# ---- hooks of one saved value ----


def test_a_saved_value_takes_hooks_of_its_own():
    x = tp.ones(2, requires_grad=True)
    y = x * x
    y.grad_fn._raw_saved_self.register_hooks(lambda t: t * 2, lambda t: t)
    y.sum().backward()
    assert x.grad.tolist() == [3, 3]  # one factor is kept doubled
    z = x.exp()
    z.grad_fn._raw_saved_result.register_hooks(lambda t: t.tolist(), lambda numbers: tp.tensor(numbers))
    (grad,) = tp.autograd.grad(z.sum(), x)
    assert tp.allclose(grad, x.exp())


def test_values_of_a_list_take_hooks_one_by_one():
    x, seen = tp.ones(2, 2, requires_grad=True), []
    y = x[:, tp.tensor([0, 1])]
    none, index = y.grad_fn._raw_saved_indices
    assert y.grad_fn._saved_indices[0] is None and y.grad_fn._saved_indices[1].tolist() == [0, 1]
    index.register_hooks(lambda t: seen.append("packed") or t, lambda t: seen.append("unpacked") or t)
    with pytest.raises(RuntimeError, match="with value None is forbidden"):
        none.register_hooks(lambda t: t, lambda t: t)
    y.sum().backward()
    assert seen[0] == "packed" and "unpacked" in seen


def test_hooks_of_a_saved_value_are_refused():
    x = tp.ones(2, requires_grad=True)
    saved = (x * x).grad_fn._raw_saved_self
    for hooks in ((lambda t: t,), (1, 1)):
        with pytest.raises(TypeError, match="register_hooks"):
            saved.register_hooks(*hooks)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        saved.register_hooks(lambda t, other: t, lambda t: t)
    saved.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(RuntimeError, match="hooks have already been set"):
        saved.register_hooks(lambda t: t, lambda t: t)
    y = x * x
    raw = y.grad_fn._raw_saved_self
    y.sum().backward()
    with pytest.raises(RuntimeError, match="after it has been freed"):
        raw.register_hooks(lambda t: t, lambda t: t)


def test_a_pack_hook_does_not_write_its_input():
    def doubled(t):
        with tp.no_grad():
            return t.mul_(2)

    x = tp.ones(2, requires_grad=True)
    y = x * 1
    with pytest.raises(RuntimeError, match="A saved tensor pack hook is modifying its input in place"):
        (y * y).grad_fn._raw_saved_self.register_hooks(doubled, lambda t: t)
    with tp.autograd.graph.saved_tensors_hooks(doubled, lambda t: t):
        with pytest.raises(RuntimeError, match="A saved tensor pack hook is modifying its input in place"):
            y.exp() * y


def test_contexts_of_copies_do_not_nest():
    with tp.autograd.graph.allow_mutation_on_saved_tensors():
        with pytest.raises(RuntimeError, match="contexts cannot be nested"):
            tp.autograd.graph.allow_mutation_on_saved_tensors().__enter__()
    with tp.autograd.graph.allow_mutation_on_saved_tensors():
        pass


# ---- numbers ----

NUMBERS = [
    "x.sum(-1)", "x.sum((0, -1), True)", "x.permute(1, 0)", "x.transpose(0, -1)", "x[1:]", "x[:, ::2]",
    "x.unsqueeze(-1)",
    "x ** 2", "2 ** x", "x.cumsum(0)", "x.softmax(-1)", "x.view(12)", "x.flip(0)", "x.tril(1)", "x.diagonal()",
    "x.std(0, correction=1)", "x.logsumexp(0)", "x.max(0)[0]", "x.topk(2)[0]", "x.repeat(2, 1)", "x.unfold(0, 2, 1)",
    "t.cat([x, x])", "t.stack([x, x], 1)", "x.norm(dim=-1)", "x.select(0, -1)", "x.index_select(0, t.tensor([0]))",
    "t.nn.functional.leaky_relu(x, 0.25)", "t.nn.functional.gelu(x, approximate='tanh')",
    "t.nn.functional.hardtanh(x, -2.0, 2.0)", "t.nn.functional.pad(x, (1, 2))", "t.addcmul(x, x, x, value=2)",
    "t.nn.functional.avg_pool2d(x[None], 2)", "t.nn.functional.layer_norm(x, (4,))", "x.logit(1e-3)",
    "t.nn.functional.softplus(x)", "x.masked_fill(x > 1, 2.0)", "x.var(0, correction=0)", "x.amax(0)", "x.sort()[0]",
    "x.split((3, 1), 1)[0]", "x.expand(2, 3, 4)", "x[None].squeeze(0)", "x[None, None].squeeze((0, 1))", "x.mean()",
    "x.mean(0)", "t.nn.functional.embedding(t.tensor([1]), x)", "t.nn.functional.unfold(x[None, None], 2)",
    "t.nn.functional.conv1d(x, x[:, :3, None], x[:, 0])",
]  # fmt: skip


def numbers(t: Any, call: str) -> dict[str, Any]:
    """What a node saves beside tensors, by name."""
    x = t.arange(12.0).reshape(3, 4).requires_grad_()
    node = eval(call, {"t": t, "x": x}).grad_fn
    found = {name: getattr(node, name) for name in dir(node) if name.startswith("_saved_")}
    return {name: v for name, v in found.items() if v is not None and not hasattr(v, "tolist")}


@pytest.mark.parametrize("call", NUMBERS)
def test_saved_numbers_are_pytorchs(call: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = numbers(tp, call), numbers(torch, call)
    assert ours == theirs
    assert {name: type(v) for name, v in ours.items()} == {name: type(v) for name, v in theirs.items()}


NAMES = {
    "copy of a view": lambda t, x: t.view_copy(x, (2,)), "elu": lambda t, x: t.nn.functional.elu(x),
    "change of a view": lambda t, x: (x * 1).index_fill_(0, t.tensor([0]), 1), "no formula": lambda t, x: x // 2,
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_names_of_nodes_are_pytorchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = (NAMES[name](t, t.tensor([1.0, 4.0], requires_grad=True)).grad_fn for t in (tp, torch))
    assert ours.name() == theirs.name() and type(ours).__name__ == type(theirs).__name__
    ours, theirs = (node.next_functions[0][0] for node in (ours, theirs))
    assert ours.name() == theirs.name() and type(ours).__name__ == type(theirs).__name__


def test_saved_numbers_outlive_backward() -> None:
    y = tp.ones(2, 3, requires_grad=True).sum(-1)
    y.sum().backward()
    assert y.grad_fn._saved_dim == (2**64 - 1,) and y.grad_fn._saved_self_sym_sizes == (2, 3)
    assert not hasattr(y.grad_fn, "_raw_saved_dim")


# ---- what is written after it was saved ----


def of_two(write: Callable[[tp.Tensor, tp.Tensor], Any]) -> Callable[[], Any]:
    def program() -> Any:
        a, b = (tp.randn(50, 50, requires_grad=True).sin() for _ in range(2))
        return write(a, b)

    return program


def written_view(a: tp.Tensor, b: tp.Tensor) -> None:
    product = a[1:] * a[:-1]
    a[2:].mul_(product[1:])
    a[0] = product.sum(0)


def written_twice(a: tp.Tensor, b: tp.Tensor) -> None:
    for _ in range(3):
        a.add_(a * b)
        b.mul_(a.exp())


def written_without_history(a: tp.Tensor, b: tp.Tensor) -> None:
    plain = tp.randn(50, 50)
    plain.mul_(plain * a)


class Twice(tp.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: tp.Tensor) -> tp.Tensor:
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: tp.Tensor) -> tp.Tensor:
        return grad * 2


WRITES: dict[str, Callable[[tp.Tensor, tp.Tensor], Any]] = {
    "by what it made": lambda a, b: a.mul_(a * b),
    "by itself": lambda a, b: a.mul_(a),
    "by a list": lambda a, b: a.copy_(tp.cat([a * b, b])[:50] * tp.stack([a, b])[0]),
    "a view": written_view,
    "twice": written_twice,
    "that had no history": written_without_history,
    "by index": lambda a, b: a.index_put_((tp.arange(9),), (a * a)[:9]),
    "by a Function": lambda a, b: a.mul_(Twice.apply(a)),
    "by several": lambda a, b: tp._foreach_mul_([a, b], [a * b, b * b]),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_written_input_does_not_keep_itself_alive(name: str) -> None:
    """A node that has saved a tensor, and a later history of this tensor that leads to the node, are no circle."""
    program = of_two(WRITES[name])
    program()
    gc.collect()
    before = tp._C._memory_stats()["live_bytes"]
    program()
    gc.collect()
    assert tp._C._memory_stats()["live_bytes"] == before


def test_a_written_input_is_refused_as_before() -> None:
    a = tp.randn(5, requires_grad=True).sin()
    product = a * a
    a.mul_(product)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()
    saved = product.grad_fn
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        _ = saved._saved_self  # type: ignore[union-attr]


def test_long_chains_of_writes() -> None:
    """Each write looks through what is new, not through the chain again."""
    x, state = tp.randn(4, requires_grad=True), tp.zeros(4)
    _ = state * x  # saved once
    for _ in range(3000):
        state.add_(x)
    state.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [3000.0] * 4


# ---- contexts ----


@pytest.mark.parametrize("entered", [1, 3])
def test_a_context_of_hooks_may_be_entered_again_before_it_is_left(entered: int) -> None:
    seen: list[int] = []
    context = tp.autograd.graph.saved_tensors_hooks(lambda v: seen.append(1) or v, lambda v: v)
    x = tp.ones(2, requires_grad=True)
    for _ in range(entered):
        context.__enter__()
    x.exp()
    assert seen
    for _ in range(entered):
        context.__exit__()
    seen.clear()
    x.exp()
    assert not seen


def test_a_context_that_an_unpack_hook_enters_ends_with_the_backward() -> None:
    seen: list[int] = []
    inner = tp.autograd.graph.saved_tensors_hooks(lambda v: seen.append(1) or v, lambda v: v)

    def unpack(v: tp.Tensor) -> tp.Tensor:
        inner.__enter__()
        return v

    x = tp.ones(2, requires_grad=True)
    with tp.autograd.graph.saved_tensors_hooks(lambda v: v, unpack):
        x.exp().sum().backward()
    x.exp()
    assert not seen


def test_what_is_written_is_copied_once_and_as_long_as_a_graph_needs_it() -> None:
    x = tp.tensor([1.0, 2.0], requires_grad=True)
    with tp.autograd.graph.allow_mutation_on_saved_tensors() as copies:
        y = x * 1
        z, w = y.square(), y.square()
        assert len(copies.cloned) == 0 and len(copies.tid_to_weakhandle) == 1
        y.view(-1).sin_()  # a view's write
        assert len(copies.cloned) == 1
        tp.add(x.detach(), 1, out=y.detach())  # and that of an out=
        (z.sum() + w.sum()).backward()
        assert x.grad.tolist() == [4, 8]
        del z, w
        gc.collect()
        assert len(copies.cloned) == 0
        kept = x.square()
    with pytest.raises(AssertionError, match="outside of the 'allow_mutation_on_saved_tensors' context"):
        kept.sum().backward()


def test_values_that_a_function_saved_take_hooks() -> None:
    class Square(tp.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: tp.Tensor) -> tp.Tensor:
            ctx.save_for_backward(x, None)
            return x**2

        @staticmethod
        def backward(ctx: Any, grad: tp.Tensor) -> tp.Tensor:
            with pytest.warns(DeprecationWarning, match="use 'saved_tensors'"):
                (x, nothing) = ctx.saved_variables
            assert nothing is None
            return grad * 2 * x

    x = tp.tensor([3.0], requires_grad=True)
    y = Square.apply(x)
    value, nothing = y.grad_fn._raw_saved_tensors
    assert isinstance(value, tp.autograd.SavedTensor)
    value.register_hooks(lambda v: v * 10, lambda v: v)
    with pytest.raises(RuntimeError, match="None is forbidden"):
        nothing.register_hooks(lambda v: v, lambda v: v)
    for wrong in [(len,), (1, 2), ()]:
        with pytest.raises(TypeError, match="incompatible function arguments"):
            value.register_hooks(*wrong)
    y.backward()
    assert x.grad.tolist() == [60]
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        y.grad_fn._raw_saved_tensors  # noqa: B018
    with pytest.raises(RuntimeError, match="from Python is forbidden"):
        tp.autograd.SavedTensor()
