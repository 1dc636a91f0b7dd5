"""Pointwise arithmetic and math on large arrays, into a new and into an existing output."""

from __future__ import annotations

import operator
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

import tensorpy as tp

from .harness import Case
from .libraries import tensors, torch

MATH = ("exp", "log", "sqrt", "sin", "cos", "tanh", "log1p", "expm1")


def _by_library(name: str, numpy_name: str) -> dict[str, Any]:
    """The function of that name in each library."""
    found = {"tensorpy": getattr(tp, name), "numpy": getattr(np, numpy_name)}
    if torch is not None:
        found["torch"] = getattr(torch, name)
    return found


def _empties(n: int) -> dict[str, Any]:
    made = {"tensorpy": tp.empty(n), "numpy": np.empty(n, np.float32)}
    if torch is not None:
        made["torch"] = torch.empty(n)
    return made


def _settle(calls: list[Any], seconds: float = 2.0) -> None:
    """Uses fresh memory for a while: virtual machines back it with large pages only then."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for call in calls:
            call()


def _arithmetic(rng: np.random.Generator) -> Iterator[Case]:
    for label, n in (("1M", 1 << 20), ("16M", 1 << 24)):
        made = tensors(rng.random(n, np.float32) + 0.5, rng.random(n, np.float32) + 0.5)
        outs = _empties(n)
        added = _by_library("add", "add").items()
        _settle(
            [partial(f, *made[lib], out=outs[lib]) for lib, f in added] + [partial(f, *made[lib]) for lib, f in added]
        )
        for name, numpy_name in (("add", "add"), ("mul", "multiply"), ("div", "divide")):
            functions = _by_library(name, numpy_name)
            new = {lib: partial(f, *made[lib]) for lib, f in functions.items()}
            into = {lib: partial(f, *made[lib], out=outs[lib]) for lib, f in functions.items()}
            yield Case(f"{name} {label} float32, new output", new, {"best": 1.0})
            yield Case(f"{name} {label} float32, out=", into, {"best": 1.0})


def _math(rng: np.random.Generator) -> Iterator[Case]:
    made = tensors(rng.random(1 << 20, np.float32) + 0.5)
    for name in MATH:
        calls = {lib: partial(f, *made[lib]) for lib, f in _by_library(name, name).items()}
        yield Case(f"{name} 1M float32", calls, {"best": 1.0})
    for exponent in (2.0, 3.0, 0.5, 2.5):
        calls = {
            lib: partial(operator.pow, *made[lib], np.float32(exponent) if lib == "numpy" else exponent) for lib in made
        }
        yield Case(f"x ** {exponent:g} 1M float32", calls, {"best": 1.0})
    if torch is not None:
        for name, ours, theirs in (
            ("gelu", tp.nn.functional.gelu, torch.nn.functional.gelu),
            ("sigmoid", tp.sigmoid, torch.sigmoid),
        ):
            calls = {"tensorpy": partial(ours, *made["tensorpy"]), "torch": partial(theirs, *made["torch"])}
            yield Case(f"{name} 1M float32", calls, {"best": 1.0})


def cases(device: str) -> Iterator[Case]:
    rng = np.random.default_rng(0)
    yield from _arithmetic(rng)
    yield from _math(rng)
    choices = tensors(rng.random(1 << 20) > 0.5, rng.random(1 << 20, np.float32), rng.random(1 << 20, np.float32))
    functions = _by_library("where", "where")
    yield Case("where 1M float32", {lib: partial(f, *choices[lib]) for lib, f in functions.items()}, {"best": 1.0})
