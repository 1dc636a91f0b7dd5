"""The OpenCL runtime: memory, queue, caches, errors, forks and exits, and which operators have kernels.

Without a driver these tests are skipped; what each operator computes is tested by the whole table with
`pytest --device=opencl`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import tensorpy as tp
import yaml
from codegen.__main__ import load_catalog

ROOT = Path(__file__).resolve().parent.parent
reason = tp.opencl.why_not_available()
needs_device = pytest.mark.skipif(reason is not None, reason=f"no OpenCL device: {reason}")


@pytest.fixture
def fallback() -> Iterator[None]:
    before = tp.opencl.fallback
    yield
    tp.opencl.fallback = before


def run(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A program in an interpreter of its own."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


def output_of(program: str, **environment: str) -> str:
    done = run(program, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# ---- without a driver ----


def test_import_opens_no_driver() -> None:
    program = """
        import tensorpy, tensorpy.opencl
        print("libOpenCL" in open("/proc/self/maps").read())
    """
    assert output_of(program) == "False"


def test_without_a_library() -> None:
    program = """
        import tensorpy as tp
        assert not tp.opencl.is_available() and tp.opencl.device_count() == 0
        assert "install a driver" in tp.opencl.why_not_available()
        try:
            tp.ones(3, device="opencl")
        except RuntimeError as e:
            print("OpenCL is not available" in str(e), tp.ones(3).sum().item())
    """
    assert output_of(program, TENSORPY_OPENCL_LIBRARY="libNothing.so") == "True 3.0"


def test_every_cpu_kernel_has_an_opencl_kernel_or_a_reason() -> None:
    groups = yaml.safe_load((ROOT / "yaml/opencl_exempt.yaml").read_text())
    exempt = [name for group in groups for name in group["operators"]]
    assert len(exempt) == len(set(exempt)) and all(group["reason"] for group in groups)
    missing = {
        str(op.schema.name)
        for op in load_catalog(ROOT / "yaml")
        if "CPU" in {k.key for k in op.kernels} and "OpenCL" not in {k.key for k in op.kernels}
    }
    assert missing == set(exempt)


# ---- devices ----


@needs_device
def test_devices() -> None:
    properties = tp.opencl.get_device_properties()
    assert properties.name and properties.total_memory > 0 and properties.multi_processor_count > 0
    assert tp.opencl.get_device_name("opencl:0") == tp.opencl.get_device_properties(0).name
    assert tp.ones(2, device="opencl").device == tp.device("opencl:0")
    with tp.opencl.device(0):
        assert tp.opencl.current_device() == 0
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        tp.ones(2, device="opencl:99")
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        tp.opencl.get_device_properties(99)


@needs_device
def test_two_devices_in_one_call_are_named() -> None:
    a, b = tp.ones(3, 3, device="opencl"), tp.ones(3, 3)
    for call in (lambda: a + b, lambda: a @ b, lambda: tp.cat([a, b])):
        with pytest.raises(RuntimeError, match=r"opencl:0.*cpu|cpu.*opencl:0"):
            call()
    assert (a + tp.tensor(2.0)).tolist() == [[3.0] * 3] * 3  # a number as a tensor goes with any device


# ---- copies and views ----


@needs_device
def test_copies_and_views() -> None:
    x = tp.arange(24, dtype=tp.float32).reshape(2, 3, 4)
    y = x.to("opencl")
    assert y.tolist() == x.tolist() and y.cpu().device.type == "cpu"
    assert y.permute(2, 0, 1)[1:, :, ::2].contiguous().tolist() == x.permute(2, 0, 1)[1:, :, ::2].tolist()
    view = y[1, :, 1]
    assert view.storage_offset() == x[1, :, 1].storage_offset() and view._base is y
    version = y._version
    view.zero_()
    assert y._version > version and y[1, :, 1].tolist() == [0.0] * 3 and y[0, 2, 3].item() == 11.0
    x[::, 1] = y.cpu()[::, 2]
    y[::, 1] = y[::, 2].clone()
    for dtype in (tp.int8, tp.uint8, tp.int64, tp.float16, tp.bfloat16, tp.complex64, tp.bool):
        assert y.to(dtype).cpu().tolist() == y.cpu().to(dtype).tolist()
    assert "device='opencl:0'" in repr(y)


@needs_device
def test_small_inputs_do_not_wait() -> None:
    """More of them in flight than there are slots to stage them in."""
    sent = [tp.full((3,), float(i)).to("opencl") for i in range(500)]
    assert [t[1].item() for t in sent] == [float(i) for i in range(500)]


# ---- memory ----


@needs_device
def test_memory_is_counted_and_reused() -> None:
    before = tp.opencl.memory_allocated()
    tp.opencl.reset_peak_memory_stats()
    t = tp.empty(1 << 20, device="opencl")
    assert tp.opencl.memory_allocated() == before + (4 << 20)
    assert tp.opencl.max_memory_allocated() >= before + (4 << 20)
    reserved = tp.opencl.memory_reserved()
    for _ in range(100):
        t = tp.empty(1 << 20, device="opencl")
    assert tp.opencl.memory_reserved() <= reserved + (20 << 20)
    del t
    assert tp.opencl.memory_allocated() == before
    tp.opencl.empty_cache()
    assert tp.opencl.memory_reserved() < reserved
    assert "in tensors" in tp.opencl.memory_summary()


@needs_device
def test_blocks_do_not_share_bytes() -> None:
    kept = [tp.full((n,), float(n), device="opencl") for n in range(1, 400, 7)]
    for t in kept[::2]:
        t.fill_(-1.0)
    del kept[::3]
    more = [tp.zeros(n, device="opencl") for n in range(1, 900, 13)]
    assert all(set(t.tolist()) in ({float(t.numel())}, {-1.0}) for t in kept)
    assert not any(any(t.tolist()) for t in more)


@needs_device
def test_out_of_memory_is_an_error_and_passes() -> None:
    tp.opencl.empty_cache()
    tp.opencl.set_memory_limit(tp.opencl.memory_reserved() + (64 << 20))
    try:
        kept = [tp.empty(4 << 20, device="opencl") for _ in range(3)]
        with pytest.raises(RuntimeError, match=r"out of memory: opencl:0 .* a limit of"):
            tp.empty(8 << 20, device="opencl")
        del kept
        assert tp.ones(8 << 20, device="opencl")[5].item() == 1.0  # what was free is given back for it
    finally:
        tp.opencl.set_memory_limit(0)
    with pytest.raises(RuntimeError, match="out of memory"):
        tp.empty(1 << 45, device="opencl")


@needs_device
def test_training_steps_do_not_grow_memory() -> None:
    w = tp.ones(16, 16, device="opencl", requires_grad=True)
    x = tp.ones(4, 16, device="opencl")
    seen = []
    for step in range(300):
        loss = ((x @ w).sigmoid() ** 2).sum()
        loss.backward()
        with tp.no_grad():
            w -= 0.01 * w.grad
        w.grad = None
        if step % 100 == 99:
            del loss
            seen.append((tp.opencl.memory_allocated(), tp.opencl.memory_reserved()))
    assert seen[0] == seen[-1]


# ---- the queue ----


@needs_device
def test_events() -> None:
    a = tp.ones(1 << 16, device="opencl")
    begin, end = tp.opencl.Event(enable_timing=True), tp.opencl.Event(enable_timing=True)
    begin.record()
    for _ in range(10):
        a = a * 1.5
    end.record()
    end.synchronize()
    assert end.query() and begin.elapsed_time(end) >= 0
    stream = tp.opencl.current_stream()
    stream.synchronize()
    patience = time.monotonic() + 10
    while not stream.query():
        assert time.monotonic() < patience
    assert stream == tp.opencl.Stream(0)
    with pytest.raises(RuntimeError, match="recorded"):
        tp.opencl.Event().elapsed_time(end)
    tp.opencl.synchronize()


# ---- caches ----


@needs_device
def test_second_call_builds_nothing() -> None:
    def step() -> None:
        a = tp.ones(5, 7, device="opencl")
        ((a * 2 + a.t().contiguous().t()).exp().sum(0) @ a.t()).softmax(0).tolist()

    step()
    before = tp.opencl.cache_info()
    step()
    after = tp.opencl.cache_info()
    assert after["built"] == before["built"] and after["kernel_misses"] == before["kernel_misses"]
    assert after["plan_misses"] == before["plan_misses"] and after["plan_hits"] > before["plan_hits"]


PROGRAM = """
    import tensorpy as tp
    a = tp.ones(3, device="opencl")
    print((a * 2.5).tolist(), tp.opencl.cache_info()["built"], tp.opencl.cache_info()["from_disk"])
"""


@needs_device
def test_programs_are_kept_on_disk(tmp_path: Path) -> None:
    home = {"XDG_CACHE_HOME": str(tmp_path)}
    assert output_of(PROGRAM, **home) == "[2.5, 2.5, 2.5] 1 0"
    assert output_of(PROGRAM, **home) == "[2.5, 2.5, 2.5] 0 1"
    files = list((tmp_path / "tensorpy/opencl").glob("*.bin"))
    assert files and not list((tmp_path / "tensorpy/opencl").glob("*.new"))
    for file in files:
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 0xFF
        file.write_bytes(content)
    assert output_of(PROGRAM, **home) == "[2.5, 2.5, 2.5] 1 0"
    for file in files:
        file.write_bytes(b"")
    assert output_of(PROGRAM, **home) == "[2.5, 2.5, 2.5] 1 0"
    assert output_of(PROGRAM, **home) == "[2.5, 2.5, 2.5] 0 1"


@needs_device
def test_a_folder_that_cannot_be_written_is_no_cache(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    assert output_of(PROGRAM, TENSORPY_OPENCL_CACHE=str(blocked / "inside")) == "[2.5, 2.5, 2.5] 1 0"
    assert output_of(PROGRAM, TENSORPY_OPENCL_CACHE="") == "[2.5, 2.5, 2.5] 1 0"


# ---- processes ----


@needs_device
def test_a_forked_child_gets_an_error() -> None:
    program = """
        import os, sys
        import tensorpy as tp
        a = tp.ones(3, device="opencl")
        child = os.fork()
        if child == 0:
            try:
                print((a + 1).tolist())
            except RuntimeError as e:
                print("forked" in str(e), tp.ones(2).sum().item(), flush=True)
            del a
            os._exit(0)
        os.waitpid(child, 0)
        print((a + 1).tolist())
    """
    assert output_of(program).splitlines() == ["True 2.0", "[2.0, 2.0, 2.0]"]


@needs_device
def test_exit_with_work_in_the_queue(tmp_path: Path) -> None:
    """Kernels among it that are not compiled yet."""
    program = """
        import tensorpy as tp
        kept = tp.ones(1 << 20, device="opencl")
        for _ in range(20):
            kept = kept * 1.0001
        kept = kept.exp().sum(0) + kept[::3].sin().sum()
        print("done")
    """
    assert output_of(program, TENSORPY_OPENCL_CACHE="", POCL_CACHE_DIR=str(tmp_path)) == "done"


# ---- operators ----


@needs_device
def test_fallback(fallback: None) -> None:
    a = tp.arange(16.0, device="opencl").reshape(1, 1, 4, 4)
    pool = tp.nn.functional.avg_pool2d
    tp.opencl.fallback = "error"
    with pytest.raises(NotImplementedError, match="no OpenCL kernel"):
        pool(a, 2)
    tp.opencl.fallback = "allow"
    before = tp.opencl.fallback_counts().get("avg_pool2d", 0)
    means = pool(a, 2)
    assert means.flatten().tolist() == [2.5, 4.5, 10.5, 12.5] and means.device == a.device
    assert tp.opencl.fallback_counts()["avg_pool2d"] == before + 1
    with pytest.raises(ValueError, match=r"error.*warn.*allow"):
        tp.opencl.fallback = "sometimes"


@needs_device
def test_fallback_with_results_left_out(fallback: None) -> None:
    """The gradient of the input is not wanted, those behind it are."""
    tp.opencl.fallback = "allow"
    tp.manual_seed(2)
    x, w = tp.randn(2, 1, 6, 6), tp.randn(3, 1, 3, 3)
    grads = []
    for device in ("cpu", "opencl"):
        weight, bias = w.detach().to(device).clone().requires_grad_(), tp.zeros(3, device=device, requires_grad=True)
        tp.nn.functional.conv2d(x.to(device), weight, bias).sin().sum().backward()
        grads.append((weight.grad.cpu(), bias.grad.cpu()))
    tp.testing.assert_close(grads[1], grads[0], rtol=1e-4, atol=1e-4)


@needs_device
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_cross_entropy(reduction: str) -> None:
    tp.manual_seed(2)
    x, target, weight = tp.randn(6, 4), tp.tensor([0, 3, -100, 1, 2, 3]), tp.rand(4)
    results = []
    for device in ("cpu", "opencl"):
        a = x.detach().to(device).clone().requires_grad_()
        loss = tp.nn.functional.cross_entropy(a, target.to(device), weight.to(device), reduction=reduction)
        loss.sum().backward()
        results.append((loss.detach().cpu(), a.grad.cpu()))
    tp.testing.assert_close(results[1], results[0])
    with pytest.raises(IndexError, match="out of bounds"):
        tp.nn.functional.nll_loss(x.detach().to("opencl"), tp.full((6,), 4, dtype=tp.int64, device="opencl")).item()


@needs_device
def test_fallback_warns_once() -> None:
    program = """
        import warnings
        import tensorpy as tp
        from tensorpy.nn.functional import avg_pool2d, max_pool2d
        a = tp.ones(1, 1, 4, 4, device="opencl")
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            avg_pool2d(a, 2), avg_pool2d(a, 2), max_pool2d(a, 2)
        print(len(seen), tp.opencl.fallback)
    """
    assert output_of(program) == "2 warn"


@needs_device
def test_random_numbers_are_those_of_the_cpu() -> None:
    for draw in (
        lambda d: tp.rand(1001, device=d),
        lambda d: tp.rand(1001, dtype=tp.float16, device=d),
        lambda d: tp.randint(-5, 1 << 40, (77,), device=d),
        lambda d: tp.empty(1003, dtype=tp.float64, device=d).uniform_(),
        lambda d: tp.empty(1003, device=d).bernoulli_(0.3),
    ):
        tp.manual_seed(3)
        expected = draw("cpu").tolist()
        tp.manual_seed(3)
        assert draw("opencl").tolist() == expected
    tp.manual_seed(3)
    normal = tp.randn(1001)
    tp.opencl.manual_seed(3)
    tp.testing.assert_close(tp.randn(1001, device="opencl").cpu(), normal, rtol=3e-7, atol=1e-7)


@needs_device
@pytest.mark.parametrize("shape", [(1000, 300), (3, 100_000), (257,), (5, 6, 7)])
def test_reductions_of_many_shapes(shape: tuple[int, ...]) -> None:
    tp.manual_seed(1)
    x = tp.randn(*shape, dtype=tp.float64)
    y = x.to("opencl")
    for dim in (None, 0, -1):
        args = () if dim is None else (dim,)
        tp.testing.assert_close(y.sum(*args).cpu(), x.sum(*args))
        tp.testing.assert_close(y.var(*args).cpu(), x.var(*args))
        assert y.argmax(*args).tolist() == x.argmax(*args).tolist()


@needs_device
@pytest.mark.parametrize("m,k,n", [(1, 5, 3), (7, 5, 3), (8, 16, 16), (33, 70, 45), (100, 64, 130)])
def test_products_of_many_shapes(m: int, k: int, n: int) -> None:
    tp.manual_seed(1)
    a, b = tp.randn(m, k, dtype=tp.float64), tp.randn(k, n, dtype=tp.float64)
    x, y = a.to("opencl"), b.to("opencl")
    tp.testing.assert_close((x @ y).cpu(), a @ b)
    tp.testing.assert_close((x.t().contiguous().t() @ y).cpu(), a @ b)
    tp.testing.assert_close((x @ y.t().contiguous().t()).cpu(), a @ b)
    tp.testing.assert_close((x.to(tp.complex64) @ y.to(tp.complex64)).cpu().real, (a @ b).float(), rtol=1e-4, atol=1e-4)


def misuse(a: tp.Tensor) -> list[tuple[str, type[Exception], Callable[[], tp.Tensor]]]:
    """Calls with an index that is out of range, the name that the error gives, and its class."""
    far = tp.tensor([0, 7], device="opencl")
    return [
        ("index", IndexError, lambda: a[far]),
        ("index", IndexError, lambda: a[far, tp.tensor([-1, 0], device="opencl")]),
        ("index_select", IndexError, lambda: a.index_select(0, far)),
        ("gather", RuntimeError, lambda: a.gather(1, far[None])),
        ("scatter", RuntimeError, lambda: a.clone().scatter_(1, far[None], 1.0)),
        ("index_put_", IndexError, lambda: a.clone().index_put_((far,), a[:2])),
        ("put_", IndexError, lambda: a.clone().put_(far * 9, a[0, :2])),
        ("embedding", IndexError, lambda: tp.nn.functional.embedding(far, a)),
        ("masked_scatter_", RuntimeError, lambda: a.clone().masked_scatter_(a > 0, a[0])),
        ("multinomial", RuntimeError, lambda: (-a).multinomial(1)),
    ]


@pytest.fixture
def check_indices() -> Iterator[None]:
    before = tp.opencl.check_indices
    yield
    tp.opencl.check_indices = before


@needs_device
@pytest.mark.parametrize("mode", ["deferred", "sync"])
def test_an_index_out_of_range(mode: str, check_indices: None) -> None:
    """In the call at fault, or where the host waits next: under that operator's name, once."""
    tp.opencl.check_indices = mode
    a = tp.ones(3, 4, device="opencl")
    for name, cls, call in misuse(a):
        if mode == "sync":
            with pytest.raises(cls, match=f"^{name}: "):
                call()
        else:
            made = call()
            (a + 1).index_select(0, tp.tensor([9], device="opencl"))  # a second fault, behind the first
            with pytest.raises(cls, match=rf"^{name}: (?s:.*)check_indices"):
                made.tolist()
        assert a.sum().item() == 12.0  # nothing was written, and the process goes on
    with pytest.raises(ValueError, match=r"deferred.*sync"):
        tp.opencl.check_indices = "never"


@needs_device
def test_an_index_out_of_range_is_not_lost() -> None:
    """Nobody waits: the process says so at its end. synchronize() waits."""
    program = """
        import tensorpy as tp
        a = tp.ones(3, device="opencl")
        try:
            a[tp.tensor([5], device="opencl")]
            tp.opencl.synchronize()
        except IndexError as e:
            print("index 5 is out of bounds for dimension 0 with size 3" in str(e))
        a[tp.tensor([8], device="opencl")]
    """
    done = run(program)
    assert done.stdout.strip() == "True" and "index: index 8 is out of bounds" in done.stderr


@needs_device
def test_a_value_through_a_mask_does_not_count_it() -> None:
    a = tp.arange(24.0).reshape(2, 3, 4)
    b, mask = a.to("opencl"), a[:, :, 0] > 5
    for t, m in ((a, mask), (b, mask.to("opencl"))):
        t[m] = -1
        t[0, :, 1:3][m[0]] = t[0, 0, 0]
    assert b.tolist() == a.tolist() and b[mask.to("opencl")].tolist() == a[mask].tolist()


@needs_device
@pytest.mark.parametrize("tuning", ["cpu", "gpu"])
def test_lines_of_many_lengths(tuning: str) -> None:
    """Sorts, selections, scans and masks over blocks, parts and groups that are full or not."""
    program = """
        import tensorpy as tp
        tp.opencl.fallback = "error"
        tp.manual_seed(1)

        def check(name, f, t):
            want, got = f(t), f(t.to("opencl"))
            for a, b in zip(*((x,) if isinstance(x, tp.Tensor) else x for x in (want, got)), strict=True):
                assert a.tolist() == b.tolist(), (name, t.shape)

        for shape in ((33,), (1000,), (3, 70), (40000,), (2, 17000)):
            t = tp.randint(-300, 300, shape)
            n = shape[-1]
            check("sort", lambda t: t.sort(dim=-1, descending=True, stable=True), t)
            check("few", lambda t: t.topk(n // 20), t)
            check("many", lambda t: t.topk(n // 2, largest=False), t)
            check("place", lambda t: t.kthvalue(n // 3), t)
            check("mode", lambda t: t.mode(), t)
            check("nonzero", lambda t: (t > 99).nonzero(), t)
            check("cumsum", lambda t: t.cumsum(-1), t)
            check("cummax", lambda t: t.cummax(0), t)
            check("unique", lambda t: tp.unique(t, return_inverse=True, return_counts=True), t)
        rows = tp.randint(0, 3, (900, 3))
        check("rows", lambda t: tp.unique(t, dim=0, return_inverse=True, return_counts=True), rows)
        print("done")
    """
    assert output_of(program, TENSORPY_OPENCL_TUNING=tuning) == "done"


@needs_device
def test_kernels_for_gpus() -> None:
    """What is chosen on a GPU (work-groups in local memory, tiles), on whatever device there is."""
    program = """
        import tensorpy as tp
        assert not tp.opencl.get_device_properties().is_cpu
        tp.manual_seed(1)
        x = tp.randn(70, 300, dtype=tp.float64)
        y = x.to("opencl")
        close = lambda a, b: tp.testing.assert_close(a.cpu(), b)
        for dim in (0, 1, (0, 1)):
            close(y.sum(dim), x.sum(dim)), close(y.var(dim), x.var(dim)), close(y.amax(dim), x.amax(dim))
        close(y.argmax(1), x.argmax(1)), close(y.argmin(0), x.argmin(0)), close(y.argmax(), x.argmax())
        close(y.softmax(1), x.softmax(1)), close(y.log_softmax(0), x.log_softmax(0))
        close(y @ y.t(), x @ x.t()), close(y.t() @ y, x.t() @ x)
        close(y.t() + y.new_ones(70), x.t() + x.new_ones(70))
        print("done")
    """
    assert output_of(program, TENSORPY_OPENCL_TUNING="gpu") == "done"


@needs_device
def test_examples_of_the_page() -> None:
    page = (ROOT / "docs/opencl.md").read_text()
    for example in re.findall(r"```python\n(.*?)```", page, re.S):
        exec(compile(example, "docs/opencl.md", "exec"), {})
