"""optim.adam.adam and its kin: steps as functions of lists, with PyTorch's signatures and results."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import numpy as np
import pytest

import tensorpy as tp

NAMES = "adadelta adagrad adam adamax adamw asgd nadam radam rmsprop rprop sgd".split()
SETTINGS = {
    "amsgrad": True, "beta1": 0.9, "beta2": 0.99, "lr": 0.1, "weight_decay": 0.01, "eps": 1e-8, "maximize": False,
    "rho": 0.9, "lr_decay": 0.1, "momentum_decay": 0.004, "alpha": 0.9, "momentum": 0.9, "centered": True,
    "step_size_min": 1e-6, "step_size_max": 50.0, "etaminus": 0.5, "etaplus": 1.2, "lambd": 1e-4, "t0": 1e6,
    "dampening": 0.0, "nesterov": True,
}  # fmt: skip


def function_of(library: Any, name: str) -> Any:
    return getattr(importlib.import_module(f"{library.__name__}.optim.{name}"), name)


def first(library: Any, name: str, argument: str, params: list[Any]) -> list[Any]:
    """A state as an optimizer begins with it."""
    if name == "sgd":
        return [None for _ in params]
    if argument in ("state_steps", "mu_products", "mus", "etas"):
        return [library.tensor({"state_steps": 0.0, "etas": 0.1}.get(argument, 1.0)) for _ in params]
    return [library.full_like(p, 0.1 if argument == "step_sizes" else 0.0) for p in params]


def stepped(library: Any, name: str) -> list[Any]:
    """Parameters and states after three steps."""
    function = function_of(library, name)
    parameters = inspect.signature(function).parameters.values()
    named = {p.name: SETTINGS[p.name] for p in parameters if p.kind is p.KEYWORD_ONLY}
    lists = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY and p.default is p.empty][2:]
    params = [library.linspace(-1, 1, 4, dtype=library.float64), library.ones(2, dtype=library.float64)]
    states = [first(library, name, argument, params) for argument in lists]
    for _ in range(3):
        function(params, [p * 2 + 1 for p in params], *states, **named)
    return [x.numpy() for each in (params, *states) for x in each]


@pytest.mark.parametrize("name", NAMES)
def test_steps_are_pytorchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = (list(inspect.signature(function_of(t, name)).parameters) for t in (tp, torch))
    assert ours == theirs
    for mine, other in zip(stepped(tp, name), stepped(torch, name), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_arguments_are_checked(name: str) -> None:
    with pytest.raises(TypeError):
        function_of(tp, name)([], [])
    with pytest.raises(TypeError):
        function_of(tp, name)([], [], [], [], [], [], no_such=1)
