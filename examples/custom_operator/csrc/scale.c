/* scale.c: the operators of myops, and their kernels for the CPU and Meta. */
#include "tensorpy/library.h"

TENSORPY_HANDLE(tp_tensor *, contiguous, "aten::contiguous", (tp_tensor *, self), (tp_memory_format, format))

TENSORPY_LIBRARY(myops, m) {
    if (tp_def(m, "scale(Tensor self, float by=2.0) -> Tensor") < 0) return -1;
    if (tp_def(m, "scale_(Tensor(a!) self, float by=2.0) -> Tensor(a!)") < 0) return -1;
    return tp_def(m, "extent(Tensor self) -> (float, float)");
}

static int check_float(const tp_view *v, const char *op) {
    return v->dtype == TP_FLOAT32 ? 0 : tp_fail(TP_TypeError, "%s takes float32, not %s", op, tp_dtype_name(v->dtype));
}

typedef struct {
    const float *from;
    float *to;
    float by;
} scaling;

static void scale_range(int64_t begin, int64_t end, void *context) {
    const scaling *s = context;
    for (int64_t i = begin; i < end; i++) s->to[i] = s->from[i] * s->by;
}

/* Any strides: what has gaps is made contiguous first. */
TENSORPY_KERNEL(tp_tensor *, scale_cpu, (tp_tensor *, self), (double, by)) {
    tp_view v = tp_view_of(self);
    if (check_float(&v, "scale") < 0) return NULL;
    tp_tensor *from = contiguous(self, TP_CONTIGUOUS_FORMAT);
    tp_tensor *out = from ? tp_new_empty_like(from, TP_FLOAT32) : NULL;
    if (out) {
        scaling s = {tp_view_of(from).data, tp_view_of(out).data, (float)by};
        if (tp_parallel_for(v.numel, 32768, scale_range, &s) < 0) {
            tp_release(out);
            out = NULL;
        }
    }
    tp_release(from);
    return out;
}

/* Its result is its argument, so it returns a status. */
TENSORPY_KERNEL(int, scale_inplace_cpu, (tp_tensor *, self), (double, by)) {
    tp_view v = tp_view_of(self);
    if (check_float(&v, "scale_") < 0) return -1;
    if (!v.is_contiguous) return tp_fail(TP_RuntimeError, "scale_ takes a contiguous tensor");
    scaling s = {v.data, v.data, (float)by};
    return tp_parallel_for(v.numel, 32768, scale_range, &s);
}

TENSORPY_KERNEL(int, extent_cpu, (tp_tensor *, self), (double *, low), (double *, high)) {
    tp_view v = tp_view_of(self);
    if (check_float(&v, "extent") < 0) return -1;
    if (v.numel == 0) return tp_fail(TP_IndexError, "extent of a tensor without elements");
    tp_tensor *from = contiguous(self, TP_CONTIGUOUS_FORMAT);
    if (!from) return -1;
    const float *x = tp_view_of(from).data;
    *low = *high = x[0];
    for (int64_t i = 1; i < v.numel; i++) {
        if (x[i] < *low) *low = x[i];
        if (x[i] > *high) *high = x[i];
    }
    tp_release(from);
    return 0;
}

TENSORPY_KERNEL(tp_tensor *, scale_meta, (tp_tensor *, self), (double, by)) {
    return tp_new_empty_like(self, tp_view_of(self).dtype);
}

TENSORPY_LIBRARY_IMPL(myops, CPU, m) {
    if (tp_impl(m, "scale", scale_cpu) < 0 || tp_impl(m, "scale_", scale_inplace_cpu) < 0) return -1;
    return tp_impl(m, "extent", extent_cpu);
}
TENSORPY_LIBRARY_IMPL(myops, Meta, m) { return tp_impl(m, "scale", scale_meta); }
