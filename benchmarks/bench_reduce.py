"""Reductions and scans over each axis."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

import tensorpy as tp

from .harness import Case
from .libraries import tensors, torch

# tensorpy's and torch's name, NumPy's name, the axes that are reduced (None: all).
REDUCTIONS = (
    ("sum", "sum", (None, 0, 1)),
    ("mean", "mean", (None, 0, 1)),
    ("var", "var", (None, 0, 1)),
    ("prod", "prod", (None, 0, 1)),
    ("amax", "max", (0, 1)),
    ("amin", "min", (0, 1)),
    ("argmax", "argmax", (None, 0, 1)),
    ("any", "any", (None, 0, 1)),
    ("cumsum", "cumsum", (0, 1)),
)


def cases(device: str) -> Iterator[Case]:
    made = tensors(np.random.default_rng(0).random((1024, 1024), np.float32))
    for name, numpy_name, axes in REDUCTIONS:
        functions = {"tensorpy": getattr(tp, name), "numpy": getattr(np, numpy_name)}
        if torch is not None:
            functions["torch"] = getattr(torch, name)
        for axis in axes:
            arguments = () if axis is None else (axis,)
            calls = {lib: partial(f, *made[lib], *arguments) for lib, f in functions.items()}
            where = "all" if axis is None else f"axis {axis}"
            yield Case(f"{name}, {where}, 1024x1024 float32", calls, {"best": 1.0})
