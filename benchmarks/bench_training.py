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
from .libraries import torch

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
    model = digits.Cnn(device)
    optimizer = digits.Adam(model.parameters)
    x, y = tp.tensor(images).to(device), tp.tensor(labels).to(device)

    def step() -> object:
        loss = F.cross_entropy(model(x, True), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def step_of_torch(images: Any, labels: Any) -> Callable[[], object]:
    f = torch.nn.functional
    x, y = torch.tensor(images), torch.tensor(labels)
    shapes = [(16, 1, 3, 3), (16,), (32, 16, 3, 3), (32,), (64, 512), (64,), (10, 64), (10,)]
    w1, b1, w2, b2, w3, b3, w4, b4 = parameters = [(torch.randn(shape) * 0.05).requires_grad_() for shape in shapes]
    optimizer = torch.optim.Adam(parameters, lr=2e-3)

    def step() -> object:
        h = f.relu(f.conv2d(x, w1, b1, padding=1))
        h = f.max_pool2d(f.relu(f.conv2d(h, w2, b2, padding=1)), 2).flatten(1)
        h = f.dropout(f.relu(f.linear(h, w3, b3)), 0.25, True)
        loss = f.cross_entropy(f.linear(h, w4, b4), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step


def cases(device: str) -> Iterator[Case]:
    rng = np.random.default_rng(0)
    images, labels = rng.random((BATCH, 1, 8, 8), np.float32), rng.integers(0, 10, BATCH)
    calls = {"tensorpy": step_of_tensorpy(images, labels, device)}
    if torch is not None:
        calls["torch"] = step_of_torch(images, labels)
    yield Case(f"training step of the demo, {BATCH} digits", calls, {"torch": 0.5})
