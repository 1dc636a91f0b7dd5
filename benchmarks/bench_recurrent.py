"""Recurrent networks: two layers, 512 wide, over 64 steps of a batch of 32, as a user of each library writes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import tensorpy as tp

from .harness import Case
from .libraries import torch

STEPS, BATCH, WIDTH = 64, 32, 512


def _forward(library: Any, kind: str) -> Callable[[], object]:
    model, x = getattr(library.nn, kind)(WIDTH, WIDTH, 2), library.randn(STEPS, BATCH, WIDTH)

    def forward() -> object:
        with library.no_grad():
            return model(x)

    return forward


def _step(library: Any, kind: str, wrap: Callable[[Any], Any] = lambda model: model) -> Callable[[], object]:
    model, x = wrap(getattr(library.nn, kind)(WIDTH, WIDTH, 2)), library.randn(STEPS, BATCH, WIDTH)
    optimizer = library.optim.SGD(model.parameters(), lr=0.01)

    def step() -> object:
        optimizer.zero_grad()
        loss = model(x)[0].square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


def lstm_step(library: Any, wrap: Callable[[Any], Any] = lambda model: model) -> Callable[[], object]:
    return _step(library, "LSTM", wrap)


def cases(device: str) -> Iterator[Case]:
    for kind in ("LSTM", "GRU"):
        for name, make in (("forward", _forward), ("training step", _step)):
            calls = {"tensorpy": make(tp, kind)}
            if torch is not None:
                calls["torch"] = make(torch, kind)
            yield Case(f"{kind}, {WIDTH} wide, {STEPS} steps: {name}", calls, {"torch": 0.9})
