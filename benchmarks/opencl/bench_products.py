"""Matrix products, against CLBlast where it is installed, and tensorpy's own CPU product."""

from __future__ import annotations

from collections.abc import Iterator

import tensorpy as tp

from ..harness import Case
from .plain import clblast, sgemm


def cases(device: str) -> Iterator[Case]:
    for n in (64, 256, 1024):
        x = tp.randn(n, n)
        a = x.to(device)

        def ours(m: tp.Tensor = a) -> None:
            m @ m
            tp.opencl.synchronize()

        calls = {"tensorpy": ours, "cpu": lambda m=x: m @ m}
        buffers = clblast(n)
        if buffers is not None:
            calls["clblast"] = lambda b=buffers, size=n: sgemm(b, size)
        yield Case(f"{n}x{n} @ {n}x{n} float32", calls, {"clblast": 2.0} if n == 1024 else {})
