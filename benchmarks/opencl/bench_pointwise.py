"""Pointwise operators on 16M float32 against the same expression in a plain OpenCL program: the best of a few ways to
write it and to launch it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import tensorpy as tp

from ..harness import Case
from .plain import Buffer, Program

N = 1 << 24
EXPRESSIONS: dict[str, tuple[str, Callable[..., object]]] = {
    "add": ("a + b", tp.add),
    "mul": ("a * b", tp.mul),
    "div": ("a / b", tp.div),
    "exp": ("exp(a)", lambda a, b, out: tp.exp(a, out=out)),
    "tanh": ("tanh(a)", lambda a, b, out: tp.tanh(a, out=out)),
    "sigmoid": ("1 / (1 + exp(-a))", lambda a, b, out: tp.sigmoid(a, out=out)),
}
WIDTHS = (1, 4, 16)
GROUPS = (0, 64, 256, 1024)


def source(expression: str, width: int) -> str:
    kind = "float" if width == 1 else f"float{width}"
    head = f"__kernel void run(__global const {kind} *x, __global const {kind} *y, __global {kind} *o)"
    return f"{head} {{ size_t i = get_global_id(0); {kind} a = x[i], b = y[i]; o[i] = {expression}; }}"


def best_of_plain(expression: str, buffers: list[Buffer]) -> Callable[[], None]:
    """The fastest width and size of groups, found by trying."""
    found: list[tuple[float, Callable[[], None]]] = []
    for width in WIDTHS:
        program = Program(source(expression, width), buffers)
        for group in GROUPS:

            def run(p: Program = program, items: int = N // width, local: int = group) -> None:
                p.run(items, local)

            run()
            start = time.perf_counter()
            for _ in range(3):
                run()
            found.append((time.perf_counter() - start, run))
    return min(found, key=lambda pair: pair[0])[1]


def cases(device: str) -> Iterator[Case]:
    a, b, out = (tp.ones(N, device=device) for _ in range(3))
    buffers = [Buffer(4 * N) for _ in range(3)]
    for name, (expression, function) in EXPRESSIONS.items():

        def ours(f: Callable[..., object] = function) -> None:
            f(a, b, out=out)
            tp.opencl.synchronize()

        calls = {"tensorpy": ours, "plain": best_of_plain(expression, buffers)}
        yield Case(f"{name} 16M float32, out=", calls, {"plain": 1 / 0.9})
