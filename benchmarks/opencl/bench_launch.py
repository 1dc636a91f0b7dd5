"""What a launch costs: many small calls, enqueued and waited for once, beside as many launches of a plain program."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import tensorpy as tp

from ..harness import Case
from .plain import Buffer, Program

TIMES, N = 200, 16
ADD = "__kernel void run(__global const float *a, __global const float *b, __global float *o)\n"
ADD += "{ size_t i = get_global_id(0); o[i] = a[i] + b[i]; }"


def _repeated(call: Callable[[], object]) -> Callable[[], None]:
    def run() -> None:
        for _ in range(TIMES):
            call()
        tp.opencl.synchronize()

    return run


def cases(device: str) -> Iterator[Case]:
    a, b, out = (tp.ones(N, device=device) for _ in range(3))
    rows, index = a.reshape(4, 4), tp.zeros(4, 4, dtype=tp.int64, device=device)
    plain = Program(ADD, [Buffer(4 * N) for _ in range(3)])
    launches = {"plain": lambda: plain.run(N, N, TIMES)}
    calls = {
        "additions": lambda: tp.add(a, b, out=out),
        "sums": a.sum,
        "softmaxes": lambda: rows.softmax(1),
        "gathers": lambda: rows.gather(1, index),
    }
    for name, call in calls.items():
        timed = {"tensorpy": _repeated(call), **launches}
        yield Case(f"{TIMES} {name} of {N} numbers", timed, over={"plain": 3e-6 * TIMES})
