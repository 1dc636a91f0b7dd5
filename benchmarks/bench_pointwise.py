"""Pointwise arithmetic and math on large arrays, into a new and into an existing output."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import tensorpy as tp

from .harness import Case
from .libraries import tensors, torch

MATH = ("exp", "log", "sqrt", "sin", "cos", "tanh", "log1p", "expm1")


def cases(device: str) -> Iterator[Case]:
    rng = np.random.default_rng(0)
    for label, n in (("1M", 1 << 20), ("16M", 1 << 24)):
        x, y = rng.random(n, np.float32) + 0.5, rng.random(n, np.float32) + 0.5
        made = tensors(x, y)
        names = {"add": ("add", "add"), "mul": ("mul", "multiply"), "div": ("div", "divide")}
        for name, (ours, numpys) in names.items():
            calls = {
                "tensorpy": lambda f=getattr(tp, ours), p=made["tensorpy"]: f(*p),
                "numpy": lambda f=getattr(np, numpys), p=made["numpy"]: f(*p),
            }
            outs = {"tensorpy": tp.empty(n), "numpy": np.empty(n, np.float32)}
            into = {
                "tensorpy": lambda f=getattr(tp, ours), p=made["tensorpy"]: f(*p, out=outs["tensorpy"]),
                "numpy": lambda f=getattr(np, numpys), p=made["numpy"]: f(*p, out=outs["numpy"]),
            }
            if torch is not None:
                calls["torch"] = lambda f=getattr(torch, ours), p=made["torch"]: f(*p)
                outs["torch"] = torch.empty(n)
                into["torch"] = lambda f=getattr(torch, ours), p=made["torch"]: f(*p, out=outs["torch"])
            yield Case(f"{name} {label} float32, new output", calls, {"best": 1.0})
            yield Case(f"{name} {label} float32, out=", into, {"best": 1.0})
    made = tensors(rng.random(1 << 20, np.float32) + 0.5)
    for name in MATH:
        calls = {lib: (lambda f=getattr(module, name), p=made[lib]: f(*p)) for lib, module in (("tensorpy", tp), ("numpy", np))}
        if torch is not None:
            calls["torch"] = lambda f=getattr(torch, name), p=made["torch"]: f(*p)
        yield Case(f"{name} 1M float32", calls, {"best": 1.0})
    if torch is not None:
        gelu = {"tensorpy": lambda: tp.nn.functional.gelu(made["tensorpy"][0]), "torch": lambda: torch.nn.functional.gelu(made["torch"][0])}
        yield Case("gelu 1M float32", gelu, {"best": 1.0})
        yield Case("sigmoid 1M float32", {"tensorpy": lambda: tp.sigmoid(made["tensorpy"][0]), "torch": lambda: torch.sigmoid(made["torch"][0])}, {"best": 1.0})
    condition = rng.random(1 << 20) > 0.5
    three = tensors(condition, rng.random(1 << 20, np.float32), rng.random(1 << 20, np.float32))
    modules = {"tensorpy": tp, "numpy": np, "torch": torch}
    yield Case("where 1M float32", {lib: (lambda m=modules[lib], p=p: m.where(*p)) for lib, p in three.items()}, {"best": 1.0})
