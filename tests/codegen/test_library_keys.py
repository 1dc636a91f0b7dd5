"""Keys and tags of a library's entries: declines, checks, copies of views, several types, no arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import tensorpy as tp
from tensorpy import ops
from tensorpy.utils.extension import generate, load

YAML = """
- func: chosen(Tensor self) -> Tensor
  dispatch:
    CPU: chosen_floats
    CompositeExplicitAutograd: chosen_rest
  declines: [CPU]
- func: half(Tensor self) -> Tensor
  structured_delegate: half.out
- func: half.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  dispatch:
    CPU: half_cpu
    Dense: half_dense
  prims: [copy]
  declines: [CPU]
- func: nobody(Tensor self) -> Tensor
  dispatch:
    CPU: nobody_cpu
  declines: [CPU]
- func: scaled(Tensor self, Scalar by=2) -> Tensor
  autogen: scaled_, scaled.out
  pointwise:
    all: self * by
    check: positive
- func: apart(Tensor self) -> Tensor
  autogen: apart.out
  out_overlap: refused
  dispatch:
    CPU: chosen_rest
- func: first_of(Tensor[] tensors) -> Tensor
  empty_list: ValueError
  dispatch:
    CPU: first_of_cpu
- func: tail(Tensor(a) self) -> Tensor(a)
  composite: self.slice(0, 1)
- func: tail_copy(Tensor self) -> Tensor
  autogen: tail_copy.out
  tags: view_copy
- func: turned_(Tensor(a!) self) -> Tensor(a!)
  tags: inplace_view
  composite: self.t_()
- func: origin() -> Tensor
  dispatch:
    CompositeExplicitAutograd: origin_made
- func: revision() -> int
  dispatch:
    CompositeExplicitAutograd: revision_of
- func: split_norm(Tensor self) -> (Tensor, int, Tensor)
  dispatch:
    CPU: split_norm_cpu
"""
DERIVATIVES = """
- name: scaled(Tensor self, Scalar by=2) -> Tensor
  self: grad * by
- name: split_norm(Tensor self) -> (Tensor, int, Tensor)
  self: grads[0] * self * 2 + grads[2] * result2
"""
KERNELS = """
#include "outside_keys_kernels.h"

TENSORPY_HANDLE(tp_tensor *, call_add, "aten::add.Tensor", (tp_tensor *, self), (tp_tensor *, other),
                (const tp_scalar *, alpha))
TENSORPY_HANDLE(tp_tensor *, call_mul, "aten::mul.Tensor", (tp_tensor *, self), (tp_tensor *, other))
TENSORPY_HANDLE(tp_tensor *, call_exp, "aten::exp", (tp_tensor *, self))

tp_tensor *chosen_floats(tp_tensor *self) {
    if (tp_dtype_of(self) != TP_FLOAT32) return tp_decline_null();
    return call_add(self, self, TP_SCALAR_I(1));
}
tp_tensor *chosen_rest(tp_tensor *self) { return call_mul(self, self); }
int half_meta(tp_meta *m, tp_tensor *self) {
    return tp_meta_output(m, 0, tp_sizes(self), TP_NO_INTS, tp_dtype_of(self), tp_device_of(self));
}
int half_cpu(tp_tensor *self, tp_tensor *out) {
    tp_view from = tp_view_of(self), to = tp_view_of(out);
    if (from.dtype != TP_FLOAT32 || !from.is_contiguous || !to.is_contiguous) return tp_decline();
    for (int64_t i = 0; i < from.numel; i++) ((float *)to.data)[i] = ((const float *)from.data)[i] + 0.5f;
    return 0;
}
int half_dense(tp_tensor *self, tp_tensor *out) {
    tp_autoref *sum = call_mul(self, self);
    return sum ? tp_prim_copy(sum, out) : -1;
}
tp_tensor *nobody_cpu(tp_tensor *self) { (void)self; return tp_decline_null(); }
int outside_keys_check_positive(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params) {
    (void)inputs;
    double by = tp_scalar_double(params[0].scalar);
    return by > 0 ? 0 : tp_fail(TP_ValueError, "%s: by=%g is not positive", p->name, by);
}
tp_tensor *first_of_cpu(tp_tensors tensors) { return tp_retain(tensors.data[0]); }
tp_tensor *origin_made(void) {
    int64_t two = 2;
    tp_device cpu = {0, -1};
    return tp_new_empty((tp_ints){&two, 0}, TP_FLOAT32, cpu);
}
int revision_of(int64_t *result) { *result = 7; return 0; }
int split_norm_cpu(tp_tensor *self, tp_value *results) {
    results[0] = (tp_value){.tag = TP_TENSOR, .tensor = call_mul(self, self)};
    if (!results[0].tensor) return -1;
    results[1] = (tp_value){.tag = TP_INT, .i = tp_view_of(self).numel};
    results[2] = (tp_value){.tag = TP_TENSOR, .tensor = call_exp(self)};
    return results[2].tensor ? 0 : -1;
}
"""


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("outside_keys")
    yaml, out = folder / "yaml", folder / "out"
    yaml.mkdir()
    (yaml / "native_functions.yaml").write_text(YAML)
    (yaml / "derivatives.yaml").write_text(DERIVATIVES)
    (folder / "kernels.c").write_text(KERNELS)
    sources = generate("outside_keys", yaml, out)
    path = load("outside_keys", [*sources, folder / "kernels.c"], extra_cflags=[f"-I{out}"], build_directory=folder)
    yield ops.outside_keys
    ops.unload_library(path)


def test_a_kernel_that_declines_is_passed_over(mine: Any) -> None:
    """The next in the table takes the call: of another key, of a structured operator, or nobody."""
    x = tp.tensor([3.0, 4.0])
    assert mine.chosen(x).tolist() == [6.0, 8.0]
    assert mine.chosen(x.double()).tolist() == [9.0, 16.0]
    assert mine.chosen(x.to("meta")).shape == (2,)
    assert mine.half(x).tolist() == [3.5, 4.5]
    assert mine.half(x.double()).tolist() == [9.0, 16.0]
    out = tp.empty(2, 2)[:, 0]
    assert mine.half(x, out=out) is out and out.tolist() == [9.0, 16.0]
    with pytest.raises(NotImplementedError, match="Could not run 'outside_keys::nobody'"):
        mine.nobody(x)


def test_what_is_checked_before_a_call(mine: Any) -> None:
    x = tp.tensor([3.0, 4.0], requires_grad=True)
    assert mine.scaled(x, 3).tolist() == [9.0, 12.0]
    y = x.detach().clone()
    for call in (lambda: mine.scaled(x, -1), lambda: mine.scaled_(y, 0), lambda: mine.scaled(y, -2, out=tp.empty(2))):
        with pytest.raises(ValueError, match=r"scaled.*: by=-?\d is not positive"):
            call()
    assert y.tolist() == [3.0, 4.0]


def test_an_out_apart_from_what_is_read(mine: Any) -> None:
    x = tp.arange(4.0)
    out = tp.empty(4)
    assert mine.apart(x, out=out).tolist() == [0.0, 1.0, 4.0, 9.0]
    for shared in (x, x[:]):
        with pytest.raises(RuntimeError, match="unsupported operation"):
            mine.apart(x, out=shared)
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_the_error_of_an_empty_list(mine: Any) -> None:
    assert mine.first_of([tp.ones(1), tp.ones(2)]).shape == (1,)
    with pytest.raises(ValueError, match="expected a non-empty list of Tensors"):
        mine.first_of([])


def test_copies_of_a_view(mine: Any) -> None:
    x = tp.tensor([1.0, 2.0, 3.0], requires_grad=True)
    copy = mine.tail_copy(x)
    assert copy.tolist() == [2.0, 3.0] and copy.data_ptr() != mine.tail(x).data_ptr()
    copy.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [0.0, 1.0, 1.0]
    assert mine.tail_copy(x.detach(), out=tp.empty(0)).tolist() == [2.0, 3.0]
    assert tp.vmap(mine.tail_copy)(tp.arange(6.0).reshape(2, 3)).tolist() == [[1.0, 2.0], [4.0, 5.0]]


def test_a_tensor_that_becomes_another_view(mine: Any) -> None:
    x = tp.arange(6.0).reshape(2, 3)
    assert mine.turned_(x) is x and x.shape == (3, 2) and x.stride() == (1, 3)
    leaf = tp.ones(2, 3, requires_grad=True)
    y = leaf * 2
    mine.turned_(y)
    (y * tp.arange(6.0).reshape(3, 2)).sum().backward()
    assert leaf.grad is not None and leaf.grad.tolist() == [[0.0, 4.0, 8.0], [2.0, 6.0, 10.0]]


def test_operators_that_take_nothing(mine: Any) -> None:
    assert mine.origin().shape == () and mine.revision() == 7
    assert "origin() -> Tensor" in str(mine.origin.default._schema)


def test_a_gradient_of_several_types(mine: Any) -> None:
    x = tp.tensor([0.5, -1.0], dtype=tp.float64, requires_grad=True)
    squares, n, powers = mine.split_norm(x)
    assert n == 2 and squares.requires_grad and powers.requires_grad
    (squares.sum() + 3 * powers.sum()).backward()
    assert x.grad is not None and tp.allclose(x.grad, 2 * x.detach() + 3 * x.detach().exp())
    with tp.no_grad():
        assert not mine.split_norm(x)[0].requires_grad
    assert tp.autograd.gradcheck(lambda t: mine.split_norm(t)[0] + mine.split_norm(t)[2], (x,))
