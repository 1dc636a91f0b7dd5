"""Saved plans on OpenCL: the function's bits, from Python and from C programs; devices and kernels that are not there;
faults."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fake_opencl
import pytest
from opencl_programs import needs_device, output_of
from test_saved_plan import LIBRARY, PROGRAMS, ROOT, compiled, heard, made_small, needs_library, same

import tensorpy as tp
from tensorpy import _C, nn
from tensorpy.nn import functional as F

pytestmark = needs_device


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    before = tp.opencl.fused_kernels, tp.opencl.fallback
    tp.opencl.fused_kernels, tp.opencl.fallback = "wait", "allow"
    yield
    tp.opencl.fused_kernels, tp.opencl.fallback = before


def on_device(*args: tp.Tensor) -> tuple[tp.Tensor, ...]:
    return tuple(t.to("opencl") for t in args)


def on_host(results: Any) -> Any:
    return results.cpu() if isinstance(results, tp.Tensor) else [t.cpu() for t in results]


@pytest.mark.parametrize(
    "name", ["mlp", "convolution", "attention", "views", "integers", "halves", "nothing", "words", "in place"]
)
def test_the_same_bits(name: str, tmp_path: Path) -> None:
    """Of tensors of the device, and of the CPU, which travel."""
    make, arguments = PROGRAMS[name]
    tp.manual_seed(1)
    function, args = make(), arguments()
    if isinstance(function, nn.Module):
        function = function.to("opencl")
    tp.compiler.save_plan(function, on_device(*args), tmp_path / "a.plan")
    plan = tp.compiler.load_plan(tmp_path / "a.plan", "opencl")
    with tp.no_grad():
        for given in (args, arguments()):
            want = on_host(function(*on_device(*given)))
            want = want[0] if not isinstance(want, tp.Tensor) and len(want) == 1 else want
            for inputs in (given, on_device(*given)):
                results = plan(*inputs)
                assert (results if isinstance(results, tp.Tensor) else results[0]).device.type == "opencl"
                assert same(on_host(results), want)


def block(x: tp.Tensor) -> tuple[tp.Tensor, tp.Tensor]:
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True), (e * 2 + 1).tanh()


def test_a_plan_names_no_device(tmp_path: Path) -> None:
    """It is saved from tensors of the one, and runs on the other, too, with the bits of that one."""
    x = tp.rand(20, 64)
    for source in (x, x.to("opencl")):
        tp.compiler.save_plan(block, (source,), tmp_path / "a.plan")
        for device in ("cpu", "opencl"):
            assert same(on_host(tp.compiler.load_plan(tmp_path / "a.plan", device)(x)), on_host(block(x.to(device))))


def test_until_the_kernels_are_there(tmp_path: Path) -> None:
    """What is joined runs call by call."""
    tp.opencl.fused_kernels = "background"
    x = tp.rand(33, 192).to("opencl")
    tp.compiler.save_plan(lambda x: block(x * 1.25), (x,), tmp_path / "a.plan")
    plan, want = tp.compiler.load_plan(tmp_path / "a.plan", "opencl"), on_host(block(x * 1.25))
    for _ in range(3):
        assert same(on_host(plan(x)), want)
    _C._opencl.await_builds()
    before = tp.opencl.cache_info()["plan_hits"]
    assert same(on_host(plan(x)), want) and tp.opencl.cache_info()["plan_hits"] - before < 5


def test_what_cannot_be(tmp_path: Path) -> None:
    x = tp.rand(4)
    with pytest.raises(RuntimeError, match="not on one device"):
        tp.compiler.save_plan(lambda a, b: a * b.cpu(), (x, x.to("opencl")), tmp_path / "a.plan")
    with pytest.raises(RuntimeError, match=r"another layout or device|another one"):
        tp.compiler.save_plan(lambda a: a * 2 + x.to("opencl"), (x.to("opencl"),), tmp_path / "a.plan")
    with pytest.raises(RuntimeError, match="not on one device"):
        tp.compiler.save_plan(lambda a: a * 2, (x.to("meta"),), tmp_path / "a.plan")
    tp.compiler.save_plan(lambda a: a * 2, (x,), tmp_path / "a.plan")
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        tp.compiler.load_plan(tmp_path / "a.plan", "opencl:77")
    with pytest.raises(RuntimeError, match="of the CPU, or of its device"):
        tp.compiler.load_plan(tmp_path / "a.plan")(x.to("opencl"))


def test_an_index_that_is_wrong(tmp_path: Path) -> None:
    w = tp.rand(10, 4).to("opencl")
    tp.compiler.save_plan(lambda i: F.embedding(i, w) * 2, on_device(tp.tensor([1, 2])), tmp_path / "a.plan")
    plan = tp.compiler.load_plan(tmp_path / "a.plan", "opencl")
    with pytest.raises(IndexError, match="index 30 is out of bounds"):
        plan(tp.tensor([1, 30])).cpu()  # type: ignore[union-attr]
    assert same(on_host(plan(tp.tensor([3, 4]))), (w[3:5] * 2).cpu())


def test_failing_allocations(tmp_path: Path) -> None:
    x = tp.rand(6, 64).to("opencl")
    tp.compiler.save_plan(block, (x,), tmp_path / "a.plan")
    data, plan = (tmp_path / "a.plan").read_bytes(), tp.compiler.load_plan(tmp_path / "a.plan", "opencl")
    want = on_host(block(x))
    for what in (lambda: _C._save_plan(block, (x,)), lambda: _C._load_plan(data, "opencl"), lambda: plan(x)):
        failed = 0
        for count in range(1000):
            _C._fail_allocation_after(count)
            try:
                with tp.no_grad():
                    what()
                break
            except (MemoryError, RuntimeError):
                failed += 1
            finally:
                _C._fail_allocation_after(-1)
        assert 0 < failed < 1000
        assert same(on_host(plan(x)), want)


@pytest.mark.parametrize("call", ["clEnqueueNDRangeKernel", "clSetKernelArg", "clEnqueueReadBuffer", "clBuildProgram"])
def test_a_driver_that_fails(call: str, tmp_path: Path) -> None:
    """An error of the run, or, of a kernel of several calls, one kernel for each of them; the next run is right."""
    fake = {"TENSORPY_OPENCL_LIBRARY": str(fake_opencl.build(tmp_path)), "TENSORPY_OPENCL_CACHE": ""}
    program = f"""
        import ctypes, os
        import tensorpy as tp
        from test_saved_plan_opencl import block, same
        fake = ctypes.CDLL(os.environ["TENSORPY_OPENCL_LIBRARY"])
        x = tp.arange(6 * 64.0).reshape(6, 64).mul(0.01)
        block(x.to("opencl"))
        tp.compiler.save_plan(block, (x,), {str(tmp_path / "a.plan")!r})
        plan = tp.compiler.load_plan({str(tmp_path / "a.plan")!r}, "opencl")
        want = [t.cpu() for t in block(x.to("opencl"))]
        fake.fail_call(b"{call}", 1, 1, -6)
        try:
            print([t.cpu() for t in plan(x)] and "none")
        except RuntimeError as error:
            print("{call} failed" in str(error))
        print(all(same([t.cpu() for t in plan(x)], want) for _ in range(2)))
    """
    path = ":".join(str(ROOT / name) for name in ("", "tests", "tests/tracing"))
    said = output_of(program, TENSORPY_OPENCL_FUSED_KERNELS="wait", PYTHONPATH=path, **fake).split()
    assert said == ["none" if call == "clBuildProgram" else "True", "True"]


# ---- C ----


@needs_library
@pytest.mark.parametrize(
    "name, plan, text", [("digit", "digits.plan", "image.txt"), ("train", "train.plan", "digits.txt")]
)
def test_c_programs(name: str, plan: str, text: str, tmp_path: Path) -> None:
    """The whole library and the small one on OpenCL say what the CPU says, to the last digit that is printed."""
    pytest.importorskip("sklearn")
    script = ROOT / "examples" / "plan_in_c" / ("save.py" if name == "digit" else "train.py")
    how = ["--epochs", "1"] if name == "digit" else []
    subprocess.run(
        [sys.executable, str(script), *how, "--out", str(tmp_path)], check=True, capture_output=True, timeout=300
    )
    words = [str(tmp_path / plan), *([str(tmp_path / "weights.bin")] if name == "train" else [])]
    text = (tmp_path / text).read_text()
    whole = compiled(script.parent / f"{name}.c", LIBRARY, tmp_path / "whole")
    right = heard(whole, *words, text=text)
    assert right[0] == 0
    assert heard(whole, *words, "opencl", text=text) == right
    code, error = heard(whole, *words, "opencl:55", text=text)
    assert code == 1 and "invalid device ordinal: opencl:55" in error
    assert "runs on cpu or opencl" in heard(whole, *words, "meta", text=text)[1]
    none = heard(whole, *words, "opencl", text=text, TENSORPY_OPENCL_LIBRARY="libNothing.so")
    assert none[0] == 1 and "OpenCL is not available" in none[1]

    made_small(Path(words[0]), tmp_path / "only", "opencl").check_returncode()
    small = compiled(script.parent / f"{name}.c", tmp_path / "only" / "libtensorpy_only.a", tmp_path / "small")
    assert Path(small).stat().st_size < 1_000_000
    assert heard(small, *words, "opencl", text=text) == right
    assert "which this build has not for cpu" in heard(small, *words, text=text)[1]


@needs_library
def test_a_small_library_without_opencl(tmp_path: Path) -> None:
    """It says so; and calls of map on large tensors, which are joined, are there on both devices."""
    function: Callable[[tp.Tensor], tp.Tensor] = lambda x: ((x * 2 + 1).exp() - x).sum(0)  # noqa: E731
    tp.compiler.save_plan(function, (tp.rand(200, 200),), tmp_path / "a.plan")
    source = tmp_path / "a.c"
    source.write_text(
        '#include "tensorpy/plan.h"\n#include <stdio.h>\n'
        "int main(int argc, char **argv) {\n    static float x[40000], y[200];\n"
        "    for (int i = 0; i < 40000; i++) x[i] = (float)(i % 97) / 97;\n"
        "    const void *in[] = {x};\n    void *out[] = {y};\n"
        "    tp_plan *plan = argc > 2 ? tp_plan_open_on(argv[1], argv[2]) : NULL;\n"
        '    if (!plan || tp_plan_run(plan, in, out) < 0) return printf("%s", tp_plan_error()), 1;\n'
        '    for (int i = 0; i < 200; i++) printf("%a\\n", (double)y[i]);\n    tp_plan_close(plan);\n    return 0;\n}\n'
    )
    x = (tp.arange(40000) % 97).float().reshape(200, 200) / 97
    for device in ("cpu", "opencl"):
        out = tmp_path / device
        made_small(tmp_path / "a.plan", out, device).check_returncode()
        program = compiled(source, out / "libtensorpy_only.a", tmp_path / f"{device}.out")
        code, text = heard(program, str(tmp_path / "a.plan"), device, text="")
        assert code == 0, text
        assert [float.fromhex(line) for line in text.split()] == function(x.to(device)).tolist()
    assert "has no opencl" in heard(str(tmp_path / "cpu.out"), str(tmp_path / "a.plan"), "opencl", text="")[1]
