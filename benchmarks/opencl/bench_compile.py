"""Compiled functions on OpenCL beside the same functions called plainly, and a kernel written by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import tensorpy as tp

from ..bench_compile import adam, cheap, dear, distance, five, of, softmax
from ..harness import Call, Case

MIB = 1024 * 1024
FIVE = """__kernel void five(__global const float *a, long a0, __global const float *b, long b0, __global float *out,
                             long out0, long n) {
    const long i = get_global_id(0);
    if (i < n) out[out0 + i] = ((a[a0 + i] + b[b0 + i]) * a[a0 + i] - b[b0 + i]) * 0.5f + a[a0 + i];
}"""


def waited(function: Callable[..., Any], arrays: tuple[Any, ...]) -> Call:
    """The call with its end awaited."""

    def call() -> None:
        function(*arrays)
        tp.opencl.synchronize()

    return call


def by_hand() -> Callable[..., Any]:
    """`five` as one kernel."""
    kernel = tp.library.opencl_kernel("five", FIVE)

    def call(a: Any, b: Any) -> Any:
        out = tp.empty_like(a)
        kernel[a.numel()](a, b, out, a.numel())
        return out

    return call


def beside(name: str, function: Callable[..., Any], arrays: tuple[Any, ...], bars: dict[str, float]) -> Case:
    program = of(function, tp)
    calls = {"tensorpy": waited(tp.compile(program), arrays), "eager": waited(program, arrays)}
    if "plain" in bars:
        calls["plain"] = waited(by_hand(), arrays)
    return Case(name, calls, bars)


def cases(device: str) -> Iterator[Case]:
    tp.opencl.fused_kernels = "wait"  # the calls that are measured find the kernels built
    for n in (1, 16):
        a, b = tp.randn(n * MIB).to(device), tp.randn(n * MIB).to(device)
        yield beside(f"five, {n}M", five, (a, b), {"eager": 0.3, "plain": 1.1})
        for function, bar in ((cheap, 0.4), (dear, 0.6), (distance, 0.75)):
            yield beside(f"{function.__name__}, {n}M", function, (a, b), {"eager": bar})
    yield beside("softmax by hand, 16384 x 1024", softmax, (tp.randn(16384, 1024).to(device),), {"eager": 0.6})
    arrays = tuple(tp.rand(4 * MIB).to(device) for _ in range(4))
    yield beside("Adam as formulas, 4M", adam, arrays, {"eager": 0.45})
