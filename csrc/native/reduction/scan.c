/* scan.c: operators that run along a dimension and keep every step. The primitive wants plain tensors: what is laid out
 * otherwise, or of another dtype, goes through temporaries, a piece at a time. */
#include "NativeFunctions.h"
#include "Primitives.h"
#include "iter/iter.h"
#include "prim/pieces.h"
#include "prim/plain.h"

#include <float.h>

typedef int (*scan_fn)(tp_tensor *x, int64_t dim, tp_tensor *out);
typedef int (*extreme_fn)(tp_tensor *x, int64_t dim, tp_tensor *out, tp_tensor *at);

typedef struct {
    scan_fn scan;
    extreme_fn extreme; /* instead of scan: what has places too */
    tp_dtype dtype;     /* what self is read as */
    int64_t dim;
} run;

/* parts: out, self, and the places. */
static int scan_part(tp_tensor *const *parts, const void *context) {
    const run *r = context;
    tp_tensor *out = parts[0], *places = parts[2];
    tp_autoref *in = tp_plain(parts[1], r->dtype), *made = in ? tp_target(out, r->dtype) : NULL;
    if (!made) return -1;
    if (!places) return r->scan(in, r->dim, made) < 0 ? -1 : tp_finish(made, out);
    tp_autoref *at = tp_target(places, TP_INT64);
    return !at || r->extreme(in, r->dim, made, at) < 0 || tp_finish(made, out) < 0 ? -1 : tp_finish(at, places);
}

static int scan_into(run r, tp_tensor *self, int64_t dim, tp_tensor *out, tp_tensor *places) {
    if ((r.dim = tp_wrap_dim(dim, self->ndim)) < 0) return -1;
    if (self->numel == 0) return 0;
    tp_tensor *const all[] = {out, self, places};
    bool copies = tp_needs_copy(self, r.dtype) || tp_needs_copy(out, r.dtype);
    return tp_by_pieces(all, TP_COUNTOF(all), copies ? (uint64_t)1 << r.dim : TP_WHOLE, scan_part, &r);
}

/* ---- cumsum, cumprod ---- */

static int running_meta(tp_meta *m, const char *op, tp_tensor *self, int64_t dim, tp_dtype dtype) {
    if (tp_wrap_dim(dim, self->ndim) < 0) return -1;
    if (dtype == TP_NO_DTYPE && m->given[0] == self && self->dtype == TP_BOOL)
        return tp_fail(TP_NotImplementedError, "\"%s_out_cpu\" not implemented for 'Bool'", op);
    if (dtype == TP_NO_DTYPE && m->given[0]) dtype = (tp_dtype)m->given[0]->dtype;
    if (dtype == TP_NO_DTYPE) dtype = self->dtype < TP_FLOAT16 ? TP_INT64 : (tp_dtype)self->dtype;
    return tp_meta_output(m, 0, tp_sizes(self), TP_NO_INTS, dtype, self->device);
}

/* Elements become the result's dtype first, so that a bool result counts with bools. */
static int running(scan_fn scan, tp_tensor *self, int64_t dim, tp_tensor *out) {
    tp_dtype result = (tp_dtype)out->dtype, compute = result < TP_FLOAT16 ? TP_INT64 : tp_compute_dtype(result);
    bool narrows = result < TP_FLOAT16 && result != TP_INT64 && (tp_dtype)self->dtype != result;
    tp_autoref *in = narrows ? tp_plain(self, result) : tp_retain(self);
    return in ? scan_into((run){.scan = scan, .dtype = compute}, in, dim, out, NULL) : -1;
}

/* cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor */
int cumsum_meta(tp_meta *m, tp_tensor *self, int64_t dim, tp_dtype dtype) {
    return running_meta(m, "cumsum", self, dim, dtype);
}
int cumsum_dense(tp_tensor *self, int64_t dim, tp_dtype dtype TP_UNUSED, tp_tensor *out) {
    return running(tp_prim_scan_sum, self, dim, out);
}

/* cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor */
int cumprod_meta(tp_meta *m, tp_tensor *self, int64_t dim, tp_dtype dtype) {
    return running_meta(m, "cumprod", self, dim, dtype);
}
int cumprod_dense(tp_tensor *self, int64_t dim, tp_dtype dtype TP_UNUSED, tp_tensor *out) {
    return running(tp_prim_scan_prod, self, dim, out);
}

/* The sum of all later elements, itself included. */
static tp_tensor *sum_from_end(tp_tensor *t, int64_t dim) {
    tp_autoref *turned = tp_flip(t, TP_INTS(dim)), *sums = turned ? tp_cumsum(turned, dim, TP_NO_DTYPE) : NULL;
    return sums ? tp_flip(sums, TP_INTS(dim)) : NULL;
}

/* _cumsum_backward(Tensor grad, int dim) -> Tensor */
tp_tensor *_cumsum_backward_composite(tp_tensor *grad, int64_t dim) {
    return grad->numel <= 1 ? tp_alias(grad) : sum_from_end(grad, dim);
}

/* Without zeros: sum of grad * output from the end, over the input. Up to and at the first zero of a line, what lies
 * before it is the same with that zero set to one; at it, the products go on as if it were one; after it all products
 * are zero.
 * cumprod_backward(Tensor grad, Tensor input, int dim, Tensor output) -> Tensor */
tp_tensor *cumprod_backward_composite(tp_tensor *grad, tp_tensor *input, int64_t dim, tp_tensor *output) {
    if (input->numel <= 1) return tp_alias(grad);
    tp_autoref *x = tp_conj(input), *zero = tp_eq_Scalar(input, TP_SCALAR_I(0));
    tp_autoref *zeros = zero ? tp_cumsum(zero, dim, TP_NO_DTYPE) : NULL;
    tp_autoref *before = zeros ? tp_eq_Scalar(zeros, TP_SCALAR_I(0)) : NULL; /* in front of the first zero */
    tp_autoref *one = zeros ? tp_eq_Scalar(zeros, TP_SCALAR_I(1)) : NULL;    /* from the first zero to the second */
    tp_autoref *first = one ? tp_logical_and(one, zero) : NULL;              /* at it */
    tp_autoref *filled = first ? tp_masked_fill_Scalar(x, zero, TP_SCALAR_I(1)) : NULL;
    tp_autoref *products = filled ? tp_cumprod(filled, dim, TP_NO_DTYPE) : NULL;
    tp_autoref *out = products ? tp_conj(output) : NULL, *weighted = out ? tp_mul_Tensor(grad, out) : NULL;
    tp_autoref *sums = weighted ? sum_from_end(weighted, dim) : NULL,
               *plain = sums ? tp_div_Tensor(sums, filled) : NULL;
    tp_autoref *after = plain ? tp_mul_Tensor(grad, products) : NULL, *kept = after ? tp_mul_Tensor(after, one) : NULL;
    tp_autoref *at = kept ? sum_from_end(kept, dim) : NULL;
    tp_autoref *from_first = at ? tp_where_ScalarOther(first, at, TP_SCALAR_I(0)) : NULL;
    return from_first ? tp_where_self(before, plain, from_first) : NULL;
}

/* ---- cummax, cummin ---- */

static int extremes_meta(tp_meta *m, tp_tensor *self, int64_t dim) {
    if (tp_wrap_dim(dim, self->ndim) < 0) return -1;
    if (tp_is_complex(self))
        return tp_fail(TP_NotImplementedError, "cummax, cummin: not implemented for %s", tp_dtype_names[self->dtype]);
    if (tp_meta_output(m, 0, tp_sizes(self), TP_NO_INTS, (tp_dtype)self->dtype, self->device) < 0) return -1;
    return tp_meta_output(m, 1, tp_sizes(self), TP_NO_INTS, TP_INT64, self->device);
}

static int extremes(extreme_fn scan, tp_tensor *self, int64_t dim, tp_tensor *values, tp_tensor *indices) {
    run r = {.extreme = scan, .dtype = tp_compute_dtype((tp_dtype)self->dtype)};
    return scan_into(r, self, dim, values, indices);
}

/* cummax(Tensor self, int dim) -> (Tensor values, Tensor indices) */
int cummax_meta(tp_meta *m, tp_tensor *self, int64_t dim) { return extremes_meta(m, self, dim); }
int cummax_dense(tp_tensor *self, int64_t dim, tp_tensor *values, tp_tensor *indices) {
    return extremes(tp_prim_scan_max, self, dim, values, indices);
}

/* cummin(Tensor self, int dim) -> (Tensor values, Tensor indices) */
int cummin_meta(tp_meta *m, tp_tensor *self, int64_t dim) { return extremes_meta(m, self, dim); }
int cummin_dense(tp_tensor *self, int64_t dim, tp_tensor *values, tp_tensor *indices) {
    return extremes(tp_prim_scan_min, self, dim, values, indices);
}

/* cummaxmin_backward(Tensor grad, Tensor input, Tensor indices, int dim) -> Tensor */
tp_tensor *cummaxmin_backward_composite(tp_tensor *grad, tp_tensor *input, tp_tensor *indices, int64_t dim) {
    tp_autoref *zeros = tp_zeros(tp_sizes(input), (tp_dtype)grad->dtype, TP_STRIDED, grad->device, -1);
    return zeros ? tp_scatter_add(zeros, dim, indices, grad) : NULL;
}

/* ---- logcumsumexp ---- */

/* logcumsumexp(Tensor self, int dim) -> Tensor */
int logcumsumexp_meta(tp_meta *m, tp_tensor *self, int64_t dim) {
    if (tp_wrap_dim(dim, self->ndim) < 0) return -1;
    if (!tp_is_floating(self) && !tp_is_complex(self))
        return tp_fail(TP_NotImplementedError, "logcumsumexp: not implemented for %s", tp_dtype_names[self->dtype]);
    return tp_meta_output(m, 0, tp_sizes(self), TP_NO_INTS, (tp_dtype)self->dtype, self->device);
}
int logcumsumexp_dense(tp_tensor *self, int64_t dim, tp_tensor *out) {
    tp_dtype compute = tp_compute_dtype((tp_dtype)self->dtype);
    return scan_into((run){.scan = tp_prim_scan_logsumexp, .dtype = compute}, self, dim, out, NULL);
}

/* grad_i / exp(result_i) summed from the end, times exp(self): in logarithms, positive and negative gradients apart.
 * _logcumsumexp_backward(Tensor grad, Tensor self, Tensor result, int dim) -> Tensor */
tp_tensor *_logcumsumexp_backward_composite(tp_tensor *grad, tp_tensor *self, tp_tensor *result, int64_t dim) {
    if (grad->numel <= 1) return tp_alias(grad);
    if (tp_is_complex(grad)) { /* one logarithm serves: that of the conjugate, since the sum is holomorphic */
        tp_autoref *turned_grad = tp_conj_physical(grad), *log = turned_grad ? tp_log(turned_grad) : NULL,
                   *gap = log ? tp_sub_Tensor(log, result, TP_SCALAR_I(1)) : NULL;
        tp_autoref *turned = gap ? tp_flip(gap, TP_INTS(dim)) : NULL,
                   *sums = turned ? tp_logcumsumexp(turned, dim) : NULL,
                   *back = sums ? tp_flip(sums, TP_INTS(dim)) : NULL;
        tp_autoref *all = back ? tp_add_Tensor(back, self, TP_SCALAR_I(1)) : NULL, *value = all ? tp_exp(all) : NULL;
        return value ? tp_conj_physical(value) : NULL;
    }
    /* For no gradient the lowest number stands: an infinity would make the gradient of this undefined. */
    tp_dtype dtype = (tp_dtype)grad->dtype;
    double lowest = dtype == TP_FLOAT64 ? -DBL_MAX : dtype == TP_FLOAT16 ? -65504.0 : -3.38e38;
    tp_autoref *negative = tp_neg(grad), *out = NULL;
    for (int side = 0; negative && side < 2; side++) {
        tp_autoref *g = tp_retain(side ? negative : grad), *some = tp_gt_Scalar(g, TP_SCALAR_I(0));
        tp_autoref *log = some ? tp_log(g) : NULL;
        tp_autoref *logs = log ? tp_where_ScalarOther(some, log, TP_SCALAR_F(lowest)) : NULL;
        tp_autoref *gap = logs ? tp_sub_Tensor(logs, result, TP_SCALAR_I(1)) : NULL;
        tp_autoref *turned = gap ? tp_flip(gap, TP_INTS(dim)) : NULL;
        tp_autoref *sums = turned ? tp_logcumsumexp(turned, dim) : NULL,
                   *back = sums ? tp_flip(sums, TP_INTS(dim)) : NULL;
        tp_autoref *all = back ? tp_add_Tensor(back, self, TP_SCALAR_I(1)) : NULL, *value = all ? tp_exp(all) : NULL;
        if (!value) return NULL;
        if (!side) out = tp_take(value);
        else return tp_sub_Tensor(out, value, TP_SCALAR_I(1));
    }
    return NULL;
}

/* ---- diff ---- */

/* diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor */
tp_tensor *diff_composite(tp_tensor *self, int64_t n, int64_t dim, tp_tensor *prepend, tp_tensor *append) {
    if (self->ndim == 0) return tp_fail_null(TP_RuntimeError, "diff expects input to be at least one-dimensional");
    int64_t d = tp_wrap_dim(dim, self->ndim);
    if (d < 0) return NULL;
    if (n < 0) return tp_fail_null(TP_RuntimeError, "order must be non-negative but got %lld", (long long)n);
    tp_tensor *parts[3], *const given[] = {prepend, append};
    int64_t count = 0;
    for (int i = 0; i < 2; i++) {
        if (!given[i]) continue;
        bool fits = given[i]->ndim == self->ndim;
        if (!fits)
            return tp_fail_null(TP_RuntimeError, "diff expects prepend or append to be the same dimension as input");
        for (int k = 0; k < self->ndim; k++) fits = fits && (k == d || given[i]->sizes[k] == self->sizes[k]);
        if (!fits)
            return tp_fail_null(TP_RuntimeError,
                                "diff expects the shape of tensor to prepend or append to match that of input except "
                                "along the differencing dimension");
    }
    if (prepend) parts[count++] = prepend;
    parts[count++] = self;
    if (append) parts[count++] = append;
    tp_autoref *t = count > 1 && n > 0 ? tp_cat((tp_tensors){parts, count}, d) : tp_retain(self);
    if (n == 0) return t ? tp_clone(t, TP_NO_FORMAT) : NULL;
    if (t && n > t->sizes[d]) n = t->sizes[d]; /* nothing is left by then */
    for (int64_t i = 0; t && i < n; i++) {
        int64_t size = t->sizes[d];
        tp_autoref *late = tp_slice_Tensor(t, d, TP_SOME_INT(1), TP_NO_INT, 1);
        tp_autoref *early = late ? tp_slice_Tensor(t, d, TP_SOME_INT(0), TP_SOME_INT(size ? size - 1 : 0), 1) : NULL;
        tp_tensor *gap = !early                ? NULL
                         : t->dtype == TP_BOOL ? tp_logical_xor(late, early)
                                               : tp_sub_Tensor(late, early, TP_SCALAR_I(1));
        tp_release(t);
        t = gap;
    }
    return tp_take(t);
}
