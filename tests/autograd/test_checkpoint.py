"""utils.checkpoint, and amp's GradScaler and decorators."""

from __future__ import annotations

import functools
import itertools
import pickle
import warnings
from typing import Any

import pytest
from side_by_side import Scenarios, compare, error_of, filled, linear

import tensorpy as tp
from tensorpy import nn
from tensorpy.utils.checkpoint import CheckpointError, checkpoint, checkpoint_sequential

scenario = Scenarios()


def tools(t: Any) -> Any:
    import importlib

    return importlib.import_module(f"{t.__name__}.utils.checkpoint")


@scenario
def gradients(t: Any) -> Any:
    told, c = [], tools(t)
    for reentrant in (False, True):
        m, x = linear(t, 3, 3), filled(t, 2, 3).requires_grad_()
        calls = [0]

        def part(x: Any, scale: float, m: Any = m, calls: Any = calls) -> Any:
            calls[0] += 1
            return (m(x).sin() * scale).exp(), 3

        y, number = c.checkpoint(part, x, 0.5, use_reentrant=reentrant)
        told += [y, number, calls[0]]
        (y.sum() + (y * y).sum()).backward()
        told += [x.grad, m.weight.grad, calls[0]]
    return told


@scenario
def what_only_one_way_can_do(t: Any) -> Any:
    c, m, x = tools(t), linear(t, 3, 3), filled(t, 2, 3)
    y = c.checkpoint(lambda a, b: m(a).sin() * b.exp(), x, b=x, use_reentrant=False)
    told = list(t.autograd.grad(y.sum(), [m.weight, m.bias], retain_graph=True))
    y.sum().backward()
    told += [m.weight.grad]
    with t.no_grad():
        told += [c.checkpoint(m, x, use_reentrant=False)]
    inner = lambda a: c.checkpoint(lambda b: m(b).exp(), a.sin(), use_reentrant=False)  # noqa: E731
    c.checkpoint(inner, x, use_reentrant=False).sum().backward()
    told += [m.weight.grad]
    told += [error_of(lambda: c.checkpoint(m, x, use_reentrant=True, nonsense=1))]
    return [*told, error_of(lambda: c.checkpoint(m, x, use_reentrant=True, debug=True))]


@scenario
def segments(t: Any) -> Any:
    told = []
    for count in (1, 2, 3):
        layers = [linear(t, 3, 3), t.nn.Tanh(), linear(t, 3, 3), t.nn.Sigmoid(), linear(t, 2, 3)]
        y = tools(t).checkpoint_sequential(layers, count, filled(t, 1, 3), use_reentrant=False)
        y.sum().backward()
        told += [y, layers[0].weight.grad, layers[4].bias.grad]
    return told


@scenario
def scaling(t: Any) -> Any:
    told = []
    s = t.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    p = t.nn.Parameter(filled(t, 2))
    o = t.optim.SGD([p], 0.5)
    told += [error_of(lambda: s.step(o)), error_of(s.update), s.state_dict()]
    for factor in (1.0, 2.0, float("inf"), 1.0, 0.5, 3.0):
        o.zero_grad()
        s.scale((p * factor).sum()).backward()
        if factor == 2.0:
            s.unscale_(o)
            told += [p.grad, error_of(lambda: s.unscale_(o))]
        s.step(o)
        told += [error_of(lambda: s.step(o)), error_of(lambda: s.unscale_(o))]
        s.update()
        told += [p, s.get_scale(), s.state_dict()]
    s.update(4.0)
    told += [s.get_scale(), s.scale([p.sum(), (p.sum(),)]), error_of(lambda: s.scale(3))]
    other = t.amp.GradScaler("cpu")
    other.load_state_dict(s.state_dict())
    told += [other.get_scale(), other.get_growth_interval(), pickle.loads(pickle.dumps(s)).get_scale()]
    off = t.amp.GradScaler("cpu", enabled=False)
    told += [off.scale(p.sum()), off.state_dict(), off.get_scale(), off.is_enabled()]
    calls = [lambda: t.amp.GradScaler("cpu", growth_factor=1.0), lambda: t.amp.GradScaler("cpu", backoff_factor=1.0)]
    return [*told, *(error_of(call) for call in calls), error_of(lambda: other.load_state_dict({}))]


@scenario
def what_a_scaler_keeps_of_optimizers(t: Any) -> Any:
    """What classes that extend GradScaler read and replace, and optimizers that scale their gradients themselves."""
    told = []

    class Scaling(t.optim.SGD):
        _step_supports_amp_scaling = True

        def step(self, closure: Any = None) -> Any:
            told.append((self.grad_scale, self.found_inf))
            return "stepped"

    class Asking(Scaling):
        def step(self, closure: Any = None, grad_scaler: Any = None) -> Any:
            told.append(grad_scaler.get_scale())

    for kind, factor in ((Scaling, 1.0), (Scaling, float("nan")), (Asking, 1.0), (t.optim.SGD, float("inf"))):
        s = t.amp.GradScaler("cpu", init_scale=4.0)
        p = t.nn.Parameter(filled(t, 3))
        o = kind([p], 0.5)
        s.scale((p * factor).sum()).backward()
        for early in (False, True):
            if early:
                s.unscale_(o)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                told += [s.step(o), hasattr(o, "grad_scale"), [w.category.__name__ for w in caught]]
            state = s._per_optimizer_states[id(o)]
            told += [state["stage"].name, list(state["found_inf_per_device"].values())]
            told += [list(s._found_inf_per_device(o).values()), error_of(lambda s=s: pickle.dumps(s))]
            if kind is Asking:
                told.append(s._check_inf_per_device(o)[p.device])
            s.update()
            told += [s._get_growth_tracker(), s._scale, s._growth_tracker, len(s._per_optimizer_states)]
    s._growth_tracker.fill_(7)
    again = pickle.loads(pickle.dumps(s))
    told += [again._init_growth_tracker, again._scale, again._growth_tracker, again.state_dict()]
    told += [again._per_optimizer_states["new"] == t.amp.grad_scaler._refresh_per_optimizer_state()]
    for scale in (t.tensor(3.0), t.tensor([5.0]), t.ones(2), t.ones((), requires_grad=True)):
        told += [error_of(lambda scale=scale: s.update(scale)), s.get_scale()]
    sparse = t.sparse_coo_tensor(t.tensor([[0, 0, 2]]), t.tensor([6e4, 6e4, 2.0]), (3,))
    for dtype, half in itertools.product((t.float32, t.float16), (False, True)):
        p = t.nn.Parameter(t.zeros(3, dtype=dtype))
        p.grad = sparse.to(dtype)
        call = functools.partial(s._unscale_grads_, t.optim.SGD([p]), t.tensor(0.5), t.zeros(()), half)
        told.append(error_of(lambda call=call, told=told: told.append(call())))
        told.append(p.grad.coalesce().values())
    return told


@scenario
def functions_under_autocast(t: Any) -> Any:
    told = []

    class Product(t.autograd.Function):
        @staticmethod
        @t.amp.custom_fwd(device_type="cpu")
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        @t.amp.custom_bwd(device_type="cpu")
        def backward(ctx: Any, grad: Any) -> Any:
            a, b = ctx.saved_tensors
            told.append(str((a @ b).dtype))
            return (grad.float() @ b.T.float()).to(a.dtype), (a.T.float() @ grad.float()).to(b.dtype)

    class Plain(t.autograd.Function):
        @staticmethod
        @t.amp.custom_fwd(device_type="cpu", cast_inputs=t.float32)
        def forward(ctx: Any, a: Any) -> Any:
            told.append(str((a @ a).dtype))
            return a * 2

        @staticmethod
        @t.amp.custom_bwd(device_type="cpu")
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2

    a = filled(t, 2, 2).requires_grad_()
    with t.autocast("cpu", dtype=t.bfloat16):
        product = Product.apply(a, a)
        plain = Plain.apply(filled(t, 2, 2).bfloat16())
    product.float().sum().backward()
    Product.apply(a, a).sum().backward()
    return [*told, str(product.dtype), str(plain.dtype), a.grad]


@pytest.mark.parametrize("tell", scenario, ids=lambda s: s.__name__)
def test_scenario(tell: Any) -> None:
    compare(tell)


# ---- without torch to compare with ----


@pytest.mark.parametrize("reentrant", [False, True])
def test_random_numbers_are_drawn_again(reentrant: bool) -> None:
    x = tp.ones(1000, requires_grad=True)
    y = checkpoint(lambda t: nn.functional.dropout(t, 0.5), x, use_reentrant=reentrant)
    before = tp.get_rng_state()
    y.sum().backward()
    assert tp.equal(x.grad, y.detach()) and tp.equal(tp.get_rng_state(), before)


def test_autocast_is_as_it_was() -> None:
    seen = []

    def part(a: tp.Tensor) -> tp.Tensor:
        product = a @ a
        seen.append(product.dtype)
        return product.sin()

    with tp.autocast("cpu", dtype=tp.bfloat16):
        y = checkpoint(part, tp.ones(2, 2, requires_grad=True), use_reentrant=False)
    y.float().sum().backward()
    assert seen == [tp.bfloat16, tp.bfloat16]


def test_little_is_kept() -> None:
    """What the part saves is not kept: the memory of ten layers is about that of one."""
    layers = nn.Sequential(*(nn.Sequential(nn.Tanh(), nn.Sigmoid(), nn.Tanh()) for _ in range(10)))
    x = tp.ones(100_000, requires_grad=True)

    def kept(run: Any) -> int:
        before = tp._C._memory_stats()["live_bytes"]
        y = run(x)
        used = tp._C._memory_stats()["live_bytes"] - before
        assert y.requires_grad
        return used

    everything = kept(layers)
    assert kept(lambda t: checkpoint_sequential(layers, 10, t, use_reentrant=False)) < everything / 2


def test_another_result_the_second_time() -> None:
    calls = []

    def part(t: tp.Tensor) -> tp.Tensor:
        calls.append(1)
        return t.sin() if len(calls) == 1 else t.reshape(2, 2).sin()

    y = checkpoint(part, tp.ones(4, requires_grad=True), use_reentrant=False)
    with pytest.raises(CheckpointError, match="different metadata"):
        y.sum().backward()


def test_scaled_training_in_float16_learns() -> None:
    tp.manual_seed(0)
    m, x = nn.Linear(4, 1), tp.randn(64, 4)
    o, s = tp.optim.SGD(m.parameters(), 0.1), tp.amp.GradScaler("cpu")
    losses = []
    for _ in range(30):
        o.zero_grad()
        with tp.autocast("cpu", dtype=tp.bfloat16):
            loss = nn.functional.mse_loss(m(x).float(), x.sum(1, keepdim=True))
        s.scale(loss).backward()
        s.step(o)
        s.update()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 20


def test_what_is_compared_is_known() -> None:
    with pytest.raises(ValueError, match="determinism_check should be one of"):
        tp.utils.checkpoint.checkpoint(tp.sin, tp.ones(2), use_reentrant=False, determinism_check="all")


def test_the_kind_of_device_is_that_of_the_first_accelerator() -> None:
    kind = tp.utils.checkpoint._infer_device_type
    assert kind(3, [tp.ones(1)]) == "cpu" and kind({"a": tp.ones(1), "b": tp.ones(1, device="meta")}) == "meta"


def test_a_selective_checkpoint_keeps_results_of_any_form() -> None:
    tools(tp)
    with tp.library._scoped_library("kept", "FRAGMENT") as library:
        library.define("three(Tensor x, int n) -> (Tensor, Tensor, Tensor)")
        library.impl("three", lambda x, n: (x * n, x + n, x.clone()), "CompositeExplicitAutograd")
        three = tp.ops.kept.three.default
        calls: list[int] = []

        def function(x: Any) -> Any:
            first, second, third = three(x.detach(), 2)
            calls.append(1)
            return (x * first + second * third).exp()

        contexts = tp.utils.checkpoint.create_selective_checkpoint_contexts
        x = tp.tensor([1.0, 2.0], requires_grad=True)
        out = checkpoint(function, x, use_reentrant=False, context_fn=lambda: contexts([three]))
        out.sum().backward()
        assert len(calls) == 2
        expected = tp.autograd.grad(function(x).sum(), x)[0]
        assert x.grad.tolist() == expected.tolist()
        with pytest.raises(ValueError, match="Expected op in `op_list` to be an OpOverload"):
            contexts([2])


def test_a_part_that_saves_more_the_second_time_is_refused() -> None:
    more = iter([False, True])

    def function(x: Any) -> Any:
        return x.exp().exp() if next(more) else x.exp()

    x = tp.ones(2, requires_grad=True)
    with tp.utils.checkpoint.set_checkpoint_early_stop(False):
        out = checkpoint(function, x, use_reentrant=False)
        with pytest.raises(CheckpointError, match="trying to save more tensors during recomputation"):
            out.sum().backward()
