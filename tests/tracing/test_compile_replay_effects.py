"""compile(mode="reduce-overhead"): what a call does beside computing elements is done by the calls that follow, too.

A case is a program: a generator that compiles a function with what it is given and yields what it sees. It sees the
same with `compile` as without it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tensorpy as tp
from tensorpy import nn

Compile = Callable[[Callable[..., Any]], Callable[..., Any]]
Case = Callable[[Compile], Iterator[Any]]
CALLS = 14  # the fourth is replayed, the eighth is an audit


def compiled(function: Callable[..., Any]) -> Any:
    return tp.compile(function, mode="reduce-overhead")


def seen(value: Any) -> Any:
    if not isinstance(value, tp.Tensor):
        return value
    return value.shape, value.stride(), value.dtype, value.requires_grad, value._version, value.tolist()


def effect(do: Callable[..., Any], tensors: Callable[[int], list[tp.Tensor]]) -> Case:
    """Calls `do` with new tensors each time, and looks at the tensors."""

    def case(compile: Compile) -> Iterator[Any]:
        function = compile(lambda *given: (do(*given), given[-1].detach() + 1)[1])
        for i in range(CALLS):
            given = tensors(i)
            yield function(*given)
            yield from given

    return case


def on_one_that_is_there(do: Callable[[tp.Tensor, tp.Tensor], Any], undo: Callable[[tp.Tensor], Any]) -> Case:
    def case(compile: Compile) -> Iterator[Any]:
        there = tp.arange(6.0).reshape(2, 3).clone()
        function = compile(lambda x: (do(there, x), x.detach() + 1)[1])
        for i in range(CALLS):
            yield function(tp.full((2, 3), float(i)))
            yield there
            undo(there)

    return case


def two(i: int) -> list[tp.Tensor]:
    return [tp.ones(5, 2), tp.full((3,), float(i))]


def swapped(p: tp.Tensor, q: tp.Tensor) -> None:
    p.grad, q.grad = q.grad, p.grad


def gradients(do: Callable[[nn.Parameter, nn.Parameter], Any]) -> Case:
    def case(compile: Compile) -> Iterator[Any]:
        p, q = nn.Parameter(tp.ones(3)), nn.Parameter(tp.zeros(3))
        function = compile(lambda x: (do(p, q), x * 2)[1])
        for i in range(CALLS):
            p.grad, q.grad = (tp.full((3,), float(i)), None) if i % 3 else (None, tp.ones(3))
            yield from (function(tp.ones(3)), p.grad, q.grad)

    return case


def seeds(do: Callable[[tp.Generator], Any]) -> Case:
    def case(compile: Compile) -> Iterator[Any]:
        generator = tp.Generator().manual_seed(1)
        function = compile(lambda x: (do(generator), x * 2)[1])
        for _ in range(CALLS):
            yield from (function(tp.ones(2)), tp.rand(1), tp.rand(1, generator=generator))

    return case


def hooks_that_come_and_go(compile: Compile) -> Iterator[Any]:
    w, layer = nn.Parameter(tp.ones(3)), nn.Linear(3, 3)

    def backward(x: tp.Tensor) -> tp.Tensor:
        (w * x).sum().backward()
        return x + 1

    forward, handle = compile(lambda x: layer(x).detach()), None
    with_gradient = compile(backward)
    hooks = {
        5: lambda: w.register_hook(lambda grad: grad * 2),
        7: lambda: w.register_post_accumulate_grad_hook(lambda p: (p.grad.mul_(3), None)[1]),
        11: lambda: layer.register_forward_hook(lambda module, args, output: output * 2),
        17: lambda: layer.register_forward_pre_hook(lambda module, args: (args[0] * 3,)),
        21: lambda: nn.modules.module.register_module_forward_hook(lambda module, args, output: output * 5),
    }
    for i in range(26):
        if i in hooks:
            if handle:
                handle.remove()
            handle = hooks[i]()
        w.grad = None
        yield from (with_gradient(tp.ones(3)), w.grad, forward(tp.ones(3)))
    handle.remove()


def settings_that_the_call_changes(compile: Compile) -> Iterator[Any]:
    p = nn.Parameter(tp.ones(3))
    optimizer = tp.optim.SGD([p], lr=1.0)

    def step(x: tp.Tensor) -> tp.Tensor:
        for group in optimizer.param_groups:
            group["lr"] *= 0.5
        (p * x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        return x + 1

    function = compile(step)
    for _ in range(CALLS):
        yield from (function(tp.ones(3)), p, optimizer.param_groups[0]["lr"])


def optimizers_whose_state_changes(compile: Compile) -> Iterator[Any]:
    w, later = nn.Parameter(tp.ones(3)), nn.Parameter(tp.ones(3))
    optimizer = tp.optim.Adam([w], lr=0.1)

    def step(x: tp.Tensor) -> tp.Tensor:
        optimizer.zero_grad()
        ((w + later) * x).square().sum().backward()
        optimizer.step()
        return x + 1

    function = compile(step)
    changes: dict[int, Callable[[], Any]] = {
        7: lambda: optimizer.load_state_dict(before),
        12: lambda: optimizer.state[w].update(exp_avg=tp.ones(3)),
        18: lambda: optimizer.state.clear(),
        23: lambda: optimizer.add_param_group({"params": [later]}),
        28: lambda: optimizer.param_groups[1]["params"].clear(),
    }
    for i in range(33):
        if i == 3:
            before = copy.deepcopy(optimizer.state_dict())
        changes.get(i, lambda: None)()
        yield from (function(tp.ones(3)), w, later)


def modes_that_the_call_leaves(compile: Compile) -> Iterator[Any]:
    threads = tp.get_num_threads()
    for do, undo in (
        (lambda: tp.set_grad_enabled(False), lambda: tp.set_grad_enabled(True)),
        (lambda: tp.set_default_dtype(tp.float64), lambda: tp.set_default_dtype(tp.float32)),
        (lambda: tp.set_autocast_enabled("cpu", True), lambda: tp.set_autocast_enabled("cpu", False)),
        (lambda: tp.set_num_threads(1), lambda: tp.set_num_threads(2)),
    ):
        function = compile(lambda x, do=do: (do(), x * 2)[1])
        for _ in range(CALLS):
            undo()
            yield function(tp.ones(3))
            yield from (tp.is_grad_enabled(), tp.get_default_dtype(), tp.is_autocast_enabled("cpu"))
            yield tp.get_num_threads()
        undo()
    tp.set_num_threads(threads)


def modules_that_change(compile: Compile) -> Iterator[Any]:
    changes: list[Callable[[Any], Any]] = [
        lambda m: m[0].register_parameter("bias", nn.Parameter(tp.full((3,), 7.0))),
        lambda m: m[1].register_buffer("running_mean", tp.full((3,), 7.0)),
        lambda m: setattr(m[1].running_mean, "data", tp.full((3,), 7.0)),
        lambda m: tp.utils.swap_tensors(m[1].running_mean, tp.full((3,), 5.0)),
        lambda m: m.add_module("0", nn.Linear(3, 3)),
        lambda m: m[2].clear(),
        lambda m: m.pop(0),
    ]
    for change in changes:
        tp.manual_seed(1)
        more = nn.ModuleDict({"x": nn.ReLU()})
        more.forward = lambda x, more=more: x.abs() if len(more) else x  # type: ignore[method-assign, misc]
        model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), more).eval()
        function = compile(lambda x, model=model: model(x).detach())
        for i in range(7):
            if i == 6:
                change(model)
            yield function(tp.ones(2, 3))


def a_dictionary_that_is_given(compile: Compile) -> Iterator[Any]:
    def put(x: tp.Tensor, given: dict[str, Any]) -> dict[str, Any]:
        given["out"] = x + 1
        return given

    function = compile(put)
    for i in range(CALLS):
        given: dict[str, Any] = {"x": 1}
        yield from (function(tp.full((3,), float(i)), given) is given, sorted(given), given["out"])


def attributes_of_a_result(compile: Compile) -> Iterator[Any]:
    def marked(x: tp.Tensor) -> tp.Tensor:
        y = x + 1
        y.mark = 5  # type: ignore[attr-defined]
        return y

    function = compile(marked)
    for _ in range(CALLS):
        yield getattr(function(tp.ones(3)), "mark", None)


def casts_that_autocast_keeps(compile: Compile) -> Iterator[Any]:
    layer = nn.Linear(4, 4)
    function = compile(lambda x: layer(x).detach())
    for i in range(4):
        with tp.autocast("cpu", cache_enabled=i != 2):
            for _ in range(CALLS):
                yield function(tp.ones(3, 4))
        with tp.no_grad():
            layer.weight.add_(i + 1)


def an_argument_that_is_there_already(compile: Compile) -> Iterator[Any]:
    there = tp.zeros(8)
    function = compile(lambda x: (there.add_(1), x * 2)[1])
    for i in range(30):
        yield from (function(there if i % 4 == 3 and i > 6 else tp.ones(8)), there)


def parts_of_larger_tensors(compile: Compile) -> Iterator[Any]:
    function = compile(lambda x: (x * 2).sum(0))
    for i in range(40):
        yield function(tp.arange(8.0 * (i + 1)).reshape(-1, 4)[i : i + 2])


def places_in_the_memory(compile: Compile) -> Iterator[Any]:
    """A number of elements from the memory's begin on, not from where the argument begins."""
    for view in (
        lambda x: x.as_strided((3,), (1,), 1),
        lambda x: tp.empty(0).set_(x.untyped_storage(), 1, (3,), (1,)),
    ):
        function = compile(lambda x, view=view: view(x) * 2)
        for i in range(CALLS):
            yield function(tp.arange(20.0) if i < 6 else tp.arange(25.0)[5:])


CASES: dict[str, Case] = {
    "argument, set_": effect(lambda x, y: x.set_(y), two),
    "argument, .data": effect(lambda x, y: setattr(x, "data", y), two),
    "argument, resize_": effect(lambda x, y: x.resize_(3).copy_(y), two),
    "argument, out=": effect(lambda x, y: tp.add(y, 1, out=x), lambda i: [tp.empty(0), tp.full((3,), float(i))]),
    "argument, unsqueeze_": effect(lambda x, y: x.unsqueeze_(0), two),
    "argument, t_": effect(lambda x, y: x.t_(), two),
    "argument, requires_grad_": effect(lambda x, y: x.requires_grad_(), two),
    "there, t_": on_one_that_is_there(lambda t, x: t.t_(), lambda t: None),
    "there, .data": on_one_that_is_there(
        lambda t, x: setattr(t, "data", other), lambda t: setattr(t, "data", tp.zeros(2, 3))
    ),
    "there, a history": on_one_that_is_there(lambda t, x: t.mul_(weight), lambda t: t.detach_()),
    "gradient, None": gradients(lambda p, q: setattr(p, "grad", None)),
    "gradient, zero_grad": gradients(lambda p, q: tp.optim.SGD([p, q], lr=0.1).zero_grad()),
    "gradients, exchanged": gradients(swapped),
    "seed": seeds(lambda g: tp.manual_seed(3)),
    "seed of a generator": seeds(lambda g: g.manual_seed(3)),
    "state of a generator": seeds(lambda g: g.set_state(state)),
    **{
        case.__name__.replace("_", " "): case
        for case in (
            hooks_that_come_and_go,
            settings_that_the_call_changes,
            optimizers_whose_state_changes,
            modes_that_the_call_leaves,
            modules_that_change,
            a_dictionary_that_is_given,
            attributes_of_a_result,
            casts_that_autocast_keeps,
            an_argument_that_is_there_already,
            parts_of_larger_tensors,
            places_in_the_memory,
        )
    },
}
other, weight = tp.full((2, 3), 7.0), tp.full((3,), 0.5, requires_grad=True)
state = tp.Generator().manual_seed(9).get_state()


@pytest.mark.parametrize("name", CASES)
def test_what_a_call_does_beside(name: str) -> None:
    tp.manual_seed(0)
    expected = [seen(value) for value in CASES[name](lambda function: function)]
    tp.manual_seed(0)
    assert [seen(value) for value in CASES[name](compiled)] == expected


def test_what_the_call_has_made_may_change() -> None:
    """A tensor of its own gets another size: that is no reason against a replay."""

    def function(x: tp.Tensor) -> tp.Tensor:
        y = x + 1
        y.unsqueeze_(0).t_()
        return y * 2

    replayed = compiled(function)
    for i in range(CALLS):
        x = tp.full((3,), float(i))
        assert replayed(x).equal(function(x))
    assert replayed._replays()["replayed"] > 6
