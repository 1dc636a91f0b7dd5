"""Faults of OpenCL: each is an exception that says what is wrong, and the process goes on.

A loader of our own in front of the driver's (fake_opencl.py) fails any call of the API at any time, shows one device as
several, and hides what a device can do.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import fake_opencl
import pytest
from opencl_programs import ROOT, needs_device, output_of

import tensorpy as tp


@pytest.fixture(scope="module")
def fake(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a program that runs on the loader that fails."""
    return {"TENSORPY_OPENCL_LIBRARY": str(fake_opencl.build(tmp_path_factory.mktemp("fake")))}


FAULTY = """
    import ctypes, os
    import tensorpy as tp
    fake = ctypes.CDLL(os.environ["TENSORPY_OPENCL_LIBRARY"])
    def error_of(call):
        try:
            call()
        except RuntimeError as error:
            return str(error).replace("\\n", " ")
        return "none"
"""


def faulty(program: str, **environment: str) -> str:
    """What a program prints that may ask the loader for faults."""
    return output_of(textwrap.dedent(FAULTY) + textwrap.dedent(program), **environment)


# ---- the driver ----


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


def test_a_library_that_is_none(tmp_path: Path) -> None:
    """A file that is no library, and a library without OpenCL's functions."""
    text = tmp_path / "libText.so"
    text.write_text("not a library")
    program = """
        import tensorpy as tp
        print(tp.opencl.device_count(), tp.opencl.why_not_available(), tp.ones(2).sum().item())
    """
    assert "cannot be opened" in output_of(program, TENSORPY_OPENCL_LIBRARY=str(text))
    assert "has no clGetPlatformIDs" in output_of(program, TENSORPY_OPENCL_LIBRARY="libm.so.6")


def test_no_platform(fake: dict[str, str]) -> None:
    program = """
        print(tp.opencl.is_available(), error_of(lambda: tp.ones(2, device="opencl")), tp.ones(2).sum().item())
    """
    printed = faulty(program, FAKE_OPENCL_PLATFORMS="0", **fake)
    assert printed.startswith("False") and "no platform has a device" in printed and printed.endswith("2.0")


@needs_device
@pytest.mark.parametrize("call", ["clGetPlatformIDs", "clCreateContext", "clCreateCommandQueue"])
def test_a_driver_that_does_not_start(call: str, fake: dict[str, str]) -> None:
    """The call is named, nothing is left of it, and the next attempt works."""
    program = f"""
        fake.fail_call(b"{call}", 1, 1, -6)
        print(error_of(lambda: tp.ones(2, device="opencl")))
        print(fake.calls(b"clReleaseContext"))
        print(tp.ones(2).sum().item(), tp.ones(2, device="opencl").sum().item())
    """
    first, released, second = faulty(program, **fake).splitlines()
    assert f"{call} failed: CL_OUT_OF_HOST_MEMORY (-6)" in first and second == "2.0 2.0"
    assert released == str(int(call == "clCreateCommandQueue"))


@needs_device
def test_a_driver_that_says_nothing_of_its_device(fake: dict[str, str]) -> None:
    """Sizes that are not told are taken to be the least."""
    program = """
        fake.fail_call(b"clGetDeviceInfo", 1, -1, -30)
        print(tp.opencl.get_device_properties().max_work_group_size)
        fake.fail_call(b"clGetDeviceInfo", 1, 0, 0)
        print(error_of(lambda: tp.ones(2, device="opencl")))
    """
    first, second = faulty(program, **fake).splitlines()
    assert first == "1" and "out of memory" in second


# Everything that a program meets: copies of both kinds, kernels of several families, events, memory given back.
WORK = """
    a = tp.arange(6.0)
    def work():
        b = a.to("opencl")
        big = tp.arange(5000.0).to("opencl")
        c = tp.empty(3, 7, device="opencl").fill_(2.0)
        c[:, ::2] = 1.0
        begin, end = tp.opencl.Event(True), tp.opencl.Event(True)
        begin.record()
        product = b.reshape(2, 3) @ b.reshape(3, 2)
        end.record()
        end.query(), begin.elapsed_time(end)
        side = tp.opencl.Stream()
        side.wait_stream(tp.opencl.current_stream())
        pinned = a.pin_memory().to("opencl", non_blocking=True)
        with side:
            other = b * 3
        tp.opencl.current_stream().wait_stream(side)
        results = pinned, other, (b * 2 + 1).sum(), product, c.softmax(0), big.cumsum(0)[-1], b[b.long()], c.clone()
        tp.opencl.synchronize()
        values = [r.tolist() for r in results]
        del b, big, c, product, results, pinned, other
        tp.opencl.empty_cache()
        return values
"""


@needs_device
def test_every_call_of_the_driver_fails_once(fake: dict[str, str]) -> None:
    """An error that names the call, or a result that is right all the same; and then everything works again."""
    program = f"""
        fake.fail_call(b"clCreateCommandQueue", 2, 1, -5)  # the first is the default stream's
        assert "clCreateCommandQueue failed" in error_of(tp.opencl.Stream)
        streams = [tp.opencl.Stream() for _ in range(7)]  # as many as there are: no call makes one below
        expected = work()
        for name in {fake_opencl.names()}:
            text = name.encode()
            fake.fail_call(text, 1, 0, 0)
            assert work() == expected
            count = fake.calls(text)
            errors = 0
            for nth in range(1, count + 1):
                fake.fail_call(text, nth, 1, -5)
                try:
                    assert work() == expected, name
                except RuntimeError as error:
                    errors += 1
                    assert name in str(error) or (name == "clCreateBuffer" and "out of memory" in str(error)), error
                fake.fail_call(text, 1, 0, 0)
                assert work() == expected, name
            print(name, count, errors)
    """
    printed = faulty(textwrap.dedent(WORK) + textwrap.dedent(program), TENSORPY_OPENCL_CACHE="", **fake)
    found = {name: (int(calls), int(errors)) for name, calls, errors in map(str.split, printed.splitlines())}
    handled = {"clReleaseMemObject", "clReleaseEvent", "clReleaseKernel", "clFlush", "clEnqueueUnmapMemObject"}
    for name, (calls, errors) in found.items():
        if calls and name not in handled and name != "clCreateBuffer":  # which is tried once more
            asks_again = name == "clGetEventInfo" and errors  # whether a copy is done
            assert errors == calls or asks_again, f"{name}: {errors} errors of {calls} failures"
    met = ("clSetKernelArg", "clEnqueueNDRangeKernel", "clEnqueueReadBuffer", "clEnqueueWriteBuffer")
    for name in (*met, "clEnqueueMarkerWithWaitList"):
        assert found[name][0], f"{name} was not met"


@needs_device
def test_a_driver_that_goes_away(fake: dict[str, str]) -> None:
    """Every call fails from some moment on: each use is an error, the CPU works, and the process ends as usual."""
    program = """
        a = tp.ones(3, device="opencl")
        b = a + 1
        fake.fail_call(b"*", 1, -1, -36)
        for call in (lambda: a * 2, lambda: a.cpu(), lambda: tp.ones(2, device="opencl").item(), tp.opencl.synchronize):
            print("failed: CL_INVALID_COMMAND_QUEUE" in error_of(call), end=" ")
        del a, b
        print(tp.ones(3).sum().item())
    """
    assert faulty(program, **fake) == "True True True True 3.0"


# ---- kernels ----


@needs_device
def test_a_kernel_that_does_not_compile(fake: dict[str, str]) -> None:
    """The error has the compiler's words and the operator's program; the next attempt builds."""
    program = """
        a = tp.ones(3, device="opencl")
        fake.spoil_sources(1)
        print(error_of(lambda: a.exp()))
        print(a.exp()[0].item() > 2.7)
    """
    printed = faulty(program, TENSORPY_OPENCL_CACHE="", **fake)
    assert "a kernel does not compile on" in printed and "spoiled on purpose" in printed and "exp" in printed
    assert printed.endswith("True")


@needs_device
@pytest.mark.parametrize("call", ["clCreateProgramWithSource", "clBuildProgram", "clCreateKernel", "clGetProgramInfo"])
def test_a_build_that_fails_once(call: str, fake: dict[str, str], tmp_path: Path) -> None:
    """The next attempt works; what cannot be kept on disk is used all the same."""
    program = f"""
        a = tp.ones(3, device="opencl")
        fake.fail_call(b"{call}", 1, 1, -6)
        print(error_of(lambda: a.exp()))
        print(a.exp()[0].item() > 2.7)
    """
    first, last = faulty(program, TENSORPY_OPENCL_CACHE=str(tmp_path), **fake).splitlines()
    assert last == "True"
    assert first == "none" if call == "clGetProgramInfo" else "CL_OUT_OF_HOST_MEMORY" in first


@needs_device
@pytest.mark.parametrize("call", ["clCreateProgramWithBinary", "clBuildProgram"])
def test_a_binary_that_the_driver_does_not_take(call: str, fake: dict[str, str], tmp_path: Path) -> None:
    """After an update of the driver, say: the source is built instead."""
    program = f"""
        fake.fail_call(b"{call}", 1, 1, -42)
        print((tp.ones(3, device="opencl") * 2.5).tolist(), tp.opencl.cache_info()["built"])
    """
    home = {"TENSORPY_OPENCL_CACHE": str(tmp_path), **fake}
    assert faulty(PROGRAM, **home) == "[2.5, 2.5, 2.5] 1 0"
    assert faulty(program, **home) == "[2.5, 2.5, 2.5] 1"


@needs_device
@pytest.mark.parametrize("call, groups", [("clBuildProgram", 0), ("clEnqueueNDRangeKernel", 1)])
def test_a_kernel_of_a_compiled_function_that_fails(call: str, groups: int, fake: dict[str, str]) -> None:
    """Where none can be built the calls run one by one, for good; a launch that fails is the call's error."""
    program = f"""
        a = tp.ones(100_000, device="opencl")
        function = lambda a: (a * 2 + 1) * a
        expected = function(a).tolist()
        fast = tp.compile(function)
        {"fast(a)" if groups else ""}
        fake.fail_call(b"{call}", 1, 1, -6)
        print(error_of(lambda: fast(a)))
        print(all(fast(a).tolist() == expected for _ in range(3)), fast._report()["groups"])
    """
    how = {"TENSORPY_OPENCL_FUSED_KERNELS": "wait", "TENSORPY_OPENCL_CACHE": ""}
    error, rest = faulty(program, **how, **fake).splitlines()
    assert rest == f"True {groups}" and ("CL_OUT_OF_HOST_MEMORY" in error if groups else error == "none")


@needs_device
@pytest.mark.parametrize("call, groups", [("clBuildProgram", 1), ("clEnqueueNDRangeKernel", 1), ("clSetKernelArg", 1)])
def test_a_kernel_of_a_compiled_reduction_that_fails(call: str, groups: int, fake: dict[str, str]) -> None:
    """Where none can be built the calls before it are a kernel of their own; a launch that fails is an error."""
    program = f"""
        a = tp.ones(100, 1000, device="opencl")
        function = lambda a: (a * 2 + 1).sum(1)
        expected = function(a).tolist()
        fast = tp.compile(function)
        {"fast(a)" if call != "clBuildProgram" else ""}
        fake.fail_call(b"{call}", 1, 1, -6)
        print(error_of(lambda: fast(a[:99])))
        print(all(fast(a).tolist() == expected for _ in range(3)), fast._report()["groups"])
    """
    how = {"TENSORPY_OPENCL_FUSED_KERNELS": "wait", "TENSORPY_OPENCL_CACHE": ""}
    error, rest = faulty(program, **how, **fake).splitlines()
    assert rest == f"True {groups}"
    assert error == "none" if call == "clBuildProgram" else "CL_OUT_OF_HOST_MEMORY" in error


# ---- devices ----


@needs_device
def test_an_index_of_a_device_that_is_not_there() -> None:
    for index in ("opencl:99", "opencl:127"):
        for call in (lambda: tp.ones(2, device=index), lambda: tp.ones(2).to(index), lambda: tp.Generator(index)):  # noqa: B023
            with pytest.raises(RuntimeError, match=r"invalid device ordinal.* 1 "):
                call()
    for index in (-7, 99, 1 << 40):
        for function in (tp.opencl.set_device, tp.opencl.synchronize, tp.opencl.memory_allocated):
            with pytest.raises((RuntimeError, OverflowError, ValueError)):
                function(index if index > 0 else f"opencl:{index}")
    assert tp.ones(2, device="opencl").sum().item() == 2.0


@needs_device
def test_two_devices(fake: dict[str, str]) -> None:
    """Copies between them, each with a queue, memory and kernels of its own; not in one call."""
    program = """
        assert tp.opencl.device_count() == 2
        a, b = tp.arange(3.0, device="opencl:0"), tp.arange(3.0, device="opencl:1")
        print(a.device, b.device, (b * 2).tolist(), (b.to("opencl:0") + a).tolist(), b.t().to(a.device).device)
        for call in (lambda: a + b, lambda: a @ b, lambda: tp.cat([a, b]), lambda: a.index_select(0, b.long()),
                     lambda: a.sort()[0].add_(b), lambda: tp.searchsorted(a, b), lambda: tp.where(a > 0, a, b)):
            text = error_of(call)
            print("opencl:0" in text and "opencl:1" in text, end=" ")
        a.copy_(b * 3)
        with tp.opencl.device(1):
            print(a.tolist(), tp.ones(2, device="opencl").device, tp.opencl.current_device())
        held = tp.opencl.memory_allocated(0)
        kept = tp.empty(1 << 20, device="opencl:1")
        print(tp.opencl.memory_allocated(0) == held, tp.opencl.memory_allocated(1) >= 4 << 20)
        tp.manual_seed(1)
        x, y = tp.rand(5, device="opencl:0"), tp.rand(5, device="opencl:1")
        print(x.tolist() == y.tolist())
    """
    printed = faulty(program, FAKE_OPENCL_DEVICES="2", **fake).splitlines()
    assert printed[0] == "opencl:0 opencl:1 [0.0, 2.0, 4.0] [0.0, 2.0, 4.0] opencl:0"
    assert printed[1] == "True " * 7 + "[0.0, 3.0, 6.0] opencl:1 1"
    assert printed[2:] == ["True True", "True"]


@needs_device
def test_a_device_without_double_precision(fake: dict[str, str]) -> None:
    """The error names the device and the way out; nothing else needs it."""
    program = """
        a = tp.ones(3, device="opencl")
        for call in (lambda: a.double() * 2, lambda: tp.ones(2, dtype=tp.float64, device="opencl") + 1,
                     lambda: tp.ones(2, dtype=tp.complex128, device="opencl").exp()):
            text = error_of(call)
            print("no double precision" in text and "next step" in text, end=" ")
        print((a / 3).mean().item() > 0.3, tp.opencl.get_device_properties().has_fp64)
    """
    assert (
        faulty(program, FAKE_OPENCL_HIDE="cl_khr_fp64", TENSORPY_OPENCL_CACHE="", **fake) == "True True True True False"
    )


@needs_device
def test_two_devices_in_one_call_are_named() -> None:
    a, b = tp.ones(3, 3, device="opencl"), tp.ones(3, 3)
    for call in (lambda: a + b, lambda: a @ b, lambda: tp.cat([a, b])):
        with pytest.raises(RuntimeError, match=r"opencl:0.*cpu|cpu.*opencl:0"):
            call()
    assert (a + tp.tensor(2.0)).tolist() == [[3.0] * 3] * 3  # a number as a tensor goes with any device


# ---- memory ----


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
def test_a_driver_without_memory(fake: dict[str, str]) -> None:
    """Memory that is kept for later is given back and the allocation tried again; then it is an error."""
    program = """
        kept = tp.empty(30 << 20, device="opencl")
        del kept
        fake.fail_call(b"clCreateBuffer", 1, 1, -4)
        big = tp.ones(40 << 20, device="opencl")
        print(big[7].item(), tp.opencl.memory_stats()["retries"])
        fake.fail_call(b"clCreateBuffer", 1, 9, -4)
        print(error_of(lambda: tp.ones(50 << 20, device="opencl")))
        fake.fail_call(b"clCreateBuffer", 1, 0, 0)
        print(tp.ones(50 << 20, device="opencl")[7].item(), big[8].item())
    """
    first, error, last = faulty(program, **fake).splitlines()
    assert first == "1.0 1" and last == "1.0 1.0"
    assert "out of memory: opencl:0" in error and "memory_summary" in error


# ---- caches ----


PROGRAM = """
    import tensorpy as tp
    a = tp.ones(3, device="opencl")
    print((a * 2.5).tolist(), tp.opencl.cache_info()["built"], tp.opencl.cache_info()["from_disk"])
"""


@needs_device
def test_a_folder_that_cannot_be_written_is_no_cache(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    assert output_of(PROGRAM, TENSORPY_OPENCL_CACHE=str(blocked / "inside")) == "[2.5, 2.5, 2.5] 1 0"
    assert output_of(PROGRAM, TENSORPY_OPENCL_CACHE="") == "[2.5, 2.5, 2.5] 1 0"


@needs_device
def test_a_home_that_cannot_be_written(tmp_path: Path) -> None:
    for home in ("/proc", "/dev/null"):
        given = {"HOME": home, "XDG_CACHE_HOME": "", "POCL_CACHE_DIR": str(tmp_path)}  # the driver has its own
        assert output_of(PROGRAM, **given) == "[2.5, 2.5, 2.5] 1 0"


@needs_device
def test_no_room_for_the_cache(fake: dict[str, str], tmp_path: Path) -> None:
    """A file that cannot be written whole is not left behind."""
    given = {"TENSORPY_OPENCL_CACHE": str(tmp_path), "FAKE_OPENCL_FULL": "1", **fake}
    assert output_of(PROGRAM, **given) == "[2.5, 2.5, 2.5] 1 0"
    assert list(tmp_path.iterdir()) == []


@needs_device
def test_damaged_files(tmp_path: Path) -> None:
    """Cut off anywhere, changed anywhere, of another kind: built anew, and whole afterwards."""
    home = {"TENSORPY_OPENCL_CACHE": str(tmp_path)}
    assert output_of(PROGRAM, **home) == "[2.5, 2.5, 2.5] 1 0"
    (file,) = tmp_path.glob("*.bin")
    whole = file.read_bytes()
    for content in (whole[:5], whole[: len(whole) // 2], whole[:-1], whole + b"x", b"tensorpy opencl 1\n", b"x" * 99):
        file.write_bytes(content)
        assert output_of(PROGRAM, **home) == "[2.5, 2.5, 2.5] 1 0"
        assert len(file.read_bytes()) == len(whole)
    file.unlink()
    file.mkdir()
    assert output_of(PROGRAM, **home) == "[2.5, 2.5, 2.5] 1 0"


@needs_device
def test_files_of_others(tmp_path: Path) -> None:
    """Links, pipes, files that others may write and files in each other's place: not read, not written through."""
    home = {"TENSORPY_OPENCL_CACHE": str(tmp_path / "cache")}
    two = PROGRAM.replace("a * 2.5", "a * 2.5 + a")
    plain = f"[2.5, 2.5, 2.5] {output_of(PROGRAM, **home).split()[-2]} 0"
    (file,) = (tmp_path / "cache").glob("*.bin")
    whole, victim = file.read_bytes(), tmp_path / "victim"
    victim.write_bytes(b"precious")
    file.chmod(0o666)
    assert output_of(PROGRAM, **home) == plain
    assert file.read_bytes() == whole and not file.stat().st_mode & 0o022
    file.unlink()
    file.symlink_to(victim)
    assert output_of(PROGRAM, **home) == plain
    assert victim.read_bytes() == b"precious" and not file.is_symlink()
    file.unlink()
    os.mkfifo(file)
    assert output_of(PROGRAM, **home) == plain
    if os.geteuid() == 0:
        os.chown(file, 65534, 65534)
        assert output_of(PROGRAM, **home) == plain and file.stat().st_uid == 0
    output_of(two, **home)
    for other in (tmp_path / "cache").glob("*.bin"):
        if other != file:
            other.write_bytes(whole)
    assert output_of(two, **home).split()[-1] == "1"  # what is its own still is


@needs_device
def test_a_planted_link_beside_the_file(tmp_path: Path) -> None:
    """What is written goes into a file that is new, whatever its name leads to."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    program = """
        import tensorpy as tp
        (tp.ones(3, device="opencl") * 2.5).tolist()
    """
    output_of(program, TENSORPY_OPENCL_CACHE=str(tmp_path / "cache"))  # a program's end writes what was built
    (name,) = (file.name for file in (tmp_path / "cache").glob("*.bin"))
    planted = f"""
        import os, pathlib, tensorpy as tp
        folder = pathlib.Path({str(tmp_path / "cache")!r})
        os.unlink(folder / {name!r})
        for beside in ("{{}}.{{}}.new", "{{}}.{{}}.0.new", "{{}}.{{}}.1.new"):
            (folder / beside.format({name!r}, os.getpid())).symlink_to({str(victim)!r})
        print((tp.ones(3, device="opencl") * 2.5).tolist())
    """
    assert output_of(planted, TENSORPY_OPENCL_CACHE=str(tmp_path / "cache")) == "[2.5, 2.5, 2.5]"
    assert (tmp_path / "cache" / name).exists()
    assert victim.read_bytes() == b"precious"


@needs_device
def test_many_processes_write_at_once(tmp_path: Path) -> None:
    program = """
        import tensorpy as tp
        a = tp.ones(3, device="opencl")
        print(((a * 2.5).exp() + a.sum() - a.sin().softmax(0)).tolist())
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TENSORPY_OPENCL_CACHE": str(tmp_path)}
    command = [sys.executable, "-c", textwrap.dedent(program)]
    started = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(5)]
    printed = [p.communicate(timeout=300)[0] for p in started]
    assert all(p.returncode == 0 for p in started) and len(set(printed)) == 1
    assert not list(tmp_path.glob("*.new"))
    again = textwrap.dedent(program) + 'print(tp.opencl.cache_info()["built"])'
    assert output_of(again, TENSORPY_OPENCL_CACHE=str(tmp_path)).splitlines()[-1] == "0"


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
def test_an_index_out_of_range() -> None:
    a = tp.ones(3, 4, device="opencl")
    with pytest.raises(IndexError, match="out of bounds"):
        a[tp.tensor([0, 3], device="opencl")].tolist()
    with pytest.raises(RuntimeError, match="out of bounds"):
        a.gather(1, tp.tensor([[7]], device="opencl")).tolist()
    assert a.sum().item() == 12.0  # the process goes on


@needs_device
def test_a_cold_start_says_that_it_compiles(tmp_path: Path) -> None:
    """Once, after a second of it; a second later a wait says how many programs there were. A warm start is silent."""
    program = """
        import sys, os, tempfile, time, tensorpy as tp
        read, write = os.pipe()
        os.dup2(write, 2)
        x = tp.ones(3, device="opencl")
        done = [getattr(tp, f)(x) for f in FUNCTIONS]
        tp.opencl.synchronize()
        time.sleep(1.1)
        tp.opencl.synchronize()
        os.close(write)
        os.close(2)
        said = os.read(read, 10000).decode()
        assert said.count("tensorpy: compiled ") == said.count("compiling OpenCL kernels for")
        print(said.count("compiling OpenCL kernels for"))
    """
    functions = "acos asin atan cos exp log sin tan tanh erf sqrt square".split()
    program = program.replace("FUNCTIONS", repr(functions))
    cold = {"TENSORPY_OPENCL_CACHE": str(tmp_path / "ours"), "POCL_CACHE_DIR": str(tmp_path / "driver")}
    assert output_of(program, **cold, TENSORPY_OPENCL_QUIET="1") == "0"
    fresh = {"TENSORPY_OPENCL_CACHE": "", "POCL_CACHE_DIR": str(tmp_path / "another")}
    said = output_of(program, **fresh, TENSORPY_OPENCL_QUIET="")
    assert said == "1" if "Portable" in tp.opencl.get_device_properties().platform else said in ("0", "1")
    assert output_of(program, **cold, TENSORPY_OPENCL_QUIET="") == "0"
