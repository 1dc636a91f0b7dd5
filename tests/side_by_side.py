"""Scenarios that are run with tensorpy and, where it is there, with torch, and have to tell the same story.

A scenario is a function of the library that returns what it saw: tensors, numbers, text, classes of errors. Each test
file collects its own with `Scenarios`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorpy as tp

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]

Story = Callable[[Any], Any]
_TENSORS = (tp.Tensor, *([torch.Tensor] if torch else []))


def error_of(function: Callable[[], Any]) -> str:
    """The class of what a call raises."""
    try:
        function()
    except Exception as error:
        return type(error).__name__
    return "nothing raised"


def plain(value: Any) -> Any:
    """Tensors as lists of rounded numbers, everything else as text or itself."""
    if isinstance(value, _TENSORS):
        return [value.requires_grad, plain(value.detach().double().tolist())]
    if isinstance(value, dict):
        return {plain(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, float):
        return float(f"{value:.5g}")
    return value if isinstance(value, (bool, int, type(None))) else str(value).replace("torch", "tensorpy")


def differences(ours: Any, theirs: Any, path: str = "") -> list[str]:
    """Where two stories differ; numbers may by their last digit."""
    if isinstance(ours, (list, dict)) and type(ours) is type(theirs) and len(ours) == len(theirs):
        if isinstance(ours, dict) and list(ours) != list(theirs):
            return [f"{path}: the keys {list(ours)}, expected {list(theirs)}"]
        keys = ours if isinstance(ours, dict) else range(len(ours))
        return [line for key in keys for line in differences(ours[key], theirs[key], f"{path}[{key!r}]")]
    if isinstance(ours, float) and isinstance(theirs, (float, int)):
        return [] if np.isclose(ours, theirs, 5e-5, 1e-6, equal_nan=True) else [f"{path}: {ours}, expected {theirs}"]
    return [] if ours == theirs else [f"{path}: {ours!r}, expected {theirs!r}"]


def compare(tell: Story) -> None:
    """Runs a scenario with both."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = plain(tell(tp))
        assert ours
        if torch is None:
            pytest.skip("nothing to compare with: torch is not installed")
        theirs = plain(tell(torch))
    found = differences(ours, theirs)
    assert not found, "\n".join(found)


class Scenarios(list[Story]):
    """A decorator that collects scenarios."""

    def __call__(self, tell: Story) -> Story:
        self.append(tell)
        return tell


def filled(t: Any, *shape: int) -> Any:
    """A tensor of small numbers, none of them alike."""
    return t.arange(1.0, 1.0 + int(np.prod(shape))).reshape(shape) / 8


def fill(t: Any, module: Any) -> Any:
    """The module with parameters that are the same for both libraries."""
    with t.no_grad():
        for i, p in enumerate(module.parameters()):
            p.copy_((filled(t, *p.shape) * 3 + i).sin())
    return module


def linear(t: Any, rows: int = 2, columns: int = 3, bias: bool = True) -> Any:
    """A Linear with these sizes and fixed parameters."""
    made = t.nn.Linear(columns, rows, bias=bias)
    with t.no_grad():
        made.weight.copy_(filled(t, rows, columns))
        if bias:
            made.bias.copy_(filled(t, rows))
    return made
