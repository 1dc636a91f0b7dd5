"""Libraries from a project's own YAML: what is refused, and what is generated for each kind of entry."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from library_text import library_files

import tensorpy as tp
from codegen.errors import YamlErrors
from tensorpy.utils.extension import compile_flags, generate, load_yaml

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLE = ROOT / "examples" / "operators_from_yaml"


def files_of(tmp_path: Path, functions: str, derivatives: str = "") -> dict[str, str]:
    (tmp_path / "native_functions.yaml").write_text(functions)
    (tmp_path / "derivatives.yaml").write_text(derivatives)
    return library_files("mine", tmp_path)


@pytest.mark.parametrize(
    ("entry", "derivative", "what", "fix"),
    [
        (
            "- func: relu(Tensor self) -> Tensor\n  variants: method\n  composite: self * 2",
            "",
            "Tensor has one of this name",
            "name it otherwise",
        ),
        (
            "- func: f(Tensor self) -> Tensor\n  dispatch:\n    Dense: f_dense\n  prims: [mapp]",
            "",
            "'prims' names 'mapp'",
            "'map'",
        ),
        (
            "- func: f(Tensor self) -> Tensor\n  dispatch:\n    Dense: f_dense\n  out_dtype: castable",
            "",
            "no out= variant",
            "'f.out' in 'autogen'",
        ),
        (
            "- func: f_(Tensor(a!) self) -> Tensor(a!)\n  tags: inplace_view\n  dispatch:\n    CPU: f_cpu",
            "",
            "has a kernel of its own",
            "in-place views",
        ),
        (
            "- func: f_copy(Tensor self) -> Tensor\n  tags: view_copy",
            "",
            "there is no view f",
            "take the tag out",
        ),
        (
            "- func: f(Tensor self) -> Tensor\n  dispatch:\n    CPU: f_cpu\n  declines: [OpenCL]",
            "",
            "no kernel for OpenCL",
            "name a key of its 'dispatch'",
        ),
        (
            "- func: f(Tensor self) -> Scalar\n  dispatch:\n    CPU: f_cpu",
            "",
            "returns a number of any kind",
            "an int, a float or a bool",
        ),
        (
            "- func: f(Tensor self) -> Tensor\n  composite: selff * 2",
            "",
            "unknown name 'selff'",
            "self",
        ),
        (
            "- func: f(Tensor self, Tensor other) -> Tensor\n  dispatch:\n    CPU: f_cpu",
            "- name: f(Tensor self, Tensor other) -> Tensor\n  self: grad\n",
            "f has no formula for 'Tensor other'",
            "non_differentiable",
        ),
    ],
)
def test_refused(tmp_path: Path, entry: str, derivative: str, what: str, fix: str) -> None:
    with pytest.raises(Exception) as caught:
        files_of(tmp_path, entry + "\n", derivative)
    assert type(caught.value).__name__ in ("YamlError", "YamlErrors")
    assert what in str(caught.value) and fix in str(caught.value)
    assert "native_functions.yaml:" in str(caught.value) or "derivatives.yaml:" in str(caught.value)


def test_all_mistakes_at_once(tmp_path: Path) -> None:
    text = "- func: f(Tensor self) -> Tensor\n  dispatch:\n    CPU: f_cpu\n  declines: [OpenCL]\n"
    with pytest.raises(YamlErrors, match="2 mistakes"):
        files_of(tmp_path, text + text.replace("f(", "g("))
    with pytest.raises(YamlErrors, match=r"there is no native_functions.yaml"):
        library_files("mine", tmp_path / "nowhere")


def test_a_name_of_tensorpy_is_the_librarys_own(tmp_path: Path) -> None:
    text = "- func: relu(Tensor self) -> Tensor\n  dispatch:\n    CPU: mine_cpu\n"
    text += "- func: twice(Tensor self) -> Tensor\n  composite: relu(self) * 2\n"
    made = files_of(tmp_path, text)["mine_library.c"]
    assert "mine_relu(self)" in made and "aten_mul_Scalar(" in made and "aten_relu" not in made


def test_the_files_are_written_once(tmp_path: Path) -> None:
    generated = generate("signals", EXAMPLE / "yaml", tmp_path / "out")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()}
    assert generate("signals", EXAMPLE / "yaml", tmp_path / "out") == generated
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()}
    command = [sys.executable, "-m", "codegen", "--library", "signals", "--yaml", EXAMPLE / "yaml"]
    done = subprocess.run([*command, "--out", tmp_path / "out"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == f"codegen: {len(before)} files for signals, 0 changed\n"


def test_it_compiles_without_a_warning(tmp_path: Path) -> None:
    sources = generate("signals", EXAMPLE / "yaml", tmp_path)
    compiler = shlex.split(os.environ.get("CC", "cc"))
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Wshadow", "-Werror", "-O1", f"-I{tmp_path}"]
    command = [*compiler, *compile_flags(), *flags, *sources, str(EXAMPLE / "csrc" / "kernels.c"), "-lm"]
    done = subprocess.run([*command, "-o", str(tmp_path / "signals.so")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_types_of_its_functions(tmp_path: Path) -> None:
    generate("signals", EXAMPLE / "yaml", tmp_path)
    shutil.copy(tmp_path / "ops.pyi", tmp_path / "signals_ops.pyi")
    (tmp_path / "program.py").write_text(
        "import tensorpy as tp\nimport signals_ops as ops\nx: tp.Tensor = ops.softclip(tp.ones(2), limit=2.0)\n"
        "y: float = ops.rms(x)\nz: tp.Tensor = ops.energy(x, 0, keepdim=True)\nops.softclip(x, 'two')  # wrong\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "program.py"],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    if "No module named mypy" in done.stderr:
        pytest.skip("mypy is not installed")
    wrong = [line for line in done.stdout.splitlines() if "error" in line and line.startswith("program.py")]
    assert len(wrong) == 1 and wrong[0].startswith("program.py:6:"), done.stdout


def test_another_text_takes_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell of a notebook, run again; the one before ends with its tensors' gradients still to come."""
    monkeypatch.setenv("TENSORPY_EXTENSIONS_DIR", str(tmp_path / "cache"))
    text = "- func: scaled(Tensor self) -> Tensor\n  pointwise:\n    float: self * {}\n"
    gradient = "- name: scaled(Tensor self) -> Tensor\n  self: grad * {}\n"
    x = tp.ones(3, requires_grad=True)
    results = []
    for factor in (2, 3, 2):
        path = load_yaml("cells", text.format(factor), gradient.format(factor))
        results.append(tp.ops.cells.scaled(x))
    assert [r[0].item() for r in results] == [2, 3, 2]
    sum(r.sum() for r in results).backward()
    assert x.grad.tolist() == [7, 7, 7]
    assert "scaled" in tp._C._programs()
    tp.ops.unload_library(path)
    with pytest.raises(AttributeError):
        tp.ops.cells.scaled  # noqa: B018


def test_an_operator_that_is_not_of_the_library(tmp_path: Path) -> None:
    """What the generator never writes, written by hand: a program for an operator of tensorpy's."""
    from tensorpy.utils.extension import load

    source = tmp_path / "wrong.c"
    source.write_text(
        '#include "tensorpy/generated.h"\nstatic tp_pointwise p = {.name = "neg"};\n'
        'TENSORPY_LIBRARY_IMPL(aten, CPU, m) { return TENSORPY_GENERATED->pointwise(m, "neg", &p); }\n'
    )
    with pytest.raises(RuntimeError, match="neg is tensorpy's own operator"):
        load("wrong_program", source, build_directory=tmp_path)


def test_methods_come_and_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORPY_EXTENSIONS_DIR", str(tmp_path / "cache"))
    text = (
        "- func: softened(Tensor self, Scalar by=2) -> Tensor\n  variants: function, method\n  autogen: softened_\n"
        "  pointwise:\n    float: self / by\n  no_gradient: none is asked for\n"
        "- func: hardened(Tensor self) -> Tensor\n  composite: self * 2\n"
    )
    path = load_yaml("with_methods", text)
    x = tp.ones(3)
    assert x.softened(4).tolist() == [0.25] * 3 and x.softened(by=1).tolist() == [1] * 3
    assert x.softened_(4) is x and x.tolist() == [0.25] * 3
    assert not hasattr(x, "hardened") and tp.ops.with_methods.hardened(x).tolist() == [0.5] * 3
    with pytest.raises(RuntimeError, match="Tensor has one of the name 'softened' already"):
        load_yaml("with_methods_too", text)
    assert not hasattr(tp.ops.with_methods_too, "softened") and x.softened(1).tolist() == [0.25] * 3
    tp.ops.unload_library(path)
    assert not hasattr(x, "softened") and not hasattr(x, "softened_")


SEVERAL = """\
- func: split(Tensor self, int k) -> (Tensor, int, float)
  no_gradient: a test
  dispatch:
    CPU: several_split_cpu
- func: counts(Tensor self) -> (int, float)
- func: six(Tensor self) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)
  no_gradient: a test
  dispatch:
    CPU: several_six_cpu
"""

SEVERAL_IN_C = """\
#include "several_kernels.h"

int several_split_cpu(tp_tensor *self, int64_t k, tp_value *results) {
    if (k < 0) return tp_fail(TP_ValueError, "split: %lld", (long long)k);
    results[0] = (tp_value){.tag = TP_TENSOR, .tensor = tp_retain(self)};
    results[1] = (tp_value){.tag = TP_INT, .i = k};
    results[2] = (tp_value){.tag = TP_FLOAT, .f = 0.5};
    return 0;
}
int counts_composite(tp_tensor *self, tp_value *results) {
    tp_value given[3];
    if (several_split(self, 7, given) < 0) return -1;
    tp_release(given[0].tensor);
    results[0] = given[1];
    results[1] = given[2];
    return 0;
}
int several_six_cpu(tp_tensor *self, tp_value *results) {
    for (int i = 0; i < 6; i++) results[i] = (tp_value){.tag = TP_TENSOR, .tensor = tp_retain(self)};
    return 0;
}
"""


def test_results_of_several_types(tmp_path: Path) -> None:
    """Boxed, in C functions; the library's `split` hides the tree's, whose views have copies."""
    source = tmp_path / "kernels.c"
    source.write_text(SEVERAL_IN_C)
    path = load_yaml("several", SEVERAL, sources=[source], build_directory=tmp_path)
    x = tp.ones(3)
    first, second, third = tp.ops.several.split(x, 4)
    assert first is x and (second, third) == (4, 0.5) and tp.ops.several.counts(x) == (7, 0.5)
    assert [t.shape for t in tp.ops.several.six(x)] == [(3,)] * 6
    with pytest.raises(ValueError, match="split: -1"):
        tp.ops.several.split(x, -1)
    with pytest.raises(RuntimeError, match="it gives one number"):
        tp.vmap(lambda t: tp.ops.several.split(t, 4)[0])(tp.ones(2, 3))
    tp.ops.unload_library(path)
    with pytest.raises(ValueError, match="is no kernel in C"):
        load_yaml(
            "several", "- func: f(Tensor self) -> (Tensor, int)\n  composite: self, 1\n", build_directory=tmp_path
        )
