"""What the layers do with operators of a library from YAML: autocast, 16-bit floats and tags, as in the tree."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from library_text import library_files

import tensorpy as tp
from tensorpy.utils.extension import generate, load

YAML = """
- func: seen(Tensor self) -> Tensor
  dispatch:
    CPU: seen_cpu
- func: wide(Tensor self) -> Tensor
  dispatch:
    CPU: seen_cpu
- func: appended(Tensor self) -> Tensor
  dispatch:
    CPU: seen_cpu
- func: asked(Tensor self, *, ScalarType? dtype=None) -> Tensor
  dispatch:
    CPU: asked_cpu
- func: pair(Tensor[] tensors) -> Tensor
  dispatch:
    CPU: pair_cpu
- func: widest(Tensor[] tensors) -> Tensor
  dispatch:
    CPU: pair_cpu
- func: unsafe(Tensor self) -> Tensor
  dispatch:
    CPU: seen_cpu
- func: steps(Tensor self) -> Tensor
  composite: (self.exp() + 1).log() * 3 - 1
- func: steps_each(Tensor self) -> Tensor
  rounding: each
  composite: (self.exp() + 1).log() * 3 - 1
- func: sloped(Tensor self) -> Tensor
  dispatch:
    CPU: seen_cpu
- func: noise(Tensor self, *, Generator? generator=None) -> Tensor
  tags: nondeterministic_seeded
  dispatch:
    CPU: noise_cpu
  batching: lines
- func: bitwise(Tensor self) -> Tensor
  tags: nondeterministic_bitwise
  dispatch:
    CPU: seen_cpu
- func: rows(Tensor self) -> Tensor
  tags: needs_contiguous_strides
  dispatch:
    CPU: rows_cpu
- func: some(Tensor self) -> Tensor
  tags: [dynamic_output_shape, core]
  dispatch:
    CPU: seen_cpu
- func: some_parts(Tensor self) -> Tensor
  tags: dynamic_output_shape
  composite: self.nonzero()
- func: joined(Tensor[] tensors, int dim=0) -> Tensor
  dispatch:
    CPU: joined_cpu
- func: joined_backward(Tensor grad, int[] sizes, int dim) -> Tensor[]
  composite: grad.split_with_sizes(sizes, dim)
"""
DERIVATIVES = """
- name: joined(Tensor[] tensors, int dim=0) -> Tensor
  tensors: joined_backward(grad, tensors.sizes(dim), dim)
- name: sloped(Tensor self) -> Tensor
  self: grad * ((self.exp() + 1).log() * 3 - 1)
"""
AUTOCAST = """
lower_precision_fp: [seen, pair]
fp32: [wide]
fp32_append_dtype: [appended]
fp32_set_opt_dtype: [asked]
promote: [widest]
banned: [unsafe]
"""
C = """
#include "every_layer_kernels.h"
TENSORPY_HANDLE(tp_tensor *, clone_of, "aten::clone", (tp_tensor *, self), (tp_memory_format, format))
TENSORPY_HANDLE(tp_tensor *, rand_of, "aten::rand_like", (tp_tensor *, self), (tp_dtype, dtype), (tp_layout, layout),
                (tp_device, device), (tp_opt_bool, pin_memory), (tp_memory_format, format))
TENSORPY_HANDLE(tp_tensor *, cast_of, "aten::to.dtype", (tp_tensor *, self), (tp_dtype, dtype), (bool, non_blocking),
                (bool, copy), (tp_memory_format, format))

tp_tensor *seen_cpu(tp_tensor *self) { return clone_of(self, TP_NO_FORMAT); }
tp_tensor *asked_cpu(tp_tensor *self, tp_dtype dtype) {
    return cast_of(self, dtype == TP_NO_DTYPE ? tp_view_of(self).dtype : dtype, false, true, TP_NO_FORMAT);
}
tp_tensor *pair_cpu(tp_tensors tensors) { return clone_of(tensors.data[0], TP_NO_FORMAT); }
tp_tensor *noise_cpu(tp_tensor *self, tp_generator *generator) {
    (void)generator;
    tp_opt_bool none = {false, false};
    tp_device device = {-1, -1};
    return rand_of(self, TP_NO_DTYPE, TP_NO_LAYOUT, device, none, TP_NO_FORMAT);
}
TENSORPY_HANDLE(tp_tensor *, cat_of, "aten::cat", (tp_tensors, tensors), (int64_t, dim))
tp_tensor *joined_cpu(tp_tensors tensors, int64_t dim) { return cat_of(tensors, dim); }
tp_tensor *rows_cpu(tp_tensor *self) {
    if (!tp_view_of(self).is_contiguous) return tp_fail(TP_RuntimeError, "not contiguous"), NULL;
    return seen_cpu(self);
}
"""


@pytest.fixture(scope="module")
def ops(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("layers")
    for name, text in (
        ("native_functions.yaml", YAML),
        ("derivatives.yaml", DERIVATIVES),
        ("autocast.yaml", AUTOCAST),
        ("kernels.c", C),
    ):
        (folder / name).write_text(text)
    sources = generate("every_layer", folder, folder / "out")
    path = load(
        "every_layer", [*sources, folder / "kernels.c"], extra_include_paths=[folder / "out"], build_directory=folder
    )
    yield tp.ops.every_layer
    tp.ops.unload_library(path)


def test_every_policy(ops: Any) -> None:
    x, half = tp.ones(3), tp.ones(3, dtype=tp.bfloat16)
    with tp.autocast("cpu", dtype=tp.bfloat16):
        assert ops.seen(x).dtype == tp.bfloat16
        assert ops.wide(half).dtype == ops.appended(half).dtype == tp.float32
        assert ops.asked(half).dtype == tp.float32
        assert ops.asked(half, dtype=tp.float64).dtype == tp.float64
        assert ops.asked(half.double()).dtype == tp.float64
        assert ops.pair([x, x]).dtype == tp.bfloat16
        assert ops.widest([half, x]).dtype == tp.float32
        assert ops.widest([half, half]).dtype == tp.bfloat16
        with pytest.raises(RuntimeError, match="unsafe is unsafe to autocast"):
            ops.unsafe(x)
    assert ops.unsafe(half).dtype == tp.bfloat16
    assert ops.asked(half).dtype == tp.bfloat16


@pytest.mark.parametrize("dtype", [tp.float16, tp.bfloat16])
def test_steps_in_16_bits_are_rounded_once(ops: Any, dtype: tp.dtype) -> None:
    x = (tp.arange(200) / 40).to(dtype)
    want = ops.steps(x.float()).to(dtype)
    assert ops.steps(x).dtype == dtype
    assert ops.steps(x).tolist() == want.tolist()
    assert ops.steps_each(x).tolist() != want.tolist()
    leaf, wide = x.clone().requires_grad_(), x.float().requires_grad_()
    for of, given in ((ops.steps, 1), (ops.sloped, 1.5)):
        (made,) = tp.autograd.grad(of(leaf), leaf, tp.full((200,), given, dtype=dtype))
        (whole,) = tp.autograd.grad(of(wide), wide, tp.full((200,), given))
        assert made.dtype == dtype
        assert made.tolist() == whole.to(dtype).tolist()


def test_tags(ops: Any) -> None:
    x = tp.ones(4, 3)
    assert "nondeterministic_seeded" in ops.noise.default.tags
    with pytest.raises(RuntimeError, match="randomness"):
        tp.vmap(ops.noise)(x)
    different = tp.vmap(ops.noise, randomness="different")(x)
    same = tp.vmap(ops.noise, randomness="same")(x)
    assert len({tuple(row) for row in different.tolist()}) == 4 and len({tuple(row) for row in same.tolist()}) == 1
    assert ops.rows(x.t()).shape == (3, 4)
    tp.use_deterministic_algorithms(True)
    try:
        with pytest.raises(RuntimeError, match="bitwise"):
            ops.bitwise(x)
        assert ops.seen(x).shape == (4, 3)
    finally:
        tp.use_deterministic_algorithms(False)
    for call in (ops.some, ops.some_parts):
        with pytest.raises(NotImplementedError, match="dynamic_output_shape"):
            call(x.to("meta"))
        with pytest.raises(RuntimeError, match=r"The size of what|nonzero"):
            tp.vmap(call)(x)


def test_a_gradient_of_the_sizes_of_a_list(ops: Any) -> None:
    shapes = [(2, 3), (2, 1), (2, 4)]
    for of in (ops.joined, tp.cat):
        leaves = [tp.ones(shape, requires_grad=True) for shape in shapes]
        made = of(leaves, -1)
        weight = tp.arange(16.0).reshape(2, 8)
        (made * weight).sum().backward()
        grads = [leaf.grad.tolist() for leaf in leaves if leaf.grad is not None]
        assert grads == [part.tolist() for part in weight.split([3, 1, 4], 1)]
    with pytest.raises(IndexError, match="Dimension out of range"):
        ops.joined([tp.ones(2, requires_grad=True)], 3)
    many = [tp.ones(1, requires_grad=True) for _ in range(65)]
    with pytest.raises(RuntimeError, match="at most 64 tensors"):
        ops.joined(many)
    with tp.no_grad():
        assert ops.joined(many).shape == (65,)


def test_a_policy_needs_its_argument(tmp_path: Path) -> None:
    (tmp_path / "native_functions.yaml").write_text("- func: f(Tensor self) -> Tensor\n  dispatch:\n    CPU: f_cpu\n")
    (tmp_path / "autocast.yaml").write_text("fp32_set_opt_dtype: [f]\n")
    with pytest.raises(Exception, match="has no 'ScalarType"):
        library_files("mine", tmp_path)
