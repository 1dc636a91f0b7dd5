"""Random programs, compiled and not: the same bits, versions, strides and gradients (a fixed seed here; `make fuzz`).

A program is a list of steps over a few tensors: pointwise operators, views, writes in place and through views,
broadcasts, casts, copies, reductions, lines of softmax and norms, products, branches on values, and any operator of the
table of samples; what it is given may be empty, without dimensions, expanded, strided, or lie in one memory. It is a
function of Python, so it may keep or drop what it computes. Each program has settings of its own: elements of a block,
bytes of a tile, rules of fusion that are left out, one thread or two. A program that differs is named with its
settings, and with the least of its steps that still differ.
"""

from __future__ import annotations

import argparse
import copy
import gc
import itertools
import math
import random
import sys
import time
import warnings
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import pytest

import tensorpy as tp
from tensorpy.testing.checks import bits
from tensorpy.testing.harness import arguments, function_of
from tensorpy.testing.samples import TABLE, OpInfo

PROGRAMS = 150
DEVICE = "cpu"  # main() may say another
SHAPES = ((200, 33), (1, 33), (200, 1), (33,), (), (6600,), (4, 50, 33), (1, 50, 1), (33, 33), (4, 33, 50))
ODD_SHAPES = (*SHAPES, (0, 33), (2, 0), (1,), (200, 2, 33), (700, 40))
FLOATS = ("float32", "float64", "float16", "bfloat16")
UNARY = ("exp", "tanh", "sigmoid", "neg", "abs", "relu", "square", "rsqrt", "sin", "log1p", "clone", "sign")
BINARY = ("add", "sub", "mul", "div", "maximum", "minimum", "atan2", "lt", "eq")
NUMBERS = ("mul", "add", "sub", "pow", "clamp_min", "fmod")

Step = Callable[[list[tp.Tensor]], Any]
ERRORS = (RuntimeError, TypeError, IndexError, ValueError, NotImplementedError, AttributeError)

# ---- settings ----

RULES = ("maps", "copies", "reductions", "again", "tiles", "unstored", "near", "places")
BLOCKS = (0, 0, 1, 32, 96, 512)
TILES = (192 * 1024, 192 * 1024, 32 * 1024, 2048, 0)


@dataclass(frozen=True)
class Settings:
    """How a compiled function fuses: all of it changes speed and nothing else."""

    block: int = 0
    tile: int = TILES[0]
    without: tuple[str, ...] = ()
    threads: int = 1

    @property
    def options(self) -> dict[str, int]:
        return {"smallest": 0, "tile": self.tile}

    @contextmanager
    def used(self) -> Iterator[None]:
        threads, before = tp.get_num_threads(), tp._C._set_fusion(self.block, self.without)
        tp.set_num_threads(self.threads)
        try:
            yield
        finally:
            tp.set_num_threads(threads)
            tp._C._set_fusion(*before)


def settings_of(seed: int) -> Settings:
    draw = random.Random(f"settings {seed}")
    without = draw.choice(((), (draw.choice(RULES),)))
    return Settings(draw.choice(BLOCKS), draw.choice(TILES), without, draw.choice((1, 2)))


# ---- programs ----


def fits(a: tp.Tensor, b: tp.Tensor) -> bool:
    """Whether b broadcasts to a's shape."""
    try:
        return tp.broadcast_shapes(a.shape, b.shape) == a.shape
    except RuntimeError:
        return False


def is_small(*tensors: tp.Tensor) -> bool:
    """Whether what some of them broadcast to has at most 8 MB of float32: a chain of broadcasts grows without end."""

    def is_small_together(*shapes: tuple[int, ...]) -> bool:
        try:
            return math.prod(tp.broadcast_shapes(*shapes)) <= 1 << 21
        except RuntimeError:
            return True  # an error, which is compared

    shapes = [tuple(t.shape) for t in tensors]
    return all(is_small_together(*some) for n in (2, 3) for some in itertools.combinations(shapes, n))


def weight_of(a: tp.Tensor, b: tp.Tensor, dim: int) -> tp.Tensor | None:
    """As many elements of b as a's dimension has, in a's dtype; None: it has not so many."""
    n = a.shape[dim]
    return b.reshape(-1)[:n].to(a.dtype) if b.numel() >= n else None


@cache
def drawn_operators() -> list[OpInfo]:
    """Operators of the table that programs call: all but those of unset elements."""
    return [info for name, info in sorted(TABLE.items()) if not info.unset]


def cloned(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(cloned(v) for v in value)
    return value.clone() if isinstance(value, tp.Tensor) else value


def table_step(draw: random.Random, replays: bool) -> Step:
    """An operator of the table, called as one of its samples is, with tensors of the program in the place of some."""
    info = draw.choice([i for i in drawn_operators() if not (replays and i.random)])
    dtype = draw.choice(info.dtypes)
    sample = draw.choice(info.samples(dtype))
    replaced, place, inplace = draw.random(), draw.randrange(1 << 16), draw.random() < 0.3
    replaced = 0 if "polynomial" in info.name else replaced  # a degree is as many steps
    limit = 7000 if "pointwise" in info.tags else 700

    function = function_of(info, inplace=inplace and info.variant("inplace") is not None)
    there = arguments(sample, DEVICE, info) if replays else None  # a replay reads the same tensors at each call

    def step(tensors: list[tp.Tensor]) -> Any:
        if there is None:
            args, kwargs = arguments(sample, DEVICE, info)
        else:
            args, kwargs = [cloned(a) for a in there[0]], there[1]
        for i, arg in enumerate(args):
            if not isinstance(arg, tp.Tensor) or zlib.crc32(f"{place} {i}".encode()) / 2**32 > replaced:
                continue
            others = [t for t in tensors if t.numel() <= limit and (t.dtype == arg.dtype or place % 7 == 0)]
            if others:
                args[i] = others[(place + i) % len(others)]
        found = function(*args, **kwargs)
        found = found if isinstance(found, (list, tuple)) else [found]
        for t in found:
            if isinstance(t, tp.Tensor) and t.layout == tp.strided and t.numel() <= 1 << 16 and tp._C._has_storage(t):
                tensors.append(t)

    step.__name__ = f"{info.name}{sample}"
    return step


def shape_step(which: int, a: tp.Tensor, b: tp.Tensor, c: tp.Tensor, number: float, tensors: list[tp.Tensor]) -> None:
    """Views, writes through them, and operators that stay whole."""
    match which:
        case 0:
            a[..., ::2].add_(number)
        case 1:
            a.t().mul_(number)
        case 2:
            a[0] = number
        case 3:
            a.copy_(b)
        case 4:
            a.detach().mul_(number)
        case 5:
            tensors.append(a.unsqueeze(0).expand(3, *a.shape))
        case 6:
            tensors.append(a.transpose(0, -1).contiguous())
        case 7:
            tensors.append(a.flip(0).roll(3))
        case 8:
            tensors.append(tp.cat([a, b]) if a.numel() + b.numel() < 1 << 16 else a)
        case 9:
            tensors.append(a.float().cumsum(-1))
        case 10:
            tensors.append(a.float() @ b.float() if a.numel() * b.numel() < 1 << 24 else a)
        case 11:
            tensors.append(a.masked_fill(b > number, number))
        case 12:
            tensors.append(a * float(b.reshape(-1)[0]))
        case 13:
            a[a > number] = 0
        case 14:
            tensors.append(tp.empty(2 * a.numel(), dtype=a.dtype, device=a.device)[::2].copy_(a.reshape(-1)))
            tp.add(a.reshape(-1), number, out=tensors[-1])
        case 15:
            tensors.append(a.view(tp.int16) if a.dtype in (tp.float16, tp.bfloat16) else a.view(-1)[1:])
        case 16:
            tensors.extend(a.chunk(2, -1))
        case 17:
            tensors.append(a.sort(-1)[0].diff())
        case 18:
            tensors.append(tp.complex(a.float(), b.float()).exp())
        case 19:
            tensors.append(tp.nn.functional.dropout(a, 0.5))
        case 20:
            tensors.append(tp.where(a > b, number, c).std(-1))
        case 21:
            tensors.append(a.any(-1).logical_xor(a.argmax(-1) > 3))
        case 22:
            tp._foreach_add_([a, b, c], number)
        case 23:
            a.unsqueeze_(0).squeeze_(0)
        case _:
            a.zero_()


SHAPE_STEPS = 25


def step_of(draw: random.Random, branches: bool) -> Step:
    if draw.random() < (0.1 if DEVICE == "cpu" else 0.02):  # whose kernels have to be built
        return table_step(draw, replays=not branches)
    kinds = "unary unary binary binary binary number number inplace inplace view cast where shape shape"
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
            case "shape":
                if branches or second % SHAPE_STEPS not in (12, 13, 19):
                    shape_step(second % SHAPE_STEPS, a, b, c, number, tensors)
            case "out":
                to = tp.empty_like(a)
                tensors.append(tp.mul(a, number, out=to) if a.dtype.is_floating_point else to.zero_())
        return None

    which = second % SHAPE_STEPS if kind == "shape" else second
    step.__name__ = f"{kind} {name} {number} {dtype} of {first}, {which}, {third}"
    return step


def given_tensors(draw: random.Random) -> list[tp.Tensor]:
    given: list[tp.Tensor] = []
    shapes = draw.choice((SHAPES, SHAPES, ODD_SHAPES))
    for _ in range(draw.randrange(1, 6)):
        dtype = getattr(tp, draw.choice(FLOATS[: draw.choice((1, 1, 2, 4))]))
        t = tp.randn(draw.choice(shapes)).to(dtype)
        match draw.randrange(16):
            case 0 if t.ndim == 2:
                t = t.t().contiguous().t()
            case 1 if t.ndim:
                t = tp.cat([t, t], -1)[..., ::2]
            case 2 if t.ndim:
                t = t[:1].expand(t.shape)
            case 3 if given:
                t = given[0]
            case 4 if given and given[0].ndim:
                t = given[0][..., : given[0].shape[-1] // 2]
            case 5:
                t = (t * 3).to(tp.int32)
            case 6:
                t = t > 0
        given.append(t if DEVICE == "cpu" else t.to(DEVICE))
    return given


def program_of(
    seed: int, replays: bool = False, left_out: Collection[int] = ()
) -> tuple[Callable[..., Any], list[tp.Tensor]]:
    """`replays`: it takes no branches, and gives tensors of its own. `left_out`: numbers of steps."""
    draw = random.Random(seed)
    steps = [step_of(draw, branches=not replays) for _ in range(draw.choice((draw.randrange(3, 40), 60)))]
    tp.manual_seed(seed)
    given = given_tensors(draw)
    keeps = draw.random()
    run = [(i, step) for i, step in enumerate(steps) if i not in left_out]

    def program(*tensors: tp.Tensor) -> Any:
        own = list(tensors)
        if not replays:
            tp.manual_seed(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _, step in run:
                try:
                    step(own)
                except ERRORS as error:
                    if replays:
                        continue
                    said = f"{type(error).__name__}: {error}".encode()
                    own.append(tp.tensor(zlib.crc32(said) / 1000))  # the same error at the same step
        kept = own if keeps < 0.5 else own[-2:]
        return [t.clone() for t in kept] if replays else kept

    program.steps = [f"{i}: {step.__name__}" for i, step in run]  # type: ignore[attr-defined]
    return program, given


def outcome(function: Callable[..., Any], given: list[tp.Tensor]) -> list[Any]:
    """Arguments that lie in one memory do so in each call."""
    return seen(function, copy.deepcopy(given))


def numbers(t: tp.Tensor) -> bytes:
    """Its bits, but for the sign of a NaN: which of two NaNs a sum or product gives is the processor's, and a vector's
    and its rest's may differ."""
    if t.dtype.is_complex:
        t = tp.view_as_real(t.detach().resolve_conj())
    return bits(t.detach().where(~t.isnan(), tp.nan) if t.dtype.is_floating_point else t)


def seen(function: Callable[..., Any], args: list[tp.Tensor]) -> list[Any]:
    results = function(*args)
    return [(r.dtype, tuple(r.shape), r.stride(), r._version, numbers(r)) for r in [*results, *args]]


def differs(seed: int, left_out: Collection[int], backend: str, settings: Settings) -> tuple[bool, int]:
    """Whether a program does, without some of its steps, and how many of its calls were fused."""
    program, given = program_of(seed, left_out=left_out)
    expected = outcome(program, given)
    with settings.used():
        compiled = tp.compile(program, backend=backend, options=settings.options)
        return outcome(compiled, given) != expected, int(compiled._report()["fused"])


def fewest(fails: Callable[[Collection[int]], bool], count: int) -> set[int]:
    """Numbers of steps that can be left out, so that what fails still does."""
    out: set[int] = set()
    size = count
    while size:
        for first in range(0, count, size):
            part = set(range(first, min(first + size, count))) - out
            if part and fails(out | part):
                out |= part
        size //= 2
    return out


def fail(seed: int, what: str, fails: Callable[[Collection[int]], bool], replays: bool = False) -> None:
    count = len(program_of(seed, replays)[0].steps)  # type: ignore[attr-defined]
    left = fewest(fails, count)
    program, given = program_of(seed, replays, left)
    shapes = [(t.dtype, tuple(t.shape), t.stride()) for t in given]
    raise AssertionError(f"{what} {seed}, {settings_of(seed)}: {shapes} {program.steps}")  # type: ignore[attr-defined]


def check_program(seed: int, backend: str = "tensorpy") -> int:
    """How many calls were fused."""
    settings = settings_of(seed)
    wrong, fused = differs(seed, (), backend, settings)
    if wrong:
        fail(seed, f"program ({backend})", lambda left: differs(seed, left, backend, settings)[0])
    return fused


@pytest.mark.parametrize("backend", ["aot_eager", "tensorpy"])
@pytest.mark.parametrize("part", range(5))
def test_random_programs(part: int, backend: str) -> None:
    fused = sum(check_program(seed, backend) for seed in range(part, PROGRAMS, 5))
    assert (fused > PROGRAMS // 5) == (backend == "tensorpy")


def seen_or_raised(function: Callable[..., Any], args: list[tp.Tensor]) -> list[Any]:
    try:
        return seen(function, args)
    except ERRORS as error:
        return [type(error), str(error)]


WAYS = ("as they are", "as they are", "a part", "across", "one for several", "float64")


def others(way: str, given: list[tp.Tensor], seed: int) -> list[tp.Tensor]:
    """Arguments of the same sizes and other elements."""
    generator = tp.Generator().manual_seed(seed)
    drawn = [tp.randn(g.shape, generator=generator).mul(2).to(g.dtype) for g in given]
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


def with_gradients(program: Callable[..., Any]) -> Callable[..., Any]:
    """The results, and the gradients of their sum: forward and backward are one function."""

    def step(*given: tp.Tensor) -> list[tp.Tensor]:
        leaves = [g.detach().clone().requires_grad_(g.dtype.is_floating_point) for g in given]
        results = program(*[leaf.sin() if leaf.requires_grad else leaf for leaf in leaves])
        wanted = [leaf for leaf in leaves if leaf.requires_grad]
        sums = [r.double().cos().sum() for r in results if r.requires_grad and not r.dtype.is_complex]
        found = tp.autograd.grad(sum(sums), wanted, allow_unused=True) if sums and wanted else ()
        return [r.detach().clone() for r in results] + [g.clone() for g in found if g is not None]

    return step


def replays_that_differ(seed: int, left_out: Collection[int], settings: Settings) -> tuple[str, int]:
    """The first call that does, or nothing, and how many were replayed."""
    program, given = program_of(seed, replays=True, left_out=left_out)
    if seed % 3 == 0:
        program = with_gradients(program)
    try:
        outcome(program, given)
    except ERRORS:
        return "", 0
    with settings.used():
        compiled = tp.compile(program, mode="reduce-overhead")
        ways = random.Random(seed)
        for call in range(16):
            way = ways.choice(WAYS) if call > 4 else "as they are"
            args, same = (others(way, given, 1000 * seed + call) for _ in range(2))
            if seen_or_raised(compiled, args) != seen_or_raised(program, same):
                return f"call {call}, {way}", 0
        return "", int(compiled._replays()["replayed"])


def check_replays(seed: int) -> int:
    """How many calls were replayed: with other elements at each call, parts of larger tensors, tensors that lie in
    another way or are one."""
    settings = settings_of(seed)
    wrong, replayed = replays_that_differ(seed, (), settings)
    if wrong:
        fail(seed, f"replays ({wrong})", lambda left: bool(replays_that_differ(seed, left, settings)[0]), replays=True)
    return replayed


def whole_differs(seed: int, left_out: Collection[int], settings: Settings) -> bool:
    program, given = program_of(seed, left_out=left_out)
    step = with_gradients(program)
    expected = seen_or_raised(step, copy.deepcopy(given))
    with settings.used():
        return seen_or_raised(tp.compile(step, options=settings.options), copy.deepcopy(given)) != expected


def check_whole(seed: int) -> None:
    """Forward and backward in one function."""
    settings = settings_of(seed)
    if whole_differs(seed, (), settings):
        fail(seed, "whole step", lambda left: whole_differs(seed, left, settings))


@pytest.mark.parametrize("part", range(5))
def test_random_replays(part: int) -> None:
    assert sum(check_replays(seed) for seed in range(part, PROGRAMS, 5)) > PROGRAMS // 5


def gradients(function: Callable[..., Any], given: list[tp.Tensor]) -> list[Any]:
    """Those of the results with respect to the arguments, which the program writes to as it likes."""
    leaves = [g.clone().requires_grad_(g.dtype.is_floating_point) for g in given]
    wanted = [leaf for leaf in leaves if leaf.requires_grad]
    results = [r for r in function(*leaves) if r.requires_grad and not r.dtype.is_complex]
    if not results or not wanted:
        return []
    try:
        found = tp.autograd.grad(sum(r.double().cos().sum() for r in results), wanted, allow_unused=True)
    except ERRORS as error:
        return [type(error), str(error)]
    return [None if g is None else (g.stride(), numbers(g)) for g in found]


def of_sines(program: Callable[..., Any]) -> Callable[..., Any]:
    """The program's last results, of what leaves give: it may write to that."""
    return lambda *leaves: program(*[leaf.sin() if leaf.requires_grad else leaf for leaf in leaves])[-2:]


def gradients_differ(seed: int, left_out: Collection[int], recompute: bool, settings: Settings) -> tuple[bool, int]:
    """Whether they do, and how many bytes were computed again."""
    of_copies, given = program_of(seed, left_out=left_out)
    program = of_sines(of_copies)
    expected = gradients(program, given)
    with settings.used():
        compiled = tp.compile(program, options={**settings.options, "recompute": recompute})
        if gradients(compiled, given) != expected:
            return True, 0
        leaves = [g.clone().requires_grad_(g.dtype.is_floating_point) for g in given]
        return False, int(tp.compiler.explain(compiled)(*leaves).again)


def check_gradients(seed: int, recompute: bool) -> int:
    """How many bytes were computed again."""
    settings = settings_of(seed)
    wrong, again = gradients_differ(seed, (), recompute, settings)
    if wrong:
        fail(
            seed,
            f"gradients (recompute={recompute})",
            lambda left: gradients_differ(seed, left, recompute, settings)[0],
        )
    return again


@pytest.mark.parametrize("part", range(5))
def test_random_steps(part: int) -> None:
    for seed in range(part, PROGRAMS, 5):
        check_whole(seed)


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
    gc.freeze()  # what the table holds is looked at in vain
    for seed in range(60):
        of_copies, given = program_of(seed)
        program = of_sines(of_copies)
        before = live_bytes()
        gradients(tp.compile(program, options={"smallest": 0}) if follows else program, given)
        assert live_bytes() == before, f"program {seed}"
    gc.unfreeze()


def test_rules_that_are_left_out() -> None:
    """Each is one of the plan, and settings are words that are looked at."""
    x = tp.rand(2048, 256)

    def rows(x: tp.Tensor) -> tp.Tensor:
        e = (x.clone() - x.amax(-1, keepdim=True)).exp()
        return e / e.sum(-1, keepdim=True)

    def plan(function: Callable[..., Any], *without: str) -> list[str]:
        with Settings(without=without).used():
            found = tp.compiler.explain(tp.compile(function, options={"smallest": 0}))(x)
        return [f"{unit.kind} {len(unit.operators)}" for unit in found.units]

    assert plan(rows) == ["tiles 6"] and "tiles 6" not in plan(rows, "tiles")
    chain = lambda x: (x.clone() * 2 + 1).sum()  # noqa: E731
    assert plan(chain) == ["group 4"]
    assert plan(chain, "reductions") == ["group 3", "call 1"]
    assert plan(chain, "copies") == ["call 1", "group 3"]
    assert plan(chain, "maps") == ["call 1", "call 1", "group 2"]
    with Settings(without=("unstored",)).used():
        assert tp.compiler.explain(tp.compile(chain, options={"smallest": 0}))(x).unstored == 0
    for block, without in ((-1, ()), (0, ("other",)), (0, (1,))):
        with pytest.raises(ValueError, match=r"elements|no such rule"):
            tp._C._set_fusion(block, without)
    assert tp._C._set_fusion(0, ()) == (0, ())


def main() -> int:
    """Fresh programs for so many seconds; those that differ are named."""
    parser = argparse.ArgumentParser(prog="test_compile_random.py", description=main.__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--device", default="cpu", help="where the programs compute")
    parser.add_argument("--seed", type=int, default=None, help="the first program's number; else by the clock")
    args = parser.parse_args()
    global DEVICE
    DEVICE = args.device
    if DEVICE != "cpu":
        tp.opencl.fused_kernels, tp.opencl.fallback, tp.opencl.check_indices = "wait", "allow", "sync"
    first = args.seed if args.seed is not None else time.time_ns() % 10**9
    seed, wrong, end = first, 0, time.monotonic() + args.seconds
    while time.monotonic() < end:
        for check in (check_program, check_replays, check_whole, partial(check_gradients, recompute=seed % 2 == 0)):
            try:
                check(seed)
            except AssertionError as error:
                wrong += 1
                print(error, flush=True)
            except Exception:
                print(f"program {seed} does not run", flush=True)
                raise
        seed += 1
    print(f"compile: {seed - first} programs from {first} on, {wrong} differ")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
