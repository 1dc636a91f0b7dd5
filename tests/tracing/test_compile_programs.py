"""Programs of examples/ with their model compiled and the loop as it is: 50 losses, equal to the bit."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tensorpy as tp
from tensorpy import nn
from tensorpy.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))

Program = Iterator[Any]  # the model, then losses; the model that is sent runs instead


def gpt() -> Program:
    import gpt as program

    program.CONTEXT, program.WIDTH, program.LAYERS = 16, 32, 2  # type: ignore[misc]
    data = tp.randint(30, (500,))
    model = program.GPT(30)
    optimizer = tp.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.1)
    runs = yield model
    while True:
        optimizer.zero_grad()
        loss = program.loss_of(runs, data, 4)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        yield loss.item()


def lstm() -> Program:
    import lstm as program

    program.WINDOW = 12  # type: ignore[misc]
    series = tp.randn(300)
    model = program.Forecast(16)
    optimizer = tp.optim.Adam(model.parameters(), lr=2e-3)
    runs = yield model
    while True:
        x, following = program.batch(series, 4)
        loss = F.mse_loss(runs(x)[0], following)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


def resnet() -> Program:
    import resnet as program

    images, labels = tp.rand(64, 1, 8, 8), tp.randint(10, (64,))
    model = program.ResNet()
    optimizer = tp.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    runs = yield model
    while True:
        chosen = tp.randint(64, (8,))
        optimizer.zero_grad()
        loss = F.cross_entropy(runs(program.disturb(images[chosen])), labels[chosen])
        loss.backward()
        optimizer.step()
        yield loss.item()


def vae() -> Program:
    import vae as program

    images = tp.rand(64, program.PIXELS)
    model = program.VAE()
    optimizer = tp.optim.Adam(model.parameters(), lr=2e-3)
    runs = yield model
    while True:
        optimizer.zero_grad()
        loss = program.loss_of(runs, images[tp.randint(64, (16,))])
        loss.backward()
        optimizer.step()
        yield loss.item()


def losses(program: Callable[[], Any], wrap: Callable[[Any], Any], steps: int) -> list[Any]:
    tp.manual_seed(5)
    run = program()
    model = next(run)
    found = [run.send(wrap(model))] + [next(run) for _ in range(steps - 1)]
    return [*found, *(p.detach().clone() for p in model.parameters()), *(b.clone() for b in model.buffers())]


@pytest.mark.parametrize("program", [gpt, lstm, resnet, vae])
def test_the_same_losses(program: Callable[[], Any]) -> None:
    expected = losses(program, lambda m: m, 50)
    for backend in ("tensorpy", "aot_eager"):
        how = {"backend": backend, "options": {"smallest": 512, "tile": 4096}}
        got = losses(program, lambda m, how=how: tp.compile(m, **how), 50)
        assert all(a.equal(b) if isinstance(a, tp.Tensor) else a == b for a, b in zip(got, expected, strict=True))
