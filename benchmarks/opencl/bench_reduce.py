"""Reductions and normalisations against the driver's own copy of as many numbers. A copy reads and writes each, so a
reduction at 0.8 of its bandwidth takes 0.5 / 0.8 of its time, a softmax at 0.7 of it 1 / 0.7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import tensorpy as tp
import tensorpy.nn.functional as F

from ..harness import Case
from .plain import Buffer

EDGE = 4096
REDUCE, REWRITE = 0.5 / 0.8, 1 / 0.7


def cases(device: str) -> Iterator[Case]:
    x = tp.ones(EDGE, EDGE, device=device)
    to, origin = Buffer(4 * EDGE * EDGE), Buffer(4 * EDGE * EDGE)
    calls: dict[str, tuple[Callable[[], object], float]] = {
        "sum of all": (lambda: x.sum(), REDUCE),
        "sum of rows": (lambda: x.sum(1), REDUCE),
        "sum of columns": (lambda: x.sum(0), REDUCE),
        "amax of all": (lambda: x.amax(), REDUCE),
        "amax of rows": (lambda: x.amax(1), REDUCE),
        "mean of columns": (lambda: x.mean(0), REDUCE),
        "argmax of rows": (lambda: x.argmax(1), REDUCE),
        "softmax of rows": (lambda: x.softmax(1), REWRITE),
        "log_softmax of rows": (lambda: x.log_softmax(1), REWRITE),
        "layer_norm of rows": (lambda: F.layer_norm(x, [EDGE]), REWRITE),
    }
    for name, (call, bar) in calls.items():

        def ours(f: Callable[[], object] = call) -> None:
            f()
            tp.opencl.synchronize()

        yield Case(
            f"{name}, {EDGE}x{EDGE} float32", {"tensorpy": ours, "copy": lambda: to.copy_from(origin)}, {"copy": bar}
        )
