"""Profiles: what was called, for how long, with what, in which thread; what is made of it; programs that trace
themselves."""

from __future__ import annotations

import gzip
import json
import os
import signal
import sys
import threading
import time
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from growth import check_no_growth
from opencl_programs import needs_device, output_of, run

import tensorpy as tp
from tensorpy.profiler import (
    ProfilerAction,
    ProfilerActivity,
    profile,
    record_function,
    schedule,
    tensorboard_trace_handler,
)
from tensorpy.testing.harness import arguments, fresh, function_of, over
from tensorpy.testing.samples import OpInfo

ROOT = Path(__file__).parents[2]


def names(p: profile) -> list[str]:
    return [event.name for event in p.events()]


def train() -> None:
    x = tp.rand(4, 8, requires_grad=True)
    tp.nn.functional.linear(x, tp.rand(2, 8)).exp().sum().backward()


# ---- what is recorded ----


@over()
def test_each_operator_is_recorded(info: OpInfo) -> None:
    """Under its name, with the shapes of its arguments; and the result is the same."""
    function = function_of(info)
    for sample in info.samples(info.main_dtype, 1):
        args, kwargs = arguments(sample, "cpu", info)
        expected = function(*fresh(info, args), **kwargs)
        with profile(record_shapes=True, profile_memory=True) as p:
            got = function(*fresh(info, args), **kwargs)
        assert type(got) is type(expected)
        with tp.dispatch.trace() as seen:
            function(*fresh(info, args), **kwargs)
        called = {(e.op.partition(".")[0]) for e in seen}
        assert {name.removeprefix("aten::") for name in names(p)} == called, f"{info.name}{sample}"
        for event in p.events():
            assert event.time_range.end >= event.time_range.start and not event.failed
            assert event.self_cpu_time_total >= -1e-3


def test_events_nest() -> None:
    with profile(record_shapes=True) as p:
        train()
    by_name = {event.name: event for event in p.events()}
    linear, exp = by_name["aten::linear"], by_name["aten::exp"]
    assert linear.cpu_children[-1].name == "aten::matmul" and linear.input_shapes[:2] == [[4, 8], [2, 8]]
    assert linear.cpu_time_total >= sum(child.cpu_time_total for child in linear.cpu_children)
    assert exp.cpu_parent is None and exp.input_dtypes == ["float32"] and exp.overload_name == ""
    assert by_name["aten::sum"].backend == "CPU"
    backward = by_name["ExpBackward0"]
    assert backward.sequence_nr == exp.sequence_nr >= 0 and backward.cpu_children[0].name == "aten::mul"
    assert not any(e.cpu_parent is backward for e in p.events() if e.name == "aten::linear")


def test_lists_of_tensors_have_their_shapes() -> None:
    with profile(record_shapes=True) as p:
        tp.cat([tp.ones(2), tp.ones(3)])
    assert p.events()[-1].input_shapes == [[[2], [3]], []]


def test_memory() -> None:
    with profile(profile_memory=True) as p:
        kept = tp.empty(1 << 20)
        with record_function("freed"):
            for _ in range(3):
                tp.empty(1 << 20)
    (made, freed, *_) = p.events()
    assert made.cpu_memory_usage >= 4 << 20 > abs(freed.cpu_memory_usage) and kept.numel()
    assert "CPU Mem" in p.key_averages().table()


def test_stacks(tmp_path: Path) -> None:
    def inner() -> None:
        tp.ones(3).exp()

    with profile(with_stack=True) as p:
        inner()
    (event,) = [e for e in p.events() if e.name == "aten::exp"]
    assert "test_profiler.py" in event.stack[0] and event.stack[0].endswith(": inner")
    (row,) = [r for r in p.key_averages(group_by_stack_n=1) if r.key == "aten::exp"]
    assert row.stack == event.stack[:1] and "Source Location" in p.key_averages(group_by_stack_n=1).table()
    p.export_stacks(str(tmp_path / "stacks"), "cpu_time_total")
    for line in (tmp_path / "stacks").read_text().splitlines():
        assert int(line.rpartition(" ")[2]) > 0 and "aten::" in line


def test_ranges() -> None:
    @record_function("decorated")
    def work(n: int) -> Any:
        return tp.ones(n) if n < 2 else work(n - 1)

    assert work(1).tolist() == [1]  # without a profile
    with profile() as p, record_function("outer"):
        work(3)
    assert names(p)[:4] == ["outer", "decorated", "decorated", "decorated"]
    assert p.events()[1].is_user_annotation and p.events()[1].cpu_parent is p.events()[0]
    (row,) = [r for r in p.key_averages() if r.key == "decorated"]
    assert row.count == 3 and row.cpu_time_total == p.events()[1].cpu_time_total


def test_threads() -> None:
    """Those that are there, those that start meanwhile, and their first calls."""
    begin, done = threading.Event(), threading.Event()

    def early() -> None:
        tp.ones(1)
        begin.wait()
        tp.ones(2).sin()
        done.set()

    old = threading.Thread(target=early)
    old.start()
    with profile() as p:
        tp.ones(3).exp()
        begin.set()
        done.wait()
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(lambda n: (time.sleep(0.01), tp.ones(n).cos()), range(6)))
    old.join()
    tp.ones(1).tan()
    assert sorted(n for n in names(p) if n in ("aten::exp", "aten::sin", "aten::cos", "aten::tan")) == [
        "aten::cos",
    ] * 6 + ["aten::exp", "aten::sin"]
    assert {e.thread for e in p.events() if e.name == "aten::sin"}.isdisjoint(
        e.thread for e in p.events() if e.name != "aten::sin" and e.thread == 1
    )
    assert all(e.cpu_parent is None or e.cpu_parent.thread == e.thread for e in p.events())
    assert threading.getprofile() is None and tp._C._get_dispatch_sets()[0] == 0


def test_a_thread_goes_on_when_the_profile_ends() -> None:
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            tp.ones(1000).exp()

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    for _ in range(20):
        with profile(record_shapes=True, profile_memory=True, with_stack=True) as p:
            tp.ones(2).sin()
        assert names(p).count("aten::sin") == 1
    stop.set()
    for worker in workers:
        worker.join()


def test_an_exception_leaves_what_was_recorded() -> None:
    with pytest.raises(RuntimeError), profile() as p:
        tp.ones(2).exp()
        with record_function("inside"):
            tp.ones(2) + tp.ones(3)
    assert [(e.name, e.failed) for e in p.events()][-1] == ("aten::add", True)
    assert "aten::exp" in p.key_averages().table() and tp._C._get_dispatch_sets()[0] == 0
    assert "Profiler" not in str(tp.dispatch.table("add.Tensor"))


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
def test_a_signal_leaves_what_was_recorded() -> None:
    class Stop(Exception):
        pass

    def handler(*unused: Any) -> None:
        raise Stop

    before = signal.signal(signal.SIGALRM, handler)
    try:
        with pytest.raises(Stop), profile() as p:
            tp.ones(2).exp()
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            while True:
                tp.rand(300, 300).sum()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert "aten::exp" in names(p) and all(e.time_range.end >= e.time_range.start for e in p.events())


def test_a_profile_within_a_profile() -> None:
    """The inner one records; the outer one goes on where it was."""
    with profile() as outer, record_function("around"):
        tp.ones(1).exp()
        with profile() as inner:
            tp.ones(1).sin()
        tp.ones(1).cos()
    assert "aten::sin" in names(inner) and "aten::exp" not in names(inner)
    assert "aten::sin" not in names(outer) and {"aten::exp", "aten::cos"} <= set(names(outer))
    assert all(e.cpu_parent for e in outer.events() if e.name == "aten::cos")


def test_a_profile_that_ends_inside_a_call() -> None:
    from tensorpy.library import Library

    p = profile()
    lib = Library("profiled", "FRAGMENT")
    lib.define("ends(Tensor x) -> Tensor")
    lib.impl("ends", lambda x: (p.stop(), x + 1)[1], "CompositeExplicitAutograd")
    try:
        p.start()
        assert tp.ops.profiled.ends(tp.ones(1)).item() == 2
    finally:
        lib._destroy()
    assert names(p)[-1] == "profiled::ends" and p.events()[-1].cpu_time_total > 0


def test_a_profile_in_the_place_of_another_inside_a_call() -> None:
    from tensorpy.library import Library

    profiles = [profile(), profile()]

    def swap(x: Any) -> Any:
        profiles.pop(0).stop()
        profiles[0].start()
        return x + 1

    lib = Library("profiled", "FRAGMENT")
    lib.define("swaps(Tensor x) -> Tensor")
    lib.impl("swaps", swap, "CompositeExplicitAutograd")
    try:
        profiles[0].start()
        assert tp.ops.profiled.swaps(tp.ones(1)).item() == 2
        profiles[0].stop()
    finally:
        lib._destroy()
    assert names(profiles[0])[0] == "aten::add" and profiles[0].events()[0].cpu_parent is None


def test_a_fork_goes_on() -> None:
    assert (
        output_of("""
        import os, sys, tensorpy as tp
        from tensorpy.profiler import profile
        with profile() as p:
            tp.ones(1).exp()
            child = os.fork()
            tp.ones(1).sin()
        found = {e.name for e in p.events()} >= {"aten::exp", "aten::sin"}
        if child == 0:
            os._exit(0 if found else 1)
        print(found, os.waitpid(child, 0)[1])
    """)
        == "True 0"
    )


# ---- sums and tables ----


def test_sums() -> None:
    with profile(record_shapes=True) as p:
        for n in (2, 2, 3):
            tp.ones(n).exp()
    (row,) = [r for r in p.key_averages() if r.key == "aten::exp"]
    events = [e for e in p.events() if e.name == "aten::exp"]
    assert row.count == 3 and row.cpu_time_total == pytest.approx(sum(e.cpu_time_total for e in events))
    assert row.cpu_time == pytest.approx(row.cpu_time_total / 3)
    shaped = [r for r in p.key_averages(group_by_input_shape=True) if r.key == "aten::exp"]
    assert [(r.input_shapes, r.count) for r in shaped] == [([[2]], 2), ([[3]], 1)]
    total = p.key_averages().total_average()
    assert total.self_cpu_time_total == pytest.approx(p.events().self_cpu_time_total)
    assert total.self_cpu_time_total == pytest.approx(sum(e.cpu_time_total for e in p.events() if not e.cpu_parent))


def test_tables() -> None:
    with profile(record_shapes=True) as p:
        tp.ones(2).exp()
        tp.ones(2).sin()
    text = p.key_averages(group_by_input_shape=True).table(sort_by="count", row_limit=2, header="HEAD")
    lines = text.splitlines()
    assert lines[0] == "HEAD" and lines[2].split()[0] == "Name" and "Input Shapes" in lines[2]
    assert lines[4].split()[0] in ("aten::ones", "aten::empty", "aten::fill_") and len(lines) == 8
    times = [r.self_cpu_time_total for r in p.key_averages()]
    first = p.key_averages().table(sort_by="self_cpu_time_total").splitlines()[3].split()[0]
    assert first == p.key_averages()[times.index(max(times))].key
    assert p.key_averages().table(sort_by="self_cuda_time_total")
    with pytest.raises(ValueError, match="no column to sort by"):
        p.key_averages().table(sort_by="speed")
    with profile() as empty:
        pass
    assert empty.key_averages().table() == "" and empty._repr_html_()


# ---- schedules ----


def actions(f: Any, n: int) -> list[str]:
    return [f(step).name for step in range(n)]


@pytest.mark.parametrize(
    "arguments",
    [
        {"wait": 1, "warmup": 1, "active": 2},
        {"wait": 0, "warmup": 0, "active": 1},
        {"wait": 1, "warmup": 0, "active": 3, "repeat": 2},
        {"wait": 2, "warmup": 1, "active": 1, "skip_first": 3, "repeat": 1},
        {"wait": 3, "warmup": 1, "active": 2, "skip_first": 2, "skip_first_wait": 1},
    ],
)
@pytest.mark.filterwarnings("ignore:Profiler won't be using warmup")
def test_schedules_are_torchs(arguments: dict[str, int]) -> None:
    torch_profiler = pytest.importorskip("torch.profiler")
    assert actions(schedule(**arguments), 20) == actions(torch_profiler.schedule(**arguments), 20)


def test_a_schedule_chooses_what_is_recorded() -> None:
    ready: list[list[str]] = []
    x = tp.ones(3)

    def steps(p: profile) -> None:
        ready.append([n for n in names(p) if n.startswith(("aten::exp", "ProfilerStep"))])
        (row,) = [r for r in p.key_averages() if r.key.startswith("ProfilerStep")]
        assert (row.key, row.count) == ("ProfilerStep*", 2)

    with profile(schedule=schedule(wait=1, warmup=1, active=2, repeat=2), on_trace_ready=steps) as p:
        for _ in range(10):
            x.exp()
            p.step()
    assert ready == [
        ["ProfilerStep#2", "aten::exp", "ProfilerStep#3", "aten::exp"],
        ["ProfilerStep#6", "aten::exp", "ProfilerStep#7", "aten::exp"],
    ]
    assert tp._C._get_dispatch_sets()[0] == 0


def test_operations_are_counted() -> None:
    x, a, b = tp.ones(2, 4, 5, 6), tp.ones(2, 3), tp.ones(3, 4)
    with profile(activities=[ProfilerActivity.CPU], with_flops=True) as p:
        _ = a @ b
        tp.addmm(tp.ones(4), a, b)
        tp.bmm(tp.ones(5, 2, 3), tp.ones(5, 3, 4))
        tp.baddbmm(tp.ones(5, 2, 4), tp.ones(5, 2, 3), tp.ones(5, 3, 4))
        _ = a + a, 2 * a, a.exp()
        tp.conv2d(x, tp.ones(6, 2, 3, 2), stride=2, padding=(1, 0), dilation=[1, 3], groups=2)
        tp.conv2d(x, tp.ones(6, 4, 3, 2), tp.ones(6), 2)
    found = [(e.name, e.flops) for e in p.events() if e.flops]
    assert found == [
        ("aten::mm", 48),
        ("aten::addmm", 48),
        ("aten::bmm", 5 * 48),
        ("aten::baddbmm", 5 * 48),
        ("aten::add", 6),
        ("aten::mul", 6),
        ("aten::conv2d", 2 * 2 * (3 * 2) * (3 * 2) * 4 * 6 // 2),
        ("aten::conv2d", 2 * 2 * (2 * 3) * (3 * 2) * 4 * 6),
    ]
    sums = p.key_averages()
    assert sum(e.flops for e in sums) == sums.total_average().flops == sum(n for _, n in found)
    assert "Total KFLOPs" in sums.table(sort_by="flops") and "aten::conv2d" in sums.table(sort_by="flops", row_limit=1)
    with profile(record_shapes=True) as p:
        _ = tp.ones(2, 2) @ tp.ones(2, 2)
    assert all(e.flops == 0 for e in p.events()) and "FLOPs" not in p.key_averages().table()


def test_arguments_are_checked() -> None:
    for wrong in ({"wait": -1, "warmup": 0, "active": 1}, {"wait": 0, "warmup": 0, "active": 0}):
        with pytest.raises(AssertionError, match="schedule"):
            schedule(**wrong)
    with pytest.raises(ValueError, match="activities"):
        profile(activities=["cpu"])
    p = profile()
    with p, pytest.raises(RuntimeError, match="records already"):
        p.start()
    assert schedule(wait=0, warmup=0, active=1)(0) is ProfilerAction.RECORD_AND_SAVE


def test_recording_pauses() -> None:
    with profile() as p:
        x = tp.ones(2)
        p.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
        y = x + 1
        p.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
        y.mul(2)
    names = [event.name for event in p.events()]
    assert "aten::ones" in names and "aten::mul" in names and "aten::add" not in names


def test_events_as_a_list_and_a_tree_of_pytorchs() -> None:
    with profile() as p, tp._C._profiler._RecordFunctionFast("part"):
        tp.ones(2)
    results = p.profiler.kineto_results
    (root,) = results.experimental_event_tree()
    assert root.name == "part" and [child.name for child in root.children] == ["aten::ones"]
    assert root.children[0].parent is root and root.duration_time_ns >= root.children[0].duration_time_ns
    assert [event.name() for event in results.events()][:2] == ["part", "aten::ones"]


# ---- traces and pictures ----


def test_chrome_traces(tmp_path: Path) -> None:
    with profile(record_shapes=True, on_trace_ready=tensorboard_trace_handler(str(tmp_path / "run"), "me", True)) as p:
        train()
    p.add_metadata("who", "me")
    p.export_chrome_trace(str(tmp_path / "trace.json"))
    (packed,) = (tmp_path / "run").iterdir()
    assert packed.name.startswith("me.") and json.loads(gzip.decompress(packed.read_bytes()))["traceEvents"]
    whole = json.loads((tmp_path / "trace.json").read_text())
    slices = {e["name"]: e for e in whole["traceEvents"] if e["ph"] == "X"}
    assert whole["who"] == "me" and slices["aten::exp"]["args"]["Input Dims"] == [[4, 2]]
    starts = {e["id"]: e for e in whole["traceEvents"] if e["ph"] == "s" and e["cat"] == "fwdbwd"}
    ends = {e["id"]: e for e in whole["traceEvents"] if e["ph"] == "f" and e["cat"] == "fwdbwd"}
    assert starts.keys() == ends.keys() and len(starts) >= 3
    number = slices["aten::exp"]["args"]["Sequence number"]
    assert starts[number]["ts"] == slices["aten::exp"]["ts"] and ends[number]["ts"] == slices["ExpBackward0"]["ts"]


def test_pictures() -> None:
    with profile(record_shapes=True) as p, record_function("<all>"):
        train()
    root = ElementTree.fromstring(p.events()._repr_html_())
    titles = [t.text or "" for t in root.findall(".//{*}title")]
    assert any(t.startswith("<all>: ") for t in titles) and any("ExpBackward0" in t for t in titles)
    for box in root.findall(".//{*}rect"):
        assert 0 <= float(box.attrib["x"]) <= 1000.01 and float(box.attrib["width"]) <= 1001
    assert p._repr_html_().startswith("<svg") and "&lt;all&gt;" in p._repr_html_()


def test_a_profile_opens_no_driver() -> None:
    """Nor does it ask for one: the library that the environment names is not there."""
    program = "import tensorpy as tp\nwith tp.profiler.profile() as p: tp.ones(1)\nprint(len(p.events()) > 0)"
    assert output_of(program, TENSORPY_OPENCL_LIBRARY="nowhere") == "True"


@needs_device
def test_a_device_that_starts_in_a_profile_takes_times() -> None:
    assert (
        output_of("""
        import tensorpy as tp
        with tp.profiler.profile() as p:
            tp.ones(10, device="opencl").exp()
        print(sorted(e.name for e in p.events() if e.kernels))
    """)
        == "['aten::exp', 'aten::fill_']"
    )


@needs_device
def test_memory_of_devices() -> None:
    with profile(profile_memory=True) as p:
        kept = tp.empty(1 << 18, device="opencl")
    (made,) = p.events()
    assert made.device_memory_usage >= 1 << 20 and kept.numel()
    assert "Device Mem" in p.key_averages().table(sort_by="self_cuda_memory_usage")


@needs_device
def test_opencl_times(tmp_path: Path) -> None:
    """On the host's clock: a kernel runs after its launch began, and within the profile."""
    x = tp.ones(1 << 16, device="opencl")
    (x + x).sum().item()
    with profile() as p:
        stream = tp.opencl.Stream()
        with tp.opencl.stream(stream):
            tp.ones(10, device="opencl").exp()
        (x * 3).sum().item()
        copies = tp.ones(1 << 20).to("opencl").clone()
    assert copies.shape == (1 << 20,)
    events = {e.name: e for e in p.events() if e.kernels}
    assert {"aten::mul", "aten::sum", "aten::exp"} <= events.keys()
    last = max(e.time_range.end for e in p.events())
    for event in events.values():
        for kernel in event.kernels:
            assert event.time_range.start - 1000 <= kernel.time_range.start <= kernel.time_range.end <= last + 1e6
            assert kernel.duration >= 0 and kernel.device == "opencl:0" and kernel.name
    assert events["aten::exp"].kernels[0].stream != events["aten::mul"].kernels[0].stream
    names_of_kernels = {k.name for e in p.events() for k in e.kernels}
    assert names_of_kernels >= {"Memset", "Memcpy HtoD", "Memcpy DtoH", "Memcpy DtoD"}
    assert events["aten::mul"].device_time_total > 0 and "Self device" in p.key_averages().table()
    p.export_chrome_trace(str(tmp_path / "t.json"))
    trace = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert [e for e in trace if e.get("cat") == "kernel"] and [e for e in trace if e.get("cat") == "ac2g"]
    with profile(activities=[ProfilerActivity.CPU]) as p:
        (x + 1).sum().item()
    assert not any(e.kernels for e in p.events())


def test_torchs_older_names(tmp_path: Path) -> None:
    from tensorpy.autograd import profiler

    with profiler.profile(record_shapes=True) as p, profiler.record_function("mine"):
        tp.ones(2).exp()
    assert p.function_events[0].name == "mine" and "aten::exp" in p.table()
    assert p.key_averages().table(sort_by="cpu_time_total") and p.total_average().count == len(p.function_events)
    with profiler.profile(enabled=False) as p:
        tp.ones(2)
    assert not p.function_events
    with pytest.raises(NotImplementedError):
        profiler.emit_nvtx()


# ---- programs that cannot be changed ----

PROGRAM = """
    import tensorpy as tp
    x = tp.ones(2, 3, requires_grad=True)
    tp.cat([x, x.exp()]).sum().backward()
    try:
        x + tp.ones(7)
    except RuntimeError:
        print("done")
"""


def test_a_program_traces_itself(tmp_path: Path) -> None:
    done = run(PROGRAM, TENSORPY_TRACE="1")
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr
    lines = done.stderr.splitlines()
    assert all(line.startswith("tensorpy[1] ") for line in lines)
    (exp,) = [line for line in lines if "] exp(" in line]
    assert exp.startswith("tensorpy[1] exp(float32[2, 3]) CPU: pointwise in yaml/") and exp.endswith(" us")
    assert any("] cat([float32[2, 3], float32[2, 3]], -)" in line for line in lines)
    assert any("] ExpBackward0 " in line for line in lines) and any("]   mul.Tensor(" in line for line in lines)
    assert lines[-1].endswith(" us, failed")
    path = tmp_path / "log"
    done = run(PROGRAM, TENSORPY_TRACE=str(path))
    assert not done.stderr and len(path.read_text().splitlines()) == len(lines)
    assert not run(PROGRAM, TENSORPY_TRACE="0").stderr
    wrong = run(PROGRAM, TENSORPY_TRACE=str(tmp_path))
    assert wrong.returncode != 0 and "TENSORPY_TRACE" in wrong.stderr


def test_a_profile_in_a_program_that_traces_itself() -> None:
    done = run(
        """
        import tensorpy as tp, threading
        with tp.profiler.profile() as p:
            tp.ones(2).sin()
        print([e.name for e in p.events()][-1])
        thread = threading.Thread(target=lambda: tp.ones(3).cos())
        thread.start(); thread.join()
        """,
        TENSORPY_TRACE="1",
    )
    assert done.stdout == "aten::sin\n" and " sin(" not in done.stderr and "tensorpy[1] cos(" in done.stderr


def test_the_logging_layer_of_the_examples() -> None:
    path = ROOT / "examples" / "logging_layer.py"
    body = path.read_text().partition("if __name__ ==")[0].splitlines()
    assert sum(1 for line in body if line.strip() and not line.startswith('"""')) <= 20
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    import subprocess

    done = subprocess.run([sys.executable, str(path)], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    product, part = "matmul.default([2, 3], [3, 2])", "mm.default([2, 3], [3, 2])"
    assert part in lines and lines.index(part) < lines.index(product)
    assert any(line.startswith("add_.Tensor(") for line in lines)


def test_nothing_is_left_behind() -> None:
    x = tp.ones(5)

    def action() -> None:
        with profile(record_shapes=True, profile_memory=True, with_stack=True):
            (x * 2).sum()

    check_no_growth(action, "profile")


# ---- events that a program makes ----


def made(number: int, name: str, begin: float, end: float, **others: Any) -> tp.profiler.FunctionEvent:
    return tp.profiler.FunctionEvent(number, name, 0, begin, end, **others)


def test_events_made_by_hand_find_their_parents() -> None:
    root, first, leaf = made(1, "root", 0, 100), made(2, "child", 10, 40), made(3, "leaf", 12, 20)
    second, across = made(4, "child", 50, 90), made(5, "across", 80, 95)
    apart = tp.profiler.FunctionEvent(6, "apart", 1, 0, 30)
    message = made(7, "message", 5, 8, is_async=True)
    events = tp.profiler.EventList([root, first, leaf, second, across, apart, message], use_device=None)
    events._build_tree()
    assert root.cpu_children == [first, second, across] and first.cpu_children == [leaf]
    assert [e.cpu_parent for e in (second, across, apart, message)] == [root, root, None, None]
    assert [e.self_cpu_time_total for e in events] == [15, 22, 8, 40, 15, 30, 0]
    sums = {s.key: (s.count, s.cpu_time_total, s.self_cpu_time_total) for s in events.key_averages()}
    assert sums["child"] == (2, 70, 62) and sums["message"] == (1, 3, 0)
    assert "child" in events.table(sort_by="cpu_time_total")


def test_an_event_that_is_all_of_its_parent_is_one_with_it() -> None:
    outer, inner, leaf = made(1, "f", 0, 10), made(2, "f", 1, 9), made(3, "g", 2, 3)
    events = tp.profiler.EventList([outer, inner, leaf])
    events._build_tree()
    assert [e.name for e in events] == ["f", "g"] and outer.cpu_children == [leaf] and leaf.cpu_parent is outer


def test_sums_and_texts_of_events_made_by_hand(tmp_path: Path) -> None:
    import tensorpy.autograd.profiler_util as util

    event = made(1, "f", 0, 1500, stack=["a b.py(1): f", "c.py(2): g"], cpu_memory_usage=8)
    assert (event.cpu_time_str, event.self_cpu_memory_usage) == ("1.500ms", 8)
    event.append_kernel("k", 0, 5)
    assert event.device_time_total == 5
    total = util.FunctionEventAvg()
    total += event
    assert (total.add(event) is total, total.key, total.count, total.cpu_time_total_str) == (True, "f", 2, "3.000ms")
    with pytest.raises(AssertionError, match="an event, not int"):
        total.add(3)  # type: ignore[arg-type]
    for name in ("nonsense_str", "nonsense"):
        with pytest.raises(AttributeError, match="nonsense"):
            getattr(event, name)
    events = util.EventList([event])
    events.export_stacks(str(tmp_path / "stacks"), "self_cpu_time_total")
    assert (tmp_path / "stacks").read_text() == "c.py(2):_g;a_b.py(1):_f 1500\n"
    with pytest.raises(ValueError, match="the metric is one of"):
        events.export_stacks(str(tmp_path / "stacks"), "count")
    assert util._format_time_share(5, 20) == "25.00%" and util._format_memory(1024) == "1.00 KB"


def test_an_execution_trace_has_nodes_with_their_parents(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    observer = tp.profiler.ExecutionTraceObserver()
    observer.start()  # without a file nothing is recorded
    assert not observer.is_running() and observer.get_output_file_path() is None
    assert observer.register_callback(str(path)).register_callback("another") is observer
    assert observer.is_registered and observer.get_output_file_path() == str(path)
    for _ in range(2):
        observer.start()
        with tp.profiler.record_function("block"):
            tp.ones(2, 3).matmul(tp.ones(3, 2))
        observer.stop()
        tp.ones(2).exp()
    observer.unregister_callback()
    trace = json.loads(path.read_text())
    nodes = {node["id"]: node for node in trace["nodes"]}
    assert len(nodes) == len(trace["nodes"]) and set(trace) == {
        "schema", "pid", "time", "start_ts", "nodes", "finish_ts",
    }  # fmt: skip
    names = [node["name"] for node in trace["nodes"]]
    assert names.count("aten::matmul") == 2 and "aten::exp" not in names
    matmul = next(node for node in trace["nodes"] if node["name"] == "aten::matmul")
    assert nodes[matmul["ctrl_deps"]]["name"] == "block" and matmul["inputs"]["shapes"] == [[2, 3], [3, 2]]
    assert {a["name"]: a["value"] for a in matmul["attrs"]}["op_schema"].startswith("aten::matmul(Tensor self")
    above = nodes[nodes[matmul["ctrl_deps"]]["ctrl_deps"]]
    assert above["name"].endswith("thread]") and nodes[above["ctrl_deps"]]["name"].endswith("process]")


def test_a_profile_runs_its_observer(tmp_path: Path) -> None:
    path = tmp_path / "trace.json.gz"
    observer = tp.profiler.ExecutionTraceObserver().register_callback(str(path))
    with tp.profiler.profile(execution_trace_observer=observer) as p:
        tp.ones(2).exp()
    assert "aten::exp" in [e.name for e in p.events()]
    with gzip.open(path, "rt") as file:
        assert "aten::exp" in [node["name"] for node in json.load(file)["nodes"]]


def test_a_profiler_begins_once() -> None:
    with tp.autograd.profiler.profile() as p:
        tp.ones(2).sum()
    with pytest.raises(RuntimeError, match="not reentrant"):
        p.__enter__()


@pytest.mark.parametrize("shapes", [False, True])
def test_a_range_says_what_it_was_given(shapes: bool) -> None:
    x = tp.ones(3, 4)
    with profile(record_shapes=shapes) as p:
        with record_function("text", "1, 2"), record_function("nothing"):
            mark = tp.autograd._record_function_with_args_enter("all", 1, 2.5, [x, x], "a", x, x[0])
            x + 1
            tp.autograd._record_function_with_args_exit(mark)
        with tp._C._profiler._RecordFunctionFast("fast", [x, 3], {"y": x[0]}):
            pass
    found = {event.name: event.input_shapes for event in p.events()}
    given = {"text": [[]], "all": [[], [], [], [], [3, 4], [4]], "fast": [[3, 4], [], [4]], "nothing": []}
    assert {name: found[name] for name in given} == (given if shapes else {name: [] for name in given})
    mark = tp.autograd._record_function_with_args_enter("no profile", x)
    tp.autograd._record_function_with_args_exit(mark)
