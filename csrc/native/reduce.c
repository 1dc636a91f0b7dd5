/* reduce.c: sums, means and questions of zero as operators: dtypes and shapes; the driver is iter/reduce.c,
 * the kernels are cpu/reduce.c and cpu/fold.c. */
#include "iter/reduce.h"

#include "NativeFunctions.h"
#include "cpu/kernels.h"

#define ALL_DIMS (~UINT64_C(0))

/* Integers and bool add and multiply to int64, unless the caller says otherwise. */
static tp_dtype result_dtype(const tp_tensor *self, tp_dtype dtype) {
    if (dtype != TP_NO_DTYPE) return dtype;
    return self->dtype < TP_FLOAT16 ? TP_INT64 : (tp_dtype)self->dtype;
}

/* The same for a meta function: what out= has decides where the caller is silent. */
static tp_dtype asked_dtype(const tp_meta *m, tp_dtype dtype) {
    return dtype == TP_NO_DTYPE && m->given[0] ? (tp_dtype)m->given[0]->dtype : dtype;
}

static int declare(tp_meta *m, const tp_tensor *self, uint64_t mask, bool keepdim, tp_dtype dtype) {
    int64_t sizes[TP_MAX_DIMS];
    int n = tp_reduce_sizes(self, mask, keepdim, sizes);
    return tp_meta_output(m, 0, (tp_ints){sizes, n}, TP_NO_INTS, dtype, self->device);
}

/* All dimensions into a new tensor of `dtype`. */
static tp_tensor *reduce_whole(const tp_reduction *r, tp_tensor *self, tp_dtype dtype) {
    tp_autoref *out = tp_new_empty(TP_EMPTY_INTS, dtype, self->device);
    return out && tp_reduce(r, self, ALL_DIMS, out, NULL) == 0 ? tp_take(out) : NULL;
}

static int reduce_dims(const tp_reduction *r, tp_tensor *self, tp_ints dim, tp_tensor *out) {
    uint64_t mask;
    if (tp_reduce_mask(dim, self->ndim, &mask) < 0) return -1;
    return tp_reduce(r, self, mask, out, NULL);
}

/* ---- sum ---- */

/* What sums to `dtype` are accumulated in: float32 for the 16-bit floats, int64 for all integers. */
static const tp_reduction *sum_to(tp_dtype dtype) {
    return &tp_cpu.reduce->sum[tp_is_integral_dtype(dtype) ? TP_INT64 : tp_compute_dtype(dtype)];
}

/* sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor */
int sum_dim_IntList_meta(tp_meta *m, tp_tensor *self, tp_ints dim, bool keepdim, tp_dtype dtype) {
    uint64_t mask;
    if (tp_reduce_mask(dim, self->ndim, &mask) < 0) return -1;
    return declare(m, self, mask, keepdim, result_dtype(self, asked_dtype(m, dtype)));
}

int sum_dim_IntList_cpu(tp_tensor *self, tp_ints dim, bool keepdim TP_UNUSED, tp_dtype dtype TP_UNUSED,
                        tp_tensor *out) {
    return reduce_dims(sum_to((tp_dtype)out->dtype), self, dim, out);
}

/* sum(Tensor self, *, ScalarType? dtype=None) -> Tensor */
tp_tensor *sum_cpu(tp_tensor *self, tp_dtype dtype) {
    tp_dtype result = result_dtype(self, dtype);
    return reduce_whole(sum_to(result), self, result);
}

tp_tensor *sum_meta(tp_tensor *self, tp_dtype dtype) {
    return tp_new_empty(TP_EMPTY_INTS, result_dtype(self, dtype), self->device);
}

/* ---- nansum, nanmean ---- */

/* Integers have no NaN. */
static const tp_reduction *nansum_to(tp_dtype dtype) {
    tp_dtype compute = tp_compute_dtype(dtype);
    return compute == TP_FLOAT32 || compute == TP_FLOAT64 ? &tp_cpu.fold->nansum[compute] : sum_to(dtype);
}

/* nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor */
int nansum_meta(tp_meta *m, tp_tensor *self, tp_ints dim, bool keepdim, tp_dtype dtype) {
    if (tp_is_complex(self)) return tp_fail(TP_RuntimeError, "nansum on CPU does not support complex inputs");
    return sum_dim_IntList_meta(m, self, dim, keepdim, dtype);
}

/* A NaN must be left out before it becomes an integer. */
int nansum_cpu(tp_tensor *self, tp_ints dim, bool keepdim TP_UNUSED, tp_dtype dtype TP_UNUSED, tp_tensor *out) {
    if (!tp_is_floating(self) || tp_is_floating((const tp_tensor *)out))
        return reduce_dims(nansum_to((tp_dtype)out->dtype), self, dim, out);
    tp_autoref *numbers =
        tp_nan_to_num(self, TP_SOME_FLOAT(0), TP_SOME_FLOAT(__builtin_inf()), TP_SOME_FLOAT(-__builtin_inf()));
    return numbers ? reduce_dims(sum_to((tp_dtype)out->dtype), numbers, dim, out) : -1;
}

/* nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor */
tp_tensor *nanmean_composite(tp_tensor *self, tp_ints dim, bool keepdim, tp_dtype dtype) {
    if (!tp_is_floating(self) && !tp_is_complex(self))
        return tp_fail_null(TP_RuntimeError,
                            "nanmean(): expected input to have floating point or complex dtype but got %s",
                            tp_scalar_type_name((tp_dtype)self->dtype));
    tp_autoref *missing = tp_isnan(self), *there = missing ? tp_logical_not(missing) : NULL;
    tp_autoref *count = there ? tp_sum_dim_IntList(there, dim, keepdim, TP_NO_DTYPE) : NULL;
    tp_autoref *sum = count ? tp_nansum(self, dim, keepdim, dtype) : NULL;
    return sum ? tp_div_Tensor(sum, count) : NULL;
}

/* ---- mean ---- */

/* TP_NO_DTYPE and an error for what has no mean of its own dtype. */
static tp_dtype mean_dtype(const tp_tensor *self, tp_dtype dtype) {
    tp_dtype result = dtype != TP_NO_DTYPE ? dtype : (tp_dtype)self->dtype;
    if (tp_is_floating_dtype(result) || tp_is_complex_dtype(result)) return result;
    tp_fail(TP_RuntimeError,
            "mean(): could not infer output dtype. %s dtype must be either a floating point or complex dtype. "
            "Got: %s",
            dtype != TP_NO_DTYPE ? "Optional" : "Input", tp_scalar_type_name(result));
    return TP_NO_DTYPE;
}

static const tp_reduction *mean_to(tp_dtype dtype) { return &tp_cpu.reduce->mean[tp_compute_dtype(dtype)]; }

/* mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor */
int mean_dim_meta(tp_meta *m, tp_tensor *self, tp_ints dim, bool keepdim, tp_dtype dtype) {
    uint64_t mask;
    tp_dtype result = mean_dtype(self, dtype);
    if (result == TP_NO_DTYPE || tp_reduce_mask(dim, self->ndim, &mask) < 0) return -1;
    return declare(m, self, mask, keepdim, result);
}

int mean_dim_cpu(tp_tensor *self, tp_ints dim, bool keepdim TP_UNUSED, tp_dtype dtype TP_UNUSED, tp_tensor *out) {
    return reduce_dims(mean_to((tp_dtype)out->dtype), self, dim, out);
}

/* mean(Tensor self, *, ScalarType? dtype=None) -> Tensor */
tp_tensor *mean_cpu(tp_tensor *self, tp_dtype dtype) {
    tp_dtype result = mean_dtype(self, dtype);
    return result == TP_NO_DTYPE ? NULL : reduce_whole(mean_to(result), self, result);
}

tp_tensor *mean_meta(tp_tensor *self, tp_dtype dtype) {
    tp_dtype result = mean_dtype(self, dtype);
    return result == TP_NO_DTYPE ? NULL : tp_new_empty(TP_EMPTY_INTS, result, self->device);
}

/* ---- any, all ---- */

/* The answer is a bool; that of uint8 stays uint8, as it was before there was bool. */
static int any_meta_of(tp_meta *m, const char *op, tp_tensor *self, uint64_t mask, bool keepdim) {
    tp_dtype dtype = self->dtype == TP_UINT8 ? TP_UINT8 : TP_BOOL;
    if (m->given[0] && m->given[0]->dtype != TP_BOOL && m->given[0]->dtype != TP_UINT8)
        return tp_fail(TP_RuntimeError, "%s only supports bool tensor for result, got: %s", op,
                       tp_scalar_type_name((tp_dtype)m->given[0]->dtype));
    return declare(m, self, mask, keepdim, m->given[0] ? (tp_dtype)m->given[0]->dtype : dtype);
}

/* The dimensions of a list; None is all of them, an empty one none. */
static int mask_of_some(tp_ints dim, int64_t ndim, uint64_t *mask) {
    if (tp_reduce_mask(dim, ndim, mask) < 0) return -1;
    if (dim.size == 0) *mask = 0;
    return 0;
}

#define ANY(op, table)                                                                                   \
    int op##_meta(tp_meta *m, tp_tensor *self) { return any_meta_of(m, #op, self, ALL_DIMS, false); }    \
    int op##_cpu(tp_tensor *self, tp_tensor *out) {                                                      \
        return tp_reduce(&tp_cpu.fold->table[self->dtype], self, ALL_DIMS, out, NULL);                   \
    }                                                                                                    \
    int op##_dims_meta(tp_meta *m, tp_tensor *self, tp_ints dim, bool keepdim) {                         \
        uint64_t mask;                                                                                   \
        return mask_of_some(dim, self->ndim, &mask) < 0 ? -1 : any_meta_of(m, #op, self, mask, keepdim); \
    }                                                                                                    \
    int op##_dims_cpu(tp_tensor *self, tp_ints dim, bool keepdim TP_UNUSED, tp_tensor *out) {            \
        uint64_t mask;                                                                                   \
        if (mask_of_some(dim, self->ndim, &mask) < 0) return -1;                                         \
        return tp_reduce(&tp_cpu.fold->table[self->dtype], self, mask, out, NULL);                       \
    }                                                                                                    \
    int op##_dim_meta(tp_meta *m, tp_tensor *self, int64_t dim, bool keepdim) {                          \
        return op##_dims_meta(m, self, TP_INTS(dim), keepdim);                                           \
    }                                                                                                    \
    int op##_dim_cpu(tp_tensor *self, int64_t dim, bool keepdim, tp_tensor *out) {                       \
        return op##_dims_cpu(self, TP_INTS(dim), keepdim, out);                                          \
    }

/* any(Tensor self), any.dims(Tensor self, int[]? dim=None, bool keepdim=False), any.dim(Tensor self, int dim, ...) */
ANY(any, any)
/* all(Tensor self), all.dims(Tensor self, int[]? dim=None, bool keepdim=False), all.dim(Tensor self, int dim, ...) */
ANY(all, all)

/* ---- count_nonzero ---- */

static tp_tensor *count_empty(tp_tensor *self, tp_ints dim, uint64_t *mask) {
    int64_t sizes[TP_MAX_DIMS];
    if (tp_reduce_mask(dim, self->ndim, mask) < 0) return NULL;
    return tp_new_empty((tp_ints){sizes, tp_reduce_sizes(self, *mask, false, sizes)}, TP_INT64, self->device);
}

/* count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor */
tp_tensor *count_nonzero_dim_IntList_cpu(tp_tensor *self, tp_ints dim) {
    uint64_t mask;
    tp_autoref *out = count_empty(self, dim, &mask);
    if (!out || tp_reduce(&tp_cpu.fold->nonzero[self->dtype], self, mask, out, NULL) < 0) return NULL;
    return tp_take(out);
}

tp_tensor *count_nonzero_dim_IntList_meta(tp_tensor *self, tp_ints dim) {
    uint64_t mask;
    return count_empty(self, dim, &mask);
}

/* count_nonzero(Tensor self, int? dim=None) -> Tensor */
tp_tensor *count_nonzero_composite(tp_tensor *self, tp_opt_int dim) {
    return tp_count_nonzero_dim_IntList(self, dim.has ? TP_INTS(dim.value) : TP_EMPTY_INTS);
}
