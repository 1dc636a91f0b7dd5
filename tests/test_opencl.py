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
from collections.abc import Iterator
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


@needs_device
def test_training_a_network_does_not_grow_memory() -> None:
    """Neither the device's nor the host's, of which some pages are let pass."""
    program = """
        import tensorpy as tp
        import tensorpy.nn.functional as F

        tp.opencl.fallback = "error"
        tp.manual_seed(1)
        shapes = [(8, 1, 3, 3), (8,), (10, 128), (10,)]
        weights = [(0.1 * tp.randn(*shape)).to("opencl").requires_grad_() for shape in shapes]
        images, labels = tp.rand(8, 1, 8, 8), tp.randint(0, 10, (8,))

        def resident():
            return int(open("/proc/self/statm").read().split()[1])

        seen = []
        for step in range(400):
            x = F.conv2d(images.to("opencl"), weights[0], weights[1], padding=1)
            x = F.dropout(F.max_pool2d(F.batch_norm(x, None, None, training=True).relu(), 2).flatten(1), 0.25)
            loss = F.cross_entropy(F.linear(x, weights[2], weights[3]), labels.to("opencl"))
            loss.backward()
            with tp.no_grad():
                for w in weights:
                    w -= 0.01 * w.grad
                    w.grad = None
            if step % 100 == 99:
                assert loss.item() > 0
                del x, loss
                seen.append((tp.opencl.memory_allocated(), tp.opencl.memory_reserved(), resident()))
        assert seen[1][:2] == seen[-1][:2] and seen[-1][2] - seen[1][2] < 128, seen
        print("done")
    """
    assert output_of(program) == "done"


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
    a = tp.tensor([3.0, 1.0, 2.0], device="opencl")
    tp.opencl.fallback = "error"
    with pytest.raises(NotImplementedError, match="no OpenCL kernel"):
        a.sort()
    tp.opencl.fallback = "allow"
    before = tp.opencl.fallback_counts().get("sort.stable", 0)
    values, places = a.sort()
    assert values.tolist() == [1.0, 2.0, 3.0] and places.tolist() == [1, 2, 0]
    assert values.device == places.device == a.device
    assert tp.opencl.fallback_counts()["sort.stable"] == before + 1
    assert f"{before + 1} calls" in tp.dispatch.explain("sort.stable", a)
    assert sorted(tp.randperm(5, device="opencl").tolist()) == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match=r"error.*warn.*allow"):
        tp.opencl.fallback = "sometimes"


@needs_device
def test_gradients_left_out() -> None:
    """The gradient of the input is not wanted, those behind it are."""
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
        tp.nn.functional.nll_loss(x.detach().to("opencl"), tp.full((6,), 4, dtype=tp.int64, device="opencl"))


@needs_device
def test_fallback_warns_once() -> None:
    program = """
        import warnings
        import tensorpy as tp
        a = tp.tensor([3.0, 1.0], device="opencl")
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            a.sort(), a.sort(), a.topk(1)
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


NETWORKS = """
    import tensorpy as tp
    import tensorpy.nn.functional as F

    tp.opencl.fallback = "error"
    tp.manual_seed(1)

    def check(f, *tensors):
        results = []
        for device in ("cpu", "opencl"):
            leaves = [t.detach().to(device).clone().requires_grad_() for t in tensors]
            out = f(*leaves)
            (out.sin() * out).sum().backward()
            results.append([out.detach().cpu(), *(leaf.grad.cpu() for leaf in leaves)])
        for got, expected in zip(results[1], results[0], strict=True):
            tp.testing.assert_close(got, expected, rtol=1e-8, atol=1e-8)

    def randn(*shape):
        return tp.randn(*shape, dtype=tp.float64)
"""


@needs_device
@pytest.mark.parametrize("tuning", ["cpu", "gpu"])
def test_convolutions_of_many_shapes(tuning: str) -> None:
    program = """
        for n, c, o, h, w, k, stride, padding, dilation, groups in (
            (2, 3, 5, 8, 8, 3, 1, 1, 1, 1), (2, 4, 6, 9, 7, 3, 2, 1, 1, 2), (1, 2, 70, 11, 13, 3, 3, 2, 2, 1),
            (3, 6, 6, 5, 19, 3, 1, 1, 1, 6), (2, 4, 4, 9, 17, 3, 2, 1, 2, 4), (2, 16, 32, 8, 8, 3, 1, 1, 1, 1),
            (2, 3, 40, 7, 5, 1, 1, 0, 1, 1), (2, 5, 33, 6, 6, 1, 2, 0, 1, 1), (2, 3, 4, 6, 6, 2, 1, 3, 1, 1),
            (2, 8, 8, 4, 4, 4, 1, 0, 1, 1), (1, 2, 3, 3, 3, 2, 1, 40, 1, 1),
        ):
            x, weight, bias = randn(n, c, h, w), randn(o, c // groups, k, k), randn(o)
            check(lambda x, w, b: F.conv2d(x, w, b, stride, padding, dilation, groups), x, weight, bias)
            weight, less = randn(c, o // groups, k, k), min(padding, (k - 1) * dilation)
            check(lambda x, w, b: F.conv_transpose2d(x, w, b, stride, less, 0, groups, dilation), x, weight, bias)
        check(lambda x, w: F.conv1d(x, w, stride=2, padding=1), randn(2, 3, 15), randn(4, 3, 3))
        check(lambda x, w: F.conv3d(x, w, stride=(1, 2, 1), padding=1), randn(2, 3, 5, 6, 7), randn(4, 3, 3, 2, 3))
        print("done")
    """
    assert output_of(textwrap.dedent(NETWORKS) + textwrap.dedent(program), TENSORPY_OPENCL_TUNING=tuning) == "done"


@needs_device
@pytest.mark.parametrize("tuning", ["cpu", "gpu"])
def test_networks_of_many_shapes(tuning: str) -> None:
    program = """
        for shape in ((2, 6, 5, 7), (3, 4, 4, 36), (2, 2, 9, 40)):
            x, c = randn(*shape), shape[1]
            check(lambda x: F.max_pool2d(x, 2), x), check(lambda x: F.max_pool2d(x, 3, 2, 1), x)
            check(lambda x: F.max_pool2d(x, 2, 1, 1, 2), x), check(lambda x: F.avg_pool2d(x, 3, 2, 1), x)
            check(lambda x: F.avg_pool2d(x, 2, ceil_mode=True, count_include_pad=False), x)
            check(lambda x: F.adaptive_avg_pool2d(x, (3, 8)), x), check(lambda x: F.adaptive_max_pool2d(x, (3, 2)), x)
            check(lambda x: F.max_pool3d(x, 2), x), check(lambda x: F.avg_pool3d(x, 2), x)
            check(lambda x, w, b: F.batch_norm(x, None, None, w, b, True), x, randn(c), randn(c))
            check(lambda x, w, b: F.group_norm(x, 2, w, b), x, randn(c), randn(c))
            check(lambda x, w, b: F.layer_norm(x, w.shape, w, b), x, randn(*shape[2:]), randn(*shape[2:]))
            check(lambda x: F.layer_norm(x, (shape[-1],)), x)
            check(lambda x: F.fold(F.unfold(x, (3, 2), 1, 1, (2, 1)), x.shape[2:], (3, 2), 1, 1, (2, 1)), x)
            for dim in range(4):
                check(lambda x: x.softmax(dim), x), check(lambda x: x.log_softmax(dim), x)
                check(lambda x: x.logcumsumexp(dim), x)
        check(lambda x, w: F.batch_norm(x, None, None, w, None, True), randn(33, 5), randn(5))
        means = []
        for device in ("cpu", "opencl"):
            mean, var = tp.zeros(3, device=device), tp.ones(3, device=device)
            x = tp.arange(48.0).reshape(4, 3, 4).to(device)
            F.batch_norm(x, mean, var, training=True)
            means.append((mean.cpu(), var.cpu(), F.batch_norm(x, mean, var).cpu()))
        tp.testing.assert_close(means[1], means[0])
        print("done")
    """
    assert output_of(textwrap.dedent(NETWORKS) + textwrap.dedent(program), TENSORPY_OPENCL_TUNING=tuning) == "done"


@needs_device
def test_an_index_out_of_range() -> None:
    a = tp.ones(3, 4, device="opencl")
    with pytest.raises(IndexError, match="out of bounds"):
        a[tp.tensor([0, 3], device="opencl")]
    with pytest.raises(RuntimeError, match="out of bounds"):
        a.gather(1, tp.tensor([[7]], device="opencl"))
    assert a.sum().item() == 12.0  # the process goes on


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
