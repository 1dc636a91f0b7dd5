"""A training step of the demo on a batch of 64 digits, against the same on the CPU."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import tensorpy as tp

from ..bench_training import BATCH, step_of_tensorpy
from ..harness import Case


def cases(device: str) -> Iterator[Case]:
    rng = np.random.default_rng(0)
    images, labels = rng.random((BATCH, 1, 8, 8), np.float32), rng.integers(0, 10, BATCH)
    step = step_of_tensorpy(images, labels, device)

    def ours() -> None:
        step()
        tp.opencl.synchronize()

    calls = {"tensorpy": ours, "cpu": step_of_tensorpy(images, labels, "cpu")}
    yield Case(f"training step of the demo, {BATCH} digits", calls, {"cpu": 3.0})
