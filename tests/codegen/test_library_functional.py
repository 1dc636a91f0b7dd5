"""Operators of a library from YAML under functionalisation: variants found by name, an `inverse` that is a formula."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from library_text import library_files
from wrapped import Recorder, writes

import tensorpy as tp
from codegen.errors import YamlError, YamlErrors
from tensorpy.func import functionalize
from tensorpy.utils.extension import generate, load

YAML = """
- func: press(Tensor self, Tensor other) -> Tensor
  autogen: press_, press.out
  pointwise:
    float: other * tanh(self / other)
  no_gradient: none is asked for
- func: row(Tensor(a) self, int at) -> Tensor(a)
  dispatch:
    CompositeExplicitAutograd: row_explicit
  inverse: select_scatter(base, view, 0, at)
"""
C = """
#include "functional_kernels.h"
TENSORPY_HANDLE(tp_tensor *, select_of, "aten::select.int", (tp_tensor *, self), (int64_t, dim), (int64_t, index))
tp_tensor *row_explicit(tp_tensor *self, int64_t at) { return select_of(self, 0, at); }
"""


@pytest.fixture(scope="module")
def ops(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("functional")
    (folder / "native_functions.yaml").write_text(YAML)
    (folder / "kernels.c").write_text(C)
    sources = generate("functional", folder, folder / "out")
    paths = [*sources, folder / "kernels.c"]
    path = load("functional", paths, extra_include_paths=[folder / "out"], build_directory=folder)
    yield tp.ops.functional
    tp.ops.unload_library(path)


def test_writes_through_a_view_of_a_library(ops: Any) -> None:
    def f(x: tp.Tensor) -> Any:
        y = x + 1
        ops.press_(ops.row(y, 1), x[0] + 2)
        ops.press(x[0], x[1] + 1, out=y[0])
        ops.row(x, 0).mul_(2)
        return y, ops.row(y, 1)

    plain, own = (tp.arange(6.0).reshape(2, 3) for _ in range(2))
    expected = f(plain)
    with Recorder() as mode:
        got = functionalize(f)(own)
    for a, b in zip([*got, own], [*expected, plain], strict=True):
        assert a.tolist() == b.tolist()
    assert [func._own_name for func, _, _ in mode.calls if writes(func)] == ["copy_"]
    assert mode.names.count("functional::press") == 2


@pytest.mark.parametrize(
    ("entry", "what"),
    [
        ("- func: plain(Tensor self) -> Tensor\n  composite: self.abs()\n  inverse: view", "is no view"),
        (
            "- func: part(Tensor(a) self) -> Tensor(a)\n  dispatch: {CPU: part_cpu}\n"
            "  inverse: as_strided_scatter(stored, view, [1], [1], 0)",
            "names 'stored'",
        ),
        (
            "- func: part(Tensor(a) self) -> Tensor(a)\n  dispatch: {CPU: part_cpu}\n  inverse: base + nothing",
            "nothing",
        ),
    ],
)
def test_mistakes(entry: str, what: str, tmp_path: Path) -> None:
    (tmp_path / "native_functions.yaml").write_text(entry)
    with pytest.raises((YamlError, YamlErrors), match=what):
        library_files("functional", tmp_path)
