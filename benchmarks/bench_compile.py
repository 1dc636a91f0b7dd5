"""Compiled functions beside the same functions called plainly, torch.compile, jax.jit and a loop that gcc has fused.

A row's first column is the compiled function, "not compiled" the same operators of tensorpy. torch.compile and jax.jit
are measured where they are installed, jax with as many threads as the process measures first: its pool keeps them.
`python -m benchmarks.bench_compile` prints the most memory that a step of the GPT has at a time, compiled and not.
"""

from __future__ import annotations

import ctypes
import functools
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import tensorpy as tp

from .bench_programs import gpt_step, resnet_step
from .bench_recurrent import lstm_step
from .harness import Call, Case
from .libraries import torch

N = 16 * 1024 * 1024
Function = Callable[..., Any]


# The functions take a namespace, which has tanh and sigmoid for each library (jax.nn), and arrays.


def five(t: Any, a: Any, b: Any) -> Any:
    return ((a + b) * a - b) * 0.5 + a


def cheap(t: Any, a: Any, b: Any) -> Any:
    return (a * b + a - b) > 0


def dear(t: Any, a: Any, b: Any) -> Any:
    return t.tanh(a * b + a) * t.sigmoid(b)


def distance(t: Any, a: Any, b: Any) -> Any:
    return ((a - b) ** 2).mean()


def adam(t: Any, p: Any, g: Any, m: Any, v: Any) -> Any:
    m.mul_(0.9).add_(g * 0.1)
    v.mul_(0.999).add_(g * g * 0.001)
    p.sub_(m / (1 - 0.9) / ((v / (1 - 0.999)).sqrt() + 1e-8) * 1e-3)


def rmsnorm(t: Any, x: Any, weight: Any) -> Any:
    return x * t.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * weight


def softmax(t: Any, x: Any) -> Any:
    e = t.exp(x - x.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


def masked(t: Any, x: Any, mask: Any) -> Any:
    return t.softmax(x * 0.1 + mask, -1)


def joined(t: Any, x: Any, residual: Any, scale: Any) -> Any:
    return t.nn.functional.gelu(t.nn.functional.layer_norm(x + residual, x.shape[-1:])) * scale


def of(function: Function, t: Any) -> Function:
    """The function as a program of one library has it."""

    def program(*arrays: Any) -> Any:
        return function(t, *arrays)

    return program


_jax_threads: list[int] = []  # how many threads jax's pool has; empty before it is made


def jax_call(function: Function, arrays: tuple[Any, ...]) -> dict[str, Call]:
    """jax.jit of the function, where jax is installed and has the threads that are measured."""
    threads = tp.get_num_threads()
    if not _jax_threads:
        _jax_threads.append(threads)
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
        if threads == 1:
            os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    try:
        import jax
    except ImportError:
        return {}
    if _jax_threads != [threads]:
        return {}
    jitted = jax.jit(of(function, jax.nn))
    given = [jax.numpy.asarray(a.numpy()) for a in arrays]
    return {"jax": lambda: jitted(*given).block_until_ready()}


@functools.cache
def loops() -> ctypes.CDLL:
    """loops.c, compiled for this CPU."""
    made = Path(tempfile.mkdtemp(prefix="loops")) / "loops.so"
    source = Path(__file__).with_name("loops.c")
    flags = ["-O3", "-march=native", "-ffast-math", "-shared", "-fPIC"]
    subprocess.run(["cc", *flags, "-o", str(made), str(source), "-lm"], check=True)
    return ctypes.CDLL(str(made))


def loop_call(function: Function, arrays: tuple[Any, ...]) -> dict[str, Call]:
    """The fused loop, which writes to memory that is there; it has one thread."""
    if tp.get_num_threads() > 1:
        return {}
    out = () if function is adam else (tp.empty_like(arrays[0]),)
    places = [ctypes.c_void_p(a.data_ptr()) for a in (*arrays, *out)]
    loop, n = loops()[function.__name__], ctypes.c_size_t(arrays[0].numel())
    return {"gcc": lambda: loop(*places, n) and out}


def torch_call(function: Function, arrays: tuple[Any, ...]) -> dict[str, Call]:
    if torch is None:
        return {}
    torch._dynamo.reset()
    compiled, given = torch.compile(of(function, torch)), [torch.tensor(a.numpy()) for a in arrays]
    return {"compiled": lambda: compiled(*given)}


def beside(
    name: str, function: Function, arrays: tuple[Any, ...], bars: dict[str, float], mode: str | None = None
) -> Case:
    """The compiled function and whatever the bars name."""
    program = of(function, tp)
    compiled = tp.compile(program, mode=mode)
    for _ in range(20 if mode else 0):  # until it is replayed
        compiled(*arrays)
    calls: dict[str, Call] = {"tensorpy": lambda: compiled(*arrays), "eager": lambda: program(*arrays)}
    makers = {"compiled": torch_call, "jax": jax_call, "gcc": loop_call}
    for library in bars:
        if library in makers:
            calls |= makers[library](function, arrays)
    return Case(name, calls, bars)


def small_step(t: Any, width: int, hidden: int) -> Call:
    """A step of a small network with Adam on a batch of 64."""
    layers = [t.nn.Linear(width, hidden), t.nn.ReLU(), t.nn.Linear(hidden, hidden), t.nn.ReLU()]
    model = t.nn.Sequential(*layers, t.nn.Linear(hidden, 10))
    optimizer = t.optim.Adam(model.parameters())
    x, y = t.randn(64, width), t.randint(0, 10, (64,))

    def step() -> Any:
        optimizer.zero_grad()
        loss = t.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def step_case(name: str, width: int, hidden: int, bars: dict[str, float], mode: str | None = None) -> Case:
    compiled = tp.compile(small_step(tp, width, hidden), mode=mode)
    for _ in range(20):
        compiled()
    calls: dict[str, Call] = {"tensorpy": compiled, "eager": small_step(tp, width, hidden)}
    if torch is not None and "torch" in bars:
        calls["torch"] = small_step(torch, width, hidden)
    if torch is not None and "compiled" in bars:
        torch._dynamo.reset()
        calls["compiled"] = torch.compile(small_step(torch, width, hidden))
    return Case(name, calls, bars)


def model_case(name: str, make: Callable[..., Call], bar: float) -> Case:
    """An unchanged training loop around `compile(model)`."""
    calls: dict[str, Call] = {"tensorpy": make(tp, tp.compile), "eager": make(tp)}
    if torch is not None:
        torch._dynamo.reset()
        calls["compiled"] = make(torch, torch.compile)
    return Case(name, calls, {"eager": bar, "compiled": 0.8})


def new_shapes(program: Function, a: Any, b: Any) -> Call:
    """50 lengths that the function has not seen."""

    def call() -> None:
        for n in range(1, 51):
            program(a[:n], b[:n])

    return call


def chains() -> Iterator[Case]:
    a, b = tp.randn(N), tp.randn(N)
    for function, bars in (
        (five, {"eager": 0.35, "compiled": 0.5, "jax": 0.5, "gcc": 1.35}),
        (cheap, {"eager": 0.55, "compiled": 0.5, "jax": 1.1, "gcc": 1.35}),
        (dear, {"eager": 0.55, "compiled": 0.5, "jax": 0.5, "gcc": 1.35}),
        (distance, {"eager": 0.45, "gcc": 1.3}),
    ):
        yield beside(f"{function.__name__}, 16M", function, (a, b), bars)
    yield beside("Adam as formulas, 4M", adam, tuple(tp.rand(N // 4) for _ in range(4)), {"eager": 0.5, "gcc": 1.3})


def rows() -> Iterator[Case]:
    x, mask, scale = tp.randn(16384, 1024), tp.randn(16384, 1024), tp.randn(1024)
    for name, function, arrays, bar in (
        ("rmsnorm by hand", rmsnorm, (x, scale), 0.55),
        ("softmax by hand", softmax, (x,), 0.7),
        ("softmax(x * s + mask)", masked, (x, mask), 0.75),
        ("gelu(layer_norm(x + r)) * s", joined, (x, mask, scale), 0.8),
    ):
        yield beside(f"{name}, 16384 x 1024", function, arrays, {"eager": bar, "compiled": 0.8})


def small_calls() -> Iterator[Case]:
    for n in (1, 1024):
        arrays = (tp.randn(n), tp.randn(n))
        others = {"compiled": 0.1, "jax": 0.1}
        yield beside(f"five, {n}, followed", five, arrays, {"eager": 1.0, **others})
        yield beside(f"five, {n}, replayed", five, arrays, {"eager": 0.6, **others}, "reduce-overhead")
    program, a, b = of(five, tp), tp.randn(64), tp.randn(64)
    first: dict[str, Call] = {
        "tensorpy": lambda: tp.compile(program)(a, b),
        "eager": lambda: (tp.compile(program), program(a, b)),
    }
    yield Case("five, called for the first time (both columns make the compiled function)", first, over={"eager": 6e-6})
    shapes: dict[str, Call] = {
        "tensorpy": lambda: new_shapes(tp.compile(program), a, b)(),
        "eager": new_shapes(program, a, b),
    }
    yield Case("five, 50 new shapes", shapes, over={"eager": 50 * 25e-6})


def steps() -> Iterator[Case]:
    followed, replayed = "training step, followed", "training step, replayed"
    yield step_case(f"MLP 32-64-64-10: {followed}", 32, 64, {"eager": 1.0})
    yield step_case(f"MLP 32-64-64-10: {replayed}", 32, 64, {"eager": 0.45, "torch": 0.15}, "reduce-overhead")
    yield step_case(f"MLP 784-256-256-10: {followed}", 784, 256, {"eager": 0.95, "compiled": 0.8})
    yield step_case(f"MLP 784-256-256-10: {replayed}", 784, 256, {"eager": 0.95}, "reduce-overhead")
    yield model_case(f"GPT: {followed}", gpt_step, 0.92)
    yield model_case(f"ResNet-18: {followed}", resnet_step, 0.95)
    yield model_case(f"LSTM: {followed}", lstm_step, 0.85)


def cases(device: str) -> Iterator[Case]:
    for group in (chains, rows, small_calls, steps):
        yield from group()


def peak(wrap: Function) -> int:
    """The most bytes that a step of the GPT has at a time, parameters and the optimizer's state among them."""
    step = gpt_step(tp, wrap)
    for _ in range(3):
        tp._C._reset_peak_memory()
        step()
    return int(tp._C._memory_stats()["peak_bytes"])


def main() -> None:
    eager, planned = peak(lambda model: model), peak(tp.compile)
    print(f"memory of a GPT step: {eager / 1e6:.0f} MB, compiled {planned / 1e6:.0f} MB, ", end="")
    print(f"{planned / eager:.2f} (bar 0.9)")


if __name__ == "__main__":
    main()
