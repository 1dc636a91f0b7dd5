"""Tensors whose memory comes later: every method, other threads, a fork, failing allocations, exceptions, Ctrl-C."""

from __future__ import annotations

import copy
import gc
import io
import os
import pickle
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from programs import SANITIZED

import tensorpy as tp
from tensorpy.testing.checks import bits
from tensorpy.utils import extension

N = 400  # more than what lies in a storage's own block


def compiled(function: Callable[..., Any], **how: Any) -> Any:
    return tp.compile(function, options={"smallest": 0}, **how)


def shown(value: Any) -> Any:
    """What is compared of a result."""
    if isinstance(value, tp.Tensor):
        return value.dtype, tuple(value.shape), value.stride(), value._version, str(value.device), bits(value)
    if isinstance(value, (list, tuple)):
        return [shown(v) for v in value]
    if isinstance(value, dict):
        return {k: shown(v) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        return value.dtype, value.tolist()
    if isinstance(value, (int, float, bool, str, bytes, complex, type(None))):
        return value
    return type(value)


# Addresses and numbers of objects; what has no contents; what waits for a terminal or another process.
OTHERWISE = {"data_ptr", "__hash__", "__repr__", "__array_interface__", "_cdata", "__init__", "__new__", "__class__"}
OTHERWISE |= {"share_memory_", "__dlpack__", "_typed_storage", "new"}


def attempt(t: tp.Tensor, name: str, args: tuple[Any, ...]) -> Any:
    try:
        found = getattr(t, name)
        return shown(found(*args) if callable(found) else found), shown(t)
    except Exception as error:
        return type(error), str(error), shown(t)


@pytest.fixture
def other() -> Iterator[ThreadPoolExecutor]:
    """A thread that has called operators."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: tp.ones(3).add(1)).result()
        yield pool


@pytest.mark.parametrize(
    ("kind", "elsewhere"), [("float32", False), ("int64", False), ("bool", False), ("float32", True)]
)
def test_every_attribute_of_a_tensor(kind: str, elsewhere: bool, other: ThreadPoolExecutor) -> None:
    """On a tensor that has just been computed, and on another whose contents are still to be read; called by this
    thread or by another one."""
    attempts = (lambda *call: other.submit(attempt, *call).result()) if elsewhere else attempt
    dtype = getattr(tp, kind)
    base = (tp.arange(float(N)) % 7).reshape(20, 20).to(dtype)
    names = [n for n in dir(tp.Tensor) if n not in OTHERWISE and "random" not in n and "empty" not in n]
    assert len(names) > 600

    def one(name: str, args: tuple[Any, ...], x: tp.Tensor) -> Any:
        y = x.clone()
        read = y.clone()
        tp.manual_seed(5)
        return attempts(y, name, tuple(a.clone() if isinstance(a, tp.Tensor) else a for a in args)), shown(read)

    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            for args in ((), (2,), (base,), (0, 1), ([1],)):
                try:
                    expected = one(name, args, base)
                    got = compiled(one)(name, args, base)
                except Exception as error:
                    wrong.append((name, args, repr(error)))
                    continue
                if got != expected:
                    wrong.append((name, args))
    assert not wrong


def test_ways_out_of_a_tensor() -> None:
    """Everything that hands memory or bytes out has the contents of that line."""

    def ways(x: tp.Tensor) -> dict[str, Any]:
        make = lambda: x * 2 + 1  # noqa: E731
        found: dict[str, Any] = {
            "repr": repr(make()),
            "tolist": make().tolist(),
            "pickle": pickle.loads(pickle.dumps(make())).tolist(),
            "deepcopy": copy.deepcopy(make()).tolist(),
            "storage": bytes(make().untyped_storage()),
            "iter": [float(v) for v in make()][:5],
            "bool": bool(make()[3] > 0),
            "format": f"{make()[3]}",
            "index": list(range(10))[make()[1].long()],
            "tensor": tp.tensor([make()[2], make()[3]]).tolist(),
            "stack of rows": tp.tensor(np.stack([make().numpy(), make().numpy()])).sum().item(),
        }
        file = io.BytesIO()
        tp.save(make(), file)
        found["save"] = tp.load(io.BytesIO(file.getvalue())).tolist()
        return found

    def lends(x: tp.Tensor) -> list[Any]:
        y = x * 2
        array = y.numpy()
        z = y + 1
        array[0] = 100  # seen by what comes after, not by what came before
        return [z, y + 1, array.copy(), memoryview((x + 3).numpy()).tolist(), tp.from_dlpack(x + 4), y.data_ptr() != 0]

    x = tp.arange(float(N))
    assert compiled(ways)(x) == ways(x)
    assert shown(compiled(lends)(x)) == shown(lends(x))


def test_pending_numbers_as_states() -> None:
    def function(state: tp.Tensor) -> tp.Tensor:
        tp.set_rng_state(state.clone())
        return tp.rand(5)

    state = tp.get_rng_state()
    assert compiled(function)(state).equal(function(state))


OUTSIDE = r"""
#include "tensorpy/library.h"
static float total(const tp_tensor *t) {
    tp_view v = tp_view_of(t);
    float sum = 0;
    for (int64_t i = 0; i < v.numel; i++) sum += ((const float *)v.data)[i] * (float)(i % 7);
    return sum;
}
static tp_tensor *of(float value, tp_tensor *like) {
    tp_tensor *out = tp_new_empty_like(like, TP_FLOAT32);
    tp_view v = out ? tp_view_of(out) : (tp_view){0};
    for (int64_t i = 0; out && i < v.numel; i++) ((float *)v.data)[i] = value + (float)i;
    return out;
}
TENSORPY_KERNEL(tp_tensor *, use, (tp_tensor *, x), (int64_t, which)) {
    int64_t sizes[] = {10, 5}, strides[] = {1, 20};
    tp_ints small = {sizes, 2}, across = {strides, 2};
    tp_tensor *t = NULL, *out = NULL;
    tp_view v = tp_view_of(x);
    switch (which) {
    case 0: return of(total(x), x);
    case 1: return tp_retain(x);
    case 2: t = tp_as_strided(x, small, across, 3); break;
    case 3: t = tp_new_empty_strided(small, across, TP_FLOAT32, v.device); break;
    case 4: t = tp_from_memory((void *)v.data, small, across, TP_FLOAT32, v.device, NULL, NULL); break;
    case 5: t = tp_as_view(x, tp_as_strided(x, small, across, 0)); break;
    case 6: return tp_check_write(x, "use") < 0 ? NULL : (tp_note_write(x, "use"), of(total(x), x));
    }
    if (t) out = which == 3 ? tp_retain(x) : of(total(t), x);
    if (t) tp_release(t);
    return out;
}
TENSORPY_LIBRARY(pending_api, m) { return tp_def(m, "use(Tensor x, int which) -> Tensor"); }
TENSORPY_LIBRARY_IMPL(pending_api, CPU, m) { return tp_impl(m, "use", use); }
"""


def test_functions_of_the_c_interface(tmp_path: Path) -> None:
    """A kernel from outside has the contents of that line, whichever function it asks for them."""
    path = extension.load_inline("pending_api", OUTSIDE, build_directory=tmp_path)
    try:

        def function(x: tp.Tensor, which: int) -> Any:
            y = x * 2 + 1
            seen = tp.ops.pending_api.use(y, which)
            return seen.clone() + 1, y + seen.sum(), y

        x = tp.randn(20, 20)
        for which in range(7):
            assert shown(compiled(function)(x, which)) == shown(function(x, which)), which
    finally:
        tp.ops.unload_library(path)


# ---- threads and forks ----


def test_another_thread_meets_what_is_noted() -> None:
    found: list[Any] = []

    def function(x: tp.Tensor) -> tp.Tensor:
        y = x * 2
        view = y[::2]

        def other() -> None:
            found.append((shown(y + 1), view.sum().item(), y.numpy().sum()))

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        return y - 1

    x = tp.arange(float(N))
    assert compiled(function)(x).equal(function(x)) and found[0] == found[1]


def test_two_threads_with_regions_of_their_own() -> None:
    x = tp.randn(20_000)
    program = lambda a: ((a.exp() + 1).log() * a).sigmoid()  # noqa: E731
    expected, wrong = shown(program(x)), []
    shared = x * 1

    def work() -> None:
        fast = compiled(program)
        for _ in range(100):
            if shown(fast(shared)) != expected:
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


FIRST_READS: dict[str, Callable[[tp.Tensor], float]] = {
    "an operator": lambda view: view.sum().item(),
    "an element": lambda view: view[N - 1].item() * N,
    "its array": lambda view: float(view.numpy().sum()),
    "its list": lambda view: sum(view.tolist()),
    "its buffer": lambda view: float(np.frombuffer(memoryview(view), np.float32).sum()),
    "a copy": lambda view: float(np.asarray(copy.copy(view).clone()).sum()),
    "an operator on another, then on it": lambda view: (tp.ones(3).add(1), view.sum().item())[1],
}


@pytest.mark.parametrize("first", FIRST_READS)
@pytest.mark.parametrize("holds", [lambda x: x[:], lambda x: x], ids=["a view", "itself"])
def test_writes_to_what_other_threads_hold(holds: Callable[[tp.Tensor], tp.Tensor], first: str) -> None:
    """A view has the write at once, since its keys say nothing of what is noted; those of the tensor itself do."""
    x = tp.zeros(N)
    held, ready, looked = holds(x), threading.Event(), threading.Event()
    found: list[float] = []

    def other() -> None:
        _ = held + 1  # the thread is known from here on
        ready.wait()
        found.append(FIRST_READS[first](held))
        looked.set()

    thread = threading.Thread(target=other)
    thread.start()
    time.sleep(0.05)

    def function() -> None:
        x.add_(1)
        ready.set()
        looked.wait()

    compiled(function)()
    thread.join()
    assert found == [float(N)]


ONTO: dict[str, Callable[[tp.Tensor], tp.Tensor]] = {
    "copy": copy.copy,
    "set_": lambda t: tp.empty(0).set_(t.untyped_storage(), 0, t.shape),
    "set_ whole": lambda t: tp.empty(0).set_(t.untyped_storage()),
    "set_ typed": lambda t: tp.empty(0).set_(t.storage()),
    "set_ of a tensor": lambda t: tp.empty(0).set_(t),
    "data": lambda t: t.data,
    "as_subclass": lambda t: t.as_subclass(tp.nn.Parameter),
    "other elements": lambda t: t.view(tp.int32).view(tp.float32),
    "complex": lambda t: tp.view_as_real(tp.view_as_complex(t.view(-1, 2))),
    "lazy": lambda t: t._lazy_clone(),
}


@pytest.mark.parametrize("way", ONTO)
def test_another_thread_makes_a_tensor_on_the_memory(way: str, other: ThreadPoolExecutor) -> None:
    def function() -> Any:
        return other.submit(lambda t: ONTO[way](t).clone().flatten().tolist(), tp.ones(N) * 2).result()

    assert compiled(function)() == [2.0] * N


def test_small_results_wait_beside_other_threads(other: ThreadPoolExecutor) -> None:
    """Nobody else can have what an operator has just made."""
    x = tp.randn(512, 512)
    for function in (lambda: (x * 2).sum() * 2, lambda: ((x * 2).mean(), (x + 1 > 0).any()), lambda: (x * 2).amax()):
        follower = tp.compile(function)
        follower()
        assert follower._report()["flushes"] == 0 and follower._report()["calls"] > 1


@pytest.mark.parametrize(("first", "whole"), [*((first, False) for first in FIRST_READS), ("an operator", True)])
def test_writes_to_what_a_new_thread_reads_first(first: str, whole: bool) -> None:
    x, z = tp.zeros(N), tp.zeros(N)
    views = [x[:], z[:]]
    found: list[float] = []

    def function() -> None:
        x.add_(1)
        z.add_(2)
        thread = threading.Thread(target=lambda: found.extend(FIRST_READS[first](view) for view in views))
        thread.start()
        thread.join()

    tp.compile(function, fullgraph=whole)()
    assert found == [N, 2.0 * N]


def test_a_fork_inside() -> None:
    def function(x: tp.Tensor) -> tuple[tp.Tensor, int]:
        y = x * 2
        pid = os.fork()
        if pid == 0:
            os._exit(0 if (y + 1).sum().item() == N * (N - 1) + N else 1)
        return y, os.waitpid(pid, 0)[1]

    x = tp.arange(float(N))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y, status = compiled(function)(x)
    assert status == 0 and y.equal(x * 2)


# ---- what goes wrong ----


@pytest.mark.parametrize("numel", [N, 20])  # a tensor whose memory comes later, and one that has it
def test_failing_allocations(numel: int) -> None:
    """Each allocation of a call fails in turn: a MemoryError, no leak, and the function works afterwards."""

    def function(x: tp.Tensor, kept: list[tp.Tensor]) -> tp.Tensor:
        y = (x + 1) * 2
        kept.append(y)
        z = y.exp()
        if z[0] > 0:
            z = z - y
        return z.sum(0, keepdim=True) * y

    x = tp.randn(numel)
    for backend in ("aot_eager", "tensorpy"):
        fast = compiled(function, backend=backend)
        expected = shown(fast(x, []))
        gc.collect()
        before, failed = tp._C._memory_stats()["live_blocks"], 0
        for n in range(400):
            kept: list[tp.Tensor] = []
            tp._C._fail_allocation_after(n)
            try:
                fast(x, kept)
            except MemoryError:
                failed += 1
            finally:
                reached = not tp._C._fail_allocation_after(-1)
            for t in kept:
                try:
                    assert shown(t) == shown((x + 1) * 2)
                except RuntimeError as error:
                    assert "a tensor has no values" in str(error)
            if not reached:
                break
        assert not reached and failed > 10
        del kept, t
        gc.collect()
        assert tp._C._memory_stats()["live_blocks"] <= before + 8
        assert shown(fast(x, [])) == expected


def test_an_exception_in_the_middle() -> None:
    kept = []

    def function(x: tp.Tensor) -> None:
        kept.append(x * 2)
        x.add_(1)
        raise KeyError("mine")

    a, b = tp.arange(float(N)), tp.arange(float(N))
    with pytest.raises(KeyError, match="mine"):
        compiled(function)(a)
    with pytest.raises(KeyError, match="mine"):
        function(b)
    assert a.equal(b) and kept[0].equal(kept[1]) and (a + 1).equal(b + 1)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C raises, also where the tests run in the background, whose processes begin with the signal ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_in_the_middle() -> None:
    kept = []

    def function(x: tp.Tensor) -> None:
        kept.append(x * 2)
        signal.raise_signal(signal.SIGINT)
        kept.append(x * 3)

    x = tp.arange(float(N))
    with pytest.raises(KeyboardInterrupt):
        compiled(function)(x)
    assert len(kept) == 1 and kept[0].equal(x * 2) and compiled(lambda a: a + 1)(x).equal(x + 1)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_while_calls_run() -> None:
    """A handler raises while a group runs: the call ends with it, and tensors without contents say so."""
    kept = []

    def function(x: tp.Tensor) -> tp.Tensor:
        for _ in range(40):
            x = x.sin().exp().log1p().tanh()
        kept.append(x)
        return x

    x = tp.rand(3_000_000)
    timer = threading.Timer(0.15, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        compiled(function)(x)
    except KeyboardInterrupt:
        with pytest.raises(RuntimeError, match="a tensor has no values"):
            kept[0].sum()
    timer.join()
    time.sleep(0.01)
    assert compiled(lambda a: a + 1)(x).equal(x + 1)


def test_a_handler_that_computes_while_calls_run() -> None:
    found: list[Any] = []

    def handler(number: int, frame: Any) -> None:
        found.append((tp.ones(N) * 2).sum().item())

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
        x = tp.rand(2_000_000)
        got = compiled(lambda a: (a.sin() + a.exp()).tanh())(x)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert got.equal((x.sin() + x.exp()).tanh()) and set(found) <= {2.0 * N}


def test_nothing_is_kept() -> None:
    fast = compiled(lambda x: (x + 1).exp() * x)
    x = tp.randn(N)
    fast(x)
    gc.collect()
    before = tp._C._memory_stats()["live_blocks"]
    for _ in range(50):
        fast(x)
    gc.collect()
    assert tp._C._memory_stats()["live_blocks"] <= before + 2


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


MADE: dict[str, tuple[dict[str, Any], int]] = {
    "followed": ({"options": {"smallest": 0}}, 1),
    "replayed": ({"mode": "reduce-overhead"}, 6),
    "with gradients": ({"options": {"smallest": 0}}, 1),
}


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="a system that does not say it")
@pytest.mark.parametrize("name", MADE)
def test_functions_that_go_leave_nothing(name: str) -> None:
    """Ten thousand functions, each with closures, plans and tapes of its own."""
    how, calls = MADE[name]
    x = tp.randn(N)

    def one(i: int) -> None:
        fast = tp.compile(lambda a: (a * 2 + 1).exp() * i, **how)
        for _ in range(calls):
            given = x.clone().requires_grad_(name == "with gradients")
            y = fast(given)
            if y.requires_grad:
                y.sum().backward()

    for i in range(2000):
        one(i)
    gc.collect()
    before, blocks = resident(), tp._C._memory_stats()["live_blocks"]
    for i in range(10_000):
        one(i)
    gc.collect()
    assert tp._C._memory_stats()["live_blocks"] == blocks
    assert SANITIZED or resident() < before + (2 << 20)  # the sanitizer keeps for a while what was freed


@pytest.mark.parametrize("name", ["followed", "replayed"])
def test_sizes_that_vary_keep_few_tapes(name: str) -> None:
    """A followed function keeps nothing of a call, and a replayed one the tapes of the last kinds of arguments."""
    x = tp.randn(64)
    fast = tp.compile(lambda a: (a.cumsum(0) * 2 + 1).exp().sum(), **MADE[name][0])
    kept: list[int] = []
    for n in range(1, 61):
        for _ in range(6):
            assert fast(x[:n]).equal((x[:n].cumsum(0) * 2 + 1).exp().sum())
        gc.collect()
        kept.append(tp._C._memory_stats()["live_blocks"])
    assert max(kept) == kept[7] and (kept[0] == kept[7]) == (name == "followed")
