"""How operators of a library from YAML are batched: the generator's rule comes with them, and a loop gives the same."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from library_text import library_files

import tensorpy as tp
from tensorpy.utils.extension import generate, load

REDUCTION = """
  reduction:
    promotion: sum
    dtypes: float
    start: 0
    step: acc + x * x
    join: a + b
"""

# An operator for each kind of rule and each role; `energy` of everything along its overload, and `lone` without one.
YAML = f"""
- func: energy(Tensor self) -> Tensor
  autogen: energy.out{REDUCTION}
- func: energy.dim(Tensor self, int dim, bool keepdim=False) -> Tensor{REDUCTION}
- func: power(Tensor self, int? dim=None, bool keepdim=False) -> Tensor{REDUCTION}
- func: powers(Tensor self, int[1]? dim=None, bool keepdim=False) -> Tensor{REDUCTION}
- func: lone(Tensor self) -> Tensor{REDUCTION}
- func: press(Tensor self, Tensor other) -> Tensor
  autogen: press_
  pointwise:
    float: other * tanh(self / other)
  no_gradient: none is asked for
- func: along(Tensor self, int axis) -> Tensor
  dispatch:
    CPU: along_cpu
  batching: "lines, dims: axis"
- func: picked(Tensor self, int dim, Tensor index) -> Tensor
  dispatch:
    CPU: picked_cpu
  batching: "lines, shared: index"
- func: product(Tensor self, Tensor other) -> Tensor
  dispatch:
    CPU: product_cpu
  batching: aligned
- func: grown(Tensor self, int at) -> Tensor
  dispatch:
    CPU: grown_cpu
  batching: "lines, new: at"
- func: turned(Tensor self, int[] by) -> Tensor
  dispatch:
    CPU: turned_cpu
  batching: "lines, order: by"
- func: widened(Tensor self, int[] to) -> Tensor
  dispatch:
    CPU: widened_cpu
  batching: "lines, wide: to"
- func: rows(Tensor self) -> Tensor
  dispatch:
    CPU: rows_cpu
  batching: samples
- func: joined(Tensor self) -> Tensor
  dispatch:
    CompositeExplicitAutograd: joined_explicit
  batching: parts
- func: looped(Tensor self, int dim) -> Tensor
  dispatch:
    CPU: along_cpu
  batching: loop
- func: unsaid(Tensor self) -> Tensor
  dispatch:
    CPU: total_cpu
- func: formula(Tensor self, Tensor other) -> Tensor
  autogen: formula_
  dispatch:
    CPU: product_cpu
  batching: other * self
- func: at_key(Tensor self) -> Tensor
  dispatch:
    CPU: total_cpu
    Batched: total_of_each
- func: number(Tensor self) -> float
  dispatch:
    CPU: number_cpu
"""

C = """
#include "every_batching_kernels.h"
TENSORPY_HANDLE(tp_tensor *, cumsum_of, "aten::cumsum", (tp_tensor *, self), (int64_t, dim), (tp_dtype, dtype))
TENSORPY_HANDLE(tp_tensor *, select_of, "aten::index_select", (tp_tensor *, self), (int64_t, dim), (tp_tensor *, index))
TENSORPY_HANDLE(tp_tensor *, mul_of, "aten::mul.Tensor", (tp_tensor *, self), (tp_tensor *, other))
TENSORPY_HANDLE(tp_tensor *, grown_of, "aten::unsqueeze_copy", (tp_tensor *, self), (int64_t, dim))
TENSORPY_HANDLE(tp_tensor *, turned_of, "aten::permute_copy", (tp_tensor *, self), (tp_ints, dims))
TENSORPY_HANDLE(tp_tensor *, widened_of, "aten::expand_copy", (tp_tensor *, self), (tp_ints, size), (bool, implicit))
TENSORPY_HANDLE(tp_tensor *, sum_of, "aten::sum", (tp_tensor *, self), (tp_dtype, dtype))

tp_tensor *along_cpu(tp_tensor *self, int64_t dim) { return cumsum_of(self, dim, TP_NO_DTYPE); }
tp_tensor *picked_cpu(tp_tensor *self, int64_t dim, tp_tensor *index) { return select_of(self, dim, index); }
tp_tensor *product_cpu(tp_tensor *self, tp_tensor *other) { return mul_of(self, other); }
tp_tensor *grown_cpu(tp_tensor *self, int64_t at) { return grown_of(self, at); }
tp_tensor *turned_cpu(tp_tensor *self, tp_ints by) { return turned_of(self, by); }
tp_tensor *widened_cpu(tp_tensor *self, tp_ints to) { return widened_of(self, to, false); }
tp_tensor *rows_cpu(tp_tensor *self) { return cumsum_of(self, 1, TP_NO_DTYPE); }
tp_tensor *joined_explicit(tp_tensor *self) { return mul_of(self, self); }
tp_tensor *total_cpu(tp_tensor *self) { return sum_of(self, TP_NO_DTYPE); }
tp_tensor *total_of_each(tp_tensor *self) { return sum_of(self, TP_NO_DTYPE); }
int number_cpu(tp_tensor *self, double *result) { *result = (double)tp_view_of(self).numel; return 0; }
"""


@pytest.fixture(scope="module")
def ops(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("batching")
    (folder / "native_functions.yaml").write_text(YAML)
    (folder / "kernels.c").write_text(C)
    sources = generate("every_batching", folder, folder / "out")
    path = load(
        "every_batching",
        [*sources, folder / "kernels.c"],
        extra_include_paths=[folder / "out"],
        build_directory=folder,
    )
    yield tp.ops.every_batching
    tp.ops.unload_library(path)


CALLS: dict[str, Callable[[Any, tp.Tensor], tp.Tensor]] = {
    "energy": lambda o, x: o.energy(x),
    "energy along": lambda o, x: o.energy(x, -2, True),
    "power of all": lambda o, x: o.power(x),
    "power of all, kept": lambda o, x: o.power(x, None, True),
    "power along": lambda o, x: o.power(x, 0),
    "powers of all": lambda o, x: o.powers(x),
    "powers along": lambda o, x: o.powers(x, [0, 1], True),
    "pointwise": lambda o, x: o.press(x, x[0] + 1),
    "pointwise, in place": lambda o, x: o.press_(x * 1, x + 1),
    "dims": lambda o, x: o.along(x, 0),
    "shared": lambda o, x: o.picked(x, 0, tp.tensor([1, 0, 1])),
    "aligned": lambda o, x: o.product(x, x[:, 0].sum()),
    "new": lambda o, x: o.grown(x, -1),
    "new in front": lambda o, x: o.grown(x, 0),
    "order": lambda o, x: o.turned(x, [1, 0]),
    "wide": lambda o, x: o.widened(x, [2, -1, -1]),
    "samples": lambda o, x: o.rows(x),
    "parts": lambda o, x: o.joined(x),
    "a formula": lambda o, x: o.formula(x, x[0]),
    "a formula, in place": lambda o, x: o.formula_(x * 1, x + 1),
    "a kernel at the key": lambda o, x: o.at_key(x),
}
LOOPS: dict[str, Callable[[Any, tp.Tensor], tp.Tensor]] = {
    "shared, and batched": lambda o, x: o.picked(x, 0, (x[:, 0] > 1).long()),
    "said": lambda o, x: o.looped(x, 1),
    "a reduction without dimensions": lambda o, x: o.lone(x),
    "a kernel in C of which nothing is said": lambda o, x: o.unsaid(x),
}


def compare(call: Callable[[tp.Tensor], tp.Tensor]) -> None:
    x = tp.arange(24.0).reshape(2, 3, 4) / 10 + 1
    for each in (x, x.transpose(0, 2)):
        want = tp.stack([call(sample) for sample in each])
        made = tp.vmap(call)(each)
        assert made.shape == want.shape
        tp.testing.assert_close(made, want)
    nested = tp.arange(120.0).reshape(5, 2, 3, 4) / 10 + 1
    want = tp.stack([tp.stack([call(sample) for sample in samples]) for samples in nested])
    tp.testing.assert_close(tp.vmap(tp.vmap(call))(nested), want)


@pytest.mark.parametrize("name", CALLS)
def test_as_a_loop(ops: Any, name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compare(lambda x: CALLS[name](ops, x))


@pytest.mark.filterwarnings("ignore:vmap")
@pytest.mark.parametrize("name", LOOPS)
def test_by_a_loop(ops: Any, name: str) -> None:
    compare(lambda x: LOOPS[name](ops, x))


def test_refused(ops: Any) -> None:
    x = tp.ones(2, 3)
    with pytest.raises(RuntimeError, match="it gives one number"):
        tp.vmap(lambda v: v * ops.number(v))(x)
    with pytest.raises(RuntimeError, match="it has an out="):
        tp.vmap(lambda v: ops.energy(v, out=tp.empty(())))(x)


def test_what_is_not_batched_goes_below(ops: Any) -> None:
    """Inside of vmap, with nothing batched among the arguments."""
    one = tp.ones(3)
    made = tp.vmap(lambda v: v + ops.formula(one, one) + ops.at_key(one))(tp.zeros(2, 3))
    assert made.tolist() == [[4] * 3] * 2


@pytest.mark.parametrize(
    ("batching", "what"),
    [
        ("lines, shared: elsewhere", "'elsewhere' is no argument of f"),
        ("lines, dim: axis", "did you mean 'dims'"),
        ("lines, shared: axis", "cannot be 'shared'"),
        ("lines, dims: self", "cannot be 'dims'"),
        ("line", "unknown name 'line'"),
    ],
)
def test_what_is_said_wrongly(tmp_path: Path, batching: str, what: str) -> None:
    text = f'- func: f(Tensor self, int axis) -> Tensor\n  dispatch:\n    CPU: f_cpu\n  batching: "{batching}"\n'
    (tmp_path / "native_functions.yaml").write_text(text)
    with pytest.raises(Exception, match=what) as caught:
        library_files("mine", tmp_path)
    assert "native_functions.yaml:" in str(caught.value)
