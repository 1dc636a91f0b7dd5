"""The iterator for kernels from outside (tensorpy/iterator.h): broadcasting, strides, dtypes, threads, refusals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import tensorpy as tp
from tensorpy import ops
from tensorpy.utils.extension import load_inline

SOURCE = """
#include "tensorpy/library.h"

static void add(char *const *data, const int64_t *strides, int64_t n, const void *params) {
    float by = *(const float *)params;
    for (int64_t i = 0; i < n; i++)
        *(float *)(data[0] + i * strides[0]) =
            *(const float *)(data[1] + i * strides[1]) + by * *(const float *)(data[2] + i * strides[2]);
}

static int into(tp_tensor *out, tp_tensor *a, tp_tensor *b, double by) {
    tp_tensor *tensors[] = {out, a, b};
    tp_plan plan;
    float factor = (float)by;
    if (tp_plan_of(tensors, 1, 3, &plan) < 0) return -1;
    for (int i = 0; i < 3; i++) plan.loop_dtype[i] = TP_FLOAT32;
    return tp_walk(&plan, add, &factor, 0);
}

TENSORPY_KERNEL(tp_tensor *, axpy_cpu, (tp_tensor *, a), (tp_tensor *, b), (double, by)) {
    const tp_operand inputs[] = {{a, NULL}, {b, NULL}};
    tp_dtype dtype = tp_result_type(inputs, 2);
    tp_tensor *out = dtype == TP_NO_DTYPE ? NULL : tp_new_output(inputs, 2, dtype);
    if (!out) return NULL;
    if (into(out, a, b, by) == 0) return out;
    tp_release(out);
    return NULL;
}

TENSORPY_KERNEL(int, axpy_out_cpu, (tp_tensor *, a), (tp_tensor *, b), (double, by), (tp_tensor *, out)) {
    return into(out, a, b, by);
}

TENSORPY_KERNEL(int, merged_cpu, (tp_tensor *, a), (tp_tensor *, b), (int64_t *, ndim)) {
    tp_tensor *tensors[] = {a, b};
    tp_plan plan;
    if (tp_plan_of(tensors, 0, 2, &plan) < 0) return -1;
    *ndim = plan.ndim;
    return 0;
}

TENSORPY_KERNEL(int, wild_cpu, (tp_tensor *, a), (int64_t, n), (int64_t, noutputs), (int64_t, dtype)) {
    tp_tensor *tensors[] = {a, a, a, a, a, a, a, a, a, NULL};
    float one = 1;
    tp_plan plan;
    if (tp_plan_of(tensors, (int)noutputs, (int)n, &plan) < 0) return -1;
    plan.loop_dtype[0] = (tp_dtype)dtype;
    return tp_walk(&plan, add, &one, 0);
}

TENSORPY_LIBRARY(outside_walk, m) {
    if (tp_def(m, "axpy(Tensor a, Tensor b, float by=1.0) -> Tensor") < 0) return -1;
    if (tp_def(m, "axpy.out(Tensor a, Tensor b, float by=1.0, *, Tensor(a!) out) -> Tensor(a!)") < 0) return -1;
    if (tp_def(m, "wild(Tensor a, int n, int noutputs, int dtype) -> ()") < 0) return -1;
    return tp_def(m, "merged(Tensor a, Tensor b) -> int");
}
TENSORPY_LIBRARY_IMPL(outside_walk, CPU, m) {
    if (tp_impl(m, "axpy", axpy_cpu) < 0 || tp_impl(m, "axpy.out", axpy_out_cpu) < 0) return -1;
    if (tp_impl(m, "wild", wild_cpu) < 0) return -1;
    return tp_impl(m, "merged", merged_cpu);
}
"""


@pytest.fixture(scope="module")
def mine() -> Iterator[Any]:
    path = load_inline("outside_walk", SOURCE)
    yield ops.outside_walk
    ops.unload_library(path)


OPERANDS = {
    "contiguous": lambda: (tp.randn(3, 5), tp.randn(3, 5)),
    "broadcast": lambda: (tp.randn(4, 1, 5), tp.randn(3, 1)),
    "transposed": lambda: (tp.randn(5, 3).t(), tp.randn(3, 5)),
    "flipped": lambda: (tp.randn(3, 5).flip(0), tp.randn(5)),
    "channels_last": lambda: (tp.randn(2, 3, 4, 5).to(memory_format=tp.channels_last),) * 2,
    "no dimensions": lambda: (tp.tensor(2.0), tp.tensor(3.0)),
    "nothing": lambda: (tp.randn(0, 3), tp.randn(3)),
    "many": lambda: (tp.randn(300, 700), tp.randn(700)),
    "strided": lambda: (tp.randn(600, 6)[::2, ::3], tp.randn(2)),
}


@pytest.mark.parametrize("name", OPERANDS)
@pytest.mark.parametrize("dtype", [tp.float32, tp.float16, tp.bfloat16, tp.float64, tp.int16])
def test_a_loop_of_one_dtype_serves_all(mine: Any, name: str, dtype: tp.dtype) -> None:
    tp.manual_seed(0)
    a, b = (t.mul(4).to(dtype) for t in OPERANDS[name]())
    wanted = (a.float() + 2 * b.float()).to(dtype)
    made = mine.axpy(a, b, 2.0)
    assert made.dtype == dtype and made.stride() == (a + b).stride()
    assert tp.equal(made, wanted)
    out = tp.empty_like(wanted)
    assert mine.axpy(a, b, 2.0, out=out) is out and tp.equal(out, wanted)


def test_promotion_of_different_dtypes(mine: Any) -> None:
    made = mine.axpy(tp.tensor([1, 2]), tp.tensor([0.5, 0.25], dtype=tp.float16), 2.0)
    assert made.dtype == tp.float16 and made.tolist() == [2.0, 2.5]


def test_dimensions_are_merged(mine: Any) -> None:
    a = tp.randn(2, 3, 4)
    assert mine.merged(a, a) == 1 and mine.merged(a, tp.randn(4)) == 2 and mine.merged(a[:, :2], tp.randn(3, 1)[:2]) > 1


def test_a_result_does_not_depend_on_threads(mine: Any) -> None:
    a, b = tp.randn(400, 500).t(), tp.randn(500, 1)
    before = tp.get_num_threads()
    try:
        made = []
        for threads in (1, 2):
            tp.set_num_threads(threads)
            made.append(mine.axpy(a, b, 0.5))
    finally:
        tp.set_num_threads(before)
    assert tp.equal(*made)


def test_what_cannot_be_walked_is_refused(mine: Any) -> None:
    a = tp.randn(3)
    with pytest.raises(RuntimeError, match="must match"):
        mine.axpy(a, tp.randn(4))
    with pytest.raises(RuntimeError, match="output 0 has not the broadcast shape"):
        mine.axpy(a, tp.randn(2, 3), out=tp.empty(3))
    whole = tp.randn(5)
    with pytest.raises(RuntimeError, match="unsupported operation"):
        mine.axpy(whole[:4], tp.randn(4), out=whole[1:])
    with pytest.raises(RuntimeError, match="unsupported operation"):
        mine.axpy(a, a, out=tp.empty(1).expand(3))
    for n, noutputs in ((0, 0), (9, 1), (3, 4), (3, -1), (-1, -1)):
        with pytest.raises(ValueError, match="there may be 1 to 8"):
            mine.wild(a, n, noutputs, 0)
    for dtype in (-1, 1000):
        with pytest.raises(ValueError, match="no dtype that a loop can take"):
            mine.wild(a, 3, 0, dtype)
