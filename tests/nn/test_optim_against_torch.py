"""Every optimizer against torch's: twenty steps with each option of its constructor, however the steps are computed.

`OPTIONS` has for each class values of its options other than the defaults; `test_every_option_has_a_value` reads the
signatures of torch and fails for a class or an option that is not there.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tensorpy as tp

torch = pytest.importorskip("torch")

# Each way is tried with the defaults and with each set of options.
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "ASGD": [{"lr": 0.1}, {"lr": 0.1, "lambd": 0.1, "alpha": 0.5, "t0": 5.0, "weight_decay": 0.1}],
    "Adadelta": [{}, {"lr": 0.5, "rho": 0.8, "eps": 1e-4, "weight_decay": 0.1}],
    "Adafactor": [{"lr": 0.1}, {"lr": 0.1, "beta2_decay": -0.5, "eps": (1e-8, 0.01), "d": 1.5, "weight_decay": 0.1}],
    "Adagrad": [{}, {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5, "eps": 1e-4}],
    "Adam": [
        {"lr": 0.05},
        {"lr": 0.05, "betas": (0.8, 0.99), "eps": 1e-4, "weight_decay": 0.1},
        {"lr": 0.05, "amsgrad": True},
        {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True},
        {"lr": 0.05, "betas": (0.0, 0.9)},
    ],
    "AdamW": [{"lr": 0.05}, {"lr": 0.05, "betas": (0.8, 0.99), "eps": 1e-4, "weight_decay": 0.3, "amsgrad": True}],
    "Adamax": [{"lr": 0.05}, {"lr": 0.05, "betas": (0.8, 0.99), "eps": 1e-4, "weight_decay": 0.1}],
    "LBFGS": [
        {"lr": 0.3, "max_iter": 3},
        {"lr": 0.3, "max_iter": 3, "max_eval": 2, "history_size": 2},
        {"lr": 0.3, "max_iter": 3, "tolerance_grad": 0.5, "tolerance_change": 1e-3},
        {"max_iter": 2, "line_search_fn": "strong_wolfe"},
    ],
    "Muon": [
        {"lr": 0.05},
        {"lr": 0.05, "weight_decay": 0.3, "momentum": 0.8, "nesterov": False, "adjust_lr_fn": "match_rms_adamw"},
        {"lr": 0.05, "ns_coefficients": (2.0, -1.5, 0.5), "eps": 1e-3, "ns_steps": 3, "adjust_lr_fn": "original"},
    ],
    "NAdam": [
        {"lr": 0.05},
        {"lr": 0.05, "betas": (0.8, 0.99), "eps": 1e-4, "weight_decay": 0.1, "momentum_decay": 0.1},
        {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True},
    ],
    "RAdam": [
        {"lr": 0.05},
        {"lr": 0.05, "betas": (0.8, 0.9), "eps": 1e-4, "weight_decay": 0.1},
        {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True},
    ],
    "RMSprop": [
        {"lr": 0.02},
        {"lr": 0.02, "alpha": 0.9, "eps": 1e-4, "weight_decay": 0.1, "momentum": 0.5},
        {"lr": 0.02, "centered": True},
        {"lr": 0.02, "centered": True, "momentum": 0.5},
    ],
    "Rprop": [{}, {"lr": 0.05, "etas": (0.4, 1.3), "step_sizes": (1e-4, 0.2)}],
    "SGD": [
        {"lr": 0.05},
        {"lr": 0.05, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1},
        {"lr": 0.05, "momentum": 0.9, "nesterov": True},
    ],
    "SparseAdam": [{"lr": 0.05}, {"lr": 0.05, "betas": (0.8, 0.99), "eps": 1e-4}],
}
# How a step is computed; PyTorch refuses capturable on a CPU, so that is compared with the step that is not.
WAYS = ("foreach", "fused", "differentiable", "capturable")
SPARSE = [("SGD", 0), ("SGD", 1), ("SGD", 2), ("Adagrad", 0), ("SparseAdam", 0), ("SparseAdam", 1)]
TOLERANCE = {"float32": (2e-4, 2e-6), "float64": (1e-7, 1e-10)}
BFLOAT16_PRODUCTS = (0.1, 0.04)  # Muon's, and twenty steps of them
FLOAT32_PARTS = (1e-5, 1e-6)  # PyTorch's lists of ASGD, and its bias corrections where steps are differentiable

CASES = [(name, at) for name, sets in OPTIONS.items() for at in range(len(sets))]
DENSE = [(name, at) for name, at in CASES if name != "SparseAdam"]


def options_of(name: str) -> set[str]:
    """What torch's constructor takes beside the parameters."""
    return set(inspect.signature(getattr(torch.optim, name)).parameters) - {"params"}


def ways_of(name: str) -> Iterator[dict[str, Any]]:
    """Settings that change how a step is computed, or its sign, and not what it is."""
    yield {}
    for way in ("foreach", "fused"):
        if way in options_of(name):
            yield from ({way: True}, {way: False})
            if "maximize" in options_of(name):
                yield {way: True, "maximize": True}
    if "maximize" in options_of(name):
        yield {"maximize": True}


def values(*shape: int) -> np.ndarray:
    return np.sin(np.arange(1.0, 1 + np.prod(shape)) * 5).reshape(shape)


def start(t: Any, name: str, dtype: str) -> list[Any]:
    """Parameters of several shapes, the last of which gets no gradient; Muon takes matrices alone."""
    shapes = [(3, 4), (4, 3), (2, 2)] if name == "Muon" else [(3, 4), (4,), (), (2,)]
    return [t.nn.Parameter(t.tensor(values(*shape).tolist(), dtype=getattr(t, dtype))) for shape in shapes]


def loss_of(t: Any, params: list[Any], step: int) -> Any:
    """Neither a square nor the same in two directions, and another one at each step."""
    matrix, vector, *more = params
    loss = (matrix @ vector).cos().sum() + (matrix**4).sum() + ((vector - 1).abs() ** 1.5).sum() * (1 + step % 3)
    return (loss + (more[0] - 2).square() if len(more) > 1 else loss) / 3


def grouped(t: Any, params: list[Any], **second: Any) -> list[dict[str, Any]]:
    return [{"params": params[:1]}, {"params": params[1:], **second}]


def run(t: Any, name: str, optimizer: Any, params: list[Any], steps: range, maximize: bool = False) -> list[list[Any]]:
    """The parameters after each step."""
    seen = []
    for step in steps:

        def closure(step: int = step) -> Any:
            optimizer.zero_grad()
            loss = loss_of(t, params, step if name != "LBFGS" else 0)
            (-loss if maximize else loss).backward()
            return loss

        if name == "LBFGS":
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()
        seen.append([np.array(p.detach().numpy()) for p in params])
    return seen


def assert_same(got: list[list[Any]], expected: list[list[Any]], tolerance: tuple[float, float]) -> None:
    assert len(got) == len(expected)
    for step, (mine, theirs) in enumerate(zip(got, expected, strict=True)):
        for g, e in zip(mine, theirs, strict=True):
            assert g.dtype == e.dtype
            np.testing.assert_allclose(g, e, *tolerance, err_msg=f"step {step}")


def tolerance_of(name: str, dtype: str, way: Any = ()) -> tuple[float, float]:
    if name == "ASGD" and dtype == "float64" and "foreach" in way:
        return FLOAT32_PARTS
    return BFLOAT16_PRODUCTS if name == "Muon" else TOLERANCE[dtype]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def test_every_option_has_a_value() -> None:
    """A class or an option that torch has and this file does not set fails here."""
    theirs = {n for n, c in vars(torch.optim).items() if isinstance(c, type) and issubclass(c, torch.optim.Optimizer)}
    assert set(OPTIONS) == theirs - {"Optimizer"}
    for name, sets in OPTIONS.items():
        parameters = inspect.signature(getattr(torch.optim, name)).parameters
        given = {o for options in sets for o, v in options.items() if v != parameters[o].default}
        assert options_of(name) - given <= {*WAYS, "maximize"}, name


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "at"), DENSE)
def test_twenty_steps(name: str, at: int, dtype: str) -> None:
    for way in ways_of(name):
        found = []
        for t in (tp, torch):
            params = start(t, name, dtype)
            optimizer = getattr(t.optim, name)(params, **OPTIONS[name][at], **way)
            found.append(run(t, name, optimizer, params, range(20), way.get("maximize", False)))
        assert_same(*found, tolerance_of(name, dtype, way))


@pytest.mark.parametrize(("name", "at"), [c for c in DENSE if c[0] != "LBFGS"])
def test_groups(name: str, at: int) -> None:
    """Two groups with rates of their own, a third one that comes later, and a rate that changes."""
    for way in ways_of(name):
        found = []
        for t in (tp, torch):
            params = start(t, name, "float64")
            optimizer = getattr(t.optim, name)(grouped(t, params[:-1], lr=0.02), **OPTIONS[name][at], **way)
            seen = run(t, name, optimizer, params, range(6), way.get("maximize", False))
            optimizer.add_param_group({"params": params[-1:], **({"weight_decay": 0.2} if name == "SGD" else {})})
            optimizer.param_groups[0]["lr"] *= 0.5
            found.append(seen + run(t, name, optimizer, params, range(6, 20), way.get("maximize", False)))
        assert_same(*found, tolerance_of(name, "float64", way))


@pytest.mark.parametrize("name", [n for n in OPTIONS if n not in ("LBFGS", "SparseAdam", "Muon")])
def test_the_rate_is_a_tensor(name: str) -> None:
    """Where torch takes one: of the ways, it refuses some."""
    for way in ways_of(name):
        found = []
        for t in (tp, torch):
            params = start(t, name, "float64")
            try:
                options = {**OPTIONS[name][-1], "lr": t.tensor(0.05, dtype=t.float64)}
                optimizer = getattr(t.optim, name)(params, **options, **way)
                found.append(run(t, name, optimizer, params, range(20), way.get("maximize", False)))
            except (ValueError, RuntimeError) as error:
                found.append(type(error))
        if isinstance(found[1], type):
            continue
        assert_same(*found, tolerance_of(name, "float64", way))


@pytest.mark.parametrize(("name", "at"), [c for c in DENSE if "capturable" in options_of(c[0])])
def test_capturable(name: str, at: int) -> None:
    found = []
    for way in ({}, {"capturable": True}, {"capturable": True, "foreach": True}):
        params = start(tp, name, "float64")
        found.append(run(tp, name, getattr(tp.optim, name)(params, **OPTIONS[name][at], **way), params, range(20)))
    assert_same(found[1], found[0], TOLERANCE["float64"])
    assert_same(found[2], found[0], TOLERANCE["float64"])


@pytest.mark.parametrize(("name", "at"), [c for c in DENSE if "differentiable" in options_of(c[0])])
def test_gradients_through_the_steps(name: str, at: int) -> None:
    """With respect to the start and to the gradients. Where PyTorch overwrites what it saved, the steps alone."""
    found = []
    options = {k: v for k, v in OPTIONS[name][at].items() if k != "amsgrad"}  # which writes into what it saved
    if name == "SGD":
        options.pop("momentum", None)  # which starts detached
        options.pop("nesterov", None)
        options.pop("dampening", None)
    for t in (tp, torch):
        leaf = t.tensor(values(4).tolist(), dtype=t.float64, requires_grad=True)
        gradient = t.tensor((values(4) + 1.5).tolist(), dtype=t.float64, requires_grad=True)
        params = [leaf.clone()]
        optimizer = getattr(t.optim, name)(params, **options, differentiable=True)
        for step in range(20):
            params[0].grad = gradient * (1 + step / 10)
            optimizer.step()
        seen = [params[0]]
        try:
            seen += t.autograd.grad((params[0] * t.arange(1.0, 5.0)).sum(), [leaf, gradient], allow_unused=True)
        except RuntimeError as error:
            assert t is torch and "modified by an inplace operation" in str(error)
            found[0] = [found[0][0][:1]]
        found.append([[np.array(g.detach().numpy()) for g in seen if g is not None]])
    assert_same(*found, (1e-4, 1e-5))


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize(("name", "at"), SPARSE)
def test_sparse_gradients(name: str, at: int, maximize: bool) -> None:
    """Rows of a table, some of them twice, and other ones at each step."""
    options = OPTIONS[name][at] | ({"weight_decay": 0} if "weight_decay" in options_of(name) else {})
    found = []
    for t in (tp, torch):
        table = t.nn.Parameter(t.tensor(values(6, 3).tolist(), dtype=t.float64))
        optimizer = getattr(t.optim, name)([table], **options, maximize=maximize)
        seen = []
        for step in range(20):
            optimizer.zero_grad()
            rows = t.tensor([step % 6, 2, step % 4])
            t.nn.functional.embedding(rows, table, sparse=True).cos().sum().backward()
            optimizer.step()
            seen.append([np.array(table.detach().numpy())])
        found.append(seen)
    assert_same(*found, TOLERANCE["float64"])


@pytest.mark.parametrize("name", OPTIONS)
def test_who_takes_sparse_gradients(name: str) -> None:
    found = []
    for t in (tp, torch):
        table = t.nn.Parameter(t.tensor(values(6, 3).tolist()))
        t.nn.functional.embedding(t.tensor([1, 2]), table, sparse=True).sum().backward()
        try:
            optimizer = getattr(t.optim, name)([table])
            optimizer.step(*([lambda: 0.0] if name == "LBFGS" else []))
            found.append("takes them")
        except RuntimeError:
            found.append("refuses them")
    assert found[0] == found[1]


def converted(value: Any, to: Any) -> Any:
    if isinstance(value, (tp.Tensor, torch.Tensor)):
        array = np.array(value.detach().numpy())
        return tp.from_numpy(array) if to is tp else torch.from_numpy(array)
    if isinstance(value, dict):
        return {k: converted(v, to) for k, v in value.items()}
    return type(value)(converted(v, to) for v in value) if isinstance(value, (list, tuple)) else value


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "at"), DENSE)
def test_the_state_changes_hands(name: str, at: int, dtype: str) -> None:
    """Ten steps with one library and ten with the other, each way of computing them: as twenty with either."""
    for way in ways_of(name):
        for source, target in ((torch, tp), (tp, torch)):
            options, maximize = {**OPTIONS[name][at], **way}, way.get("maximize", False)
            params = start(source, name, dtype)
            first = getattr(source.optim, name)(params, **options)
            run(source, name, first, params, range(10), maximize)
            state = converted(first.state_dict(), target)
            copied = [target.nn.Parameter(converted(p, target)) for p in params]
            second = getattr(target.optim, name)(copied)
            second.load_state_dict(state)
            again = second.state_dict()
            assert again["param_groups"] == state["param_groups"] and list(again["state"]) == list(state["state"])
            got = run(target, name, second, copied, range(10, 20), maximize)
            assert_same(got, run(source, name, first, params, range(10, 20), maximize), tolerance_of(name, dtype, way))


@pytest.mark.parametrize("name", [n for n in OPTIONS if n not in ("LBFGS", "SparseAdam")])
def test_a_step_returns_what_its_closure_does(name: str) -> None:
    found = []
    for t in (tp, torch):
        params = start(t, name, "float64")
        optimizer = getattr(t.optim, name)(params, **OPTIONS[name][0])

        def closure(params: list[Any] = params, optimizer: Any = optimizer, t: Any = t) -> Any:
            optimizer.zero_grad()
            loss = loss_of(t, params, 0)
            loss.backward()
            return loss

        found.append([[np.array(optimizer.step(closure).detach().numpy())] for _ in range(20)])
    assert_same(*found, tolerance_of(name, "float64"))
