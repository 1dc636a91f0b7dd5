"""Matrix products."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from functools import partial

import numpy as np

import tensorpy as tp

from .blas import sgemm
from .harness import Case
from .libraries import tensors


def cases(device: str) -> Iterator[Case]:
    rng = np.random.default_rng(0)
    for n in (64, 128, 256, 512, 1024, 2048):
        a, b = rng.random((n, n), np.float32), rng.random((n, n), np.float32)
        calls = {lib: partial(operator.matmul, x, y) for lib, (x, y) in tensors(a, b).items()}
        calls["tensorpy"]()  # opens the library, with the right core type
        plain = sgemm(a, b, tp.get_num_threads())
        if plain is not None:
            calls["openblas"] = plain
        yield Case(f"{n}x{n} @ {n}x{n} float32", calls, {"openblas": 1 / 0.97})
