"""Random programs, compiled and not: the same bits, versions, strides and gradients (a fixed seed here; `make fuzz`).

A program is a list of steps over a few tensors: pointwise operators, views, writes in place, broadcasts, casts, copies,
reductions, lines of softmax and norms, branches on values; rows pass in tiles of several sizes. It is a function of
Python, so it may keep or drop what it computes.
"""

from __future__ import annotations

import argparse
import gc
import math
import random
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import tensorpy as tp
from tensorpy.testing.checks import bits

PROGRAMS = 150
SHAPES = ((200, 33), (1, 33), (200, 1), (33,), (), (6600,), (4, 50, 33), (1, 50, 1), (33, 33), (4, 33, 50))
FLOATS = ("float32", "float64", "float16", "bfloat16")
UNARY = ("exp", "tanh", "sigmoid", "neg", "abs", "relu", "square", "rsqrt", "sin", "log1p", "clone", "sign")
BINARY = ("add", "sub", "mul", "div", "maximum", "minimum", "atan2", "lt", "eq")
NUMBERS = ("mul", "add", "sub", "pow", "clamp_min", "fmod")

Step = Callable[[list[tp.Tensor]], Any]


def fits(a: tp.Tensor, b: tp.Tensor) -> bool:
    """Whether b broadcasts to a's shape."""
    try:
        return tp.broadcast_shapes(a.shape, b.shape) == a.shape
    except RuntimeError:
        return False


def is_small(*tensors: tp.Tensor) -> bool:
    """Whether what they broadcast to has no more than 8 MB of float32: a chain of broadcasts grows without end."""
    try:
        return math.prod(tp.broadcast_shapes(*(t.shape for t in tensors))) <= 1 << 21
    except RuntimeError:
        return True  # an error, which is compared


def weight_of(a: tp.Tensor, b: tp.Tensor, dim: int) -> tp.Tensor | None:
    """As many elements of b as a's dimension has, in a's dtype; None: it has not so many."""
    n = a.shape[dim]
    return b.reshape(-1)[:n].to(a.dtype) if b.numel() >= n else None


def step_of(draw: random.Random, branches: bool) -> Step:
    kinds = "unary unary binary binary binary number number inplace inplace view cast where"
    kind = draw.choice(f"{kinds} reduce line line drop {'branch' if branches else 'cast'} out".split())
    first, second, third = (draw.randrange(1 << 16) for _ in range(3))
    name = draw.choice({"unary": UNARY, "binary": BINARY, "inplace": BINARY[:4]}.get(kind, NUMBERS))
    number = draw.choice((0.5, 2, 3.0, 1, -1.5))
    dtype = getattr(tp, draw.choice((*FLOATS, "int32", "bool")))

    def pick(tensors: list[tp.Tensor], n: int) -> tp.Tensor:
        return tensors[n % len(tensors)]

    def step(tensors: list[tp.Tensor]) -> Any:
        a, b, c = pick(tensors, first), pick(tensors, second), pick(tensors, third)
        if not is_small(a, b, c):
            b = c = a
        match kind:
            case "unary":
                tensors.append(getattr(tp, name)(a))
            case "binary":
                tensors.append(getattr(tp, name)(a, b))
            case "number":
                tensors.append(getattr(a, name)(number))
            case "inplace" if fits(a, b):
                getattr(a, name + "_")(b)
            case "inplace":
                a.mul_(number)
            case "view":
                views = [a.t() if a.ndim == 2 else a, a.reshape(-1)] + ([a[..., ::2], a[:1]] if a.ndim else [a, a])
                tensors.append(views[second % 4])
            case "cast":
                tensors.append(a.to(dtype))
            case "where":
                tensors.append(tp.where(a > number, b, c))
            case "reduce":
                tensors.append(
                    [
                        a.float().sum(),
                        a.float().amax(-1) if a.ndim else a,
                        a.float().mean(0, keepdim=True) if a.ndim else a,
                    ][second % 3]
                )
            case "line" if a.ndim and a.dtype.is_floating_point:
                tensors.append(
                    [
                        tp.softmax(a, -1),
                        a.log_softmax(-1),
                        tp.nn.functional.layer_norm(a, a.shape[-1:], weight_of(a, b, -1)),
                        a.amax(-1, keepdim=True),
                        a.mean(-1, keepdim=True),
                        a.sum(-1),
                        tp.nn.functional.group_norm(a, a.shape[1], weight_of(a, b, 1)) if a.ndim > 2 else a,
                        tp.nn.functional.rms_norm(a, a.shape[-1:], weight_of(a, b, -1)),
                    ][second % 8]
                )
            case "drop" if len(tensors) > 3:
                del tensors[first % len(tensors)]
            case "branch" if a.numel():
                if a.reshape(-1)[0] > 0:
                    tensors.append(a + 1)
            case "out":
                to = tp.empty_like(a)
                tensors.append(tp.mul(a, number, out=to) if a.dtype.is_floating_point else to.zero_())
        return None

    return step


def program_of(seed: int, replays: bool = False) -> tuple[Callable[..., Any], list[tp.Tensor]]:
    """`replays`: it takes no branches, and gives tensors of its own."""
    draw = random.Random(seed)
    steps = [step_of(draw, branches=not replays) for _ in range(draw.randrange(3, 40))]
    tp.manual_seed(seed)
    given = []
    for _ in range(draw.randrange(2, 6)):
        dtype = getattr(tp, draw.choice(FLOATS[: draw.choice((1, 1, 2, 4))]))
        given.append(tp.randn(draw.choice(SHAPES)).to(dtype))
    keeps = draw.random()

    def program(*tensors: tp.Tensor) -> Any:
        own = list(tensors)
        for i, step in enumerate(steps):
            try:
                step(own)
            except (RuntimeError, TypeError, IndexError, ValueError) as error:
                if replays:
                    raise
                own.append(tp.tensor(float(len(str(error)) + i)))  # the same error at the same step
        kept = own if keeps < 0.5 else own[-2:]
        return [t.clone() for t in kept] if replays else kept

    return program, given


def outcome(function: Callable[..., Any], given: list[tp.Tensor]) -> list[Any]:
    return seen(function, [g.clone() for g in given])


def numbers(t: tp.Tensor) -> bytes:
    """Its bits, but for the sign of a NaN: which of two NaNs a sum or product gives is the processor's, and a vector's
    and its rest's may differ."""
    return bits(t.where(~t.isnan(), tp.nan) if t.dtype.is_floating_point else t)


def seen(function: Callable[..., Any], args: list[tp.Tensor]) -> list[Any]:
    results = function(*args)
    return [(r.dtype, tuple(r.shape), r.stride(), r._version, numbers(r)) for r in [*results, *args]]


def check_program(seed: int, backend: str = "tensorpy") -> int:
    """How many calls were fused."""
    program, given = program_of(seed)
    tile = (192 * 1024, 2048, 0)[seed % 3]
    compiled = tp.compile(program, backend=backend, options={"smallest": 0, "tile": tile})
    assert outcome(compiled, given) == outcome(program, given), f"program {seed}"
    return int(compiled._report()["fused"])


@pytest.mark.parametrize("backend", ["aot_eager", "tensorpy"])
@pytest.mark.parametrize("part", range(5))
def test_random_programs(part: int, backend: str) -> None:
    fused = sum(check_program(seed, backend) for seed in range(part, PROGRAMS, 5))
    assert (fused > PROGRAMS // 5) == (backend == "tensorpy")


def seen_or_raised(function: Callable[..., Any], args: list[tp.Tensor]) -> list[Any]:
    try:
        return seen(function, args)
    except (RuntimeError, TypeError, IndexError, ValueError) as error:
        return [type(error), str(error)]


WAYS = ("as they are", "as they are", "a part", "across", "one for several", "float64")


def others(way: str, given: list[tp.Tensor], seed: int) -> list[tp.Tensor]:
    """Arguments of the same sizes and other elements."""
    generator = tp.Generator().manual_seed(seed)
    drawn = [tp.randn(g.shape, generator=generator).to(g.dtype) for g in given]
    match way:
        case "a part":
            return [tp.cat([t.new_zeros(seed % 7), t.reshape(-1)])[seed % 7 :].view(t.shape) for t in drawn]
        case "across":
            return [t.t().contiguous().t() if t.ndim == 2 else t for t in drawn]
        case "one for several":
            return [drawn[0] if (t.shape, t.dtype) == (drawn[0].shape, drawn[0].dtype) else t for t in drawn]
        case "float64":
            return [t.double() for t in drawn]
    return drawn


def check_replays(seed: int) -> int:
    """How many calls were replayed: with other elements at each call, parts of larger tensors, tensors that lie in
    another way or are one."""
    program, given = program_of(seed, replays=True)
    compiled = tp.compile(program, mode="reduce-overhead")
    try:
        outcome(program, given)
    except (RuntimeError, TypeError, IndexError, ValueError):
        return 0
    ways = random.Random(seed)
    for call in range(16):
        way = ways.choice(WAYS) if call > 4 else "as they are"
        args, same = (others(way, given, 1000 * seed + call) for _ in range(2))
        assert seen_or_raised(compiled, args) == seen_or_raised(program, same), f"program {seed}, call {call}, {way}"
    return int(compiled._replays()["replayed"])


@pytest.mark.parametrize("part", range(5))
def test_random_replays(part: int) -> None:
    assert sum(check_replays(seed) for seed in range(part, PROGRAMS, 5)) > PROGRAMS // 5


def gradients(function: Callable[..., Any], given: list[tp.Tensor]) -> list[Any]:
    """Those of the results with respect to the arguments, which the program writes to as it likes."""
    leaves = [g.clone().requires_grad_() for g in given]
    results = [r for r in function(*leaves) if r.requires_grad]
    if not results:
        return []
    try:
        found = tp.autograd.grad(sum(r.double().cos().sum() for r in results), leaves, allow_unused=True)
    except RuntimeError as error:
        return [str(error)]
    return [None if g is None else (g.stride(), numbers(g)) for g in found]


def of_sines(program: Callable[..., Any]) -> Callable[..., Any]:
    """The program's last results, of what leaves give: it may write to that."""
    return lambda *leaves: program(*[leaf.sin() for leaf in leaves])[-2:]


def check_gradients(seed: int, recompute: bool) -> int:
    """How many bytes were computed again."""
    of_copies, given = program_of(seed)

    program = of_sines(of_copies)
    options = {"smallest": 0, "tile": (192 * 1024, 2048, 0)[seed % 3], "recompute": recompute}
    compiled = tp.compile(program, options=options)
    assert gradients(compiled, given) == gradients(program, given), f"gradients of program {seed}"
    return int(tp.compiler.explain(compiled)(*[g.clone().requires_grad_() for g in given]).again)


@pytest.mark.parametrize("recompute", [True, False])
@pytest.mark.parametrize("part", range(5))
def test_random_gradients(part: int, recompute: bool) -> None:
    again = sum(check_gradients(seed, recompute) for seed in range(part, PROGRAMS, 5))
    assert (again > 0) == recompute


def live_bytes() -> int:
    gc.collect()
    return int(tp._C._memory_stats()["live_bytes"])


@pytest.mark.parametrize("follows", [False, True])
def test_random_gradients_leave_nothing(follows: bool) -> None:
    for seed in range(60):
        of_copies, given = program_of(seed)
        program = of_sines(of_copies)
        before = live_bytes()
        gradients(tp.compile(program, options={"smallest": 0}) if follows else program, given)
        assert live_bytes() == before, f"program {seed}"


def main() -> int:
    """Fresh programs for so many seconds; those that differ are named."""
    parser = argparse.ArgumentParser(prog="test_compile_random.py", description=main.__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None, help="the first program's number; else by the clock")
    args = parser.parse_args()
    first = args.seed if args.seed is not None else time.time_ns() % 10**9
    seed, wrong, end = first, 0, time.monotonic() + args.seconds
    while time.monotonic() < end:
        for check in (check_program, check_replays, partial(check_gradients, recompute=seed % 2 == 0)):
            try:
                check(seed)
            except AssertionError as error:
                wrong += 1
                print(error, flush=True)
        seed += 1
    print(f"compile: {seed - first} programs from {first} on, {wrong} differ")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
