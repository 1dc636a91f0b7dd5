"""Reductions and scans over each axis."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import tensorpy as tp

from .harness import Case
from .libraries import tensors, torch


def cases(device: str) -> Iterator[Case]:
    made = tensors(np.random.default_rng(0).random((1024, 1024), np.float32))
    modules = {"tensorpy": tp, "numpy": np, "torch": torch}
    for name in ("sum", "mean", "argmax", "cumsum", "var", "prod", "any"):
        for axis in (None, 0, 1):
            if name == "cumsum" and axis is None:
                continue
            if not hasattr(tp, name):
                continue
            arguments = () if axis is None else (axis,)
            yield Case(
                f"{name}({'' if axis is None else f'axis {axis}'}) 1024x1024",
                {lib: (lambda f=getattr(modules[lib], name), x=x, a=arguments: f(x, *a)) for lib, (x,) in made.items()},
                {"best": 1.0},
            )
    for name, numpys in (("amax", "max"), ("amin", "min")):
        if hasattr(tp, name):
            for axis in (0, 1):
                calls = {"tensorpy": lambda f=getattr(tp, name), a=axis: f(made["tensorpy"][0], a), "numpy": lambda f=getattr(np, numpys), a=axis: f(made["numpy"][0], a)}
                if torch is not None:
                    calls["torch"] = lambda f=getattr(torch, name), a=axis: f(made["torch"][0], a)
                yield Case(f"{name}(axis {axis}) 1024x1024", calls, {"best": 1.0})
