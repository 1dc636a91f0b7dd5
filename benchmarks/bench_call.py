"""What a call costs: one-element tensors, views, indexing, recording a gradient."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

import tensorpy as tp

from .harness import Case
from .libraries import tensors, torch


def cases(device: str) -> Iterator[Case]:
    one = np.ones(1, np.float32)
    made = tensors(one, one)
    (a, b), (na, nb) = made["tensorpy"], made["numpy"]
    calls = {"tensorpy": lambda: tp.add(a, b), "numpy": lambda: np.add(na, nb)}
    if torch is not None:
        ta, tb = made["torch"]
        calls["torch"] = lambda: torch.add(ta, tb)
    yield Case("add(a, b), 1 element", calls, {"numpy": 0.4, "torch": 0.11})

    w = tp.ones(1, requires_grad=True)
    calls = {"tensorpy": lambda: w + b}
    if torch is not None:
        tw = torch.ones(1, requires_grad=True)
        calls["torch"] = lambda: tw + tb
    yield Case("a + b, graph recorded", calls, {"torch": 0.25})

    calls = {"tensorpy": lambda: (w * b).sum().backward()}
    if torch is not None:
        calls["torch"] = lambda: (tw * tb).sum().backward()
    yield Case("(a * b).sum().backward()", calls, {"torch": 0.25})

    grid = np.arange(64, dtype=np.float32).reshape(8, 8)
    views = {
        "t[3]": lambda x: x[3],
        "t[2, 3]": lambda x: x[2, 3],
        "t[1:5]": lambda x: x[1:5],
        "t[1:5, ::2]": lambda x: x[1:5, ::2],
        "reshape": lambda x: x.reshape(4, 16),
    }
    transposes = {
        "tensorpy": lambda x: x.transpose(0, 1),
        "numpy": lambda x: x.transpose(1, 0),
        "torch": lambda x: x.transpose(0, 1),
    }
    for name, view in views.items():
        yield Case(name, {lib: partial(view, x) for lib, (x,) in tensors(grid).items()}, {"numpy": 1.0})
    yield Case("transpose", {lib: partial(transposes[lib], x) for lib, (x,) in tensors(grid).items()}, {"numpy": 1.0})
