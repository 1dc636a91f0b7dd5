"""Programs of examples/ and benchmarks/ with their model, or each module of it, compiled and the loop as it is: 50
losses, equal to the bit."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tensorpy as tp
from tensorpy import nn
from tensorpy.nn import functional as F

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "examples"), str(ROOT)]

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


def digits() -> Program:
    import digits as program

    images, labels = tp.rand(64, 1, 8, 8), tp.randint(10, (64,))
    model = program.Cnn()
    optimizer = program.OPTIMIZERS["adam"](model.parameters())
    runs = yield model
    while True:
        chosen = tp.randint(64, (16,))
        optimizer.zero_grad()
        loss = F.cross_entropy(runs(program.varied(images[chosen])), labels[chosen])
        loss.backward()
        optimizer.step()
        yield loss.item()


def of_the_benchmarks() -> Program:
    from benchmarks import bench_programs as program

    program.LAYERS, program.HEADS, program.WIDTH, program.TOKENS = 2, 2, 16, 12  # type: ignore[misc]
    model = nn.ModuleList([program.gpt(tp), program.mlp(tp)])
    optimizer = tp.optim.AdamW(model.parameters(), lr=1e-3)
    runs = yield model
    gpt, mlp = runs
    while True:
        ids, x = tp.randint(program.KINDS, (2, 13)), tp.randn(4, 256)
        optimizer.zero_grad()
        scores = gpt(ids[:, :-1])[0].flatten(0, 1)
        loss = F.cross_entropy(scores, ids[:, 1:].flatten()) + F.cross_entropy(mlp(x), tp.randint(10, (4,)))
        loss.backward()
        optimizer.step()
        yield loss.item()


def each_module(model: nn.Module, **how: Any) -> nn.Module:
    for module in model.modules():
        if type(module).forward is not nn.Module.forward:
            module.compile(**how)
    return model


def losses(program: Callable[[], Any], wrap: Callable[[Any], Any], steps: int) -> list[Any]:
    tp.manual_seed(5)
    run = program()
    model = next(run)
    found = [run.send(wrap(model))] + [next(run) for _ in range(steps - 1)]
    return [*found, *(p.detach().clone() for p in model.parameters()), *(b.clone() for b in model.buffers())]


@pytest.mark.parametrize("program", [gpt, lstm, resnet, vae, digits, of_the_benchmarks])
def test_the_same_losses(program: Callable[[], Any]) -> None:
    expected = losses(program, lambda m: m, 50)
    for backend in ("tensorpy", "aot_eager"):
        how = {"backend": backend, "options": {"smallest": 512, "tile": 4096}}
        for wrap in (tp.compile, each_module):
            if wrap is tp.compile and program is of_the_benchmarks:
                continue  # a list of modules is not called
            got = losses(program, lambda m, wrap=wrap, how=how: wrap(m, **how), 50)
            assert all(a.equal(b) if isinstance(a, tp.Tensor) else a == b for a, b in zip(got, expected, strict=True))
