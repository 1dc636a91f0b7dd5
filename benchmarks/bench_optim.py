"""Steps of optimizers, against PyTorch's fused ones, or foreach where there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import tensorpy as tp

from .harness import Case
from .libraries import torch

MANY = [(10_000,)] * 150
MLP = [(256, 64), (256,), (256, 256), (256,), (10, 256), (10,)]


def step_of(library: Any, name: str, shapes: Any, **options: Any) -> Callable[[], object]:
    params = [library.nn.Parameter(library.full(shape, 0.5)) for shape in shapes]
    for p in params:
        p.grad = library.full(tuple(p.shape), 0.01)
    optimizer = getattr(library.optim, name)(params, lr=1e-3, **options)
    optimizer.step()
    step: Callable[[], object] = optimizer.step
    return step


def cases(device: str) -> Iterator[Case]:
    for name, options in (("AdamW", {}), ("SGD", {"momentum": 0.9}), ("RMSprop", {})):
        yield case(f"{name} over 150 parameters of 10,000", name, MANY, options, 0.5 if name == "AdamW" else 1.0)
    yield case("Adam over an MLP, 256 wide", "Adam", MLP, {}, 1.0)


def case(title: str, name: str, shapes: Any, options: dict[str, Any], bar: float) -> Case:
    calls = {"tensorpy": step_of(tp, name, shapes, **options)}
    if torch is not None:
        fused = name in ("AdamW", "Adam", "SGD")
        calls["torch"] = step_of(torch, name, shapes, **options, **{"fused" if fused else "foreach": True})
    return Case(title, calls, {"torch": bar})
