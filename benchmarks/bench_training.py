"""A training step of the demo on a batch of 64 digits, as a user of each library writes it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import tensorpy as tp
import tensorpy.nn.functional as F

from .harness import Case
from .libraries import torch, training_step

BATCH = 64


def demo() -> ModuleType:
    path = Path(__file__).parent.parent / "examples" / "digits.py"
    spec = importlib.util.spec_from_file_location("digits", path)
    assert spec is not None and spec.loader is not None
    module = sys.modules.setdefault(spec.name, importlib.util.module_from_spec(spec))  # dataclasses look there
    spec.loader.exec_module(module)
    return module


def step_of_tensorpy(images: Any, labels: Any, device: str) -> Callable[[], object]:
    digits = demo()
    model = digits.Cnn().to(device)
    optimizer = digits.OPTIMIZERS["adam"](model.parameters())
    x, y = tp.tensor(images).to(device), tp.tensor(labels).to(device)
    return training_step(model, optimizer, lambda model: F.cross_entropy(model(x), y))


def torch_cnn() -> Any:
    """The demo's network as torch has it."""
    n = torch.nn
    return n.Sequential(
        n.Conv2d(1, 16, 3, padding=1),
        n.BatchNorm2d(16),
        n.ReLU(),
        n.Conv2d(16, 32, 3, padding=1),
        n.BatchNorm2d(32),
        n.ReLU(),
        n.MaxPool2d(2),
        n.Flatten(),
        n.Linear(512, 64),
        n.ReLU(),
        n.Dropout(0.25),
        n.Linear(64, 10),
    )


def step_of_torch(images: Any, labels: Any) -> Callable[[], object]:
    x, y = torch.tensor(images), torch.tensor(labels)
    model = torch_cnn()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    return training_step(model, optimizer, lambda model: torch.nn.functional.cross_entropy(model(x), y))


def cases(device: str) -> Iterator[Case]:
    rng = np.random.default_rng(0)
    images, labels = rng.random((BATCH, 1, 8, 8), np.float32), rng.integers(0, 10, BATCH)
    calls = {"tensorpy": step_of_tensorpy(images, labels, device)}
    if torch is not None:
        calls["torch"] = step_of_torch(images, labels)
    yield Case(f"training step of the demo, {BATCH} digits", calls, {"torch": 0.5})
