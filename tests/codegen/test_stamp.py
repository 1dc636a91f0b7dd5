"""When the generator may be left out of a build: nothing that it reads has changed."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from codegen import stamp

KERNEL = '#include "Functions.h"\n#define BOTH(n) void n##_cpu(void)\n\nint f_cpu(int x) {\n    return x + 1;\n}\n'


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in (("csrc/native/f.c", KERNEL), ("yaml/f.yaml", "- func: f()\n"), ("codegen/a.py", "A = 1\n")):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("file", "text", "same"),
    [
        ("csrc/native/f.c", KERNEL.replace("x + 1", "(1 - x) * 7  /* x */"), True),
        ("csrc/native/f.c", KERNEL.replace("x + 1", "tp_g(x)"), False),
        ("csrc/native/f.c", KERNEL.replace("n##_cpu", "n##_x"), False),
        ("csrc/native/f.c", KERNEL.replace("int f_cpu", "static int f_cpu"), False),
        ("csrc/native/g.c", "", False),
        ("yaml/f.yaml", "- func: f(int x)\n", False),
        ("codegen/a.py", "A = 2\n", False),
    ],
)
def test_what_changes_the_digest(tree: Path, file: str, text: str, same: bool) -> None:
    before = stamp.digest(tree)
    (tree / file).write_text(text)
    assert (stamp.digest(tree) == before) == same


def test_what_is_fresh(tree: Path) -> None:
    out = tree / "gen"
    out.mkdir()
    assert not stamp.is_fresh(out, "a")
    (out / "one.c").write_text("")
    stamp.write(out, "a", ["one.c"])
    assert stamp.is_fresh(out, "a") and not stamp.is_fresh(out, "b")
    (out / "one.c").unlink()
    assert not stamp.is_fresh(out, "a")


def test_another_build_has_what_was_generated(tree: Path) -> None:
    """The tree's YAML is none that the generator would take."""
    setup = runpy.run_path(str(Path(__file__).resolve().parents[2] / "setup.py"), run_name="setup")
    generate = setup["generate_into"]
    generate.__globals__["ROOT"] = tree
    first, second = (tree / "build" / mode / "gen" for mode in ("release", "asan"))
    (first / "ops").mkdir(parents=True)
    (first / "ops" / "f.c").write_text("int f;")
    stamp.write(first, stamp.digest(tree), ["ops/f.c"])
    generate(second)
    assert (second / "ops" / "f.c").read_text() == "int f;" and stamp.is_fresh(second, stamp.digest(tree))
    (tree / "codegen/a.py").write_text("A = 2\n")
    with pytest.raises(SystemExit):
        generate(second)
