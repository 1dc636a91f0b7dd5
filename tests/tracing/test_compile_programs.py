"""Programs with their model, or each module of it, compiled and the loop as it is: 50 losses, equal to the bit.

They are those of examples/ and benchmarks/, and some of the kind that people post (public_programs.py)."""

from __future__ import annotations

import subprocess
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


def reinforce() -> Program:
    import reinforce as program

    program.CAP = 8  # type: ignore[misc]
    policy = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
    optimizer = tp.optim.Adam(policy.parameters(), lr=1e-2)
    runs = yield policy
    while True:
        chosen, alive, _ = program.play(runs, 6, "cpu")
        optimizer.zero_grad()
        loss = program.objective(chosen, alive)
        loss.backward()
        optimizer.step()
        yield loss.item()


def gaussian_process() -> Program:
    import gaussian_process as program

    x = tp.rand(12) * 5 - 2.5
    process = program.GaussianProcess(x, program.truth(x) + 0.2 * tp.randn(12))
    optimizer = tp.optim.Adam(process.parameters(), lr=0.05)
    runs = yield process
    while True:
        optimizer.zero_grad()
        mean, deviation = runs(tp.linspace(-3, 3, 20))
        loss = process.negative_log_likelihood() + mean.square().mean() + deviation.mean()
        loss.backward()
        optimizer.step()
        yield loss.item()


def of_the_other_benchmarks() -> Program:
    from benchmarks import bench_distributed, bench_programs

    model = nn.ModuleList([bench_programs.resnet18(tp), bench_distributed.network(tp, 16, 3)])
    optimizer = tp.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
    runs = yield model
    resnet, network = runs
    while True:
        optimizer.zero_grad()
        loss = F.cross_entropy(resnet(tp.randn(2, 3, 8, 8)), tp.randint(10, (2,)))
        loss = loss + F.cross_entropy(network(tp.randn(8, 16)), tp.randint(10, (8,)))
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


FOLLOWED: dict[str, Any] = {"options": {"smallest": 512, "tile": 4096}}
WAYS: list[dict[str, Any]] = [FOLLOWED, FOLLOWED | {"backend": "aot_eager"}, {"mode": "reduce-overhead"}]
SMALL = [gpt, lstm, resnet, vae, digits, of_the_benchmarks, reinforce, gaussian_process]


def check(program: Callable[[], Any], ways: list[dict[str, Any]]) -> None:
    expected = losses(program, lambda m: m, 50)
    for how in ways:
        for wrap in (tp.compile, each_module):
            if wrap is tp.compile and program in (of_the_benchmarks, of_the_other_benchmarks):
                continue  # a list of modules is not called
            got = losses(program, lambda m, wrap=wrap, how=how: wrap(m, **how), 50)
            assert all(a.equal(b) if isinstance(a, tp.Tensor) else a == b for a, b in zip(got, expected, strict=True))


@pytest.mark.parametrize("program", SMALL)
@pytest.mark.parametrize("threads", [1, 2])
def test_the_same_losses(program: Callable[[], Any], threads: int) -> None:
    before = tp.get_num_threads()
    tp.set_num_threads(threads)
    try:
        check(program, WAYS if threads == 1 else WAYS[:1])
    finally:
        tp.set_num_threads(before)


def test_the_same_losses_of_larger_models() -> None:
    check(of_the_other_benchmarks, [{}])


PUBLIC = "nanogpt dcgan dqn lstm_text vit unet gat seq2seq amp ema_checkpoint resnet ppo".split()


@pytest.mark.parametrize("name", PUBLIC)
def test_public_programs(name: str) -> None:
    """As PyTorch's: their random numbers come one after the other (core/mersenne.h), whichever calls wait."""
    program = Path(__file__).with_name("public_programs.py")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tensorpy.run", str(program), name],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    lines = done.stdout.splitlines()
    assert len(lines) == 6
    for line in lines:
        same, _, count, _ = line.rsplit(" ", 4)[1:]
        assert same == count, line
