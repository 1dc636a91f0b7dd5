"""Optimizers, schedules of learning rates, averages of models."""

from __future__ import annotations

import copy
import importlib
import inspect
import io
import pickle
import types
import warnings
from typing import Any

import numpy as np
import pytest
from side_by_side import Scenarios, compare, error_of, filled, linear

import tensorpy as tp
from tensorpy import nn, optim

scenario = Scenarios()

OPTIMIZERS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    ("Adam", {}),
    ("Adam", {"lr": 0.05, "betas": (0.8, 0.99), "eps": 1e-4, "weight_decay": 0.1, "amsgrad": True}),
    ("Adam", {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    ("AdamW", {"lr": 0.05}),
    ("AdamW", {"lr": 0.05, "weight_decay": 0.3, "amsgrad": True}),
    ("Adamax", {"lr": 0.05}),
    ("Adamax", {"lr": 0.05, "weight_decay": 0.1, "maximize": True}),
    ("NAdam", {"lr": 0.05}),
    ("NAdam", {"lr": 0.05, "weight_decay": 0.1, "momentum_decay": 0.1}),
    ("NAdam", {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"lr": 0.05}),
    ("RAdam", {"lr": 0.05, "weight_decay": 0.1, "betas": (0.8, 0.9)}),
    ("RAdam", {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("Adagrad", {"lr": 0.1}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5}),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.5, "rho": 0.8, "weight_decay": 0.1, "maximize": True}),
    ("RMSprop", {}),
    ("RMSprop", {"lr": 0.02, "alpha": 0.9, "momentum": 0.5, "centered": True, "weight_decay": 0.1}),
    ("Rprop", {}),
    ("Rprop", {"lr": 0.05, "etas": (0.4, 1.3), "step_sizes": (1e-4, 0.2), "maximize": True}),
    ("ASGD", {"lr": 0.1}),
    ("ASGD", {"lr": 0.1, "lambd": 0.1, "alpha": 0.5, "t0": 5, "weight_decay": 0.1}),
    ("Adafactor", {"lr": 0.1}),
    ("Adafactor", {"lr": 0.1, "eps": (1e-8, 0.01), "d": 1.5, "weight_decay": 0.1, "beta2_decay": -0.5}),
    ("LBFGS", {"max_iter": 4, "lr": 0.3}),
    ("LBFGS", {"max_iter": 5, "history_size": 3, "line_search_fn": "strong_wolfe"}),
]


def sorted_state(state: Any) -> Any:
    """A state dictionary with its keys in one order."""
    if isinstance(state, dict):
        return {key: sorted_state(state[key]) for key in sorted(state, key=str)}
    return [sorted_state(v) for v in state] if isinstance(state, (list, tuple)) else state


def start(t: Any) -> list[Any]:
    """A matrix, a vector and a parameter that gets no gradient."""
    shapes = ((3, 4), (4,), (2,))
    return [t.nn.Parameter((filled(t, *shape).double() * 5).sin()) for shape in shapes]


def loss_of(params: Any) -> Any:
    """Not a square, and not the same in any two directions."""
    matrix, vector, _ = params
    return ((matrix @ vector).cos().sum() + (matrix**4).sum() + (vector - 1).abs().pow(1.5).sum()) / 3


def trained(t: Any, name: str, options: Any, params: Any = None, steps: int = 20, optimizer: Any = None) -> Any:
    params = start(t) if params is None else params
    optimizer = optimizer or getattr(t.optim, name)(params, **options)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = -loss_of(params) if options.get("maximize") else loss_of(params)
        loss.backward()
        return loss

    seen = []
    for _ in range(steps):
        if name != "LBFGS":
            closure()
        loss = optimizer.step(closure) if name == "LBFGS" else optimizer.step()
        seen.append([loss, *(p.detach().clone() for p in params)])
    return seen, optimizer, params


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS, ids=str)
def test_twenty_steps(name: str, options: Any) -> None:
    def tell(t: Any) -> Any:
        seen, optimizer, _ = trained(t, name, options)
        state = sorted_state(optimizer.state_dict())
        if name == "LBFGS":  # near the end its changes are rounding errors
            first = state["state"].pop(0)
            state["counts"] = [list(first), first["n_iter"], first["func_evals"], len(first["old_dirs"])]
        return [seen, repr(optimizer), state]

    compare(tell)


WAYS = ("foreach", "fused", "capturable", "differentiable")


def has_way(name: str, way: str) -> bool:
    return way in inspect.signature(getattr(optim, name)).parameters


@pytest.mark.parametrize(
    ("name", "way"), [(n, w) for n in optim.__all__ for w in WAYS if n[0].isupper() and has_way(n, w)]
)
def test_ways_to_compute(name: str, way: str) -> None:
    """Whatever computes a step, on or off, the numbers are the same; capturable asks PyTorch for another device."""
    options = next(o for n, o in reversed(OPTIMIZERS) if n == name)
    if way != "differentiable":
        expected, _, _ = trained(tp, name, options)
        for value in (True, False, None) if way != "capturable" else (True, False):
            seen, _, _ = trained(tp, name, {**options, way: value})
            for got, want in zip(seen[-1][1:], expected[-1][1:], strict=True):
                np.testing.assert_allclose(got.numpy(), want.numpy(), 1e-9)
        return

    options = {
        k: v for k, v in options.items() if k not in ("momentum", "nesterov") or name != "SGD"
    }  # starts detached

    def moved(given: Any) -> Any:
        """What three steps make of the parameters, with gradients made of `given`."""
        params = [tp.ones(4, dtype=tp.float64, requires_grad=True).clone()]
        optimizer = getattr(optim, name)(params, **{**options, "differentiable": True})
        for step in range(3):
            params[0].grad = given * (step + 1)
            optimizer.step()
        return (params[0] * tp.arange(1.0, 5.0)).sum()

    given = tp.linspace(0.5, 1.5, 4, dtype=tp.float64).requires_grad_()
    assert tp.autograd.gradcheck(moved, (given,), atol=1e-4)


PATHS = (
    "adadelta adagrad adam adamw adamax asgd lbfgs nadam radam rmsprop rprop sgd sparse_adam _adafactor _muon".split()
)


def test_paths_of_torch() -> None:
    """Modules, and what optimizers written for PyTorch take from them."""
    pytest.importorskip("torch")
    for path in PATHS:
        theirs = importlib.import_module(f"torch.optim.{path}")
        ours = importlib.import_module(f"tensorpy.optim.{path}")
        for name in theirs.__all__:
            if name[0].isupper():
                assert getattr(ours, name) is getattr(optim, name)
    base = optim.optimizer
    p = nn.Parameter(tp.ones(2))
    for given in ((p,), (p, None), (nn.Parameter(tp.ones(2, dtype=tp.complex64)),)):
        for fused in (False, True):
            assert not all(base._default_to_fused_or_foreach(list(given), False, fused))
            assert base._default_to_fused_or_foreach(list(given), True, fused) == (False, False)
    assert base._default_to_fused_or_foreach([p], False, True) == (True, False)
    assert base._default_to_fused_or_foreach([p], False) == (False, True)
    assert "cuda" not in base._get_capturable_supported_devices() and base.StateDict == dict[str, Any]
    theirs = importlib.import_module("torch.optim.optimizer")
    assert theirs.StateDict == base.StateDict

    class Own(optim.Optimizer):
        @base._use_grad_for_differentiable
        def step(self, closure: Any = None) -> Any:
            return tp.is_grad_enabled()

    assert Own([p], {"differentiable": False}).step() is False
    assert Own([p], {"differentiable": True}).step() is True


@pytest.mark.parametrize(("name", "options"), [(n, o) for n, o in OPTIMIZERS if n != "LBFGS"], ids=str)
def test_state_comes_back(name: str, options: Any) -> None:
    """Ten steps, the state through pickle into a new optimizer, ten more: as twenty at once."""
    straight, _, _ = trained(tp, name, options)
    _, first, params = trained(tp, name, options, steps=10)
    copied = [nn.Parameter(p.detach().clone()) for p in params]
    second = getattr(optim, name)(copied, **{k: v for k, v in options.items() if k != "lr"})
    second.load_state_dict(pickle.loads(pickle.dumps(first.state_dict())))
    rest, _, _ = trained(tp, name, options, copied, 10, second)
    for got, expected in zip(rest[-1][1:], straight[-1][1:], strict=True):
        np.testing.assert_allclose(got.numpy(), expected.numpy(), 1e-6)


@pytest.mark.parametrize(("name", "options"), [(n, o) for n, o in OPTIMIZERS if n != "LBFGS"], ids=str)
def test_state_of_torch(name: str, options: Any) -> None:
    """A state that torch wrote goes on here, and the other way round."""
    torch = pytest.importorskip("torch")

    def converted(value: Any, to: Any) -> Any:
        if isinstance(value, (tp.Tensor, torch.Tensor)):
            array = np.array(value.detach().numpy())
            return tp.from_numpy(array) if to is tp else torch.from_numpy(array)
        if isinstance(value, dict):
            return {k: converted(v, to) for k, v in value.items()}
        return [converted(v, to) for v in value] if isinstance(value, list) else value

    for source, target in ((torch, tp), (tp, torch)):
        expected, _, _ = trained(source, name, options)
        _, first, params = trained(source, name, options, steps=10)
        copied = [target.nn.Parameter(converted(p, target)) for p in params]
        second = getattr(target.optim, name)(copied)
        second.load_state_dict(converted(first.state_dict(), target))
        rest, _, _ = trained(target, name, options, copied, 10, second)
        for got, want in zip(rest[-1][1:], expected[-1][1:], strict=True):
            np.testing.assert_allclose(got.numpy(), want.numpy(), 1e-6, 1e-9)


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Adagrad", "Adadelta", "Rprop"])
def test_complex_parameters(name: str) -> None:
    def tell(t: Any) -> Any:
        values = t.complex((filled(t, 3) * 5).sin().double(), (filled(t, 3) * 3).cos().double())
        p = t.nn.Parameter(values)
        optimizer = getattr(t.optim, name)([p], lr=0.01)
        for _ in range(5):
            optimizer.zero_grad()
            (p * (1 + 2j) - 1).abs().pow(3).sum().backward()
            optimizer.step()
        return [t.view_as_real(p.detach())]

    compare(tell)


@scenario
def muon(t: Any) -> Any:
    """Its products are in bfloat16, so only the first digits are compared."""
    told = []
    for options in ({}, {"nesterov": False, "adjust_lr_fn": "match_rms_adamw"}):
        p = t.nn.Parameter((filled(t, 3, 4) * 5).sin())
        optimizer = t.optim.Muon([p], lr=0.05, **options)
        for _ in range(3):
            optimizer.zero_grad()
            (p**4).sum().backward()
            optimizer.step()
        told += [[round(v * 20) / 20 for row in p.tolist() for v in row], repr(optimizer)]
    return [*told, error_of(lambda: t.optim.Muon([t.nn.Parameter(filled(t, 2))]))]


@scenario
def groups(t: Any) -> Any:
    m = t.nn.Sequential(linear(t), linear(t, 3, 2))
    o = t.optim.SGD([{"params": m[0].parameters(), "lr": 0.5}, {"params": m[1].weight}], lr=0.1, momentum=0.9)
    o.add_param_group({"params": [m[1].bias], "nesterov": True})
    m(filled(t, 2, 3)).sum().backward()
    o.step()
    told = [repr(o), m[0].weight, m[1].weight, m[1].bias, o.state_dict()["param_groups"][1]["params"]]
    o.zero_grad(set_to_none=False)
    told += [m[0].weight.grad]
    o.zero_grad()
    told += [m[0].weight.grad]
    named = t.optim.Adam(m.named_parameters())
    told += [named.param_groups[0]["param_names"], "param_names" in named.state_dict()["param_groups"][0]]
    p = t.nn.Parameter(filled(t, 2))
    calls = [
        lambda: t.optim.SGD(p, 0.1), lambda: t.optim.SGD([], 0.1), lambda: t.optim.SGD([3], 0.1),
        lambda: t.optim.SGD([p * 2], 0.1), lambda: t.optim.SGD([{"params": {p}}], 0.1),
        lambda: t.optim.SGD([{"params": [p]}, {"params": [p]}], 0.1), lambda: o.add_param_group(3),
        lambda: t.optim.SGD([p], -1.0), lambda: t.optim.SGD([p], 0.1, nesterov=True),
        lambda: t.optim.Adam([p], betas=(1.0, 0.9)), lambda: t.optim.Adam([p], eps=-1.0),
        lambda: t.optim.Adam([p], fused=True, foreach=True), lambda: t.optim.Rprop([p], etas=(2.0, 3.0)),
        lambda: t.optim.Adafactor([p], d=0.5), lambda: t.optim.LBFGS([p]).step(),
        lambda: t.optim.LBFGS([{"params": [p]}, {"params": [t.nn.Parameter(p)]}]),
        lambda: o.load_state_dict(named.state_dict()), lambda: t.optim.Optimizer([p], {}).step(),
    ]  # fmt: skip
    return [*told, *(error_of(call) for call in calls)]


@scenario
def hooks(t: Any) -> Any:
    p, told = t.nn.Parameter(filled(t, 2)), []
    p.grad = filled(t, 2)
    o = t.optim.SGD([p], 0.1)
    o.register_step_pre_hook(lambda opt, args, kwargs: told.append(("pre", args[0] is opt, len(args), kwargs)))
    o.register_step_pre_hook(lambda opt, args, kwargs: ((opt, None), {}))
    handle = o.register_step_post_hook(lambda opt, args, kwargs: told.append(("post", args[0] is opt, args[1:])))
    o.register_state_dict_pre_hook(lambda opt: told.append("before state"))
    o.register_state_dict_post_hook(lambda opt, state: {**state, "more": 1})
    o.register_load_state_dict_pre_hook(lambda opt, state: told.append(sorted(state)))
    o.register_load_state_dict_post_hook(lambda opt: told.append("loaded"))
    o.step()
    o.load_state_dict(o.state_dict())
    handle.remove()
    o.step()
    return [*told, error_of(lambda: copy.deepcopy(o).step()), p]


@scenario
def tensors_as_settings(t: Any) -> Any:
    p = t.nn.Parameter(filled(t, 2))
    p.grad = filled(t, 2)
    o = t.optim.Adam([p], lr=t.tensor(0.1))
    o.step()
    schedule = t.optim.lr_scheduler.ExponentialLR(o, 0.5)
    o.step()
    schedule.step()
    return [p, o.param_groups[0]["lr"]]


# ---- schedules ----

_CYCLE = {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 2}
SCHEDULES: list[tuple[str, dict[str, Any]]] = [
    ("LambdaLR", {"lr_lambda": lambda e: 0.9**e}),
    ("LambdaLR", {"lr_lambda": [lambda e: 1 / (e + 1), lambda e: e]}),
    ("MultiplicativeLR", {"lr_lambda": lambda e: 0.9 + e / 100}),
    ("StepLR", {"step_size": 3, "gamma": 0.5}),
    ("MultiStepLR", {"milestones": [2, 5, 5, 9], "gamma": 0.5}),
    ("ConstantLR", {"factor": 0.25, "total_iters": 4}),
    ("LinearLR", {"start_factor": 0.2, "end_factor": 0.8, "total_iters": 6}),
    ("ExponentialLR", {"gamma": 0.8}),
    ("PolynomialLR", {"total_iters": 7, "power": 2.0}),
    ("CosineAnnealingLR", {"T_max": 5, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 3, "T_mult": 2, "eta_min": 0.01}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": [0.1, 0.2], "step_size_up": 3, "step_size_down": 5}),
    ("CyclicLR", {**_CYCLE, "mode": "triangular2"}),
    ("CyclicLR", {**_CYCLE, "mode": "exp_range", "gamma": 0.9}),
    ("CyclicLR", {**_CYCLE, "scale_fn": lambda x: 1 / x, "cycle_momentum": False}),
    ("OneCycleLR", {"max_lr": [0.5, 1.0], "total_steps": 14}),
    ("OneCycleLR", {"max_lr": 0.5, "epochs": 2, "steps_per_epoch": 8, "three_phase": True}),
    ("OneCycleLR", {"max_lr": 0.5, "total_steps": 20, "anneal_strategy": "linear", "cycle_momentum": False}),
]


def two_groups(t: Any, kind: str = "SGD") -> Any:
    options = {"momentum": 0.5} if kind == "SGD" else {}
    params = [t.nn.Parameter(filled(t, 1)) for _ in range(2)]
    return getattr(t.optim, kind)([{"params": [params[0]]}, {"params": [params[1]], "lr": 0.3}], lr=0.1, **options)


def watched(optimizer: Any, schedule: Any, steps: int = 12, *given: Any) -> list[Any]:
    seen = []
    for _ in range(steps):
        optimizer.step()
        schedule.step(*given)
        momenta = [g.get("momentum", g.get("betas", [0])[0] if "betas" in g else 0) for g in optimizer.param_groups]
        seen.append(
            [
                [g["lr"] for g in optimizer.param_groups],
                momenta,
                schedule.get_last_lr(),
                getattr(schedule, "last_epoch", 0),
            ]
        )
    return seen


@pytest.mark.parametrize(("name", "options"), SCHEDULES, ids=[n for n, _ in SCHEDULES])
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_schedule(name: str, options: Any, kind: str) -> None:
    def tell(t: Any) -> Any:
        o = two_groups(t, kind)
        s = getattr(t.optim.lr_scheduler, name)(o, **options)
        told = [s.get_last_lr(), watched(o, s)]
        if name not in ("CyclicLR", "OneCycleLR"):
            s.step(4)
            told += [s.get_last_lr()]
        return [*told, sorted(s.state_dict())]

    compare(tell)


@scenario
def schedules_of_programs(t: Any) -> Any:
    """They look at what the base says of the call that they are in."""
    told = []

    class Warmup(t.optim.lr_scheduler.LRScheduler):  # type: ignore[misc]
        def get_lr(self) -> Any:
            told.append((self._get_lr_called_within_step, self._is_initial, self.last_epoch))
            return [base * min(1, (self.last_epoch + 1) / 4) for base in self.base_lrs]

        def _get_closed_form_lr(self) -> Any:
            return [7.0 for _ in self.base_lrs]

    o = two_groups(t)
    s = Warmup(o)
    told += [watched(o, s, 3), s.get_lr(), s._get_lr_called_within_step]
    s._update_lr(3)
    return [*told, s.get_last_lr(), sorted(s.state_dict())]


@pytest.mark.parametrize(("name", "options"), SCHEDULES, ids=[n for n, _ in SCHEDULES])
def test_schedule_comes_back(name: str, options: Any) -> None:
    first, second, third = (two_groups(tp) for _ in range(3))
    whole = watched(first, getattr(optim.lr_scheduler, name)(first, **options))
    half = getattr(optim.lr_scheduler, name)(second, **options)
    watched(second, half, 6)
    rest = getattr(optim.lr_scheduler, name)(third, **options)
    rest.load_state_dict(copy.deepcopy(half.state_dict()))
    third.load_state_dict(second.state_dict())
    assert watched(third, rest, 6) == whole[6:]


@scenario
def schedules_of_schedules(t: Any) -> Any:
    s, told = t.optim.lr_scheduler, []
    o = two_groups(t)
    parts = [s.ConstantLR(o, 0.1, 3), s.ExponentialLR(o, 0.9), s.LambdaLR(o, lambda e: e + 1)]
    told += [watched(o, s.SequentialLR(o, parts, [4, 8]))]
    o = two_groups(t)
    told += [watched(o, s.ChainedScheduler([s.ExponentialLR(o, 0.9), s.StepLR(o, 4), s.LinearLR(o)]))]
    calls = [
        lambda: s.SequentialLR(o, [s.StepLR(o, 2)], [3]), lambda: s.SequentialLR(o, [], []),
        lambda: s.SequentialLR(o, [s.StepLR(two_groups(t), 2)], []), lambda: s.ChainedScheduler([]),
        lambda: s.ChainedScheduler([s.ReduceLROnPlateau(o)]), lambda: s.StepLR(3, 2),
        lambda: s.LambdaLR(o, [lambda e: 1]), lambda: s.ConstantLR(o, 2.0), lambda: s.LinearLR(o, 0.0),
        lambda: s.OneCycleLR(o, 1.0), lambda: s.CosineAnnealingWarmRestarts(o, 0), lambda: s.CyclicLR(o, 0.1, [1.0]),
        lambda: s.ReduceLROnPlateau(o, factor=2.0),
        lambda: s.StepLR(t.optim.SGD([t.nn.Parameter(filled(t, 1))], 1.0), 2, last_epoch=3),
        lambda: s.CyclicLR(t.optim.Adagrad([t.nn.Parameter(filled(t, 1))]), 0.1, 1.0),
    ]  # fmt: skip
    return [*told, *(error_of(call) for call in calls)]


@scenario
def plateaus(t: Any) -> Any:
    told = []
    for options in ({"patience": 1}, {"mode": "max", "patience": 0, "cooldown": 2, "min_lr": [0.001, 0.2]}):
        o = two_groups(t)
        s = t.optim.lr_scheduler.ReduceLROnPlateau(o, factor=0.5, **options)
        for value in (1.0, 0.9, 0.9, 0.9, 0.9, 0.5, 0.6, 0.7, t.tensor(0.4), 0.4, 0.4, 0.4):
            s.step(value)
            told.append([[g["lr"] for g in o.param_groups], s.num_bad_epochs, s.get_last_lr()])
        told.append(sorted(k for k in s.state_dict()))
    return told


# ---- averages ----


@scenario
def averages(t: Any) -> Any:
    u, told = t.optim.swa_utils, []
    ways = ({}, {"avg_fn": u.get_ema_avg_fn(0.7)}, {"multi_avg_fn": u.get_ema_multi_avg_fn(0.7)}, {"use_buffers": True})
    for options in (*ways, {"avg_fn": u.get_swa_avg_fn()}):
        m = t.nn.Sequential(linear(t), t.nn.BatchNorm1d(2))
        mean = u.AveragedModel(m, **options)
        for step in range(3):
            with t.no_grad():
                m[0].weight.add_(step + 1)
            m(filled(t, 4, 3) * (step + 1))
            mean.update_parameters(m)
        told += [list(mean.state_dict()), mean.n_averaged, mean.module[0].weight, dict(mean.named_buffers())]
    u.update_bn([filled(t, 4, 3), filled(t, 4, 3) * 3], mean)
    told += [mean.module[1].running_mean, mean.module[1].momentum, mean.eval()(filled(t, 1, 3))]
    for strategy in ("cos", "linear"):
        o = two_groups(t)
        told += [watched(o, u.SWALR(o, 0.05, anneal_epochs=4, anneal_strategy=strategy), 6)]
    return [*told, error_of(lambda: u.get_ema_avg_fn(2.0)), error_of(lambda: u.SWALR(o, 0.1, anneal_strategy="x"))]


@pytest.mark.parametrize("tell", scenario, ids=lambda s: s.__name__)
def test_scenario(tell: Any) -> None:
    compare(tell)


# ---- without torch to compare with ----


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SGD", {"lr": 0.5}),
        ("Adam", {"lr": 0.1}),
        ("RMSprop", {"lr": 0.02}),
        ("LBFGS", {"line_search_fn": "strong_wolfe"}),
    ],
)
def test_a_line_is_found(name: str, options: Any) -> None:
    tp.manual_seed(0)
    x = tp.linspace(-1, 1, 32).unsqueeze(1)
    m = nn.Linear(1, 1)
    optimizer = getattr(optim, name)(m.parameters(), **options)

    def closure() -> tp.Tensor:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(m(x), 3 * x - 0.5)
        loss.backward()
        return loss

    for _ in range(300 if name != "LBFGS" else 3):
        optimizer.step(closure)
    assert abs(m.weight.item() - 3) < 0.02 and abs(m.bias.item() + 0.5) < 0.02


def test_a_schedule_before_its_optimizer_warns(recwarn: pytest.WarningsRecorder) -> None:
    late, early = two_groups(tp), two_groups(tp)
    schedule = optim.lr_scheduler.StepLR(late, 3)
    late.step()
    schedule.step()
    assert not recwarn.list
    with pytest.warns(UserWarning, match=r"before `optimizer.step\(\)`"):
        optim.lr_scheduler.StepLR(early, 3).step()


def test_optimizers_pickle() -> None:
    _, optimizer, _ = trained(tp, "Adam", {}, steps=2)
    file = io.BytesIO()
    pickle.dump(optimizer, file)
    file.seek(0)
    again = pickle.load(file)
    assert repr(again) == repr(optimizer) and len(again.state) == 2
    again.step()


def test_another_state_is_swapped_in_for_a_while():
    mine, other = tp.ones(2, requires_grad=True), tp.zeros(2, requires_grad=True)
    steps = tp.optim.Adam([mine], lr=0.1)
    mine.sum().backward()
    steps.step()
    before, state = mine.tolist(), steps.state_dict()
    other.grad = tp.ones(2)
    with tp.optim.swap_in_optimizer_params_and_state(steps, {"p": other}, state):
        assert steps.param_groups[0]["params"][0] is other
        steps.step()
    assert steps.param_groups[0]["params"] == [mine] and mine in steps.state
    assert mine.tolist() == before and (other < 0).all()
    with pytest.raises(ValueError), tp.optim.swap_in_optimizer_params_and_state(steps, {}, state):
        pass


OWN = "ASGD Adadelta Adafactor Adagrad Adam AdamW Adamax LBFGS Muon NAdam RAdam RMSprop Rprop SGD SparseAdam".split()


@pytest.mark.parametrize("name", OWN)
def test_settings_stand_in_the_signature(name: str) -> None:
    """A group has what the signature says, and a state of an older version is filled up from there."""
    kind = getattr(optim, name)
    said = {n: p.default for n, p in inspect.signature(kind).parameters.items() if n != "params"}
    optimizer = kind([tp.ones(2, 2, requires_grad=True)])
    group = {n: v for n, v in optimizer.param_groups[0].items() if n != "params"}
    made = {"max_eval": 25} if name == "LBFGS" else {"decoupled_weight_decay": True} if name == "AdamW" else {}
    assert group == {**said, **made}
    old = optimizer.state_dict()
    old["param_groups"][0] = {"params": old["param_groups"][0]["params"], "lr": 0.5}
    optimizer.load_state_dict(old)
    filled = {n: v for n, v in optimizer.param_groups[0].items() if n != "params"}
    assert {**filled, "max_eval": None} == {**said, **made, "lr": 0.5, "max_eval": None}


def test_a_step_that_was_overridden_is_told_of_at_the_first_step_of_a_schedule() -> None:
    layer = tp.nn.Linear(2, 2)
    optimizer = tp.optim.SGD(layer.parameters(), lr=0.1)
    schedule = tp.optim.lr_scheduler.StepLR(optimizer, 3)
    own = optimizer.step
    optimizer.step = types.MethodType(lambda self, *args, **kwargs: own(*args, **kwargs), optimizer)
    optimizer.step()
    with pytest.warns(UserWarning, match=r"`optimizer.step\(\)` has been overridden.*how-to-adjust-learning-rate"):
        schedule.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schedule.step()
        copied = copy.deepcopy(schedule)
        copied.optimizer.step()
        copied.step()
    with pytest.warns(UserWarning) as raised:
        schedule.step(7)
    assert str(raised[0].message) == tp.optim.lr_scheduler.EPOCH_DEPRECATION_WARNING


# ---- settings that are tensors ----


@pytest.mark.parametrize("decoupled", [False, True])
@pytest.mark.parametrize("amsgrad", [False, True])
def test_the_gradient_by_the_settings_of_adam(decoupled: bool, amsgrad: bool) -> None:
    tp.manual_seed(0)
    start, slope = tp.rand(4, dtype=tp.float64), tp.rand(4, dtype=tp.float64)

    def two_steps(lr: Any, beta1: Any, beta2: Any, decay: Any) -> Any:
        x = start.clone().requires_grad_()
        y = x.clone()
        settings = {"lr": lr, "betas": (beta1, beta2), "weight_decay": decay, "amsgrad": amsgrad}
        optimizer = optim.Adam([y], **settings, decoupled_weight_decay=decoupled, differentiable=True)
        for factor in (1.0, -0.5):
            y.grad = slope * factor
            optimizer.step()
        return y

    settings = [tp.tensor(v, dtype=tp.float64, requires_grad=True) for v in (0.1, 0.8, 0.95, 0.3)]
    assert tp.autograd.gradcheck(two_steps, settings)
    plain = optim.Adam  # the same numbers as with settings that are numbers
    x = start.clone().requires_grad_()
    optimizer = plain([x], 0.1, (0.8, 0.95), weight_decay=0.3, amsgrad=amsgrad, decoupled_weight_decay=decoupled)
    for factor in (1.0, -0.5):
        x.grad = slope * factor
        optimizer.step()
    tp.testing.assert_close(two_steps(*settings).detach(), x.detach())


def test_the_gradient_by_the_settings_of_sgd() -> None:
    def step(lr: Any, decay: Any) -> Any:
        x = tp.tensor([1.0, -2.0], dtype=tp.float64, requires_grad=True).clone()
        optimizer = optim.SGD([x], lr=lr, weight_decay=decay, differentiable=True)
        for _ in range(2):
            x.grad = tp.ones_like(x) * 3
            optimizer.step()
        return x

    assert tp.autograd.gradcheck(step, [tp.tensor(v, dtype=tp.float64, requires_grad=True) for v in (0.1, 0.3)])


def test_counts_of_steps_have_more_than_16_bits_and_may_be_numbers_in_a_file() -> None:
    tp.set_default_dtype(tp.float16)
    try:
        for name in ("ASGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop"):
            x = nn.Parameter(tp.ones(2))
            optimizer = getattr(optim, name)([x], lr=0.1)
            x.grad = tp.ones(2)
            optimizer.step()
            saved = copy.deepcopy(optimizer.state_dict())
            for held in saved["state"].values():
                for key in optimizer.counters:
                    assert held[key].dtype is tp.float32, (name, key)
                    held[key] = held[key].item()
            optimizer.load_state_dict(saved)
            optimizer.step()
            assert all(isinstance(optimizer.state[x][key], tp.Tensor) for key in optimizer.counters)
    finally:
        tp.set_default_dtype(tp.float32)


def test_schedules_keep_their_own_copy_of_a_setting_that_is_a_tensor() -> None:
    highest, last = tp.tensor(0.2), tp.tensor(0.05)
    optimizer = optim.SGD([nn.Parameter(tp.ones(1))], lr=tp.tensor(0.1), momentum=0.9)
    optim.lr_scheduler.OneCycleLR(optimizer, max_lr=highest, total_steps=10)
    optim.swa_utils.SWALR(optimizer, last)
    highest.mul_(5)
    last.mul_(5)
    assert optimizer.param_groups[0]["max_lr"] == 0.2 and optimizer.param_groups[0]["swa_lr"] == 0.05


def test_a_plateau_meets_a_group_that_was_added() -> None:
    for least, works in ((0.0, True), ([0.0], False)):
        optimizer = optim.SGD([nn.Parameter(tp.ones(1))], lr=1.0)
        schedule = optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, min_lr=least)
        optimizer.add_param_group({"params": [nn.Parameter(tp.ones(1))], "lr": 0.5})
        schedule.step(1.0)
        if works:
            schedule.step(2.0)
            assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([0.1, 0.05])
        else:
            with pytest.raises(RuntimeError, match="The number of param groups in the"):
                schedule.step(2.0)


def test_schedules_of_older_files_and_wrong_functions() -> None:
    optimizer = optim.SGD([nn.Parameter(tp.ones(1))], lr=1.0, momentum=0.9)
    schedule = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=25, total_steps=10)
    state = schedule.state_dict()
    del schedule._anneal_func_type
    del state["_anneal_func_type"]
    schedule.load_state_dict({**state, "anneal_func": optim.lr_scheduler.OneCycleLR._annealing_cos})
    optimizer.step()
    schedule.step()
    assert optimizer.param_groups[0]["lr"] == pytest.approx(13)
    with pytest.raises(TypeError, match="lr_lambda should be a function"):
        optim.lr_scheduler.MultiplicativeLR(optimizer, [0.95])  # type: ignore[list-item]


def test_rates_are_asked_for_in_step() -> None:
    schedules = tp.optim.lr_scheduler
    optimizer = tp.optim.SGD([nn.Parameter(tp.ones(1))], lr=0.1)
    makers: list[Any] = [
        lambda: schedules.StepLR(optimizer, 2),
        lambda: schedules.LambdaLR(optimizer, lambda epoch: 0.5),
        lambda: schedules.CosineAnnealingLR(optimizer, 3),
    ]
    for make in makers:
        schedule = make()
        with pytest.warns(UserWarning, match="please use `get_last_lr"):
            schedule.get_lr()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            optimizer.step()
            schedule.step()


def test_chained_schedules_are_parts_of_a_sequence() -> None:
    schedules = tp.optim.lr_scheduler
    optimizer = tp.optim.SGD([nn.Parameter(tp.ones(1))], lr=0.05)
    first = [schedules.LinearLR(optimizer, 0.1, total_iters=5), schedules.ConstantLR(optimizer, 0.1, 5)]
    parts = [schedules.ChainedScheduler(first), schedules.ConstantLR(optimizer, 0.5, 5)]
    schedule = schedules.SequentialLR(optimizer, parts, [5])
    rates = []
    for _ in range(8):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    assert rates == pytest.approx([0.0005, 0.0014, 0.0023, 0.0032, 0.0041, 0.025, 0.025, 0.025])


def test_the_function_of_a_cycle_is_that_of_its_mode_and_no_state():
    optimizer = tp.optim.SGD([tp.nn.Parameter(tp.ones(1))], lr=0.1)
    for mode, expected in (("triangular", 1.0), ("triangular2", 0.25), ("exp_range", 0.125)):
        cycle = tp.optim.lr_scheduler.CyclicLR(optimizer, 0.1, 0.2, mode=mode, gamma=0.5, cycle_momentum=False)
        assert cycle._scale_fn_ref(cycle, 3) == cycle.scale_fn(3) == expected
        assert "_scale_fn_ref" not in cycle.state_dict()
