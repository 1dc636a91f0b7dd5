"""The binary interface: what a library from outside has compiled in stays, and one that was built before loads."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tensorpy as tp
from codegen.abi import SAVED, advice, changes, load_abi, read_abi
from codegen.c_headers import HEADERS

ROOT = Path(__file__).resolve().parents[2]
FIRST = ROOT / "tests" / "compatibility" / "headers-v1"  # those of the first version

pytestmark = pytest.mark.skipif(shutil.which("readelf") is None, reason="there is no readelf")


def test_the_interface_is_as_saved() -> None:
    text = advice(load_abi(), read_abi())
    assert not text, f"the binary interface changed:\n{text}"


def test_the_first_version_is_a_part_of_this_one() -> None:
    assert not [str(change) for change in changes(read_abi(FIRST), read_abi()) if change.breaks]


# A change of the headers (file, pattern, text in its place), and what it is said to be; None: not a change.
CHANGED = {
    "a comment": ("types.h", r"/\* ---- dtypes ---- \*/", "/* other words */", None),
    "a parameter's name": ("api.h", r"tp_tensor \*t, tp_ints sizes\);", "tp_tensor *x, tp_ints wanted);", None),
    "a member at the end": ("api.h", r"\n\} tensorpy_api;", "\nint (*more)(void);\n} tensorpy_api;", False),
    "a backend's, too": ("backend.h", r"\n\} tensorpy_backend;", "\nint (*more)(void);\n} tensorpy_backend;", False),
    "a new type": ("types.h", r"/\* ---- errors", "typedef struct { int a; } tp_more;\n/* ---- errors", False),
    "one more error": ("types.h", r"    X\(LinAlgError\)", "    X(LinAlgError) X(MoreError)", False),
    "two members swapped": ("backend.h", r"(?s)(    void \(\*release\).*?;\n)(.*?;\n)", r"\2\1", True),
    "a member in the middle": ("api.h", r"    int \(\*num_threads\)", r"    int (*more)(void);\n\g<0>", True),
    "a member gone": ("backend.h", r"    int \(\*synchronize\).*", "", True),
    "another result": ("api.h", r"    int \(\*num_threads\)", "    int64_t (*num_threads)", True),
    "another parameter": ("backend.h", r"\(\*synchronize\)\(int device\)", "(*synchronize)(double device)", True),
    "a struct without a size": ("api.h", r"    int32_t ndim;", r"\g<0> int32_t more;", True),
    "a wider member": ("types.h", r"    int8_t index;", "    int16_t index;", True),
    "a value's union": ("types.h", r"        tp_storage \*storage;", "        void *storage;", True),
    "a value's union gets one more": ("types.h", r"        tp_stream stream;", r"\g<0> int64_t more;", False),
    "a value's union grows": ("types.h", r"        tp_stream stream;", r"\g<0> int64_t more[9];", True),
    "an enumerator in the middle": ("types.h", r"    X\(ValueError\) ", "    X(MoreError) X(ValueError)", True),
    "a key in the middle": ("types.h", r"    X\(AutogradOther\) ", "    X(More) X(AutogradOther)", True),
    "a typedef": ("types.h", r"typedef uint64_t tp_keyset;", "typedef uint32_t tp_keyset;", True),
    "a function's type": ("api.h", r"tp_tensor \*\*out\);", "tp_tensor **out, void *more);", True),
}  # fmt: skip


@pytest.mark.parametrize("case", CHANGED)
def test_a_change_is_seen(tmp_path: Path, case: str) -> None:
    header, pattern, text, breaks = CHANGED[case]
    shutil.copytree(HEADERS, tmp_path / "include")
    path = tmp_path / "include" / "tensorpy" / header
    before = path.read_text()
    after = re.sub(pattern, text, before, count=1)
    assert after != before
    path.write_text(after)
    old, new = read_abi(), read_abi(tmp_path / "include")
    found = changes(old, new)
    if breaks is None:
        assert not found and old.text == new.text
        return
    assert found and any(change.breaks for change in found) == breaks
    said = advice(old, new)
    assert ("raise TENSORPY_API_VERSION" if breaks else "raise TENSORPY_API_MINOR") in said
    raised = re.sub(*_raise(breaks), path.with_name("api.h").read_text())
    path.with_name("api.h").write_text(raised)
    assert advice(old, read_abi(tmp_path / "include")).endswith("then `make abi ARGS=--save`")
    assert "raise" not in advice(old, read_abi(tmp_path / "include"))


def _raise(major: bool) -> tuple[str, str]:
    name = "VERSION" if major else "MINOR"
    return rf"define TENSORPY_API_{name} \d+", f"define TENSORPY_API_{name} 1000"


def test_the_saved_text_has_its_hash(tmp_path: Path) -> None:
    edited = tmp_path / "abi.txt"
    edited.write_text(SAVED.read_text().replace("int64_t(tp_dtype) *", "int32_t(tp_dtype) *", 1))
    with pytest.raises(ValueError, match="changed by hand"):
        load_abi(edited)


# ---- libraries that were built before ----


def environment(**given: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, sys.path)), **given}


def build(source: Path, out: Path, *flags: str) -> Path:
    """Against the headers of the first version."""
    compiler = os.environ.get("CC", "cc").split()
    command = [
        *compiler,
        "-Wall",
        "-Wextra",
        "-Werror",
        "-shared",
        "-fPIC",
        "-fvisibility=hidden",
        f"-I{FIRST}",
        *flags,
    ]
    subprocess.run([*command, *map(str, [source] if source.is_file() else source.glob("*.c")), "-o", out], check=True)
    return out


def test_an_old_library_of_operators(tmp_path: Path) -> None:
    """examples/custom_operator, its own tests over the old build."""
    project = tmp_path / "project"
    shutil.copytree(ROOT / "examples" / "custom_operator", project, ignore=shutil.ignore_patterns("*.so", "build"))
    initial = (project / "myops" / "__init__.py").read_text()
    built = build(project / "csrc", tmp_path / "old.so")
    loaded = re.sub(r"load_installed\(.*\)", f"tensorpy.ops.load_library({str(built)!r})", initial)
    assert loaded != initial
    (project / "myops" / "__init__.py").write_text(f"import tensorpy\n{loaded}")
    given = environment(PYTHONPATH=os.pathsep.join([str(project), *map(str, sys.path)]))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q"], cwd=project, env=given, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


MIRROR = """
import os
import tensorpy as tp
tp.backends.load(os.environ["MIRROR"])
a = tp.ones(2, 2, device="mirror", requires_grad=True)
(-(a @ a)).exp().sum().backward()
print(a.grad.device, a.grad.cpu().isfinite().all().item(), tp.ones(1, device="mirror:1").device)
"""


@pytest.mark.parametrize("members", ["all", "the first"])
def test_an_old_backend(tmp_path: Path, members: str) -> None:
    """examples/backend; and one whose struct ends where all that has to be filled in ends."""
    source = (ROOT / "examples" / "backend" / "mirror.c").read_text()
    if members == "the first":
        source = re.sub(
            r"    b->copy_inside = .*\n.*\n.*\n", "    b->size = offsetof(tensorpy_backend, copy_inside);\n", source
        )
        source = re.sub(r"static int (inside|two|nothing_to_wait_for)\(", r"__attribute__((unused)) \g<0>", source)
    (tmp_path / "mirror.c").write_text(source)
    built = build(tmp_path / "mirror.c", tmp_path / "mirror.so")
    program = MIRROR if members == "all" else MIRROR.replace("mirror:1", "mirror:0")
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(MIRROR=str(built)), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[:2] == ["mirror:0", "True"]


def test_a_newer_backend(tmp_path: Path) -> None:
    """One whose struct is longer than this tensorpy's, and filled in to its end."""
    shutil.copytree(HEADERS, tmp_path / "include")
    header = tmp_path / "include" / "tensorpy" / "backend.h"
    longer = re.sub(r"\n\} tensorpy_backend;", "\n    char more[65536];\n} tensorpy_backend;", header.read_text())
    assert longer != header.read_text()
    header.write_text(longer)
    source = (ROOT / "examples" / "backend" / "mirror.c").read_text()
    source = source.replace(
        "    b->allocate = allocate;\n", "    memset(b->more, 1, sizeof b->more);\n    b->allocate = allocate;\n"
    )
    (tmp_path / "mirror.c").write_text(source)
    compiler = os.environ.get("CC", "cc").split()
    command = [*compiler, "-shared", "-fPIC", f"-I{tmp_path / 'include'}", str(tmp_path / "mirror.c")]
    subprocess.run([*command, "-o", str(tmp_path / "mirror.so")], check=True)
    done = subprocess.run(
        [sys.executable, "-c", MIRROR],
        env=environment(MIRROR=str(tmp_path / "mirror.so")),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, (done.returncode, done.stderr)


def test_the_saved_headers_are_those_of_their_version() -> None:
    assert read_abi(FIRST).version == (1, 0)
    assert {path.name for path in (FIRST / "tensorpy").iterdir()} <= {p.name for p in (HEADERS / "tensorpy").iterdir()}
    assert Path(tp.backends.include()).resolve() == HEADERS
