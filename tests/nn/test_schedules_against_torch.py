"""Every schedule of learning rates, and every average of models, against torch's.

`OPTIONS` has for each class values of its options other than the defaults; `test_every_option_has_a_value` reads the
signatures of torch and fails for a class or an option that is not there.
"""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from side_by_side import differences, filled, linear, plain

import tensorpy as tp

torch = pytest.importorskip("torch")

STEPS = 24
METRICS = [1.0, 0.9, 0.9, 0.9, 0.9, 0.5, 0.6, 0.7, 0.4, 0.4, 0.39999, 0.4, 0.4, 0.2, 0.2, 0.3, 0.3, 0.1] + [0.1] * 6
CYCLE = {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 2}


def parts_of(t: Any, optimizer: Any) -> list[Any]:
    s = t.optim.lr_scheduler
    return [s.ConstantLR(optimizer, 0.1, 3), s.ExponentialLR(optimizer, 0.9), s.CosineAnnealingLR(optimizer, 6)]


def in_turn(t: Any, optimizer: Any) -> dict[str, Any]:
    return {"schedulers": parts_of(t, optimizer), "milestones": [4, 15]}


def with_restarts(t: Any, optimizer: Any) -> dict[str, Any]:
    s = t.optim.lr_scheduler
    return {"schedulers": [s.LinearLR(optimizer), s.CosineAnnealingWarmRestarts(optimizer, 3)], "milestones": [6]}


def together(t: Any, optimizer: Any) -> dict[str, Any]:
    return {"schedulers": parts_of(t, optimizer), "optimizer": optimizer}


# Dictionaries, or functions that make one for the library and the optimizer.
OPTIONS: dict[str, list[Any]] = {
    "ChainedScheduler": [together],
    "ConstantLR": [{}, {"factor": 0.25, "total_iters": 4}],
    "CosineAnnealingLR": [{"T_max": 5}, {"T_max": 8, "eta_min": 0.01}],
    "CosineAnnealingWarmRestarts": [{"T_0": 3}, {"T_0": 3, "T_mult": 2, "eta_min": 0.01}],
    "CyclicLR": [
        {"base_lr": [0.01, 0.02], "max_lr": [0.1, 0.2], "step_size_up": 3, "step_size_down": 5},
        {**CYCLE, "mode": "triangular2", "base_momentum": 0.7, "max_momentum": 0.95},
        {**CYCLE, "mode": "exp_range", "gamma": 0.9},
        {**CYCLE, "scale_fn": lambda x: 1 / x, "cycle_momentum": False},
        {**CYCLE, "scale_fn": lambda x: 1 / (1 + x), "scale_mode": "iterations"},
    ],
    "ExponentialLR": [{"gamma": 0.8}],
    "LambdaLR": [{"lr_lambda": lambda e: 0.9**e}, {"lr_lambda": [lambda e: 1 / (e + 1), lambda e: e]}],
    "LinearLR": [{}, {"start_factor": 0.2, "end_factor": 0.8, "total_iters": 6}],
    "MultiStepLR": [{"milestones": [2, 5, 5, 9]}, {"milestones": [3, 20], "gamma": 0.5}],
    "MultiplicativeLR": [{"lr_lambda": lambda e: 0.9 + e / 100}, {"lr_lambda": [lambda e: 0.5, lambda e: 0.9]}],
    "OneCycleLR": [
        {"max_lr": [0.5, 1.0], "total_steps": 30, "base_momentum": [0.8, 0.7], "max_momentum": [0.9, 0.99]},
        {"max_lr": 0.5, "epochs": 4, "steps_per_epoch": 8, "three_phase": True, "pct_start": 0.4},
        {"max_lr": 0.5, "total_steps": 25, "anneal_strategy": "linear", "cycle_momentum": False},
        {"max_lr": 0.5, "total_steps": 25, "div_factor": 5.0, "final_div_factor": 100.0},
    ],
    "PolynomialLR": [{}, {"total_iters": 20, "power": 2.0}],
    "ReduceLROnPlateau": [
        {},
        {"factor": 0.5, "patience": 1, "threshold": 0.2, "eps": 0.02},
        {"mode": "max", "factor": 0.5, "patience": 0, "cooldown": 2, "min_lr": [0.001, 0.2]},
        {"factor": 0.5, "patience": 1, "threshold": 0.05, "threshold_mode": "abs", "min_lr": 0.01},
    ],
    "SWALR": [
        {"swa_lr": 0.05},
        {"swa_lr": [0.05, 0.5], "anneal_epochs": 4, "anneal_strategy": "linear"},
        {"swa_lr": 0.05, "anneal_epochs": 0},
    ],
    "SequentialLR": [in_turn, with_restarts],
    "StepLR": [{"step_size": 3}, {"step_size": 3, "gamma": 0.5}],
}
RESUMED = "last_epoch"  # the option that `test_goes_on_at_an_epoch` is about

CASES = [(name, at) for name, sets in OPTIONS.items() for at in range(len(sets))]


def class_in(t: Any, name: str) -> Any:
    return getattr(t.optim.swa_utils if name == "SWALR" else t.optim.lr_scheduler, name)


def two_groups(t: Any, kind: str) -> Any:
    options = {"momentum": 0.5} if kind == "SGD" else {}
    params = [t.nn.Parameter(filled(t, 1)) for _ in range(2)]
    return getattr(t.optim, kind)([{"params": [params[0]]}, {"params": [params[1]], "lr": 0.3}], lr=0.1, **options)


def made(t: Any, name: str, at: int, kind: str) -> tuple[Any, Any]:
    optimizer, options = two_groups(t, kind), OPTIONS[name][at]
    options = options(t, optimizer) if callable(options) else options
    return optimizer, class_in(t, name)(*([] if "optimizer" in options else [optimizer]), **copy.copy(options))


def seen_of(optimizer: Any, schedule: Any) -> list[Any]:
    groups = optimizer.param_groups
    momenta = [g["momentum"] if "momentum" in g else list(g["betas"]) for g in groups]
    return plain([[g["lr"] for g in groups], momenta, schedule.get_last_lr(), getattr(schedule, "last_epoch", None)])


def watched(name: str, optimizer: Any, schedule: Any, steps: range) -> list[Any]:
    """What the schedule makes of each group, step by step."""
    seen = [seen_of(optimizer, schedule)]
    for step in steps:
        optimizer.step()
        schedule.step(*([METRICS[step]] if name == "ReduceLROnPlateau" else []))
        seen.append(seen_of(optimizer, schedule))
    return seen


def assert_same(got: Any, expected: Any) -> None:
    found = differences(got, expected)
    assert not found, "\n".join(found)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def test_every_option_has_a_value() -> None:
    """A class or an option that torch has and this file does not set fails here."""
    modules = (torch.optim.lr_scheduler, torch.optim.swa_utils)
    bases = (torch.optim.lr_scheduler.LRScheduler, torch.nn.Module)
    theirs = {n for m in modules for n, c in vars(m).items() if isinstance(c, type) and issubclass(c, bases)}
    assert set(OPTIONS) | {"AveragedModel"} == theirs - {"LRScheduler", "Module", "_LRScheduler"}
    optimizer = two_groups(tp, "SGD")
    for name, sets in OPTIONS.items():
        parameters = inspect.signature(class_in(torch, name)).parameters
        values = [options(tp, optimizer) if callable(options) else options for options in sets]
        given = {o for options in values for o, v in options.items() if v is not parameters[o].default}
        assert set(parameters) - given <= {"optimizer", RESUMED}, name


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize(("name", "at"), CASES)
def test_schedule(name: str, at: int, kind: str) -> None:
    """Its rates and momenta, and its state with them."""
    found = []
    for t in (tp, torch):
        optimizer, schedule = made(t, name, at, kind)
        found.append([watched(name, optimizer, schedule, range(STEPS)), plain(state_of(schedule, drop=True))])
    assert_same(*found)


def state_of(schedule: Any, drop: bool = False) -> Any:
    """The state without the functions in it, which each library wraps in its own way."""

    def kept(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: kept(value[k]) for k in sorted(value) if not drop or not callable(value[k])}
        return [kept(v) for v in value] if isinstance(value, (list, tuple)) else value

    return kept(schedule.state_dict())


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize(("name", "at"), CASES)
def test_the_state_changes_hands(name: str, at: int, kind: str) -> None:
    """Half of the steps with one library and half with the other, as all of them with either."""
    half = STEPS // 2
    for source, target in ((torch, tp), (tp, torch), (tp, tp)):
        first, running = made(source, name, at, kind)
        watched(name, first, running, range(half))
        second, resumed = made(target, name, at, kind)
        resumed.load_state_dict(copy.deepcopy(running.state_dict()))
        second.load_state_dict(first.state_dict())
        rest = range(half, STEPS)
        assert_same(watched(name, second, resumed, rest), watched(name, first, running, rest))


def takes_an_epoch(name: str, at: int) -> bool:
    """Schedules of schedules take none."""
    return "last_epoch" in inspect.signature(class_in(torch, name)).parameters and not callable(OPTIONS[name][at])


@pytest.mark.parametrize(("name", "at"), [c for c in CASES if takes_an_epoch(*c)])
def test_goes_on_at_an_epoch(name: str, at: int) -> None:
    """A new schedule of an optimizer that has had one, by last_epoch alone; and one that never had."""
    found = []
    for t in (tp, torch):
        optimizer, _ = made(t, name, at, "SGD")
        again = class_in(t, name)(optimizer, **OPTIONS[name][at], last_epoch=5)
        told = [watched(name, optimizer, again, range(6))]
        try:
            class_in(t, name)(two_groups(t, "SGD"), **OPTIONS[name][at], last_epoch=5)
        except Exception as error:
            told.append(type(error).__name__)
        found.append(told)
    assert_same(*found)


@pytest.mark.parametrize(("name", "at"), [c for c in CASES if c[0] not in ("ReduceLROnPlateau", "ChainedScheduler")])
def test_asked_for_an_epoch(name: str, at: int) -> None:
    """step(epoch), which PyTorch keeps for old programs."""
    found = []
    for t in (tp, torch):
        optimizer, schedule = made(t, name, at, "SGD")
        told: list[Any] = []
        for epoch in (3, 4, 9, 1, 2.5):
            try:
                schedule.step(epoch)
            except Exception as error:
                told.append(type(error).__name__)
                break
            told.append(seen_of(optimizer, schedule))
        found.append(told)
    assert_same(*found)


def test_rates_that_are_tensors() -> None:
    """They are written into, so that whoever holds the tensor sees the rate."""
    for name, at in CASES:
        found = []
        for t in (tp, torch):
            rate = t.tensor(0.1, dtype=t.float64)
            optimizer = t.optim.Adam([t.nn.Parameter(filled(t, 1))], lr=rate)
            options = OPTIONS[name][at]
            options = options(t, optimizer) if callable(options) else options
            told: list[Any] = []
            try:
                schedule = class_in(t, name)(*([] if "optimizer" in options else [optimizer]), **options)
                for step in range(STEPS):
                    optimizer.step()
                    schedule.step(*([METRICS[step]] if name == "ReduceLROnPlateau" else []))
                    told.append([float(optimizer.param_groups[0]["lr"]), float(rate)])
            except Exception as error:
                told.append(type(error).__name__)
            found.append(told)
        assert not differences(*found), (name, at, differences(*found)[:3])


# ---- averages ----

AVERAGES: list[Any] = [
    lambda u: {},
    lambda u: {"use_buffers": True},
    lambda u: {"avg_fn": u.get_swa_avg_fn()},
    lambda u: {"avg_fn": u.get_ema_avg_fn(0.7)},
    lambda u: {"multi_avg_fn": u.get_swa_multi_avg_fn()},
    lambda u: {"multi_avg_fn": u.get_ema_multi_avg_fn(0.7), "use_buffers": True},
    lambda u: {"device": "cpu"},
]


def test_every_option_of_an_average_has_a_value() -> None:
    given = {name for options in AVERAGES for name in options(tp.optim.swa_utils)}
    assert given == set(inspect.signature(torch.optim.swa_utils.AveragedModel).parameters) - {"model"}


@pytest.mark.parametrize("at", range(len(AVERAGES)))
def test_average(at: int) -> None:
    """Twenty updates of a model that moves, and its state half way in a new one."""
    found = []
    for t in (tp, torch):
        utils = t.optim.swa_utils
        model = t.nn.Sequential(linear(t), t.nn.BatchNorm1d(2)).double()
        mean = utils.AveragedModel(model, **AVERAGES[at](utils))
        told: list[Any] = []
        for step in range(20):
            with t.no_grad():
                model[0].weight.add_(np.sin(step))
            model(filled(t, 4, 3).double() * (step + 1))
            mean.update_parameters(model)
            told.append({k: np.array(v.numpy()).tolist() for k, v in mean.state_dict().items()})
            if step == 9:
                other = utils.AveragedModel(model, **AVERAGES[at](utils))
                other.load_state_dict(mean.state_dict())
                mean = other
        utils.update_bn([filled(t, 4, 3).double(), filled(t, 4, 3).double() * 3], mean)
        told.append(mean.module[1].running_mean.tolist())
        found.append(plain(told))
    assert_same(*found)
