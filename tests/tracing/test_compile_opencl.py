"""Compiled functions on OpenCL: what waits there, kernels of several calls, bits equal to those of the calls alone."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from devices import dtypes_of
from opencl_programs import needs_device, output_of
from test_compile_random import outcome, program_of

import tensorpy as tp
from tensorpy import nn
from tensorpy.testing.checks import bits

pytestmark = needs_device
PROGRAMS = int(os.environ.get("TENSORPY_FUZZ_PROGRAMS", "6"))
Function = Callable[..., Any]


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    before = tp.opencl.fused_kernels, tp.opencl.fallback
    tp.opencl.fused_kernels, tp.opencl.fallback = "wait", "allow"
    yield
    tp.opencl.fused_kernels, tp.opencl.fallback = before


def compiled(function: Function, **how: Any) -> Any:
    return tp.compile(function, options={"smallest": 0}, **how)


def drawn(*shapes: tuple[int, ...], dtype: tp.dtype = tp.float32) -> list[tp.Tensor]:
    tp.manual_seed(5)
    return [tp.randn(shape).to(dtype).to("opencl") for shape in shapes]


def fused(function: Function, given: list[tp.Tensor]) -> int:
    """How many calls of the function ran with others, after a look that it is the function."""
    fast = compiled(function)

    def listed(*args: tp.Tensor) -> list[tp.Tensor]:
        results = (fast if listed.fast else function)(*args)  # type: ignore[attr-defined]
        return [results] if isinstance(results, tp.Tensor) else list(results)

    listed.fast = False  # type: ignore[attr-defined]
    expected = outcome(listed, given)
    listed.fast = True  # type: ignore[attr-defined]
    assert outcome(listed, given) == expected
    return int(fast._report()["fused"])


# ---- bits ----


def wild(n: int, dtype: tp.dtype) -> tp.Tensor:
    """Ordinary numbers, with others among them that quick forms give up at, and functions of vectors get wrong."""
    tp.manual_seed(6)
    x = tp.randn(n, dtype=tp.float32)
    for place, value in enumerate((float("nan"), float("inf"), 0.0, -0.0, 1e-40, 6e4, -1e30, 1e20)):
        x[place * 61 % n] = value
    return x.to(dtype).to("opencl")


CHAINS: dict[str, Function] = {
    "arithmetic": lambda a, b: ((a + b) * a - b) * 0.5 + a,
    "contractions": lambda a, b: tp.lerp(a, b, 0.3).addcmul(a, b, value=0.7) - a * b,
    "of vectors": lambda a, b: ((a * b).exp() + b.abs().pow(2.5)).log().atan2(a),
    "quick": lambda a, b: (a * b).sin() + b.cos() * (a + 1).tan(),
    "choices": lambda a, b: tp.where(a > b, a.tanh(), b.sigmoid()).clamp(-0.5, 0.7),
    "casts": lambda a, b: (a > 0).to(tp.int32) + (b * 3).to(tp.float16).to(tp.float32).to(tp.int8),
    "in place": lambda a, b: (a.mul_(2).add_(b), a.sin(), b.copy_(a).neg_()),
    "copies": lambda a, b: (a.clone().clone(), a.clone().abs(), b.clone() + 1),
}


@pytest.mark.parametrize(
    "dtype", [d for d in ("float32", "float64", "float16", "bfloat16") if d in dtypes_of("opencl")]
)
@pytest.mark.parametrize("chain", CHAINS)
def test_chains(chain: str, dtype: str) -> None:
    for n in (7, 1000):
        given = [wild(n, getattr(tp, dtype)), *drawn((n,), dtype=getattr(tp, dtype))]
        assert fused(CHAINS[chain], given) >= 3


def test_integers_and_complex_numbers() -> None:
    i = tp.randint(-50, 100, (1000,)).to("opencl")
    assert fused(lambda i: (i * 3 + 1) // 7 % 5 > 2, [i]) == 5
    assert fused(lambda i: (i.to(tp.uint8) << 3) ^ 7, [i]) == 3
    assert fused(lambda a, b: (tp.complex(a, b) * tp.complex(b, a) + 1).abs(), drawn((99,), (99,))) >= 3


def test_moved_bits() -> None:
    """A NaN of a 16-bit float that signals stays what it is."""
    x = tp.tensor([0x7C01, -1000, 0x7E00, 1, 2] * 20, dtype=tp.int16).view(tp.float16).to("opencl")
    assert fused(lambda x: (x.clone(), x.clone().clone(), x.neg().clone()), [x]) >= 4


@pytest.mark.parametrize("width", [40, 64, 1])
@pytest.mark.parametrize("shapes", [((), (1,)), ((10, 1), ()), ((3, 1, 1), (1, 10, 1))])
def test_rows(width: int, shapes: tuple[tuple[int, ...], ...]) -> None:
    """Broadcasts; what depends on its neighbours joins where its blocks are what they are alone."""
    a, b, c = drawn((3, 10, width), (width,), shapes[0])
    (d,) = drawn(shapes[1])
    assert fused(lambda a, b: (a + b) * b - 0.5, [a, b]) == 3
    fused(lambda a, b, c, d: ((a * c + d).sin() * b).exp() - c, [a, b, c, d])
    assert fused(lambda a, b: (a + b).sin() * 2, [a, b]) == (0 if width == 40 else 3)
    assert fused(lambda a, b: ((a.mT + 1) * 2, a.mT.exp()), [a, b]) == 3


@pytest.mark.parametrize("width", [16, 40, 64, 100])
def test_slices(width: int) -> None:
    (x,) = drawn((12, 3 * width))
    given = [x.chunk(3, -1)[i] for i in range(3)]
    assert fused(lambda a, b, c: (a * b + c) - a, given) == 3
    fused(lambda a, b, c: (a.sin() * b.exp()).tanh() + c, given)
    fused(lambda a, b, c: (a.contiguous() + 1, (a + b).sin() * c, b.expand(4, 12, width)[1:] * 2), given)


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_programs(seed: int) -> None:
    program, given = program_of(seed)
    if any(str(t.dtype).removeprefix("tensorpy.") not in dtypes_of("opencl") for t in given):
        pytest.skip("a dtype that the device has not")
    given = [t.to("opencl") for t in given]
    assert outcome(compiled(program), given) == outcome(program, given)


# ---- kernels ----


def built(run: Callable[[], Any]) -> int:
    before = tp.opencl.cache_info()
    run()
    tp._C._opencl.await_builds()
    after = tp.opencl.cache_info()
    return after["built"] + after["from_disk"] - before["built"] - before["from_disk"]


def test_numbers_and_sizes_build_no_second_kernel() -> None:
    def step(p: tp.Tensor, g: tp.Tensor, lr: float) -> tp.Tensor:
        return p.sub_(g * lr).mul_(0.9).clamp_(-1, 3)

    fast = compiled(step)
    p, g = drawn((500,), (500,))
    fast(p, g, 0.1)
    assert fast._report()["fused"] == 4
    assert built(lambda: [fast(p, g, 0.1 / (k + 1)) for k in range(5)]) == 0
    assert built(lambda: [fast(*drawn((n,), (n,)), 0.5) for n in (2, 77, 900)]) == 0


def test_calls_run_one_by_one_until_the_kernel_is_there() -> None:
    tp.opencl.fused_kernels = "background"

    def function(x: tp.Tensor) -> tp.Tensor:
        return (x * 2 + 1).exp2() - x * 3

    (x,) = drawn((501,))
    fast = compiled(function)
    first = tp.compiler.explain(fast)(x)
    assert first.groups == [] and {u.ends for u in first.units[:-1]} == {
        "the device has no kernel for the calls together yet"
    }
    assert bits(fast(x)) == bits(function(x))
    tp._C._opencl.await_builds()
    then = tp.compiler.explain(fast)(x)
    assert [u.kind for u in then.units] == ["group"] and then.unstored == 4 * 4 * 501
    assert bits(fast(x)) == bits(function(x))
    with tp.profiler.profile() as profile:
        fast(x)
    assert any(e.name.startswith("group of 5 calls: mul.Scalar") for e in profile.events())


def test_words_of_the_setting() -> None:
    with pytest.raises(ValueError, match="'background' or 'wait', not 'never'"):
        tp.opencl.fused_kernels = "never"


def test_more_arguments_than_a_kernel_has() -> None:
    def many(x: tp.Tensor) -> tp.Tensor:
        for k in range(12):
            x = tp.where(x > k, x.clamp(-k, 20 + k), x.addcmul(x, x, value=0.1 * k))
        return x

    fused(many, drawn((300,)))


def test_a_process_that_ends_while_a_kernel_is_built() -> None:
    text = output_of(
        """
        import tensorpy as tp
        a = tp.ones(100_000, device="opencl")
        fast = tp.compile(lambda a: ((a * 2 + 1).exp() * a).sin() - a.tanh().pow(2.25))
        fast(a)
        fast(a)
        print("done")
        """,
        TENSORPY_OPENCL_CACHE="",
    )
    assert text == "done"


# ---- programs ----


def test_gradients_and_hooks() -> None:
    def run(wrap: Callable[[Function], Function]) -> list[Any]:
        (x, given) = drawn((30, 64), (30, 64))
        w, seen = given.requires_grad_(), []  # type: ignore[var-annotated]
        w.register_hook(lambda g: seen.append(bits(g)))
        for _ in range(3):
            wrap(lambda x: ((x * w).tanh() * 2 + w.sigmoid()).sum())(x).backward()
        return [*seen, bits(w.grad)]  # type: ignore[arg-type]

    assert run(compiled) == run(lambda f: f)


def test_a_training_loop() -> None:
    def losses(wrap: Callable[[Any], Any]) -> list[float]:
        tp.manual_seed(3)
        model = nn.Sequential(nn.Linear(20, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 5)).to("opencl")
        optimizer = tp.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        x, y = tp.randn(16, 20).to("opencl"), tp.randint(0, 5, (16,)).to("opencl")
        runs, found = wrap(model), []
        for _ in range(4):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(runs(x), y)
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found

    assert losses(compiled) == losses(lambda model: model)


def test_threads() -> None:
    tp.opencl.fused_kernels = "background"
    wrong: list[float] = []

    def work(by: float) -> None:
        def function(a: tp.Tensor) -> tp.Tensor:
            return ((a + by) * a - 1).tanh() * by

        a = tp.full((4000,), 0.25 * by).to("opencl")
        fast, expected = compiled(function), bits(function(a))
        wrong.extend(by for _ in range(20) if bits(fast(a)) != expected)

    threads = [threading.Thread(target=work, args=(by,)) for by in (0.5, 1.5, 2.5, 3.5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_values_and_other_devices() -> None:
    (x,) = drawn((300,))

    def reads(x: tp.Tensor, y: tp.Tensor) -> list[tp.Tensor]:
        a = x * 2 + 1
        if a.sum() > 0:
            a = a - 1
        return [a * 3, (x + 1).cpu() + (y * 2 - 1), (y + 1).to("opencl") * x]

    given = [x, x.cpu()]
    assert outcome(compiled(reads), given) == outcome(reads, given)
    plan = tp.compiler.explain(compiled(lambda a, b: ((a + 1) * 2, (b + 1) * 2)))(*given)
    assert [u.kind for u in plan.units] == ["group", "group"]
    assert plan.units[0].ends == "the next call is on another device"


def test_streams_and_kernels_of_ones_own() -> None:
    source = """__kernel void twice(__global float *x, long at, long n) {
        if (get_global_id(0) < n) x[at + get_global_id(0)] *= 2;
    }"""

    def function(x: tp.Tensor) -> tp.Tensor:
        y = x + 1
        tp.library.opencl_kernel("twice", source)[300](y, 300)
        stream = tp.Stream(device="opencl")
        stream.wait_stream(tp.accelerator.current_stream("opencl"))
        with stream:
            z = y * 3
        tp.accelerator.synchronize()
        z.record_stream(tp.accelerator.current_stream("opencl"))
        return z + y

    (x,) = drawn((300,))
    assert bits(compiled(function)(x)) == bits(function(x))


def test_a_tape_is_of_the_cpu() -> None:
    """mode="reduce-overhead" follows what is on another device."""
    (x,) = drawn((300,))
    fast = tp.compile(lambda x: (x * 2 + 1).exp(), mode="reduce-overhead")
    for _ in range(6):
        assert bits(fast(x)) == bits((x * 2 + 1).exp())
    assert fast._replays()["replayed"] == 0


def test_values_that_are_computed_again() -> None:
    """Saved values that backward can make of others have no memory of the device between forward and backward."""

    def step(wrap: Function) -> tuple[int, list[Any]]:
        tp.manual_seed(7)
        net = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 8)).to("opencl")
        x = tp.randn(128, 64).to("opencl")
        tp.opencl.synchronize()
        before = tp.opencl.memory_stats()["allocated"]
        loss = wrap(net)(x).square().sum()
        held = tp.opencl.memory_stats()["allocated"] - before
        loss.backward()
        return held, [bits(p.grad.cpu()) for p in net.parameters()]

    kept, expected = step(lambda net: net)
    held, found = step(compiled)
    assert found == expected and kept - held >= 128 * 256 * 4
