"""docs/adding_an_operator.md followed to the letter: its operators are added to a copy of the tree, built and run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from codegen.__main__ import generate, load_catalog

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "adding_an_operator.md"
ADDED = ("cube", "norm1", "mean_square", "rescale", "sliding_sum")

# What is run in the copy, by a Python of its own: the extension module of this process is the tree's.
TRIAL = """
import pathlib
import sys

import pytest

import tensorpy as tp
from tensorpy.autograd import gradcheck, gradgradcheck

assert pathlib.Path(tp.__file__).is_relative_to(sys.argv[1]), tp.__file__
x = tp.tensor([[1.0, -2.0, 3.0], [0.5, 4.0, -1.5]], dtype=tp.float64)
CALLS = {
    "cube": ((x,), x * x * x),
    "norm1": ((x, 1), x.abs().sum(1)),
    "mean_square": ((x, [0], True), (x * x).mean(0, keepdim=True)),
    "rescale": ((x, 0, 12), (x + 2) * 2),
    "sliding_sum": ((x, 2), x[:, :-1] + x[:, 1:]),
}
for name, (args, expected) in CALLS.items():
    function, method = getattr(tp, name), getattr(tp.Tensor, name)
    tp.testing.assert_close(function(*args), expected)
    assert method(*args).equal(function(*args))

    out = tp.empty(0, dtype=tp.float64)
    assert function(*args, out=out) is out and out.equal(function(*args))
    meta = function(x.to("meta"), *args[1:])
    assert (meta.shape, meta.dtype, meta.device.type) == (expected.shape, expected.dtype, "meta")
    strided = x.repeat_interleave(2, 1)[:, ::2]
    tp.testing.assert_close(function(strided, *args[1:]), expected)

    leaf = x.clone().requires_grad_()
    assert gradcheck(lambda t: function(t, *args[1:]), (leaf,))
    assert gradgradcheck(lambda t: function(t, *args[1:]), (leaf,))
    assert name in function.__doc__

y = x.clone()
assert y.cube_() is y and y.equal(x * x * x)
for dtype in (tp.uint8, tp.int64, tp.float16, tp.bfloat16, tp.complex64):
    small = tp.tensor([1, 2, 3], dtype=dtype)
    assert small.cube().tolist() == [1, 8, 27] and small.cube().dtype == dtype
    assert small.norm1().item() == 6 and small.norm1().dtype == dtype
assert tp.norm1(tp.tensor([-3, 2]), dtype=tp.float32).item() == 5.0
assert tp.norm1(tp.empty(0, 2), 0).tolist() == [0, 0]
assert tp.mean_square(tp.full((100000,), 3.0)).item() == 9.0
assert tp.norm1(tp.full((3, 100000), -1.0), -1).tolist() == [100000.0] * 3

with pytest.raises(RuntimeError, match="cube"):
    tp.tensor([True]).cube()
with pytest.raises(NotImplementedError, match="mean_square: not implemented for dtype int64"):
    tp.mean_square(tp.tensor([1]))
with pytest.raises(TypeError, match="complex numbers have no order"):
    tp.rescale(tp.tensor([1j]))
with pytest.raises(ValueError, match="a window of 4 on a dimension of 3"):
    tp.sliding_sum(x, 4)
print("all is well")
"""


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.S)


def add_to(tree: Path) -> None:
    """Writes what the page says into the files that it names."""
    for block in blocks("yaml"):
        for part in re.split(r"^(?=# yaml/)", block, flags=re.M):
            if part:
                name, _, text = part.removeprefix("# ").partition("\n")
                with (tree / name).open("a") as file:
                    file.write("\n" + text)
    for block in blocks("c"):
        if (path := re.match(r"/\* (\S+\.c):", block)) is not None and (tree / "csrc").exists():
            (tree / path[1]).write_text(block)


def test_the_page_generates(tmp_path: Path) -> None:
    """Its operators pass the generator next to all the others, and every artefact has them."""
    shutil.copytree(ROOT / "yaml", tmp_path / "yaml")
    add_to(tmp_path)
    files = generate(load_catalog(tmp_path / "yaml"))
    for name in ADDED:
        assert f"tp_{name}(" in files["Functions.h"] and f"tp_{name}_out(" in files["Functions.h"]
        assert re.search(rf"^def {name}\(", files["_C.pyi"], re.M), f"no stub of {name}"
        assert name in files["reference.md"]
    assert "tp_cube_(" in files["Functions.h"]
    assert "formula_rescale" in files["ops/pointwise_unary.c"]
    assert "norm1_reduction" in files["cpu/Reductions.c"]


def built_as() -> dict[str, str]:
    """The variables that setup.py was run with for the tree's build: with them a copy of it has little to compile."""
    text = (ROOT / "build" / "release" / "build.ninja").read_text()
    compiler = re.search(r"command = (.*?) -MMD ", text)
    assert compiler is not None
    return {"CC": compiler[1], "TENSORPY_WERROR": "1" if " -Werror " in text.partition("rule cc")[0] + " " else ""}


def test_the_page_builds_and_runs(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for folder in ("codegen", "csrc", "tensorpy", "yaml"):
        shutil.copytree(ROOT / folder, tree / folder, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    shutil.copy(ROOT / "setup.py", tree)
    shutil.copytree(ROOT / "build" / "release", tree / "build" / "release", ignore=shutil.ignore_patterns("ctest"))
    add_to(tree)
    environment = {**os.environ, **built_as(), "TENSORPY_BUILD": "release", "PYTHONPATH": str(tree)}
    build = subprocess.run(
        [sys.executable, "setup.py", "native"], cwd=tree, env=environment, capture_output=True, text=True
    )
    assert build.returncode == 0, build.stdout[-4000:] + build.stderr[-2000:]
    assert "warning:" not in build.stdout, build.stdout[-4000:]
    trial = subprocess.run(
        [sys.executable, "-c", TRIAL, str(tree)], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    if trial.returncode != 0:
        pytest.fail(trial.stderr[-4000:])
    assert "all is well" in trial.stdout
