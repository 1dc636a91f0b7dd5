"""Streams, events, pinned memory, copies that do not wait, and copies between devices.

Without a driver these tests are skipped. Two devices are had from PoCL, which makes as many as it is told.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable

import pytest
from opencl_programs import needs_device, output_of
from programs import run

import tensorpy as tp

pytestmark = needs_device
cl = tp.opencl


def test_current_and_default_stream() -> None:
    s = cl.Stream()
    assert cl.current_stream() == cl.default_stream() != s
    with s:
        assert cl.current_stream() == s
        with cl.stream(cl.default_stream()):
            assert cl.current_stream().stream_id == 0
        assert cl.current_stream() == s
    with cl.stream(None):
        assert cl.current_stream() == cl.default_stream()
    assert s.device == tp.device("opencl", 0) and "stream_id" in repr(s)
    seen = []
    with s:  # each thread has its own
        thread = threading.Thread(target=lambda: seen.append(cl.current_stream()))
        thread.start()
        thread.join()
    assert seen == [cl.default_stream()]
    assert len({cl.Stream().stream_id for _ in range(20)}) == 7


def eventually(question: Callable[[], bool]) -> bool:
    return any(question() or time.sleep(0.01) for _ in range(1000))


def test_the_functions_of_every_accelerator() -> None:
    """tensorpy.Stream, Event and accelerator are the same for OpenCL and for devices from outside."""
    a = tp.accelerator
    s, begin, end = (
        tp.Stream("opencl:0"),
        tp.Event("opencl", enable_timing=True),
        tp.Event("opencl", enable_timing=True),
    )
    assert isinstance(cl.Stream(), tp.Stream) and s.device_type == "opencl" and a.current_stream("opencl") != s
    with s:
        assert a.current_stream("opencl") == cl.current_stream() == s
        begin.record()
        x = tp.ones(1000, device="opencl") + 1
        end.record()
    end.wait(cl.current_stream())
    x.record_stream(cl.current_stream())
    assert x.sum().item() == 2000 and end.query() and begin.elapsed_time(end) >= 0
    assert eventually(s.query)  # it asks a mark of its own, which the driver has yet to pass
    s.synchronize()
    version = x._version
    with tp.dispatch.trace() as calls:
        x.record_stream(s)
    assert [e.op for e in calls] == ["record_stream"] * len(calls) and x._version == version, (
        "only the memory's owner is told"
    )
    a.set_stream(s)
    assert cl.current_stream() == s
    a.set_stream(cl.default_stream())
    stats = a.memory_stats("opencl")
    assert stats["allocated_bytes.all.current"] == cl.memory_allocated() == a.memory_allocated("opencl")
    assert stats["reserved_bytes.all.peak"] >= stats["reserved_bytes.all.current"] == cl.memory_reserved()
    properties = a.get_device_properties("opencl")
    assert properties.name == cl.get_device_name() and properties.total_memory > 0
    with pytest.raises(RuntimeError, match="record_stream: expected a tensor on opencl:0"):
        tp.ones(3).record_stream(s)
    with pytest.raises(RuntimeError, match="enable_timing"):
        s.record_event().elapsed_time(s.record_event())
    for lacking in (lambda: tp._C._streams.stream_new("cpu", 0), lambda: tp._C._streams.memory_stats("cpu")):
        with pytest.raises(NotImplementedError, match="the device cpu"):
            lacking()


def test_work_on_two_streams_in_order() -> None:
    first, second = cl.Stream(), cl.Stream()
    with first:
        a = tp.ones(1 << 20, device="opencl")
        for _ in range(20):
            a = a * 1.5
        done = first.record_event()
    second.wait_event(done)
    with second:
        b = a + 1
        a.record_stream(second)
    cl.current_stream().wait_stream(second)
    expected = 1.5**20 + 1
    assert b[12345].item() == pytest.approx(expected) and b.sum().item() == pytest.approx(
        expected * (1 << 20), rel=1e-5
    )
    first.synchronize()
    second.synchronize()


def test_memory_is_not_given_on_while_another_stream_reads_it() -> None:
    """The block goes back to the stream that it came from, which waits for the reader first."""
    reader = cl.Stream()
    for _ in range(10):
        t = tp.full((1 << 20,), 3.0, device="opencl")
        reader.wait_stream(cl.default_stream())
        with reader:
            made = t.exp().log().exp().log() + 0.0
        t.record_stream(reader)
        del t
        overwriting = tp.full((1 << 20,), 9.0, device="opencl")
        cl.default_stream().wait_stream(reader)
        assert made.amax().item() == pytest.approx(3.0, rel=1e-5)
        del overwriting
    with pytest.raises(RuntimeError, match="record_stream"):
        tp.ones(3).record_stream(reader)


def test_events_between_streams() -> None:
    s = cl.Stream()
    begin, end = cl.Event(enable_timing=True), cl.Event(enable_timing=True)
    begin.record(s)
    with s:
        tp.ones(1 << 20, device="opencl").exp()
    end.record(s)
    end.wait()  # the current stream, not the host
    end.synchronize()
    assert end.query() and begin.elapsed_time(end) > 0
    with pytest.raises(RuntimeError, match="enable_timing"):
        s.record_event().elapsed_time(end)


# ---- pinned memory ----


def test_pinned_memory() -> None:
    plain = tp.arange(1000.0)
    pinned = plain.pin_memory()
    assert pinned.is_pinned() and not plain.is_pinned() and pinned.pin_memory() is pinned
    assert pinned.is_pinned("opencl") and pinned.device.type == "cpu" and pinned.tolist() == plain.tolist()
    for made in (
        tp.empty(3, 4, pin_memory=True),
        tp.zeros(5, pin_memory=True),
        tp.arange(7, pin_memory=True),
        tp.tensor([1, 2, 3], pin_memory=True),
        tp.empty_strided((2, 3), (1, 2), pin_memory=True),
        tp.randn(4, pin_memory=True),
    ):
        assert made.is_pinned(), made
    assert tp.empty(0, pin_memory=True).numel() == 0
    assert plain.reshape(10, 100).t().pin_memory().stride() == (1, 100)
    with pytest.raises(RuntimeError, match="dense CPU tensors"):
        tp.ones(3, device="opencl").pin_memory()
    with pytest.raises(RuntimeError, match="dense CPU tensors"):
        tp.empty(3, device="opencl", pin_memory=True)
    with pytest.raises(RuntimeError, match="pinned memory needs"):
        tp.ones(3).pin_memory("meta")


def test_copies_that_do_not_wait() -> None:
    source = tp.arange(1 << 20, dtype=tp.float32, pin_memory=True)
    there = source.to("opencl", non_blocking=True)
    back = (there * 2).to("cpu", non_blocking=True)
    cl.synchronize()
    assert back.is_pinned() and back[12345].item() == 24690.0
    target = tp.empty(1 << 20, device="opencl")
    target.copy_(source, non_blocking=True)
    del source  # in flight perhaps: the copy keeps it
    gc.collect()
    tp.empty(1 << 20, pin_memory=True).fill_(-1)
    assert target.sum().item() == pytest.approx((1 << 20) * ((1 << 20) - 1) / 2)
    # What cannot be enqueued is copied as ever: other strides, another dtype, memory that is not pinned.
    assert tp.arange(6).reshape(2, 3).t().to("opencl", non_blocking=True).tolist() == [[0, 3], [1, 4], [2, 5]]
    half = tp.empty(4, dtype=tp.float16, device="opencl")
    half.copy_(tp.ones(4, pin_memory=True), non_blocking=True)
    assert half.tolist() == [1.0] * 4


def test_strided_copies_move_only_their_elements() -> None:
    table = tp.arange(12.0).reshape(3, 4)
    there = table.to("opencl")
    assert there[:, 1].cpu().tolist() == [1.0, 5.0, 9.0]
    there[:, 2] = tp.tensor([-1.0, -2.0, -3.0])
    there[1] = tp.tensor(7)
    assert there.tolist() == [[0.0, 1.0, -1.0, 3.0], [7.0] * 4, [8.0, 9.0, -3.0, 11.0]]
    host = tp.zeros(4, 3)
    host.t()[...] = there
    assert host.t().tolist() == there.tolist()
    host[::2, 0] = there[0, :2]
    assert host[::2, 0].tolist() == [0.0, 1.0]


# ---- two devices ----

TWO_DEVICES = """
    import tensorpy as tp
    cl = tp.opencl
    assert cl.device_count() == 2, cl.device_count()
    a = tp.arange(12.0).reshape(3, 4).to("opencl:0")
    b = a.to("opencl:1")
    assert b.device == tp.device("opencl:1") and b.tolist() == a.tolist()
    assert a.t()[1:].to("opencl:1").tolist() == a.t()[1:].tolist()
    b[:, 1] = a[:, 2] * 10
    assert b[:, 1].tolist() == [20.0, 60.0, 100.0]
    with cl.device(1):
        c = tp.ones(3, device="opencl")
        assert c.device.index == 1 and cl.current_device() == 1
        s = cl.Stream()
        assert s.device_index == 1
    with s:
        assert cl.current_device() == 1
        d = c * 2
    cl.default_stream(0).wait_stream(s)
    cl.default_stream(1).wait_stream(s)  # from there d is read
    assert d.to("opencl:0").tolist() == [2.0] * 3
    try:
        a + b
    except RuntimeError as e:
        assert "opencl:0" in str(e) and "opencl:1" in str(e), e
    else:
        raise AssertionError("two devices in one call")
    x = tp.ones(2, device="opencl:0", requires_grad=True)
    (x.to("opencl:1") * 3).sum().backward()
    assert x.grad.device.index == 0 and x.grad.tolist() == [3.0, 3.0]
    assert cl.memory_allocated(1) > 0 and "memory of" in cl.memory_summary(1)
    print("done")
"""


def test_two_devices() -> None:
    if "Portable" not in cl.get_device_properties().platform:
        pytest.skip("PoCL is what makes two devices of one")
    assert output_of(TWO_DEVICES, POCL_DEVICES="pthread pthread") == "done"


WAITS = {
    "synchronize": "tp.opencl.synchronize()",
    "an event": "e = tp.opencl.Event(); e.record(); e.synchronize()",
    "a copy": "y.cpu()",
    "an element": "y[0, 0].item()",
}


@pytest.mark.parametrize("what", WAITS)
def test_waiting_hears_a_signal(what):
    """Enough is enqueued that most of it is still to be done when the alarm goes off, and when the wait is left."""
    run(f"""
        def interrupt(*_): raise KeyboardInterrupt
        y = x = tp.rand(1024, 1024, device="opencl")
        y = (x @ x).tanh()
        tp.opencl.synchronize()
        for _ in range(400): y = (y @ x).tanh()
        last = tp.opencl.Event()
        last.record()
        signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        try:
            {WAITS[what]}
            raise SystemExit("not interrupted")
        except KeyboardInterrupt:
            assert not last.query(), "waited to the end"
        os._exit(0)
    """)
