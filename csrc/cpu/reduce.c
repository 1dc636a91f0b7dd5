/* reduce.c: the primitives reduce.*: which folds, from which dtype to which; the driver is reduction.c. */
#include "PrimitiveKernels.h"
#include "cpu/kernels.h"
#include "prim/fault.h"
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

/* t, which has the sizes of x without dim or with 1 there, with 1 there; new. */
static tp_tensor *with_dim(tp_tensor *t, const tp_tensor *x, int64_t dim) {
    int64_t sizes[TP_MAX_DIMS], strides[TP_MAX_DIMS];
    if (t->ndim == x->ndim) return tp_retain(t);
    for (int d = 0; d < x->ndim; d++) {
        int from = d < dim ? d : d - 1;
        sizes[d] = d == dim ? 1 : t->sizes[from];
        strides[d] = d == dim ? 1 : t->strides[from];
    }
    return tp_new_alias(t, (tp_ints){sizes, x->ndim}, (tp_ints){strides, x->ndim}, t->byte_offset);
}

/* Values = x at the places along dim, which keeps them exact; both have the sizes of x without dim, or with 1 there. */
static int take_along(tp_tensor *x, int64_t dim, tp_tensor *places, tp_tensor *values) {
    if (!places->numel) return 0;
    tp_autoref *at = with_dim(places, x, dim), *to = at ? with_dim(values, x, dim) : NULL;
    return to ? take_cpu(x, dim, at, TP_TRUSTED, false, to) : -1;
}

static int extreme(tp_fold fold, const tp_reduction *places, tp_tensor *given, tp_ints dim, tp_tensor *out,
                   tp_tensor *at) {
    tp_dtype compute = tp_compute_dtype((tp_dtype)given->dtype);
    if (!at) return out ? reduce(fold, given, dim, out) : 0;
    tp_autoref *x = tp_still(given);
    if (!x) return -1;
    if (tp_reduce(&places[compute], x, dim, at, NULL) < 0) return -1;
    return out ? take_along(x, dim.size ? dim.data[0] : 0, at, out) : 0;
}

/* max(Tensor x, int[] dim, *, Tensor(a!)? out, Tensor(b!)? at) -> () */
int reduce_max_cpu(tp_tensor *x, tp_ints dim, tp_tensor *out, tp_tensor *at) {
    return extreme(TP_FOLD_MAX, tp_cpu.extreme->largest_at, x, dim, out, at);
}

int reduce_min_cpu(tp_tensor *x, tp_ints dim, tp_tensor *out, tp_tensor *at) {
    return extreme(TP_FOLD_MIN, tp_cpu.extreme->smallest_at, x, dim, out, at);
}
