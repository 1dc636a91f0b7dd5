"""OpenCL: which operators have kernels, and what kernels give where the table of samples is too small to tell.

Without a driver these tests are skipped; what each operator computes is tested by the whole table with
`pytest --device=opencl`. The runtime is tested in test_opencl_runtime.py, its faults in test_opencl_faults.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from opencl_programs import ROOT, needs_device, output_of, run

import tensorpy as tp
import yaml
from codegen.__main__ import load_catalog


@pytest.fixture
def fallback() -> Iterator[None]:
    before = tp.opencl.fallback
    yield
    tp.opencl.fallback = before


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
@pytest.mark.parametrize("tuning", ["cpu", "gpu"])
def test_large_calls(tuning: str) -> None:
    program = "import sys, opencl_large; sys.argv[1:] = ['opencl']; sys.exit(opencl_large.main())"
    done = run(program, PYTHONPATH=f"{ROOT}:{ROOT / 'tests'}", TENSORPY_OPENCL_TUNING=tuning)
    assert done.returncode == 0, "\n".join(line for line in done.stdout.splitlines() if not line.endswith(": equal"))


@needs_device
def test_examples_of_the_page() -> None:
    page = (ROOT / "docs/opencl.md").read_text()
    names: dict[str, object] = {}
    for example in re.findall(r"```python\n(.*?)```", page, re.S):
        exec(compile(example, "docs/opencl.md", "exec"), names)
