"""Reductions and scans over each axis, and softmax: of short and long rows, and of scores that are masked."""

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
SOFTMAX = (("softmax", 64, 10), ("softmax", 512, 128), ("log_softmax", 512, 128), ("softmax", 128, 1024))


def _softmax(device: str) -> Iterator[Case]:
    random = np.random.default_rng(0)
    for name, rows, columns in SOFTMAX:
        plain = random.standard_normal((rows, columns), np.float32)
        masked = np.where(np.tri(rows, columns, dtype=bool), plain, -np.inf)
        for what, array in (("", plain), (" masked", masked)):
            calls = {lib: partial(getattr(x, name), 1) for lib, (x,) in tensors(array).items() if lib != "numpy"}
            yield Case(f"{name}, rows of {columns}{what}", calls, {"best": 1.0})


def cases(device: str) -> Iterator[Case]:
    yield from _softmax(device)
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
