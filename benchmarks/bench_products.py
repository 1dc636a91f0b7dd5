"""Matrix products."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from functools import partial

import numpy as np

from .harness import Case
from .libraries import tensors


def cases(device: str) -> Iterator[Case]:
    rng = np.random.default_rng(0)
    for n in (64, 128, 256, 512, 1024, 2048):
        made = tensors(rng.random((n, n), np.float32), rng.random((n, n), np.float32))
        yield Case(
            f"{n}x{n} @ {n}x{n} float32",
            {lib: partial(operator.matmul, a, b) for lib, (a, b) in made.items()},
            {"numpy": 1.03},
        )
