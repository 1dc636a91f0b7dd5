"""Rows that pass several calls in tiles: the bits, strides and gradients of calls that run one after the other."""

from __future__ import annotations

import ctypes
import gc
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tensorpy as tp
import tensorpy.nn.functional as F
from tensorpy.testing.checks import bits
from tensorpy.utils import extension

SHAPES = [(100, 64), (33, 70), (8, 20, 48), (2, 3, 40, 33), (80, 5, 12), (64, 4096), (40, 5000), (512, 1), (16, 64)]
SHAPES += [(50, 2), (1000,), (64, 64), (7, 48, 48), (40, 7, 50)]  # among them as many rows as elements of one


def by_hand(x: tp.Tensor, y: tp.Tensor) -> Any:
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


def keeps_all(x: tp.Tensor, y: tp.Tensor) -> Any:
    a = x * 2
    m = a.mean(-1)
    b = a - m.unsqueeze(-1)
    return a, m, b, b.square().sum(-1, keepdim=True)


def in_place(x: tp.Tensor, y: tp.Tensor) -> Any:
    a = x.clone()
    a.sub_(a.amax(-1, keepdim=True)).exp_()
    a.div_(a.sum(-1, keepdim=True))
    s = a.sum(-1)
    a.mul_(y)
    return a, s, s + a.amax(-1)


def into_a_view(x: tp.Tensor, y: tp.Tensor) -> Any:
    whole = tp.zeros(2, *x.shape, dtype=x.dtype)
    whole[1].copy_(x * y)
    whole[0].add_(tp.softmax(whole[1] + x, -1))
    return whole, whole[0].amin(-1)


def rows_of_another_size(x: tp.Tensor, y: tp.Tensor) -> Any:
    s = tp.softmax(x * y, -1) + 1
    t = s.t().contiguous() if s.ndim == 2 else s
    return s.amax(-1), tp.softmax(t * 2, -1) * t, s.sum(0), (s * y).sum()


def across(x: tp.Tensor, y: tp.Tensor) -> Any:
    """The sums of all rows are needed by each."""
    a = tp.softmax(x, -1)
    return tp.softmax(a / a.sum(0, keepdim=True) + y, -1) * a


PROGRAMS: dict[str, Callable[[tp.Tensor, tp.Tensor], Any]] = {
    "by hand": by_hand,
    "rms": lambda x, y: x * tp.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * y[..., :1, :] if x.ndim > 1 else x,
    "masked": lambda x, y: tp.softmax(x * 0.1 + y, -1),
    "log": lambda x, y: (x.log_softmax(-1) * y).sum(-1),
    "norm": lambda x, y: F.gelu(F.layer_norm(x + y, x.shape[-1:])) * 2,
    "weights": lambda x, y: (
        F.layer_norm(x + y, x.shape[-2:], y.reshape(-1, *x.shape[-2:])[0] if x.ndim > 1 else y) * y if x.ndim > 1 else x
    ),
    "weights of elements": lambda x, y: (
        F.layer_norm(x + y, x.shape[-1:], y.reshape(-1, x.shape[-1])[0], x.reshape(-1, x.shape[-1])[-1]) * y
    ),
    "weights of rows": lambda x, y: (
        F.gelu(F.group_norm(x * 2, x.shape[1], y[0, :, 0], x[-1, :, -1])) + y if x.ndim == 3 else x
    ),
    "weights of tensors": lambda x, y: F.rms_norm(x * y, x.shape[-1:], (x * y).reshape(-1, x.shape[-1])[0]) + x,
    "two dimensions": lambda x, y: (x - (x + y).sum((-1, -2), keepdim=True)) * y if x.ndim > 1 else x,
    "norms": lambda x, y: x / tp.linalg.vector_norm(x * y, 2, -1, True) + tp.linalg.vector_norm(x, 1, -1, True),
    "any": lambda x, y: ((x * y > 0.5).any(-1, keepdim=True), ((x + y) > -9).all(-1), (x - y).count_nonzero(-1)),
    "middle": lambda x, y: tp.softmax(x * y, 0) + (x - y).sum(0, keepdim=True),
    "keeps all": keeps_all,
    "in place": in_place,
    "view": into_a_view,
    "other rows": rows_of_another_size,
    "across": across,
}


def parts(result: Any) -> list[tuple[Any, ...]]:
    results = result if isinstance(result, tuple) else (result,)
    return [(r.dtype, tuple(r.shape), r.stride(), r._version, bits(r.detach())) for r in results]


@pytest.fixture(autouse=True)
def threads_as_before() -> Iterator[None]:
    before = tp.get_num_threads()
    yield
    tp.set_num_threads(before)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("dtype", [tp.float32, tp.float64, tp.float16, tp.bfloat16], ids=str)
def test_bits(name: str, dtype: tp.dtype) -> None:
    program, tiled = PROGRAMS[name], 0
    for number, shape in enumerate(SHAPES):
        generator = tp.Generator().manual_seed(number)
        x, y = (tp.randn(shape, generator=generator).to(dtype) for _ in range(2))
        expected = parts(program(x, y))
        for tile in (0, 3000, 40_000):
            tp.set_num_threads(1 + number % 2)
            compiled = tp.compile(program, options={"smallest": 0, "tile": tile})
            assert parts(compiled(x, y)) == expected, (shape, tile)
            tiled += compiled._report()["fused"]
    assert tiled


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "in place"])
def test_gradients(name: str) -> None:
    """Their versions are not looked at: sums are made in place where nobody else has them, which a note may."""
    program = PROGRAMS[name]

    def step(x: tp.Tensor, y: tp.Tensor) -> Any:
        result = program(x, y)
        total = sum((r * r).sum() for r in (result if isinstance(result, tuple) else (result,)) if r.requires_grad)
        return tp.autograd.grad(total, (x, y), allow_unused=True) if isinstance(total, tp.Tensor) else ()

    for shape in SHAPES[:6] + SHAPES[-3:]:
        x, y = (tp.randn(shape, generator=tp.Generator().manual_seed(seed), requires_grad=True) for seed in (1, 2))
        found = tp.compile(step, options={"smallest": 0, "tile": 3000})(x, y)
        for one, other in zip(found, step(x, y), strict=True):
            assert (one is None) == (other is None)
            assert one is None or (bits(one) == bits(other) and one.stride() == other.stride())


FOLDS: dict[str, Callable[[tp.Tensor], tp.Tensor]] = {
    "sum": lambda x: x.sum(-1, dtype=tp.float32),
    "mean": lambda x: x.mean(-1, dtype=tp.float32),
    "prod": lambda x: x.prod(-1, dtype=tp.float32),
    "nansum": lambda x: x.nansum(-1, dtype=tp.float32),
    "norm": lambda x: tp.linalg.vector_norm(x, 2, -1, dtype=tp.float32),
    "amax": lambda x: x.amax(-1),
    "var": lambda x: x.var(-1),
}


@pytest.mark.parametrize("name", FOLDS)
@pytest.mark.parametrize("dtype", [tp.float32, tp.float16, tp.bfloat16], ids=str)
def test_a_row_does_not_see_how_many_there_are(name: str, dtype: tp.dtype) -> None:
    """Also where rows are converted in pieces, which are as long as rows are few."""
    fold = FOLDS[name]
    for width in (2, 3, 5, 15, 16, 17, 31, 32, 33, 100):
        x = tp.randn(2048, width, generator=tp.Generator().manual_seed(width)).to(dtype)
        whole = fold(x)
        for rows in (16, 17, 20, 33, 100, 300):
            for at in range(0, 2048 - rows, 5 * rows):
                assert bits(fold(x[at : at + rows])) == bits(whole[at : at + rows]), (width, rows)


def test_a_tensor_that_passes_has_a_tile_of_memory() -> None:
    x = tp.randn(4096, 1024)  # 16 MB
    compiled = tp.compile(by_hand, options={"tile": 64 * 1024})
    compiled(x, x)
    tp._C._reset_peak_memory()
    before = tp._C._memory_stats()["peak_bytes"]
    result = compiled(x, x)
    assert tp._C._memory_stats()["peak_bytes"] - before < 1.2 * result.nbytes


TOTAL = r"""
#include "tensorpy/library.h"
#include <pthread.h>
#define SEEN __attribute__((visibility("default")))
static pthread_t callers[64];
SEEN int count_of_callers, count_of_calls;
TENSORPY_KERNEL(int, total, (tp_tensor *, x), (tp_ints, dim), (tp_tensor *, out)) {
    tp_view from = tp_view_of(x), to = tp_view_of(out);
    int64_t columns = from.sizes[from.ndim - 1];
    const float *in = from.data;
    float *sums = to.data;
    int caller = 0;
    while (caller < count_of_callers && !pthread_equal(callers[caller], pthread_self())) caller++;
    if (caller == count_of_callers && caller < 64) callers[count_of_callers++] = pthread_self();
    count_of_calls++;
    for (int64_t row = 0; row < to.numel; row++) {
        sums[row] = 0;
        for (int64_t c = 0; c < columns; c++) sums[row] += in[row * columns + c];
    }
    return 0;
}
TENSORPY_LIBRARY_IMPL(prim, CPU, m) { return tp_impl(m, "reduce.sum", total); }
"""


def test_kernels_from_outside_run_one_after_the_other(tmp_path: Path) -> None:
    """With the host lock, as they may rely on: threads do not take tiles then."""
    tp.set_num_threads(2)
    x = tp.randn(512, 256)
    path = extension.load_inline("one_after_the_other", TOTAL, build_directory=tmp_path)
    try:
        library = ctypes.CDLL(path)
        expected = parts(by_hand(x, x))
        compiled = tp.compile(by_hand, options={"smallest": 0, "tile": 16 * 1024})
        assert parts(compiled(x, x)) == expected and compiled._report()["fused"] == 5
        assert ctypes.c_int.in_dll(library, "count_of_calls").value > 10
        assert ctypes.c_int.in_dll(library, "count_of_callers").value == 1
    finally:
        tp.ops.unload_library(path)


FAILS = r"""
#include "tensorpy/library.h"
#define SEEN __attribute__((visibility("default")))
SEEN int calls_that_are_left = -1;
TENSORPY_KERNEL(int, total, (tp_tensor *, x), (tp_ints, dim), (tp_tensor *, out)) {
    tp_view from = tp_view_of(x), to = tp_view_of(out);
    int64_t columns = to.numel ? from.numel / to.numel : 0;
    const float *in = from.data;
    float *sums = to.data;
    if (calls_that_are_left >= 0 && calls_that_are_left-- == 0) return tp_fail(TP_ValueError, "no more sums");
    for (int64_t row = 0; row < to.numel; row++) {
        sums[row] = 0;
        for (int64_t c = 0; c < columns; c++) sums[row] += in[row * columns + c];
    }
    return 0;
}
TENSORPY_LIBRARY_IMPL(prim, CPU, m) { return tp_impl(m, "reduce.sum", total); }
"""


@pytest.mark.parametrize("words", [{"options": {"smallest": 0, "tile": 4096}}, {"mode": "reduce-overhead"}], ids=str)
@pytest.mark.parametrize("threads", [1, 2])
def test_kernels_from_outside_that_fail(words: Any, threads: int, tmp_path: Path) -> None:
    """In whichever call of a tile, a replay or backward: the error arrives, what has no values says so, nothing is
    kept, and the next call is right. A replay's is none of values: after those the function is called."""
    tp.set_num_threads(threads)
    x, y = tp.randn(512, 64), tp.randn(512, 64)
    kept: list[Any] = []

    def step(x: tp.Tensor, y: tp.Tensor) -> Any:
        w = (x * 1).requires_grad_() if "options" in words else x
        e = (w - y).exp()
        result = e / e.sum(-1, keepdim=True)
        kept[:] = [e * 2] if "options" in words else []
        if "options" in words:
            (gradient,) = tp.autograd.grad(result.square().sum(-1).mean(), w)
            return result.detach(), gradient
        return result

    def attempt(good: int = -1) -> bool:
        """Whether the sum after so many good ones fails; what the call leaves is used."""
        left.value = good
        try:
            assert parts(compiled(x, y)) == expected
            return False
        except (ValueError, TypeError) as error:
            assert "no more sums" in str(error)
            return True
        finally:
            left.value = -1
            if kept:
                use(kept.pop())

    source = FAILS if "options" in words else FAILS.replace("TP_ValueError", "TP_TypeError")
    path = extension.load_inline("sums_that_fail", source, build_directory=tmp_path)
    try:
        left = ctypes.c_int.in_dll(ctypes.CDLL(path), "calls_that_are_left")
        compiled, expected = tp.compile(step, **words), parts(step(x, y))
        kept.clear()
        assert not any(attempt() for _ in range(6))
        before, count = live_bytes(), 0
        while attempt(count):
            assert not attempt() and live_bytes() == before
            count += 1
        assert count > 0
    finally:
        tp.ops.unload_library(path)


def use(t: tp.Tensor) -> None:
    try:
        t.sum()
    except (RuntimeError, ValueError) as error:
        assert "no more sums" in str(error) or "has no values" in str(error)


OTHER = r"""
#include "tensorpy/library.h"
static int fill(tp_tensor *out, float value) {
    tp_view to = tp_view_of(out);
    for (int64_t i = 0; i < to.numel; i++) ((float *)to.data)[i] = value;
    return 0;
}
#ifdef SUM
TENSORPY_KERNEL(int, other, (tp_tensor *, x), (tp_ints, dim), (tp_tensor *, out)) { return fill(out, 42); }
TENSORPY_LIBRARY_IMPL(prim, CPU, m) { return tp_impl(m, "reduce.sum", other); }
#else
TENSORPY_KERNEL(int, other, (int64_t, program), (tp_tensors, inputs), (tp_scalars, numbers), (tp_dtype, compute),
                (tp_tensor *, out)) {
    return fill(out, 7);
}
TENSORPY_LIBRARY_IMPL(prim, CPU, m) { return tp_impl(m, "map", other); }
#endif
"""


@pytest.mark.parametrize("defines, value", [("#define SUM\n", 42), ("", 7 * 300)])
def test_kernels_that_come_and_go(defines: str, value: int, tmp_path: Path) -> None:
    """What has been joined or written down with other kernels is not run again."""
    ways: list[Any] = [
        {"options": {"smallest": 0}},
        {"mode": "reduce-overhead"},
        {"options": {"smallest": 0, "tile": 0}},
    ]
    x = tp.ones(512, 300)
    compiled = [tp.compile(lambda x: (x * 2 + 1).sum(-1), **words) for words in ways]
    for _ in range(6):
        assert all((f(x) == 900).all() for f in compiled)
    path = extension.load_inline("sums_that_come_and_go", defines + OTHER, build_directory=tmp_path)
    try:
        for _ in range(6):
            assert [f(x)[0].item() for f in compiled] == [value] * len(compiled)
    finally:
        tp.ops.unload_library(path)
    for _ in range(6):
        assert all((f(x) == 900).all() for f in compiled)


def live_bytes() -> int:
    gc.collect()
    return int(tp._C._memory_stats()["live_bytes"])


def test_a_handler_that_raises() -> None:
    """While threads take tiles: the error arrives, and the next call is right."""

    def interrupt(*_: Any) -> None:
        raise InterruptedError("now")

    tp.set_num_threads(2)
    x = tp.randn(4096, 256)
    compiled, expected = tp.compile(by_hand), parts(by_hand(x, x))
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(20):
            with pytest.raises(InterruptedError, match="now"):
                signal.setitimer(signal.ITIMER_REAL, 0.003)
                while True:
                    compiled(x, x)
            assert parts(compiled(x, x)) == expected
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("threads", [1, 2])
def test_failing_allocations(threads: int) -> None:
    tp.set_num_threads(threads)
    x = tp.randn(100, 64)
    compiled = tp.compile(keeps_all, options={"smallest": 0, "tile": 0})
    right, failed, reached = parts(keeps_all(x, x)), 0, True
    for n in range(400):
        tp._C._fail_allocation_after(n)
        try:
            assert parts(compiled(x, x)) == right
        except MemoryError:
            failed += 1
        finally:
            reached = not tp._C._fail_allocation_after(-1)
        if not reached:
            break
    assert not reached and failed > 20
    assert parts(compiled(x, x)) == right
