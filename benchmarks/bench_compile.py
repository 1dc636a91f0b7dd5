"""Compiled functions against the same functions: `python -m benchmarks.bench_compile`; one thread, or THREADS.

Then the same on OpenCL, where there is a device, with a kernel written by hand beside it.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import tensorpy as tp

from .bench_programs import gpt_step

tp.set_num_threads(int(os.environ.get("THREADS", "1")))
N = 16 * 1024 * 1024


def five(a: Any, b: Any) -> Any:
    return ((a + b) * a - b) * 0.5 + a


def cheap(a: Any, b: Any) -> Any:
    return (a * b + a - b) > 0


def dear(a: Any, b: Any) -> Any:
    return (a * b + a).tanh() * b.sigmoid()


def distance(a: Any, b: Any) -> Any:
    return ((a - b) ** 2).mean()


def adam(p: Any, g: Any, m: Any, v: Any) -> Any:
    m.mul_(0.9).add_(g * 0.1)
    v.mul_(0.999).add_(g * g * 0.001)
    p.sub_(m / (1 - 0.9) / ((v / (1 - 0.999)).sqrt() + 1e-8) * 1e-3)


def softmax(x: Any) -> Any:
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


def best(function: Callable[..., Any], args: tuple[Any, ...], loops: int) -> float:
    begin = time.thread_time() if tp.get_num_threads() == 1 else time.perf_counter()
    for _ in range(loops):
        function(*args)
    now = time.thread_time() if tp.get_num_threads() == 1 else time.perf_counter()
    return (now - begin) / loops


def training(width: int, hidden: int) -> Callable[..., Any]:
    """A step of a small network with Adam."""
    layers = [tp.nn.Linear(width, hidden), tp.nn.ReLU(), tp.nn.Linear(hidden, hidden), tp.nn.ReLU()]
    model = tp.nn.Sequential(*layers, tp.nn.Linear(hidden, 10))
    optimizer = tp.optim.Adam(model.parameters())

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = tp.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def measure(
    name: str, function: Callable[..., Any], args: tuple[Any, ...], bar: float, loops: int = 1, mode: str | None = None
) -> None:
    compiled = tp.compile(function, mode=mode)
    for _ in range(20 if mode else 0):  # until it is replayed
        compiled(*args)
    least = {function: float("inf"), compiled: float("inf")}
    for _ in range(int(os.environ.get("ROUNDS", "9"))):
        for each in least:
            least[each] = min(least[each], best(each, args, loops))
    eager, fast = least[function], least[compiled]
    print(f"{name:24} eager {eager * 1e3:9.4f} ms  compiled {fast * 1e3:9.4f} ms  {fast / eager:5.2f} (bar {bar})")


FIVE = tp.library.opencl_kernel(
    "five",
    """__kernel void five(__global const float *a, long a0, __global const float *b, long b0, __global float *out,
                              long out0, long n) {
    const long i = get_global_id(0);
    if (i < n) out[out0 + i] = ((a[a0 + i] + b[b0 + i]) * a[a0 + i] - b[b0 + i]) * 0.5f + a[a0 + i];
}""",
)


def by_hand(a: Any, b: Any) -> Any:
    """`five` as one kernel."""
    out = tp.empty_like(a)
    FIVE[a.numel()](a, b, out, a.numel())
    return out


def measure_on_opencl(
    name: str, function: Callable[..., Any], args: tuple[Any, ...], bar: float, other: Callable[..., Any] | None = None
) -> None:
    """Medians of wall times; the kernels are there."""
    compiled = other or tp.compile(function)
    times: dict[Callable[..., Any], list[float]] = {function: [], compiled: []}
    for round_ in range(3 + int(os.environ.get("ROUNDS", "9"))):
        for each, taken in times.items():
            begin = time.perf_counter()
            each(*args)
            tp.opencl.synchronize()
            if round_ >= 3:
                taken.append(time.perf_counter() - begin)
    eager, fast = statistics.median(times[function]), statistics.median(times[compiled])
    print(f"{name:24} eager {eager * 1e3:9.4f} ms  compiled {fast * 1e3:9.4f} ms  {fast / eager:5.2f} (bar {bar})")


def on_opencl() -> None:
    tp.opencl.fused_kernels = "wait"
    print(tp.opencl.get_device_name())
    for n in (1, 16):
        a, b = tp.randn(n * 1024 * 1024).to("opencl"), tp.randn(n * 1024 * 1024).to("opencl")
        for function, bar in ((five, 0.3), (cheap, 0.4), (dear, 0.6), (distance, 0.75)):
            measure_on_opencl(f"{function.__name__}, {n}M", function, (a, b), bar)
        measure_on_opencl(f"five by hand, {n}M", by_hand, (a, b), 1.1, tp.compile(five))
    measure_on_opencl("softmax, 16384x1024", softmax, (tp.randn(16384, 1024).to("opencl"),), 0.6)
    measure_on_opencl("adam as formulas, 4M", adam, tuple(tp.rand(N // 4).to("opencl") for _ in range(4)), 0.45)


def peak(wrap: Callable[[Any], Any]) -> int:
    """The most bytes that a step of the GPT has at a time, parameters and the optimizer's state among them."""
    step = gpt_step(tp, wrap)
    for _ in range(3):
        tp._C._reset_peak_memory()
        step()
    return int(tp._C._memory_stats()["peak_bytes"])


def measure_memory() -> None:
    eager, planned = peak(lambda model: model), peak(tp.compile)
    print(f"{'memory of a GPT step':24} eager {eager / 1e6:6.0f} MB  compiled {planned / 1e6:6.0f} MB  ", end="")
    print(f"{planned / eager:5.2f} (bar 0.9)")


def main() -> None:
    measure_memory()
    a, b = tp.randn(N), tp.randn(N)
    for function, bar in ((five, 0.35), (cheap, 0.55), (dear, 0.55), (distance, 0.45)):
        measure(f"{function.__name__}, 16M", function, (a, b), bar)
    del a, b
    measure("adam as formulas, 4M", adam, tuple(tp.rand(N // 4) for _ in range(4)), 0.5)
    for n in (1, 1024, 16384, 262144):
        a, b = tp.randn(n), tp.randn(n)
        measure(f"five, {n}", five, (a, b), 1.0, max(1, 200_000 // (n + 100)))
        if n <= 1024:
            measure(f"five, {n}, replayed", five, (a, b), 0.6, 2000, "reduce-overhead")
    for width, hidden, bar in ((32, 64, 0.45), (784, 256, 0.95)):
        given = tp.randn(64, width), tp.randint(0, 10, (64,))
        measure(f"step {width}-{hidden}, followed", training(width, hidden), given, 1.0, 50)
        measure(f"step {width}-{hidden}, replayed", training(width, hidden), given, bar, 50, "reduce-overhead")


if __name__ == "__main__":
    main()
    if tp.opencl.is_available():
        on_opencl()
