"""What an entry of a library from outside may say: primitives, Dense, out_dtype, tangents, modules, each."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tensorpy as tp
from tensorpy import ops
from tensorpy.autograd import gradcheck
from tensorpy.utils.extension import generate, load

YAML = """
- func: running(Tensor self, int dim) -> Tensor
  structured_delegate: running.out
  batching: lines
  python_module: special
- func: running.out(Tensor self, int dim, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  dispatch:
    Dense: running_dense
  prims: [scan.sum]
- func: special_doubled(Tensor self) -> Tensor
  autogen: special_doubled.out
  python_module: special
  out_dtype: castable
  dispatch:
    Dense: doubled_dense
- func: doubled(Tensor self) -> Tensor
  autogen: doubled.out
  dispatch:
    Dense: doubled_dense
- func: many_sub(Tensor[] self, Tensor[] other) -> Tensor[]
  each: sub.Tensor
- func: many_doubled(Tensor[] self) -> Tensor[]
  each: doubled
- func: many_neg_(Tensor(a!)[] self) -> ()
  each: neg, neg_
- func: scaled(Tensor self, Tensor other) -> Tensor
  dispatch:
    Dense: scaled_dense
"""
DERIVATIVES = """
- name: running(Tensor self, int dim) -> Tensor
  self: grad.flip([dim]).cumsum(dim).flip([dim])
  result: running(self_t, dim)
- name: special_doubled(Tensor self) -> Tensor
  self: grad * 2
  result: auto_linear
- name: doubled(Tensor self) -> Tensor
  self: grad * 2
  result: self_t * 3
- name: scaled(Tensor self, Tensor other) -> Tensor
  self: grad * other.exp()
  other: grad * self * other.exp()
  result: self_t * other_p.exp() + self_p * other_p.exp() * other_t
"""
KERNELS = """
#include "outside_entries_kernels.h"

TENSORPY_HANDLE(tp_tensor *, call_add, "aten::add.Tensor", (tp_tensor *, self), (tp_tensor *, other),
                (const tp_scalar *, alpha))
TENSORPY_HANDLE(tp_tensor *, call_mul, "aten::mul.Tensor", (tp_tensor *, self), (tp_tensor *, other))
TENSORPY_HANDLE(tp_tensor *, call_exp, "aten::exp", (tp_tensor *, self))

int running_meta(tp_meta *m, tp_tensor *self, int64_t dim) {
    if (tp_wrap_dim(dim, tp_ndim_of(self)) < 0) return -1;
    return tp_meta_output(m, 0, tp_sizes(self), TP_NO_INTS, tp_dtype_of(self), tp_device_of(self));
}
int running_dense(tp_tensor *self, int64_t dim, tp_tensor *out) {
    return tp_prim_scan_sum(self, tp_wrap_dim(dim, tp_ndim_of(self)), out);
}
tp_tensor *doubled_dense(tp_tensor *self) { return call_add(self, self, TP_SCALAR_I(1)); }
tp_tensor *scaled_dense(tp_tensor *self, tp_tensor *other) {
    tp_autoref *e = call_exp(other);
    return e ? call_mul(self, e) : NULL;
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Path]]:
    folder = tmp_path_factory.mktemp("outside_entries")
    yaml, out = folder / "yaml", folder / "out"
    yaml.mkdir()
    (yaml / "native_functions.yaml").write_text(YAML)
    (yaml / "derivatives.yaml").write_text(DERIVATIVES)
    (folder / "kernels.c").write_text(KERNELS)
    sources = generate("outside_entries", yaml, out)
    path = load("outside_entries", [*sources, folder / "kernels.c"], extra_cflags=[f"-I{out}"], build_directory=folder)
    yield ops.outside_entries, out
    ops.unload_library(path)


def test_a_kernel_for_dense_runs_where_its_primitives_are(library: Any) -> None:
    mine, _ = library
    for device in ("cpu", "opencl") if tp.opencl.is_available() else ("cpu",):
        x = tp.tensor([[1.0, 2.0], [3.0, 4.0]], device=device)
        assert mine.running(x, 0).tolist() == [[1.0, 2.0], [4.0, 6.0]]
    explained = tp.dispatch.explain("outside_entries::running", tp.ones(2), 0)
    assert "prim::scan.sum" in str(explained) and "registered for Dense" in str(explained)
    assert mine.running(tp.ones(3, device="meta"), 0).shape == (3,)
    x = tp.tensor([[1.0, 2.0], [3.0, 5.0]], dtype=tp.float64, requires_grad=True)
    assert gradcheck(lambda t: mine.running(t, 1), (x,))
    assert tp.vmap(lambda t: mine.running(t, 0))(x.detach()).tolist() == [[1.0, 3.0], [3.0, 8.0]]


def test_which_dtypes_an_out_may_have(library: Any) -> None:
    """`same` of what is structured or has a kernel, `castable` where the entry says so: as of tensorpy's own."""
    mine, _ = library
    x = tp.ones(2, dtype=tp.float64)
    narrow = tp.empty(2, dtype=tp.float32)
    assert mine.special_doubled(x, out=narrow).tolist() == [2.0, 2.0] and narrow.dtype == tp.float32
    for call in (lambda: mine.doubled(x, out=narrow), lambda: mine.running(x, 0, out=narrow)):
        with pytest.raises(RuntimeError, match="Expected out tensor to have dtype"):
            call()


def test_lists_place_by_place(library: Any) -> None:
    mine, _ = library
    a, b = tp.tensor([3.0], requires_grad=True), tp.tensor([4.0, 5.0])
    assert [t.tolist() for t in mine.many_sub([a, b], [b[:1], a])] == [[-1.0], [1.0, 2.0]]
    assert [t.tolist() for t in mine.many_doubled([a, b])] == [[6.0], [8.0, 10.0]]
    mine.many_neg_([b])
    assert b.tolist() == [-4.0, -5.0]


def test_tensors_of_a_call_are_on_one_device(library: Any) -> None:
    mine, _ = library
    message = "scaled: Expected all tensors to be on the same device, got self on cpu, other on meta"
    with pytest.raises(RuntimeError, match=message):
        mine.scaled(tp.ones(2), tp.ones(2, device="meta"))


def test_tangents_that_the_yaml_says(library: Any) -> None:
    mine, _ = library
    x, y = tp.tensor([1.0, 2.0], dtype=tp.float64), tp.tensor([0.5, -1.0], dtype=tp.float64)
    dx, dy = tp.tensor([1.0, -1.0], dtype=tp.float64), tp.tensor([2.0, 0.25], dtype=tp.float64)
    value, tangent = tp.func.jvp(mine.scaled, (x, y), (dx, dy))
    wanted = tp.func.jvp(lambda a, b: a * b.exp(), (x, y), (dx, dy))
    assert tp.allclose(value, wanted[0]) and tp.allclose(tangent, wanted[1])
    assert tp.func.jvp(mine.doubled, (x,), (dx,))[1].tolist() == [
        3.0,
        -3.0,
    ]  # by its formula, which its gradient is not
    assert tp.func.jvp(mine.special_doubled, (x,), (dx,))[1].tolist() == [2.0, -2.0]
    assert tp.func.jvp(lambda t: mine.running(t, 0), (x,), (dx,))[1].tolist() == [1.0, 0.0]


def test_modules_of_python(library: Any) -> None:
    """Functions of a python_module are in it, without its prefix, as tensorpy.special's are."""
    _, out = library
    written = runpy.run_path(str(out / "ops.py"))
    assert written["special"].running(tp.ones(2), 0).tolist() == [1.0, 2.0]
    assert written["special"].doubled(tp.ones(2)).tolist() == [2.0, 2.0]
    assert "running" not in written and "special" in written["__all__"]
    stub = (out / "ops.pyi").read_text()
    assert "class special:\n" in stub and "    @staticmethod\n    def running(self: Tensor, dim: " in stub
    assert "### tensorpy.ops.outside_entries.running\n" in (out / "reference.md").read_text()
