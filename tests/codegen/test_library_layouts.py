"""Entries of a library that say what is in no kernel: of layouts, of what comes before a call, of who registers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import tensorpy as tp
from tensorpy import ops
from tensorpy.utils.extension import generate, load

YAML = """
- func: squash(Tensor self, Scalar limit=1) -> Tensor
  autogen: squash_, squash.out
  layouts: values
  nested: _nested_like(self, squash(_layout_values(self), limit))
  quantized: _requantized(self, squash(dequantize(self), limit))
  pointwise:
    promotion: int_to_float
    float: limit * tanh(self / limit)
- func: pressed(Tensor self, Tensor other) -> Tensor
  autogen: pressed_, pressed.out
  layouts: |
    merged = _merged(self)
    _layout_like(merged, pressed(_layout_values(merged), other))
  pointwise:
    float: self / other
  no_gradient: none is asked for
- func: total_of(Tensor self, Tensor[] others) -> Tensor
  layouts: total_of(to_dense(self), others)
  dispatch:
    CPU: first_of
- func: turned(Tensor self) -> Tensor
  quantized: moves
  composite: self.flip([0])
- func: filled(int[] size, *, ScalarType? dtype=None, Layout? layout=None) -> Tensor
  autogen: filled.out
  layouts: made
  composite: zeros(size, dtype=dtype, layout=layout)
- func: shown(Tensor self) -> Tensor
  nested: through
  composite: self * 2
- func: warned(Tensor self) -> Tensor
  warns: "warned is old"
  tags: nondeterministic_bitwise
  pointwise:
    float: self + 1
  no_gradient: none is asked for
- func: summed(Tensor self) -> Tensor
  warns: "summed is old"
  tags: nondeterministic_bitwise
  reduction:
    promotion: sum
    dtypes: float
    start: 0
    step: acc + x * x
    join: a + b
  no_gradient: none is asked for
- func: raw(Tensor self) -> Tensor
  structured_delegate: raw.out
  warns: "raw is old"
  tags: [needs_contiguous_strides, nondeterministic_bitwise]
- func: raw.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  tags: [needs_contiguous_strides, nondeterministic_bitwise]
  dispatch:
    CPU: raw_cpu
- func: paired(Tensor self, Tensor other) -> Tensor
  structured_delegate: paired.out
- func: paired.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  dispatch:
    CPU: paired_cpu
- func: lists(Tensor[] self) -> Tensor[]
  each: neg
- func: later(Tensor self) -> Tensor
  manual_kernel_registration: nowhere.kernels
"""
DERIVATIVES = """
- name: squash(Tensor self, Scalar limit=1) -> Tensor
  self: grad * (1 - (result / limit) * (result / limit))
"""
KERNELS = """
#include "outside_layouts_kernels.h"
int raw_cpu(tp_tensor *self, tp_tensor *out);

tp_tensor *first_of(tp_tensor *self, tp_tensors others) { (void)others; return tp_retain(self); }
int raw_meta(tp_meta *m, tp_tensor *self) {
    return tp_meta_output(m, 0, tp_sizes(self), TP_NO_INTS, tp_dtype_of(self), tp_device_of(self));
}
int paired_meta(tp_meta *m, tp_tensor *self, tp_tensor *other) { (void)other; return raw_meta(m, self); }
int paired_cpu(tp_tensor *self, tp_tensor *other, tp_tensor *out) { (void)other; return raw_cpu(self, out); }
int raw_cpu(tp_tensor *self, tp_tensor *out) {
    const float *from = tp_view_of(self).data;
    for (int64_t i = 0; i < tp_numel_of(self); i++) ((float *)tp_view_of(out).data)[i] = from[i];
    return 0;
}
"""


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("outside_layouts")
    yaml, out = folder / "yaml", folder / "out"
    yaml.mkdir()
    (yaml / "native_functions.yaml").write_text(YAML)
    (yaml / "derivatives.yaml").write_text(DERIVATIVES)
    (folder / "kernels.c").write_text(KERNELS)
    sources = generate("outside_layouts", yaml, out)
    path = load("outside_layouts", [*sources, folder / "kernels.c"], extra_cflags=[f"-I{out}"], build_directory=folder)
    yield ops.outside_layouts
    ops.unload_library(path)


X = tp.tensor([[0.0, 2.0], [3.0, 0.0]])


def test_tensors_of_each_layout(mine: Any) -> None:
    want = X.tanh()
    for layout in (tp.sparse_coo, tp.sparse_csr, tp.sparse_csc):
        made = mine.squash(X.to_sparse(layout=layout))
        assert made.layout == layout and made.to_dense().equal(want)
    pieces = tp.nested.nested_tensor([X[0], X[1, :1]])
    assert [piece.tolist() for piece in mine.squash(pieces).unbind()] == [want[0].tolist(), want[1, :1].tolist()]
    quantized = tp.quantize_per_tensor(X, 0.1, 0, tp.quint8)
    assert mine.squash(quantized).int_repr().tolist() == [[0, 10], [10, 0]]
    assert mine.turned(quantized).dequantize().equal(quantized.dequantize().flip([0]))
    assert [piece.tolist() for piece in mine.shown(pieces).unbind()] == [[0.0, 4.0], [6.0]]


def test_what_is_written_becomes_what_the_functional_variant_gives(mine: Any) -> None:
    """In place and with out=, of tensors of a layout: nothing is left as it was without a word."""
    for layout in (tp.sparse_coo, tp.sparse_csr):
        x = X.to_sparse(layout=layout)
        assert mine.squash_(x) is x and x.to_dense().equal(X.tanh())
        out = tp.zeros(2, 2).to_sparse(layout=layout)
        assert mine.squash(X.to_sparse(layout=layout), out=out) is out and out.to_dense().equal(X.tanh())
    twice = tp.sparse_coo_tensor([[0, 0]], [1.0, 1.0], (2,))
    with pytest.raises(RuntimeError, match=r"outside_layouts::squash_ requires coalesced input"):
        mine.squash_(twice)
    assert twice._nnz() == 2
    quantized = tp.quantize_per_tensor(X, 0.1, 0, tp.quint8)
    mine.squash_(quantized)
    assert quantized.int_repr().tolist() == [[0, 10], [10, 0]]
    empty = tp.sparse_coo_tensor([[0]], [1.0], (1,))
    assert mine.filled([2, 2], out=empty) is empty and empty.layout == tp.sparse_coo and empty.shape == (2, 2)


def test_what_a_formula_gives_on_as_it_came_is_refused(mine: Any) -> None:
    """It would come to the same kernel again, for ever."""
    x = X.to_sparse()
    with pytest.raises(NotImplementedError, match="outside_layouts::pressed"):
        mine.pressed(x, x)
    with pytest.raises(NotImplementedError, match="outside_layouts::total_of"):
        mine.total_of(x, [X, x])
    assert mine.total_of(x, [X]).equal(X)


def test_gradients_of_sparse_tensors(mine: Any) -> None:
    """The layer of layouts is above autograd, which records what it calls."""
    x = X.to_sparse().requires_grad_()
    tp.sparse.sum(mine.squash(x)).backward()
    want = X.clone().requires_grad_()
    tp.tanh(want).sum().backward()
    tp.testing.assert_close(x.grad.to_dense() * (X != 0), want.grad * (X != 0))


@pytest.mark.parametrize("name", ["warned", "summed", "raw"])
def test_what_comes_before_a_kernel(mine: Any, name: str) -> None:
    """Of scalar expressions and of structured kernels, as of C functions."""
    call = getattr(mine, name)
    with pytest.warns(UserWarning, match=f"{name} is old"):
        call(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call(X)
    tp.use_deterministic_algorithms(True)
    try:
        with pytest.raises(RuntimeError, match=f"outside_layouts::{name}"):
            call(X)
    finally:
        tp.use_deterministic_algorithms(False)


@pytest.mark.filterwarnings("ignore:raw is old")
def test_a_structured_kernel_is_given_dense_tensors(mine: Any) -> None:
    x = tp.arange(6.0).reshape(2, 3)
    assert mine.raw(x.t()).equal(x.t())
    assert mine.raw(x[:, ::2], out=tp.empty(2, 2)).equal(x[:, ::2])


def test_tensors_of_a_structured_call_are_on_one_device(mine: Any) -> None:
    assert mine.paired(X, X).equal(X)
    for call in (lambda: mine.paired(X, X.to("meta")), lambda: mine.paired(X, X.to("meta"), out=tp.empty(2, 2))):
        with pytest.raises(RuntimeError, match="on the same device"):
            call()


def test_lists_and_kernels_that_a_module_registers(mine: Any) -> None:
    with pytest.raises(RuntimeError, match="Tensor list must have at least one tensor"):
        mine.lists([])
    with pytest.raises(NotImplementedError, match=r"nowhere\.kernels"):
        mine.later(X)
