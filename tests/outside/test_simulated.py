"""examples/backend_simulated, built as a project of its own; three of it at once; what a backend may bring."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from parts import hand_on

import tensorpy as tp
from tensorpy.backends import _entry_points
from tensorpy.utils import extension

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "backend_simulated"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, built in place in a folder of its own, with the metadata that an installed package has."""
    folder = tmp_path_factory.mktemp("simulated") / "project"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__", "*.so"))
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace", "-j2", "egg_info"]
    built = subprocess.run(command, cwd=folder, env=environment(folder), capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return folder


def environment(project: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(project), str(ROOT)]), "CFLAGS": "-Wall -Wextra -Werror"}


def run(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=project, env=environment(project), capture_output=True, text=True, timeout=900
    )


def test_the_whole_table_and_no_host_call(project: Path, request: pytest.FixtureRequest) -> None:
    """Its own tests, of which the table of operators is most; the host computes nothing for it. `--part` is heard."""
    share = hand_on(request.config.getoption("--part"), project)
    done = run(project, "-m", "tensorpy.testing.device", "test_simulated.py")
    assert done.returncode == 0, done.stdout[-5000:]
    told = re.search(r"^compliance of simulated: (\d\d\.\d) % of (\d{3,}) checks$", done.stdout, re.M)
    assert told, done.stdout[-5000:]
    # A part may hold more than its share of what needs LAPACK, which the device lacks.
    assert float(told[1]) >= (90 if share == 1 else 60) and int(told[2]) >= share * 10_000, told[0]


def test_what_it_lacks_as_a_whole_it_computes_in_parts(project: Path) -> None:
    """Optional primitives: neither an error nor a call of the host."""
    program = """
        import tensorpy as tp
        from tensorpy.nn import functional as F
        asked = "prim::nll_loss.forward", "prim::take", "prim::attention.forward", "_attention_math"
        x, target = tp.randn(5, 3).log_softmax(1), tp.tensor([0, 2, 1, -100, 2])
        q = tp.randn(1, 2, 150, 8)
        there = [t.to("simulated") for t in (x, target, q)]
        for place in ((x, target, q), there):
            x, target, q = place
            with tp.dispatch.trace(primitives=True) as trace:
                loss, out = F.nll_loss(x, target), F.scaled_dot_product_attention(q, q, q)
            names = {event.op for event in trace}
            print([name in names for name in asked])
            print(round(loss.item(), 4), round(out.sum().item(), 2))
        print(tp.backends.fallback_calls("simulated"))
    """
    done = run(project, "-c", textwrap.dedent(program))
    assert done.returncode == 0, done.stderr
    whole, values, parts, same, calls = done.stdout.splitlines()
    assert whole == "[True, False, True, False]" and parts == "[False, True, False, True]"
    assert values == same and calls == "0"


def test_its_name_loads_it(project: Path) -> None:
    """By its entry point, at the first use of the name; an error about another name says what is installed."""
    program = """
        import sys
        import tensorpy as tp
        try:
            tp.ones(2, device="simulate")
        except RuntimeError as error:
            print(error)
        assert "simulated" not in sys.modules
        print(tp.ones(2, device="simulated:1").device, tp.ones(2).simulated().is_simulated)
        assert "simulated" in sys.modules
    """
    done = run(project, "-c", textwrap.dedent(program))
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first.startswith("Expected one of cpu, meta") and first.endswith("installed: simulated")
    assert second == "simulated:1 True"


def test_a_package_that_does_not_load_says_so(project: Path) -> None:
    program = """
        import sys
        import tensorpy as tp
        sys.modules["simulated"] = None
        for _ in range(2):
            try:
                tp.ones(2, device="simulated")
            except ImportError as error:
                print(type(error).__name__)
    """
    done = run(project, "-c", textwrap.dedent(program))
    assert done.stdout.split() == ["ModuleNotFoundError"] * 2, done.stderr


def test_an_unknown_name_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.metadata

    asked = []
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: asked.append(group) or ())
    for name in ("nobody_has_this", "nobody_has_this:1", "nobody_has_this"):
        with pytest.raises(RuntimeError, match=r"Expected one of .* device type"):
            tp.device(name)
    assert asked == [_entry_points.GROUP]
    with pytest.raises(RuntimeError):
        tp.device("")


THREE = """
    import sys
    from pathlib import Path
    import tensorpy as tp
    from tensorpy.utils import extension

    sources = sorted(Path("csrc").glob("*.c"))
    names = ("first", "second", "third")
    for name in names:
        extension.load(name, sources, extra_cflags=[f"-DDEVICE={name}"], extra_ldflags=["-lm", "-lpthread"],
                       build_directory=sys.argv[1])
    x = tp.rand(3, 4)
    there = [x.to(f"{name}:1") for name in names]
    for name, t in zip(names, there):
        assert t.device == tp.device(f"{name}:1") and tp.allclose((t @ t.t()).softmax(1).cpu(), (x @ x.t()).softmax(1))
        stream = getattr(tp, name).Stream()
        with stream:
            y = t * 2
        stream.synchronize()
        assert getattr(tp, name).current_stream(1).stream_id == 0 and tp.equal(y.cpu(), x * 2)
        leaf = t.detach().requires_grad_()
        tp.nn.functional.hardswish(leaf).sum().backward()
        assert leaf.grad.device == t.device
        assert not tp.backends.report(name).host_calls
    assert tp.equal(there[0].to("third").cpu(), x)
    for a, b in zip(there, there[1:]):
        try:
            a + b
        except RuntimeError as error:
            assert str(a.device) in str(error) and str(b.device) in str(error)
        else:
            raise AssertionError("tensors of two devices were added")
"""


def test_three_at_once(project: Path, tmp_path: Path) -> None:
    """The same source under three names in one process."""
    done = run(project, "-c", textwrap.dedent(THREE), str(tmp_path))
    assert done.returncode == 0, done.stderr


# ---- what a backend may bring ----

PARTIAL = """
#include "tensorpy/library.h"
static void *allocate(int device, size_t nbytes, void **context) { return NULL; }
static void release(int device, void *data, size_t nbytes, void *context) {}
static int copy_from_host(int device, void *to, const void *from, size_t nbytes) { return 0; }
static int copy_to_host(int device, void *to, const void *from, size_t nbytes) { return 0; }
static int64_t stream_new(int device, int priority) { return 1; }
static int empty_cache(int device) { return 0; }
static void *pin(size_t nbytes) { return NULL; }
TENSORPY_BACKEND(partial, b) {
    b->allocate = allocate, b->release = release, b->copy_from_host = copy_from_host, b->copy_to_host = copy_to_host;
    MEMBER
}
"""


@pytest.mark.parametrize(
    ("given", "missing"),
    [("stream_new", "stream_query"), ("empty_cache", "memory_stats"), ("pin", "unpin")],
)
def test_a_group_that_is_not_whole_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, missing: str
) -> None:
    """What belongs together is there or not; the error names one that is missing and one that is there."""
    source = PARTIAL.replace("MEMBER", f"b->{given} = {given};")
    with pytest.raises(RuntimeError, match=f"{missing} is not filled in, but {given} is"):
        extension.load_inline("partial", source, build_directory=tmp_path)
    assert "partial" not in tp._C._outside_devices()
