/* reduce.c: the primitives reduce.*: which folds, from which dtype to which; the driver is reduction.c. */
#include "PrimitiveKernels.h"
#include "cpu/kernels.h"
#include "prim/reduce.h"
#include "core/memory.h"

/* Whether an element is zero is asked of its own bits, or of what a stored dtype is computed in. */
static tp_dtype asked_dtype(const tp_tensor *x) {
    tp_dtype d = (tp_dtype)x->dtype;
    return tp_is_stored_dtype(d) ? tp_compute_dtype(d) : d;
}

static const tp_reduction *row_of_program(int64_t program, tp_dtype compute) {
    const tp_reduction_op *op = tp_reduction_at(program, compute);
    return op ? &op->kernels[compute] : NULL;
}

const tp_reduction *tp_reduction_row(tp_fold fold, int64_t program, tp_dtype compute, const tp_tensor *x,
                                     const tp_tensor *out) {
    tp_dtype given = (tp_dtype)out->dtype;
    switch (fold) {
    case TP_FOLD_SUM: return &tp_cpu.reduce->sum[tp_sum_dtype(given)];
    case TP_FOLD_MEAN: return &tp_cpu.reduce->mean[tp_compute_dtype(given)];
    case TP_FOLD_NANSUM: return &tp_cpu.fold->nansum[tp_compute_dtype(given)];
    case TP_FOLD_ANY: return &tp_cpu.fold->any[asked_dtype(x)];
    case TP_FOLD_ALL: return &tp_cpu.fold->all[asked_dtype(x)];
    case TP_FOLD_COUNT: return &tp_cpu.fold->nonzero[asked_dtype(x)];
    case TP_FOLD_MAX: return &tp_cpu.extreme->largest[tp_compute_dtype((tp_dtype)x->dtype)];
    case TP_FOLD_MIN: return &tp_cpu.extreme->smallest[tp_compute_dtype((tp_dtype)x->dtype)];
    case TP_FOLD_LENGTH: return &tp_cpu.moments->length[tp_length_dtype(x, given)];
    case TP_FOLD_PROGRAM: return row_of_program(program, compute);
    }
    tp_fail(TP_RuntimeError, "prim::fused.reduce: there is no fold %d", (int)fold);
    return NULL;
}

static int reduce(tp_fold fold, tp_tensor *x, tp_ints dim, tp_tensor *out) {
    return tp_reduce(tp_reduction_row(fold, 0, TP_FLOAT32, x, out), x, dim, out, NULL);
}

/* sum(Tensor x, int[] dim, *, Tensor(a!) out) -> () */
int reduce_sum_cpu(tp_tensor *x, tp_ints dim, tp_tensor *out) { return reduce(TP_FOLD_SUM, x, dim, out); }
int reduce_mean_cpu(tp_tensor *x, tp_ints dim, tp_tensor *out) { return reduce(TP_FOLD_MEAN, x, dim, out); }
int reduce_nansum_cpu(tp_tensor *x, tp_ints dim, tp_tensor *out) { return reduce(TP_FOLD_NANSUM, x, dim, out); }
int reduce_any_cpu(tp_tensor *x, tp_ints dim, tp_tensor *out) { return reduce(TP_FOLD_ANY, x, dim, out); }
int reduce_all_cpu(tp_tensor *x, tp_ints dim, tp_tensor *out) { return reduce(TP_FOLD_ALL, x, dim, out); }
int reduce_count_cpu(tp_tensor *x, tp_ints dim, tp_tensor *out) { return reduce(TP_FOLD_COUNT, x, dim, out); }
int reduce_length_cpu(tp_tensor *x, tp_ints dim, tp_tensor *out) { return reduce(TP_FOLD_LENGTH, x, dim, out); }

int reduce_variance_cpu(tp_tensor *x, tp_ints dim, double correction, bool root, tp_tensor *out) {
    tp_moments_params params = {correction, root};
    return tp_reduce(&tp_cpu.moments->variance[tp_compute_dtype((tp_dtype)x->dtype)], x, dim, out, &params);
}

int reduce_program_cpu(int64_t program, tp_tensor *x, tp_ints dim, tp_dtype compute, tp_tensor *out) {
    const tp_reduction *r = row_of_program(program, compute);
    return r ? tp_reduce(r, x, dim, out, NULL) : -1;
}

/* ---- the largest and the smallest ---- */

/* Values = x at the places along dim, which keeps them exact; both have the sizes of x without dim, or with 1 there. */
static void take_along(const tp_tensor *x, int64_t dim, const tp_tensor *places, tp_tensor *values) {
    int64_t size = tp_itemsize((tp_dtype)x->dtype), index[TP_MAX_DIMS] = {0}, steps[TP_MAX_DIMS];
    bool keepdim = places->ndim == x->ndim;
    for (int d = 0, from = 0; d < places->ndim; d++, from++) {
        if (!keepdim && from == dim) from++;
        steps[d] = keepdim && d == dim ? 0 : x->strides[from] * size;
    }
    int64_t along = x->ndim ? x->strides[dim] * size : 0;
    const char *in = tp_data(x);
    const int64_t *at = tp_data(places);
    char *out = tp_data(values);
    for (int64_t n = places->numel; n > 0; n--) {
        memcpy(out, in + *at * along, (size_t)size);
        for (int d = places->ndim - 1; d >= 0; d--) {
            in += steps[d];
            at += places->strides[d];
            out += values->strides[d] * size;
            if (++index[d] < places->sizes[d]) break;
            in -= steps[d] * index[d];
            at -= places->strides[d] * index[d];
            out -= values->strides[d] * size * index[d];
            index[d] = 0;
        }
    }
}

static int extreme(tp_fold fold, const tp_reduction *places, tp_tensor *given, tp_ints dim, tp_tensor *out,
                   tp_tensor *at) {
    tp_dtype compute = tp_compute_dtype((tp_dtype)given->dtype);
    if (!at) return out ? reduce(fold, given, dim, out) : 0;
    tp_autoref *x = tp_still(given);
    if (!x) return -1;
    if (tp_reduce(&places[compute], x, dim, at, NULL) < 0) return -1;
    if (out) take_along(x, dim.size ? dim.data[0] : 0, at, out);
    return 0;
}

/* max(Tensor x, int[] dim, *, Tensor(a!)? out, Tensor(b!)? at) -> () */
int reduce_max_cpu(tp_tensor *x, tp_ints dim, tp_tensor *out, tp_tensor *at) {
    return extreme(TP_FOLD_MAX, tp_cpu.extreme->largest_at, x, dim, out, at);
}

int reduce_min_cpu(tp_tensor *x, tp_ints dim, tp_tensor *out, tp_tensor *at) {
    return extreme(TP_FOLD_MIN, tp_cpu.extreme->smallest_at, x, dim, out, at);
}
