"""tensorpy.testing.device, and backends from outside: the example of examples/backend, built and tested elsewhere."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from opencl_programs import needs_device
from parts import hand_on

import tensorpy as tp
from tensorpy.testing.checks import CHECKS, Check
from tensorpy.testing.device import Device, Outcome, Refusal, Report, run_check
from tensorpy.testing.samples import TABLE, OpInfo

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A folder with the example, built there, and the environment in which its tests run."""
    folder = tmp_path_factory.mktemp("outside")
    for file in (ROOT / "examples" / "backend").iterdir():
        if file.is_file():
            shutil.copy(file, folder)
    compiler = os.environ.get("CC", "cc").split()
    command = [*compiler, "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-I", tp.backends.include(), "mirror.c"]
    subprocess.run([*command, "-o", "mirror.so"], cwd=folder, check=True)
    return folder, {**os.environ, "PYTHONPATH": str(ROOT), "MIRROR": str(folder / "mirror.so")}


def run(outside: tuple[Path, dict[str, str]], *arguments: str) -> subprocess.CompletedProcess[str]:
    folder, environment = outside
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=600
    )


def test_a_backend_from_outside(outside: tuple[Path, dict[str, str]]) -> None:
    """A part of the table, and the device's own checks, in a folder of its own; the table of compliance is printed."""
    chosen = (
        "(test_device or add or mm or lgamma or gammaln or sort or rand or cat or view or linear or linspace)"
        " and not mvlgamma and not multigammaln and not igamma and not gammainc"
    )
    done = run(outside, "-m", "tensorpy.testing.device", "test_mirror.py", "--compliance=table.md", "-k", chosen)
    assert done.returncode == 0, done.stdout[-5000:]
    assert "compliance of mirror" in done.stdout and "refused" in done.stdout
    table = (outside[0] / "table.md").read_text()
    head = next(line for line in table.splitlines() if line.startswith("| family"))
    assert [cell.strip() for cell in head.split("|")[2:-1]] == list(CHECKS)
    row = next(line for line in table.splitlines() if line.startswith("| mm |"))
    assert re.search(r"\| \d+ \|", row), "mm has a kernel of its own"
    assert re.search(r"^\| sort.stable \|.* \+\d", table, re.M), "sort is computed by the CPU"
    assert re.search(r"^\| lgamma \|.* -\d", table, re.M), "lgamma is refused"
    assert "!" not in table.partition("|")[2]


def test_a_backend_works(outside: tuple[Path, dict[str, str]]) -> None:
    program = """
        import os
        import tensorpy as tp
        tp.backends.load(os.environ["MIRROR"])
        a = tp.randn(3, 4, device="mirror", requires_grad=True)
        (a @ a.t()).softmax(1).log().sum().backward()
        print(a.grad.device, a.t().is_contiguous(), a.detach().t()[1].cpu().device)
        print(tp.backends.fallback_calls("mirror") > 0)
        with tp.autocast("mirror", dtype=tp.bfloat16):
            print((a @ a.t()).dtype)
        print([e.kind for e in tp.dispatch.table("mm") if e.key == "PrivateUse1"])
        shown = tp.dispatch.explain("cumsum", a, 0)
        print("PrivateUse1 has no prim::scan.sum" in shown and "scan_sum_cpu in csrc/cpu/scan.c on the CPU" in shown)
        print(tp.ones(2, device="mirror:1").device, tp.ones(2, device="mirror:1").to("mirror:0").device)
        b = tp.ones(3, 4, device="mirror:1")
        for call in (
            lambda: tp.ones(2, device="mirror:2"),
            lambda: a + b,
            lambda: tp.backends.load(os.environ["MIRROR"]),
            lambda: tp.backends.load("libm.so.6"),
            lambda: a.lgamma(),
        ):
            try:
                print(call())
            except (RuntimeError, OSError) as error:
                print(str(error).splitlines()[0])
    """
    done = run(outside, "-c", textwrap.dedent(program))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:4] == ["mirror:0 False cpu", "True", "tensorpy.bfloat16", "['boxed']"]
    assert lines[4:6] == ["True", "mirror:1 mirror:0"]
    assert "invalid device ordinal: mirror:2" in lines[6]
    assert "mirror:1" in lines[7] and "mirror:0" in lines[7]
    assert lines[8] == "None" and "cannot be opened" in lines[9]
    assert lines[10] == "mirror: lgamma is not written yet"


def test_a_backend_by_the_names_of_torch(outside: tuple[Path, dict[str, str]]) -> None:
    """What programs for PyTorch's one device from outside call, in their order."""
    program = """
        import os, sys, types
        import tensorpy
        tensorpy.as_torch()
        import torch
        from torch.utils.backend_registration import rename_privateuse1_backend

        def refused(call):
            try:
                call()
            except RuntimeError as error:
                return str(error)

        own = types.ModuleType("own")
        own.device_count = lambda: 7
        assert torch._C._get_privateuse1_backend_name() == "privateuseone"
        assert "no backend 'mirror' is loaded" in refused(lambda: rename_privateuse1_backend("mirror"))
        assert "no backend is loaded" in refused(torch.utils.generate_methods_for_privateuse1_backend)
        tensorpy.backends.load(os.environ["MIRROR"])
        torch.utils.rename_privateuse1_backend("mirror")
        torch.utils.rename_privateuse1_backend("mirror")
        assert "already been set" in refused(lambda: rename_privateuse1_backend("other"))
        assert torch._C._get_privateuse1_backend_name() == "mirror"
        torch.utils.generate_methods_for_privateuse1_backend(unsupported_dtype=[torch.bfloat16])
        torch._register_device_module("mirror", own)
        assert "already been registered" in refused(lambda: torch._register_device_module("mirror", own))
        assert "already been registered" in refused(lambda: torch._register_device_module("cpu", own))
        assert torch.mirror is own and torch.get_device_module("mirror") is own
        assert own.device_count() == 7 and own.current_device() == 0
        packed = torch.nn.utils.rnn.pack_sequence([torch.ones(3), torch.ones(2)])
        assert packed.mirror().is_mirror and not packed.is_mirror
        assert torch.ones(2).mirror().is_mirror and torch.nn.Linear(1, 1).mirror().weight.is_mirror
    """
    done = run(outside, "-c", textwrap.dedent(program))
    assert done.returncode == 0, done.stderr


# ---- primitives ----

NAMES = """
    import os
    import pytest
    import tensorpy as tp
    tp.backends.load(os.environ["MIRROR"])
    x = tp.ones(2)
    assert not x.is_mirror and x.mirror().is_mirror and x.mirror(1).device == tp.device("mirror:1")
    assert tp.nn.Linear(2, 2).mirror().weight.is_mirror
    import tensorpy.mirror
    assert tp.mirror.is_available() and tp.mirror.device_count() == 2 and tp.mirror.current_device() == 0
    tp.mirror.set_device("mirror:1")
    assert tp.ones(1, device="mirror").device.index == 1
    tp.mirror.set_device(0)
    tp.mirror.synchronize()
    for wrong in (lambda: tp.mirror.set_device(2), lambda: tp.mirror.synchronize("cpu")):
        with pytest.raises((RuntimeError, ValueError)):
            wrong()
    a = tp.accelerator
    assert a.is_available() and str(a.current_accelerator()) == "mirror" and a.device_count() == 2
    with a.device_index(1):
        assert a.current_device_index() == 1
    assert a.current_device_index() == 0
    assert str(tp.device(1)) == str(tp.ones(1).to(1).device) == "mirror:1"
    a.set_device_index("mirror:1")
    a.synchronize()
    a.synchronize("mirror:0")
    a.empty_cache()
    for lacking in (a.memory_allocated, lambda: tp.Stream("mirror"), tp.mirror.current_stream, tp.mirror.memory_stats):
        with pytest.raises(NotImplementedError, match="mirror"):
            lacking()
    assert tp.mirror.get_device_name() == "mirror"
    tp.mirror.manual_seed(3)
    drawn = tp.rand(4, device="mirror")
    tp.mirror.manual_seed_all(3)
    assert tp.equal(tp.rand(4, device="mirror").cpu(), drawn.cpu())
    with pytest.raises(ValueError):
        a.synchronize("meta")
    with tp.device("mirror:0"):
        assert tp.ones(2).device == tp.zeros(1).device == tp.device("mirror:0")
        with tp.device("cpu"):
            assert tp.rand(2).device.type == "cpu"
        assert tp.tensor([1]).is_mirror
    assert tp.ones(2).device.type == "cpu"
"""


def test_what_a_device_gets_by_its_name(outside: tuple[Path, dict[str, str]]) -> None:
    done = run(outside, "-c", textwrap.dedent(NAMES))
    assert done.returncode == 0, done.stderr


# Operators, and what a device needs to run them itself.
TAKEN_OFF = {
    "prim::scan.sum": {"cumsum"},
    "prim::take": {"gather", "index_select"},
    "prim::sort": {"sort.stable", "argsort.stable", "msort"},
    "prim::softmax.forward": {"_softmax"},
}

PROGRAM = """
    import os
    import tensorpy as tp
    tp.backends.load(os.environ["BARE"])
    x = tp.tensor([[3.0, 1.0, 2.0], [6.0, 5.0, 4.0]])
    there, calls = x.to("bare"), 0
    places = tp.tensor([[0, 2, 1], [1, 1, 0]])
    for call in (
        lambda t: t.cumsum(1),
        lambda t: t.gather(1, places.to(t.device)),
        lambda t: t.index_select(1, places[0].to(t.device)),
        lambda t: t.sort(1).values,
        lambda t: t.softmax(1),
        lambda t: t.t().contiguous().view(2, 3) + 1,
    ):
        assert call(there).device.type == "bare" and tp.equal(call(there).cpu(), call(x))
    def on_host(name):
        kinds = {e.key: e.kind for e in tp.dispatch.table(name)}
        return kinds.get("PrivateUse1") == "fallback" and "CPU" in kinds  # and no operator of layouts alone
    print(*(name for name in tp.dispatch.operators() if on_host(name)))
"""


@pytest.fixture(scope="module")
def bare(outside: tuple[Path, dict[str, str]]) -> Path:
    """A device of memory, and of the primitives that an environment variable names."""
    folder, _ = outside
    source = (folder / "mirror.c").read_text().replace("mirror", "bare")
    source = (
        source[: source.index("TENSORPY_LIBRARY_IMPL(")]
        + """
static int register_primitives(tp_library *m) {
    for (char *name = strtok(getenv("PRIMITIVES"), " "); name; name = strtok(NULL, " "))
        if (tp_impl_boxed(m, name, wrapped, NULL, NULL) < 0) return -1;
    return 0;
}
TENSORPY_LIBRARY_IMPL(prim, bare, m) { return register_primitives(m); }
"""
    )
    (folder / "bare.c").write_text(source)
    compiler = os.environ.get("CC", "cc").split()
    command = [*compiler, "-shared", "-fPIC", "-I", tp.backends.include(), "bare.c", "-o", "bare.so"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "bare.so"


def test_each_primitive_takes_operators_off_the_host(outside: tuple[Path, dict[str, str]], bare: Path) -> None:
    """A device of memory alone runs everything, on the host; with each primitive that it adds less goes there."""
    folder, environment = outside
    before: set[str] = set()
    for n in range(len(TAKEN_OFF) + 1):
        given = {**environment, "BARE": str(bare), "PRIMITIVES": " ".join(list(TAKEN_OFF)[:n])}
        done = run((folder, given), "-c", textwrap.dedent(PROGRAM))
        assert done.returncode == 0, done.stderr
        on_host = set(done.stdout.split())
        if n == 0:
            assert set().union(*TAKEN_OFF.values()) <= on_host
        else:
            primitive = list(TAKEN_OFF)[n - 1]
            assert on_host < before and TAKEN_OFF[primitive] <= before - on_host, f"{primitive}: {before - on_host}"
        before = on_host


REPORT = """
    import json, os
    import tensorpy as tp
    tp.backends.load(os.environ["BARE"])
    x = tp.rand(3, 3, device="bare")
    for _ in range(3):
        x.cumsum(0)
    r = tp.backends.report("bare")
    assert set(r.there) == set(os.environ["PRIMITIVES"].split()) and not set(r.there) & set(r.missing)
    needed = {p for p in tp.dispatch.primitives() if not tp.dispatch.is_optional(p)}
    assert set(r.there) | set(r.missing) == needed
    print(json.dumps([r.next, r.saves, r.on_host, r.host_calls, r.calls_saved(r.next)]))
    print(r)
"""


def test_the_report_says_what_comes_next(outside: tuple[Path, dict[str, str]], bare: Path) -> None:
    """The primitive that it names takes the operators that it lists, and those calls, off the host."""
    folder, environment = outside

    def report(primitives: str) -> tuple[Any, str]:
        given = {**environment, "BARE": str(bare), "PRIMITIVES": primitives}
        done = run((folder, given), "-c", textwrap.dedent(REPORT))
        assert done.returncode == 0, done.stderr
        data, _, text = done.stdout.partition("\n")
        return json.loads(data), text

    (following, saves, on_host, calls, saved), text = report("")
    assert following == "prim::scan.sum" and calls["cumsum"] == saved == 3
    assert "0 of " in text and "next: prim::scan.sum takes" in text and "       3  cumsum" in text
    assert "what to write, by what it takes off the CPU:" in text and " 3 calls: prim::scan.sum\n" in text
    (_, _, after, calls, _), text = report(following)
    assert set(on_host) - set(after) == set(saves[following]) and "cumsum" not in calls
    assert "there: prim::scan.sum" in text and " operators, 0 calls: prim::map\n" in text


def test_a_device_of_memory_alone_passes_the_table(
    outside: tuple[Path, dict[str, str]], bare: Path, request: pytest.FixtureRequest
) -> None:
    """Every check of every operator, with nothing of the device's own but its memory. `--part` is heard."""
    folder, environment = outside
    table = (folder / "test_mirror.py").read_text().replace('"mirror"', '"bare"').replace("MIRROR", "BARE")
    (folder / "test_bare.py").write_text(re.sub(r"        refusals=.*\n", "", table))
    given = {**environment, "BARE": str(bare), "PRIMITIVES": ""}
    share = hand_on(request.config.getoption("--part"), folder)
    done = run((folder, given), "-m", "tensorpy.testing.device", "test_bare.py")
    (folder / "conftest.py").unlink()
    assert done.returncode == 0, done.stdout[-5000:]
    assert re.search(r"^compliance of bare", done.stdout, re.M)
    assert int(re.findall(r"(\d+) passed", done.stdout)[-1]) > 2500 * share, done.stdout[-2000:]


def test_a_device_of_all_primitives(outside: tuple[Path, dict[str, str]], bare: Path) -> None:
    """Only operators that the CPU computes as a whole are left to the host; the primitives may be its own work."""
    folder, environment = outside
    names = " ".join(sorted(set(tp.dispatch.primitives()) - {"prim::permutation"}))
    done = run((folder, {**environment, "BARE": str(bare), "PRIMITIVES": names}), "-c", textwrap.dedent(PROGRAM))
    assert done.returncode == 0, done.stderr
    for name in done.stdout.split():
        registered = {e.key: e.registered_as for e in tp.dispatch.table(name) if e.key in ("CPU", "OpenCL")}
        assert registered.get("CPU") == "CPU", f"{name} goes to the host: {registered}"


def test_a_device_that_shows_no_memory(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """examples/backend_opaque: the values of the whole table, with nothing refused but views. `--part` is heard."""
    for file in (ROOT / "examples" / "backend_opaque").iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path)
    compiler = os.environ.get("CC", "cc").split()
    command = [*compiler, "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-I", tp.backends.include(), "vault.c"]
    subprocess.run([*command, "-o", "vault.so"], cwd=tmp_path, check=True)
    given = {**os.environ, "PYTHONPATH": str(ROOT), "VAULT": str(tmp_path / "vault.so")}
    share = hand_on(request.config.getoption("--part"), tmp_path)
    done = run((tmp_path, given), "-m", "tensorpy.testing.device", "test_vault.py")
    assert done.returncode == 0, done.stdout[-5000:]
    assert int(re.findall(r"(\d+) passed", done.stdout)[-1]) > 1000 * share
    reasons = re.findall(r"^refused, .*: (.*)$", done.stdout, re.M)
    assert reasons == ["no views"] or (share < 0.05 and not reasons), reasons  # few operators: none has a view


@needs_device
def test_a_device_over_opencl_from_the_public_headers(tmp_path: Path) -> None:
    """examples/backend_cuda_shaped: a part of the table, and nothing of it is linked with OpenCL or with tensorpy."""
    for file in (ROOT / "examples" / "backend_cuda_shaped").iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path)
    compiler = os.environ.get("CC", "cc").split()
    flags = ["-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-O2", "-I", tp.backends.include()]
    sources = [str(path) for path in sorted(tmp_path.glob("*.c"))]
    subprocess.run([*compiler, *flags, *sources, "-ldl", "-lpthread", "-o", "ocl.so"], cwd=tmp_path, check=True)
    given = {**os.environ, "PYTHONPATH": str(ROOT), "OCL": str(tmp_path / "ocl.so")}
    chosen = (
        "(test_device or add or mm or lgamma or gammaln or sort or rand or cat or view or linear or linspace)"
        " and not mvlgamma and not multigammaln"
    )
    done = run((tmp_path, given), "-m", "tensorpy.testing.device", "test_ocl.py", "-k", chosen)
    assert done.returncode == 0, done.stdout[-5000:]
    program = "import os, tensorpy as tp; tp.backends.load(os.environ['OCL']); print(tp.ones(2, device='ocl').tolist())"
    none = run((tmp_path, given | {"OCL_LIBRARY": "nothing.so"}), "-c", program)
    assert "ocl has 0 devices" in none.stderr


# ---- outcomes ----


def failing(info: OpInfo, dtype: str, device: str) -> None:
    if dtype == "float32":
        raise AssertionError("wrong")
    if dtype == "float64":
        raise NotImplementedError("not here")


def outcomes(device: Device) -> dict[str, str]:
    check = Check("trial", failing, lambda info: True, lambda info: info.dtypes, False)
    return {o.dtype: o.outcome for o in run_check(device, check, TABLE["exp"])}


def test_outcomes() -> None:
    """A wrong value fails, refused or not; an error is a failure unless it is declared."""
    plain = outcomes(Device("cpu"))
    assert plain["float32"] == plain["float64"] == "failed" and plain["float16"] == "passed"
    refused = outcomes(Device("cpu", refusals=[Refusal("ex*", "no", dtypes=("float32", "float64"))]))
    assert refused["float32"] == "failed" and refused["float64"] == "refused"
    assert set(outcomes(Device("cpu", dtypes=("float16", "int8")))) == {"float16"}


def test_tolerances() -> None:
    device = Device("cpu", tolerances={"float32": (1e-3, 0)}, operator_tolerances={"exp": {"float32": (1e-2, 1e-2)}})
    assert device.info(TABLE["exp"]).tolerance("float32") == (1e-2, 1e-2)
    assert device.info(TABLE["sin"]).tolerance("float32")[0] == 1e-3
    assert device.info(TABLE["sin"]).tolerance("float64") == TABLE["sin"].tolerance("float64")


def test_report(tmp_path: Path) -> None:
    report = Report("mine")
    for operator, dtype, outcome in (("a", "float32", "passed"), ("a", "int8", "fallback"), ("b", "int8", "failed")):
        report.add(Outcome(operator, "family", "values", dtype, outcome))
    assert report.table() == [["", "values"], ["family", "1 +1 !1"], ["all", "1 +1 !1"]]
    assert report.table(lambda o: o.operator)[1:3] == [["a", "1 +1"], ["b", "!1"]]
    report.write(tmp_path / "table.json")
    assert '"outcome": "fallback"' in (tmp_path / "table.json").read_text()
