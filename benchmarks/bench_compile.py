"""Compiled functions against the same functions: `python benchmarks/bench_compile.py`; one thread, or THREADS."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import tensorpy as tp

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


def main() -> None:
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
