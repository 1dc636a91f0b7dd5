"""The device under tensorpy's table of operators, and what it has besides.

`pytest test_simulated.py` where the package is installed, or built in place. Nothing imports it: its name is enough.
"""

import ctypes
import os
import subprocess
import sys

import pytest

import tensorpy as tp
from tensorpy.testing.device import Device, DeviceTests


class TestSimulated(DeviceTests):
    device = Device("simulated")


# Primitives that are left to the host, beside those that only the host has: they are long and show nothing new.
LEFT_OUT = ("bag.", "beta_slope", "ctc.", "draw.binomial", "draw.gamma", "draw.poisson", "fused.", "grid.", "sparse.")
LEFT_OUT += ("step.",)


def test_the_host_computed_nothing():
    """After the table (this test is below it): every operator was the device's own, but for those of primitives that
    only the host has, by their declarations (LAPACK's and their kin), and of those that are left out.
    """
    report, dispatch = tp.backends.report("simulated"), tp.dispatch
    host_alone = {
        p
        for p in dispatch.primitives()
        if any(e.key == "OpenCL" and e.kind == "fallback" for e in dispatch.table(p)) and not dispatch.is_optional(p)
    }
    missing = host_alone | {p for p in dispatch.primitives() if p.removeprefix("prim::").startswith(LEFT_OUT)}
    assert set(report.missing) == missing and len(missing) == len(host_alone) + 21 < 55
    assert all(missing & set(dispatch.needs(name)) for name in report.on_host), str(report)
    assert set(report.host_calls) <= set(report.on_host), str(report)


# ---- memory ----


def test_the_host_cannot_address_its_memory():
    program = "import ctypes, tensorpy as tp; ctypes.string_at(tp.ones(2, device='simulated').data_ptr(), 4)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode < 0 or "AddressSanitizer: SEGV" in done.stderr
    x = tp.ones(2)
    assert ctypes.string_at(x.data_ptr(), 4) == b"\0\0\x80?"


def test_figures():
    a = tp.accelerator
    with tp.device("simulated:1"):
        a.set_device_index("simulated:1")
        a.empty_cache()
        before, reserved = a.memory_allocated(), a.memory_reserved()
        x = tp.ones(1000, device="simulated:1")
        assert a.memory_allocated() == before + 4096 == a.memory_allocated("simulated:1")
        del x
        assert a.memory_allocated() == before and a.memory_reserved() == reserved + 4096
        assert a.max_memory_allocated() >= before + 4096
        a.empty_cache()
        a.reset_peak_memory_stats()
        assert a.memory_reserved() == reserved and a.max_memory_allocated() == before
        assert set(a.memory_stats()) >= {"allocated_bytes.all.current", "reserved_bytes.all.peak"}
    a.set_device_index("simulated:0")
    with pytest.raises(RuntimeError, match="out of memory"):
        tp.empty(1 << 40, dtype=tp.uint8, device="simulated")
    assert tp.simulated.memory_allocated(1) == before
    assert (
        a.get_device_properties("simulated:1").name == tp.simulated.get_device_name(1) == "the other simulated device"
    )
    assert tp.simulated.get_device_properties(0).total_memory == 4 << 30
    free, total = a.get_memory_info("simulated:0")
    assert total == 4 << 30 and free == total - a.memory_reserved("simulated:0")


def test_pinned_memory():
    host = tp.arange(1000.0).pin_memory("simulated")
    assert host.is_pinned() and host.is_pinned("simulated") and not tp.ones(1).is_pinned()
    there = host.to("simulated", non_blocking=True)
    back = tp.zeros(1000).pin_memory("simulated")
    back.copy_(there * 2, non_blocking=True)
    tp.accelerator.synchronize("simulated")
    assert tp.equal(back, tp.arange(1000.0) * 2)


def test_serialisation(tmp_path):
    x = tp.rand(3, 4, device="simulated:1")
    tp.save(x, tmp_path / "x")
    assert tp.load(tmp_path / "x").device == tp.device("simulated:1")
    for place, expected in (("cpu", "cpu"), ({"simulated:1": "simulated:0"}, "simulated:0")):
        found = tp.load(tmp_path / "x", map_location=place)
        assert found.device == tp.device(expected) and tp.equal(found.cpu(), x.cpu())


# ---- streams ----


def test_streams_run_beside_the_host():
    """A kernel is enqueued, the host goes on; another stream waits where it is told to."""
    x = tp.rand(200, 200, device="simulated")
    side = tp.Stream("simulated")
    begin, end = tp.Event("simulated", enable_timing=True), tp.Event("simulated", enable_timing=True)
    assert side != tp.simulated.current_stream() and tp.simulated.current_stream().stream_id == 0
    side.wait_stream(tp.simulated.default_stream())
    with side:
        assert tp.accelerator.current_stream("simulated") == side
        begin.record()
        y = x
        for _ in range(5):
            y = y @ x / 200
        assert not side.query(), "all of it was done before the host could ask"
        end.record()
        x.record_stream(side)
    end.wait(tp.simulated.current_stream())
    z = y + 1
    z.record_stream(side)
    expected = x.cpu()
    for _ in range(5):
        expected = expected @ x.cpu() / 200
    assert tp.allclose(z.cpu(), expected + 1, rtol=1e-4)
    assert end.query() and side.query() and begin.elapsed_time(end) > 0
    side.synchronize()
    tp.simulated.synchronize()


def test_memory_that_another_stream_uses_waits_for_it():
    """A tensor that goes while a side stream still reads it: its memory is written by nobody before that."""
    side = tp.simulated.Stream()
    for _ in range(5):
        busy, x = tp.rand(150, 150, device="simulated"), tp.full((150, 150), 3.0, device="simulated")
        side.wait_stream(tp.simulated.current_stream())
        with side:
            for _ in range(3):
                busy = busy @ busy / 150
            read = x + busy * 0
            x.record_stream(side)
        del x
        other = tp.full((150, 150), 7.0, device="simulated")
        side.synchronize()
        assert read.cpu().eq(3).all() and other.cpu().eq(7).all()


def test_a_fault_is_raised_where_the_host_looks():
    x, bad = tp.rand(3, 4, device="simulated"), tp.tensor([[7]], device="simulated")
    y = x.gather(1, bad)  # the device has not looked yet
    with pytest.raises(RuntimeError, match=r"gather: index 7 is out of bounds .* \(found on simulated\)"):
        y.cpu()
    assert tp.equal((x + 1).cpu(), x.cpu() + 1)


def test_seeds():
    s = tp.simulated
    s.manual_seed(5)
    first, state = tp.rand(3, device="simulated"), s.get_rng_state()
    second = tp.rand(3, device="simulated")
    s.set_rng_state(state)
    assert tp.equal(tp.rand(3, device="simulated").cpu(), second.cpu())
    s.manual_seed_all(5)
    assert tp.equal(tp.rand(3, device="simulated:1").cpu(), first.cpu())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_after_fork_is_told():
    program = """
import os, tensorpy as tp
x = tp.ones(3, device="simulated") + 1
x.cpu()
child = os.fork()
if child == 0:
    try:
        (x + 1).cpu()
    except RuntimeError as error:
        os._exit(0 if "after a fork" in str(error) else 1)
    os._exit(2)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert (x + 1).tolist() == [3.0] * 3
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


# ---- layers ----


def test_a_gradient_kernel_an_autograd_override_and_a_rule_of_autocast():
    x = tp.linspace(-4.1, 4.1, 32, dtype=tp.float64)
    leaves = x.clone().requires_grad_(), x.to("simulated").requires_grad_()
    for leaf in leaves:
        tp.nn.functional.hardswish(leaf).sum().backward()
    assert tp.allclose(leaves[0].grad, leaves[1].grad.cpu())
    out = tp.nn.functional.hardswish(leaves[1])
    assert out.grad_fn.name() == "SimulatedHardswishBackward"
    assert tp.autograd.gradcheck(tp.nn.functional.hardswish, (x.to("simulated").requires_grad_(),))
    assert {e.key: e.registered_as for e in tp.dispatch.table("hardswish_backward")}["PrivateUse1"] == "PrivateUse1"
    with tp.autocast("simulated", dtype=tp.bfloat16):
        assert tp.nn.functional.hardswish(tp.ones(2, device="simulated")).dtype == tp.bfloat16
    assert tp.nn.functional.hardswish(tp.ones(2, device="simulated")).dtype == tp.float32
