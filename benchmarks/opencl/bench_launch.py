"""What a launch costs: many small additions, enqueued and waited for once."""

from __future__ import annotations

from collections.abc import Iterator

import tensorpy as tp

from ..harness import Case
from .plain import Buffer, Program

TIMES, N = 200, 16
ADD = "__kernel void run(__global const float *a, __global const float *b, __global float *o)\n"
ADD += "{ size_t i = get_global_id(0); o[i] = a[i] + b[i]; }"


def cases(device: str) -> Iterator[Case]:
    a, b, out = (tp.ones(N, device=device) for _ in range(3))
    plain = Program(ADD, [Buffer(4 * N) for _ in range(3)])

    def ours() -> None:
        for _ in range(TIMES):
            tp.add(a, b, out=out)
        tp.opencl.synchronize()

    calls = {"tensorpy": ours, "plain": lambda: plain.run(N, N, TIMES)}
    yield Case(f"{TIMES} additions of {N} numbers", calls, over={"plain": 3e-6 * TIMES})
