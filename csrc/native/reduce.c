/* reduce.c: reductions as operators: dtypes and shapes; the driver is iter/reduce.c. */
#include "iter/reduce.h"

#include "NativeFunctions.h"
#include "cpu/kernels.h"

/* ---- sum ---- */

/* Integers and bool sum to int64, unless the caller says otherwise. */
static tp_dtype sum_dtype(const tp_tensor *self, tp_dtype dtype) {
    if (dtype != TP_NO_DTYPE) return dtype;
    return self->dtype < TP_FLOAT16 ? TP_INT64 : (tp_dtype)self->dtype;
}

/* What sums to `dtype` are accumulated in: float32 for the 16-bit floats, int64 for all integers. */
static const tp_reduction *sum_to(tp_dtype dtype) {
    return &tp_cpu.reduce->sum[tp_is_integral_dtype(dtype) ? TP_INT64 : tp_compute_dtype(dtype)];
}

/* sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor */
int sum_dim_IntList_meta(tp_meta *m, tp_tensor *self, tp_ints dim, bool keepdim, tp_dtype dtype) {
    uint64_t mask;
    int64_t sizes[TP_MAX_DIMS];
    if (tp_reduce_mask(dim, self->ndim, &mask) < 0) return -1;
    if (dtype == TP_NO_DTYPE && m->given[0]) dtype = (tp_dtype)m->given[0]->dtype;
    int n = tp_reduce_sizes(self, mask, keepdim, sizes);
    return tp_meta_output(m, 0, (tp_ints){sizes, n}, TP_NO_INTS, sum_dtype(self, dtype), self->device);
}

int sum_dim_IntList_cpu(tp_tensor *self, tp_ints dim, bool keepdim TP_UNUSED, tp_dtype dtype TP_UNUSED,
                        tp_tensor *out) {
    uint64_t mask;
    if (tp_reduce_mask(dim, self->ndim, &mask) < 0) return -1;
    return tp_reduce(sum_to((tp_dtype)out->dtype), self, mask, out, NULL);
}

/* sum(Tensor self, *, ScalarType? dtype=None) -> Tensor */
tp_tensor *sum_cpu(tp_tensor *self, tp_dtype dtype) {
    tp_dtype result = sum_dtype(self, dtype);
    tp_autoref *out = tp_new_empty(TP_EMPTY_INTS, result, self->device);
    return out && tp_reduce(sum_to(result), self, ~UINT64_C(0), out, NULL) == 0 ? tp_take(out) : NULL;
}

tp_tensor *sum_meta(tp_tensor *self, tp_dtype dtype) {
    return tp_new_empty(TP_EMPTY_INTS, sum_dtype(self, dtype), self->device);
}
